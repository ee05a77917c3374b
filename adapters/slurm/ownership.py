"""Which jobs were handed over to pilotfish, and what may be done with each now.

Rule: only what a site's configuration names, and only within what the user asked for. A begin time is ours to move
only if the job says that it was set for us (`pilotfish:hold=SECONDS` in its comment, and the begin time is that long
after its submission); every other begin time is the user's, or Slurm's: it lets a requeued job wait until the
credential of its first run has expired.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from ...simulate.snapshot import JobState
from . import dependency
from .records import SlurmJob
from .update import was_let_go

_TAG = re.compile(r"(?<![\w-])pilotfish(?::(?P<rest>\S*))?(?![\w-])")
_WORD = re.compile(r"[\w.-]+")
_HOLD = re.compile(r"(?:^|;)hold=(\d{1,7})(?:;|$)")
_SLACK_S = 5.0  #: between a submission and the begin time that was counted from it
#: reasons for which Slurm would start the job if it had the nodes
_READY = frozenset(("None", "", "Resources", "Priority", "ReqNodeNotAvail", "BeginTime", "Cleaning"))


class Standing(StrEnum):
    """What a job of Slurm's is to us."""

    NEIGHBOUR = "neighbour"  #: not ours; it is simulated, never touched
    WAITING = "waiting"  #: ours, and not free to start yet
    FREE = "free"  #: ours, and may be placed; Slurm may start it at any moment, too
    HELD = "held"  #: ours, and waits for us until its begin time


_RUNS = (Standing.NEIGHBOUR, "")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which jobs a site hands over: those of a partition, QOS or account, those that ask for a feature, and those with
    `pilotfish` in their comment."""

    partitions: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    comment: bool = True

    @classmethod
    def of(
        cls, partitions: Iterable[str], qos: Iterable[str], accounts: Iterable[str], features: Iterable[str],
        *, comment: bool,
    ) -> Selection:  # fmt: skip
        """Of these lists."""
        return cls(frozenset(partitions), frozenset(qos), frozenset(accounts), frozenset(features), comment)

    def takes(self, job: SlurmJob) -> bool:
        """Whether the job is one of them."""
        return (
            job.partition in self.partitions
            or job.qos in self.qos
            or job.account in self.accounts
            or bool(self.features and self.features & set(_WORD.findall(job.features)))
            or (self.comment and _TAG.search(job.comment) is not None)
        )


def hold_seconds(comment: str) -> int | None:
    """For how long the job's begin time was set for us, seconds after its submission; None if it was not."""
    tag = _TAG.search(comment)
    hold = _HOLD.search(tag["rest"] or "") if tag else None
    return int(hold[1]) if hold else None


def ready(job: SlurmJob) -> bool:
    """Whether nodes, or the begin time, are all that the job waits for."""
    return job.reason.split(",")[0] in _READY


def is_held(job: SlurmJob, now: float) -> bool:
    """Whether a begin time that was set for us, and none of the user's, keeps the job from starting."""
    hold = hold_seconds(job.comment)
    if hold is None or job.restarts or job.begin is None or job.submit is None or job.begin <= now:
        return False
    return job.submit <= job.begin <= job.submit + hold + _SLACK_S


def standing(job: SlurmJob, selection: Selection, now: float) -> tuple[Standing, str]:
    """What the job is to us at `now` (the controller's clock), and why it is left alone, if it is."""
    if job.state is not JobState.PENDING or not selection.takes(job):
        return Standing.NEIGHBOUR, ""
    if job.part:
        return Standing.NEIGHBOUR, "members of arrays and heterogeneous jobs are left to Slurm"
    if was_let_go(job):
        return Standing.NEIGHBOUR, "pilotfish has let it go: its start is Slurm's to choose"
    if job.reservation:
        return Standing.NEIGHBOUR, f"it has the reservation {job.reservation}"
    if job.special:
        return Standing.WAITING, f"it asks for {job.special}, which is left to Slurm"
    if job.dependency:
        return Standing.WAITING, f"it depends on {job.dependency}"
    if not ready(job):
        return Standing.WAITING, f"Slurm says {job.reason}"
    if is_held(job, now):
        return Standing.HELD, ""
    if job.begin is not None and job.begin > now:
        requeued = "Slurm lets it wait after a requeue"
        return Standing.WAITING, requeued if job.restarts else "its user wants it to begin later"
    if job.priority == 0:
        return Standing.WAITING, "it is held"
    return Standing.FREE, ""


class Standings:
    """What each job of a queue that is read again and again is to us: told anew where a record is a new one, or the
    clock has passed its begin time, either way."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self._known: dict[int, tuple[SlurmJob, bool, tuple[Standing, str]]] = {}

    def of(self, job: SlurmJob, now: float) -> tuple[Standing, str]:
        """See `standing`; the very same pair while nothing has changed. O(1) for a record that is known."""
        if job.state is not JobState.PENDING:
            return _RUNS
        known, early = self._known.get(job.id), job.begin is not None and job.begin > now
        if known is not None and known[0] is job and known[1] is early:
            return known[2]
        found = standing(job, self.selection, now)
        self._known[job.id] = job, early, found
        return found

    def keep(self, ids: Collection[int]) -> None:
        """Forget all jobs but these."""
        for gone in self._known.keys() - ids:
            del self._known[gone]


def precursors(job: SlurmJob, selection: Selection, now: float) -> tuple[int, ...]:
    """Ids of the jobs after whose ends this one may start, if nothing but them keeps it; else none."""
    after = dependency.followed(job.dependency)
    if not after or job.priority == 0:  # held by its user or an operator
        return ()
    free = replace(job, dependency="", reason="None")
    return after if standing(free, selection, now)[0] in (Standing.HELD, Standing.FREE) else ()
