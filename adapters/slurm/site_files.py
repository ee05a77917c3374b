"""Files of the site, as Slurm's commands print them, read in a thread while the adapter goes on.

Rule: one command at a time, each counted as a request within the budget; the loop never waits. Each file has a longest
age. A round reads at most MOST files, the jobs last, so that all else is at least as new as its age; only the first
round reads all. Rounds begin only while forecasts want the site. What Slurm refuses is missing until it is due
again, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread

from ...formats.site.site_file_list import CONFIGURATION, PRESENT, SITE_FILES, is_needed
from ...formats.site.site_texts import SiteTexts
from ..base import AdapterError
from .site_commands import slurm_time
from .transport.runner import Runner

#: Longest ages of the files, seconds; of others SLOW_S. The jobs are read in each round.
SLOW_S = 900.0
AGES = {"scontrol_node.txt": 60.0, "scontrol_res.txt": 120.0, "sshare.psv": 300.0, "sacct.psv": 3600.0}
FILES = (*PRESENT, "sacct.psv")
#: How far back accounting is read, seconds.
PAST_S = 86_400.0
JOBS = "scontrol_job.txt"
#: Without these there is no site.
NEEDED = (CONFIGURATION, "scontrol_node.txt", "scontrol_part.txt")
#: Files of a round, with the jobs.
MOST = 3
#: A file that Slurm did not give is asked for again after so many seconds.
AGAIN_S = 300.0
#: Time limit of a command, seconds: accounting may think for long, and the loop does not wait.
TIMEOUT_S = 60.0
#: Name of these requests in the counts.
CALL = "site"


@dataclass(slots=True)
class _Round:
    """Answers to the commands of a round, and refusals, by name of the file; `spent`: outcome and seconds of each."""

    texts: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    spent: list[tuple[str, float]] = field(default_factory=list)
    time: float = 0.0


class SiteFileReader:
    """Reads the files.

    Args:
        run: runs a command, and returns what it printed.
        may_ask: whether a request may be sent now; it counts one that may.
        note: counts an answer: name of the request, outcome, seconds.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        run: Runner,
        may_ask: Callable[[], bool],
        note: Callable[[str, str, float], None],
        clock: Callable[[], float],
    ) -> None:
        self._run, self._may_ask, self._note, self._clock = run, may_ask, note, clock
        self._texts, self._missing = dict[str, str](), dict[str, str]()
        self._due_at = dict.fromkeys(FILES, -math.inf)
        self._round: Future[_Round] | None = None

    def look(self, time: float) -> SiteTexts:
        """Return the site once its jobs have come; before, nothing but why it is not known.

        Args:
            time: now by Slurm's clock, epoch seconds.
        """
        if self._round is not None and self._round.done():
            answers, self._round = self._round.result(), None
            self._take_in(answers)
            if JOBS in answers.texts:
                return SiteTexts({**self._texts}, {**self._missing}, answers.time)
        if self._round is None and (names := self._allowed()):
            self._round = Future[_Round]()
            arguments = (self._run, names, time, self._clock, self._round)
            Thread(target=_read, args=arguments, name="site", daemon=True).start()
        return SiteTexts(missing={**self._missing}, why_not=_why_not(self._missing))

    def _allowed(self) -> list[str]:
        """Return the files to ask for now, the jobs last; [] while one that is needed is not to be had."""
        now, configuration = self._clock(), self._texts.get(CONFIGURATION, "")
        due = sorted(
            (name for name in FILES if name != JOBS and self._due_at[name] <= now and is_needed(name, configuration)),
            key=self._due_at.__getitem__,
        )
        names = due if not self._texts else due[: MOST - 1]
        refused = [name for name in (*NEEDED, JOBS) if name in self._missing and self._due_at[name] > now]
        return [name for name in ([] if refused else [*names, JOBS]) if self._may_ask()]

    def _take_in(self, answers: _Round) -> None:
        for outcome, seconds in answers.spent:
            self._note(CALL, outcome, seconds)
        now = self._clock()
        for name in answers.texts:
            self._missing.pop(name, None)
            self._due_at[name] = now + (0.0 if name == JOBS else AGES.get(name, SLOW_S))
        for name in answers.missing:
            self._texts.pop(name, None)
            self._due_at[name] = now + AGAIN_S
        self._texts |= answers.texts
        self._missing |= answers.missing


def _why_not(missing: Mapping[str, str]) -> str:
    """Return why there is no site; "": there is, or it is being read."""
    return next((missing[name] for name in (*NEEDED, JOBS) if name in missing), "")


def _read(
    run: Runner, names: Sequence[str], time: float, clock: Callable[[], float], answers: Future[_Round]
) -> None:  # fmt: skip
    """Read files one after another, until one fails that is needed."""
    round, first = _Round(), clock()
    for name in names:
        began = clock()
        round.time = time + began - first
        try:
            round.texts[name] = run(SITE_FILES[name].argv(slurm_time(time - PAST_S), slurm_time(time)))
            round.spent.append(("ok", clock() - began))
        except AdapterError as error:
            round.missing[name] = str(error)
            round.spent.append((error.kind, clock() - began))
            if name in NEEDED:
                break
    answers.set_result(round)
