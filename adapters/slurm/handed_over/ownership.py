"""The jobs that are handed over to pilotfish, and the actions allowed on each now.

Rule: only jobs that the site's configuration selects, and only within what the user asked for. A begin time is ours to
change only if the job's comment says so and it has been the same since it was first seen: `pilotfish:hold=SECONDS`,
which is counted from the submission, or `pilotfish:until=EPOCH`, the begin time itself, which no clock can make wrong.
Every other begin time is the user's or Slurm's. Slurm sets one when it requeues a job, so that the job waits until the
credential of the first run has expired.

If a job begins while a new node list is on its way, Slurm changes the nodes of the running job. So a job is bound only
while a begin time keeps it from starting for ENOUGH_S. Any other job is first held back for HOLD_BACK_S, by its begin
time alone, which Slurm refuses for a job that has begun. ENOUGH_S is longer than a command or a request may take (15 s,
`timeout_s`). A request that slurmctld carries out even later cannot be excluded here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from ....simulate.model.snapshot import JobState
from .. import dependency
from ..records import SlurmJob

_TAG = re.compile(r"(?<![\w-])pilotfish(?::(?P<rest>\S*))?(?![\w-])")
_WORD = re.compile(r"[\w.-]+")
_HOLD = re.compile(r"(?:^|;)hold=(\d{1,7})(?:;|$)")
_UNTIL = re.compile(r"(?:^|;)until=(\d{1,10})(?:;|$)")
#: Seconds by which a begin time may be before and after the one in the comment: a slow `sbatch`, and rounding. What is
#: further away was moved by its user, or is a hold from a login node with a wrong clock.
EARLY_S, LATE_S = 15.0, 5.0
#: Seconds for which a job is held back before it is bound to nodes, and seconds that must be left of them, or of our
#: hold, when it is.
HOLD_BACK_S, ENOUGH_S = 30.0, 20.0
#: Seconds to which Slurm's times are exact: a begin time that we set to now may lie this far ahead.
EXACT_S = 1.0
#: Reasons with which Slurm would start the job if it had the nodes.
_READY = frozenset(("None", "", "Resources", "Priority", "ReqNodeNotAvail", "BeginTime", "Cleaning"))


class Ownership(StrEnum):
    """State of the hand-over of a job to pilotfish."""

    NEIGHBOUR = "neighbour"  #: not ours: simulated, never changed
    WAITING = "waiting"  #: ours, and may not start yet
    FREE = "free"  #: ours, may be placed; Slurm may start it at any moment, too
    HELD = "held"  #: ours, held for us until its begin time


#: What a job is that is not ours.
NEIGHBOUR = (Ownership.NEIGHBOUR, "")


@dataclass(frozen=True, slots=True)
class SlurmSelection:
    """The jobs that a site hands over, by partition, QOS, account, feature, or `pilotfish` in the comment."""

    partitions: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    comment: bool = True

    @classmethod
    def of(cls, *, comment: bool = True, **lists: Iterable[str]) -> SlurmSelection:
        """Return the selection of these lists, by field."""
        return cls(**{name: frozenset(words) for name, words in lists.items()}, comment=comment)

    def takes(self, job: SlurmJob) -> bool:
        """Return whether the job is handed over."""
        return (
            job.partition in self.partitions
            or job.qos in self.qos
            or job.account in self.accounts
            or bool(self.features and self.features & set(_WORD.findall(job.features)))
            or (self.comment and _TAG.search(job.comment) is not None)
        )


def hold_seconds(comment: str) -> int | None:
    """Return for how many seconds after submission the job is held for us; None if it is not."""
    tag = _TAG.search(comment)
    hold = _HOLD.search(tag["rest"] or "") if tag else None
    return int(hold[1]) if hold else None


def begins_later(job: SlurmJob) -> float | None:
    """Return by how many seconds a job begins later than its comment says; None if it says nothing about it."""
    tag, hold = _TAG.search(job.comment), hold_seconds(job.comment)
    until = _UNTIL.search(tag["rest"] or "") if tag else None
    if job.begin is None or job.submit is None or (until is None and hold is None):
        return None
    return job.begin - (float(until[1]) if until else job.submit + (hold or 0))


def ready(job: SlurmJob) -> bool:
    """Return whether the job waits for nothing but nodes or its begin time."""
    return job.reason.split(",")[0] in _READY


def is_held(job: SlurmJob, now: float) -> bool:
    """Return whether only a begin time that was set for us keeps the job from starting."""
    later = begins_later(job)
    if later is None or job.moved or job.restarts or (job.begin or 0.0) <= now:
        return False
    return -EARLY_S <= later <= LATE_S


def hold_end(job: SlurmJob) -> float:
    """Return until when a job that we hold back was to be held before, epoch seconds; its submission if it was not."""
    later = begins_later(job)
    return (job.submit or 0.0) if later is None or job.begin is None else job.begin - later


def may_begin(job: SlurmJob, now: float) -> bool:
    """Return whether a job that is FREE or HELD may begin within ENOUGH_S, so that it is to be held back first."""
    return job.begin is None or job.begin < now + ENOUGH_S


def hold_back_until(job: SlurmJob, now: float, max_defer_s: float) -> float | None:
    """Return the begin time that holds a job back while it is bound, whole epoch seconds; None: that is too long.

    Args:
        job: The job.
        now: Controller's clock, epoch seconds.
        max_defer_s: Longest time that a job is kept after its submission, seconds.
    """
    until, latest = float(math.floor(now + HOLD_BACK_S)), math.inf
    if job.deadline is not None:  # Slurm cancels a job that cannot end in time
        latest = job.deadline - (job.time_limit or math.inf)
    return until if job.submit is not None and until <= min(job.submit + max_defer_s, latest) else None


def ownership_of(job: SlurmJob, selection: SlurmSelection, now: float) -> tuple[Ownership, str]:
    """Return the ownership of the job at `now` (controller's clock), and the reason if it is left alone."""
    if job.state is not JobState.PENDING or not selection.takes(job):
        return Ownership.NEIGHBOUR, ""
    if job.let_go:
        return Ownership.NEIGHBOUR, "pilotfish has let it go: Slurm chooses its start"
    if job.left_to_slurm:  # ours as long as it is held for us: we let it go
        return Ownership.WAITING if job.special or is_held(job, now) else Ownership.NEIGHBOUR, job.left_to_slurm
    if job.dependency:
        return Ownership.WAITING, f"it depends on {job.dependency}"
    if not ready(job):
        return Ownership.WAITING, f"Slurm says {job.reason}"
    if job.unsettled:
        return Ownership.WAITING, "pilotfish does not know yet whether it was placed; Slurm may start it"
    if job.paused or is_held(job, now):
        return Ownership.HELD, ""
    if job.begin is not None and job.begin > now:
        if job.begin <= now + EXACT_S:
            return Ownership.WAITING, "it may begin within a second"
        if job.restarts:
            return Ownership.WAITING, "Slurm lets it wait after a requeue"
        if begins_later(job) is None:
            return Ownership.WAITING, "its user wants it to begin later"
        return Ownership.WAITING, "its user moved its begin time, or the clock of the login node is wrong"
    if job.priority == 0:
        return Ownership.WAITING, "it is held"
    return Ownership.FREE, ""


class OwnershipCache:
    """Ownership of each job, computed again only for a new record or when the clock has passed the begin time."""

    def __init__(self, selection: SlurmSelection) -> None:
        self.selection = selection
        self._answers: dict[int, tuple[SlurmJob, bool, tuple[Ownership, str]]] = {}

    def of(self, job: SlurmJob, now: float) -> tuple[Ownership, str]:
        """Return `ownership_of` a job; the very same pair while nothing has changed. O(1) for a known record."""
        if job.state is not JobState.PENDING:
            return NEIGHBOUR
        entry, early = self._answers.get(job.id), job.begin is not None and job.begin > now
        if entry is not None and entry[0] is job and entry[1] is early:
            return entry[2]
        answer = ownership_of(job, self.selection, now)
        self._answers[job.id] = job, early, answer
        return answer

    def retain(self, ids: Collection[int]) -> None:
        """Drop all jobs but these."""
        for number in self._answers.keys() - ids:
            del self._answers[number]


def precursors(job: SlurmJob, selection: SlurmSelection, now: float) -> tuple[int, ...]:
    """Return the ids of the jobs whose ends alone keep this one from starting; () if there is another obstacle."""
    after = dependency.followed(job.dependency)
    if not after or job.priority == 0:  # held by its user or an operator
        return ()
    free = replace(job, dependency="", reason="None")
    return after if ownership_of(free, selection, now)[0] in (Ownership.HELD, Ownership.FREE) else ()
