"""Probe of a resource manager's accounting: whether it can be queried, and how fast it answers.

Rule: accounting covers only the manager's own jobs, after their end; the probe asks whether it would answer. Recording
and gathering are two settings, and both are named.
Source: slurm.conf(5), AccountingStorageType, JobAcctGatherType; sacct(1). OAR's accounting has no CPU time.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .probe import Probe

#: Timeout of a command, seconds.
PATIENCE_S = 5.0
_SETTING = re.compile(r"^(\w+) *= ?(.*)$", re.MULTILINE)
#: Prefix of the errors of Slurm's commands.
_WORD = re.compile(r"^\w+: (?:(?:error|fatal): )?")
#: Slurm's settings for storing and gathering accounting, and what it lacks without them.
_NEEDED = {"AccountingStorageType": "keeps no accounting", "JobAcctGatherType": "gathers no resource usage"}
#: Runs a command; returns its output, and why it failed or "".
Ask = Callable[[Sequence[str]], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """Number of queries that were answered, None if none was; `problem` is the reason."""

    answered: float | None = None
    problem: str = ""


def ask(argv: Sequence[str]) -> tuple[str, str]:
    """Run a command and return (its output, why it failed or an empty text)."""
    try:
        result = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return "", str(problem)
    lines = [line.strip() for line in (result.stderr or result.stdout).splitlines() if line.strip()]
    last = _WORD.sub("", lines[-1]) if lines else f"{argv[0]} fails without a message"  # earlier ones: mostly context
    return result.stdout, last if result.returncode else ""


class AccountingSource(Probe):
    """The accounting that `question` queries.

    Args:
        owner: name of the resource manager.
        question: command line of the query.
        lacking: returns why accounting has no resource usage although the command exists; None = it has.
        run: runs a command line.
    """

    def __init__(
        self, owner: str, question: Sequence[str], lacking: Callable[[Ask], str | None], run: Ask = ask
    ) -> None:
        self._owner, self._question, self._lacking, self._run = owner, question, lacking, run
        self._answered, self._problem = 0, ""

    def available(self) -> str | None:
        """Return why accounting cannot be used, or None."""
        if shutil.which(self._question[0]) is None:
            return f"there is no {self._question[0]} command ({self._owner})"
        return self._lacking(self._run)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Query once, for a single job."""
        _, problem = self._run(self._question)
        self._answered, self._problem = self._answered + (not problem), problem or self._problem

    def stop(self) -> AnswerCounts:
        """Return how often it answered."""
        return AnswerCounts(float(self._answered) if self._answered else None, self._problem)


def slurm(run: Ask = ask) -> AccountingSource:
    """Return Slurm's accounting, queried by `sacct`."""
    return AccountingSource("Slurm", ("sacct", "--noheader", "--jobs=1", "--format=TotalCPU,MaxRSS"), _slurm_lacks, run)


def oar(run: Ask = ask) -> AccountingSource:
    """Return OAR's accounting, which pilotfish does not read."""
    return AccountingSource("OAR", ("oarstat",), lambda _: "pilotfish does not read OAR's accounting", run)


def _slurm_lacks(run: Ask) -> str | None:
    printed, problem = run(("scontrol", "show", "config"))
    if problem:
        return f"Slurm does not show its settings: {problem}"
    settings = dict(_SETTING.findall(printed))
    for name, lack in _NEEDED.items():
        value = settings.get(name, "(null)").strip()
        if value in ("", "(null)", "none") or value.endswith("/none"):
            return f"Slurm {lack}: {name}={value}"
    return None
