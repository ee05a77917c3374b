"""The priorities of waiting jobs, and the fair-share factors, that sprio and sshare printed when a site was recorded.

Rule: a line that cannot be read is left out; the tables are only compared with, so nothing rests on them.
Source: sprio(1) and sshare(1) of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path

from ...simulate.slurm.printed_numbers import PrintedNumbers
from .site_folder import SiteFiles, printed_at


def read_printed_numbers(folder: Path, zone: tzinfo) -> PrintedNumbers | None:
    """Return the numbers in `sprio.txt` and `sshare_end.psv` of a site; None if it has neither.

    Args:
        folder: of the site.
        zone: of the times in its files.

    Raises:
        ConfigError: a file cannot be read.
    """
    files = SiteFiles(folder)
    priorities, factors = dict(_priorities(files.text("sprio.txt"))), dict(_factors(files))
    return PrintedNumbers(printed_at(files, zone), priorities, factors) if priorities or factors else None


def _priorities(text: str) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the job and partition of each line of `sprio -l`, and its priority; the columns are those of its header."""
    header, *lines = [line.split() for line in text.split("\n") if line.strip()] or [[]]
    if not {"JOBID", "PARTITION", "PRIORITY"} <= set(header):
        return
    job, partition, priority = (header.index(name) for name in ("JOBID", "PARTITION", "PRIORITY"))
    for words in lines:
        # A blank field moves the others; the numbers are counted from the right, where none is blank.
        place = priority - len(header) if len(words) < len(header) else priority
        if len(words) >= -place and words[place].isascii() and words[place].isdigit():
            yield (words[job], words[partition]), int(words[place])


def _factors(files: SiteFiles) -> Iterator[tuple[tuple[str, str], float]]:
    table = files.table("sshare_end", ("account",))
    for record in table.records() if table else ():
        try:
            factor = float(record.text("fairshare"))
        except ValueError:
            continue
        if record.text("user") and 0.0 <= factor <= 1.0:
            yield (record.text("account"), record.text("user")), factor
