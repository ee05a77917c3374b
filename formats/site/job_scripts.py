"""Options in scripts of jobs, from `sacct -a -B -j ...` where AccountingStoreFlags has job_script.

Rule: the `#SBATCH` lines before the first command count, as in Slurm. The first script of a job counts: a script may
hold the title of another one.
Source: sacct(1) and sbatch(1) of Slurm 22.05.
"""

from __future__ import annotations

import re

from ..command_words import split_line
from .submit_line import SubmitOptions, script_options

_TITLE = re.compile(
    r"^Batch Script for (\d{1,12}(?:_\d{1,9})?)(?:\+\d{1,6})? *\r?\n-{80}\r?\n", re.MULTILINE | re.ASCII
)
_PREFIX = "#SBATCH"


def job_scripts(text: str) -> dict[str, SubmitOptions]:
    """Return job id -> the options of its script. O(characters)."""
    _, *parts = _TITLE.split(text)
    scripts: dict[str, SubmitOptions] = {}
    by_text: dict[str, SubmitOptions] = {}  # tasks of an array have the same script
    for job, script in zip(parts[::2], parts[1::2], strict=True):
        if job not in scripts and script.startswith("#!"):
            if script not in by_text:
                by_text[script] = script_options(_option_lines(script))
            scripts[job] = by_text[script]
    return scripts


def _option_lines(script: str) -> list[list[str]]:
    """Return the words of each `#SBATCH` line before the first command; a word that begins with # ends a line."""
    lines = list[list[str]]()
    for line in script.split("\n"):
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith(_PREFIX):
            text = line[len(_PREFIX) :]
            try:
                words = split_line(text)
            except ValueError:
                words = text.split()
            end = next((i for i, word in enumerate(words) if word.startswith("#")), len(words))
            lines.append(words[:end])
    return lines
