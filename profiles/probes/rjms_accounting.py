"""A resource manager's own accounting, as what can be known of jobs once they have ended.

Rule: it tells of jobs that it ran itself, after their end; here it is only asked whether it would. Whether there is
accounting, and whether anything is gathered for it, are two settings, and both are named.
Source: slurm.conf(5), AccountingStorageType, JobAcctGatherType; sacct(1). OAR's accounting has no CPU time.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .tree import ProcessTree

#: Seconds after which a command is given up.
PATIENCE_S = 5.0
_SETTING = re.compile(r"^(\w+) *= ?(.*)$", re.MULTILINE)
#: How Slurm's commands begin what they complain of.
_WORD = re.compile(r"^\w+: (?:(?:error|fatal): )?")
#: What Slurm has where nothing is kept or gathered, for each kind.
_KEPT, _GATHERED = "AccountingStorageType", "JobAcctGatherType"
#: Runs a command; returns what it printed, and why it failed or "".
Ask = Callable[[Sequence[str]], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answers:
    """How many of the questions were answered, None where not one was; `problem` says why."""

    answered: float | None = None
    problem: str = ""


def ask(argv: Sequence[str]) -> tuple[str, str]:
    """Run a command of a resource manager's."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return "", str(problem)
    return done.stdout, _complaint(argv[0], done.stderr or done.stdout) if done.returncode else ""


class Accounting:
    """The books that `question` is put to.

    Args:
        owner: whose they are.
        lacking: why they do not tell what jobs used, given that the command is there; None = they do.
    """

    def __init__(
        self, owner: str, question: Sequence[str], lacking: Callable[[Ask], str | None], run: Ask = ask
    ) -> None:
        self._owner, self._question, self._lacking, self._run = owner, question, lacking, run
        self._answered, self._problem = 0, ""

    def available(self) -> str | None:
        """Return why nothing is to be learned from them, or None."""
        if shutil.which(self._question[0]) is None:
            return f"there is no {self._question[0]} command ({self._owner})"
        return self._lacking(self._run)

    def start(self, tree: ProcessTree, now: float) -> None:
        """Nothing is begun: they are kept anyway."""

    def sample(self, now: float, *, last: bool = False) -> None:
        """Ask once, for a single job."""
        _, problem = self._run(self._question)
        self._answered, self._problem = self._answered + (not problem), problem or self._problem

    def stop(self) -> Answers:
        """Return whether they answered."""
        return Answers(float(self._answered) if self._answered else None, self._problem)


def _complaint(command: str, printed: str) -> str:
    """The last thing that it said: what comes before is mostly how it came to that."""
    said = [line.strip() for line in printed.splitlines() if line.strip()]
    return _WORD.sub("", said[-1]) if said else f"{command} fails and says nothing"


def slurm(run: Ask = ask) -> Accounting:
    """Return Slurm's, asked by `sacct`."""
    return Accounting("Slurm", ("sacct", "--noheader", "--jobs=1", "--format=TotalCPU,MaxRSS"), _slurm_lacks, run)


def oar(run: Ask = ask) -> Accounting:
    """Return OAR's, which pilotfish does not read."""
    unread = "pilotfish does not read OAR's accounting yet"
    return Accounting("OAR", ("oarstat", "-J", "-j", "1"), lambda _: unread, run)


def _slurm_lacks(run: Ask) -> str | None:
    printed, problem = run(("scontrol", "show", "config"))
    if problem:
        return f"Slurm does not tell its settings: {problem}"
    settings = dict(_SETTING.findall(printed))
    for name, what in ((_KEPT, "keeps no accounting"), (_GATHERED, "gathers nothing of its jobs")):
        value = settings.get(name, "(null)").strip()
        if value in ("", "(null)", "none") or value.endswith("/none"):
            return f"Slurm {what}: {name}={value}"
    return None
