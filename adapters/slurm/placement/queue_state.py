"""The part of the queue that decisions need, adjusted from one read to the next by what has changed.

Rule: the result equals a count from scratch. `update` is given the jobs that are new or different, and those that have
gone; `advance` finds the jobs whose begin time has passed. For a job that is not handed over, only this counts: its
nodes, its place among the jobs that Slurm may start on the same nodes, and the limits that it uses.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from ....simulate.model.snapshot import JobState
from ..records import SlurmJob
from .limits import usage

#: Reasons with which Slurm leaves a job waiting that it would otherwise start.
STARTABLE = frozenset(("None", "", "Resources", "Priority", "Cleaning", "Reservation", "BeginTime"))
#: More changes than this are sorted in at once.
FEW = 64
#: Whose limits a job uses: QOS, partition, account, user.
Who = tuple[str, str, str, int]
#: What decides, with the nodes that a job excludes, on which nodes Slurm may start it.
Shape = tuple[str, str, tuple[str, ...], int]


def holds(job: SlurmJob) -> tuple[str, ...]:
    """Return the nodes that a job has, or to which we pinned it for an imminent start."""
    if job.state is JobState.PENDING:
        return job.wanted if job.pinned is not None else ()
    return () if job.state.ended else job.placed


def startable(job: SlurmJob, now: float) -> bool:
    """Return whether Slurm itself starts a job that it does not hold for us as soon as there is room for it."""
    if job.priority <= 0 or job.dependency or (job.begin is not None and job.begin > now):
        return False
    return job.start is not None or job.reason.split(",")[0] in STARTABLE


class Ranking:
    """Distinct pairs of numbers, in order; changes are sorted in when the order is next read."""

    def __init__(self) -> None:
        self._order: list[tuple[float, int]] = []
        self._removed: set[tuple[float, int]] = set()
        self._new: set[tuple[float, int]] = set()

    def add(self, rank: tuple[float, int]) -> None:
        """Add a pair that is not here."""
        if rank in self._removed:
            self._removed.remove(rank)
        else:
            self._new.add(rank)

    def drop(self, rank: tuple[float, int]) -> None:
        """Drop a pair that is here."""
        if rank in self._new:
            self._new.remove(rank)
        else:
            self._removed.add(rank)

    @property
    def order(self) -> list[tuple[float, int]]:
        """All pairs, smallest first; not to be changed."""
        if len(self._removed) + len(self._new) > FEW:
            remaining = [rank for rank in self._order if rank not in self._removed] if self._removed else self._order
            self._order = sorted([*remaining, *self._new])
        else:
            for rank in self._removed:
                del self._order[bisect_left(self._order, rank)]
            for rank in self._new:
                insort(self._order, rank)
        self._removed, self._new = set(), set()
        return self._order


class QueueState:
    """All jobs of the queue; `takes` says whether a job is handed over.

    Attributes:
        jobs: All jobs, by id; so are the others.
        pending: The waiting ones.
        ours: Those of them that are handed over.
        placed: Jobs with the nodes that they have.
        planned: Waiting jobs of others whose start Slurm has planned.
        placed_of: The placed jobs by whose limits they use; `used_of`: the sums of their usage; `startable_of`: jobs
            of others that Slurm may start.
        touched: Ids of jobs that have changed, or whose begin time has passed, since the owner of a view cleared it.
        moved: Ids of jobs whose nodes have changed since these were last counted.
    """

    def __init__(self, takes: Callable[[SlurmJob], bool]) -> None:
        self._takes, self._now = takes, -math.inf
        self.jobs: dict[int, SlurmJob] = {}
        self.pending: dict[int, SlurmJob] = {}
        self.ours: dict[int, SlurmJob] = {}
        self.placed: dict[int, tuple[SlurmJob, tuple[str, ...]]] = {}
        self.planned: dict[int, SlurmJob] = {}
        self.placed_of: dict[Who, dict[int, SlurmJob]] = defaultdict(dict)
        self.used_of: dict[Who, dict[str, float]] = defaultdict(dict)
        self.startable_of: dict[Who, dict[int, SlurmJob]] = defaultdict(dict)
        self.touched: set[int] = set()
        self.moved: set[int] = set()
        self._ahead: dict[Shape, Ranking] = defaultdict(Ranking)
        self._begins = Ranking()

    def update(self, new: Iterable[SlurmJob], gone: Iterable[int] = ()) -> None:
        """Take jobs that may be new or different, and ids of jobs that have gone. O(log jobs) for each."""
        for number in gone:
            if number in self.jobs:
                self._leave(number)
        for job in new:
            last_job = self.jobs.get(job.id)
            if last_job is not None:
                if last_job == job:
                    continue
                self._leave(job.id)
            self._enter(job)

    def advance(self, now: float) -> None:
        """Set the controller's clock, epoch seconds. O(jobs whose begin time it has passed)."""
        order, (first, last) = self._begins.order, sorted((self._now, now))
        self._now = now
        for _, number in order[bisect_right(order, (first, math.inf)) : bisect_right(order, (last, math.inf))]:
            self.touched.add(number)
            job = self.jobs[number]
            self._unrank(job)
            self._rank(job)

    def ahead(self, apart: Collection[int]) -> Iterator[SlurmJob]:
        """Yield the jobs of others that Slurm may start at any moment, without those that another one makes irrelevant.

        Of jobs for the same nodes only the first counts. `apart` are the ids of jobs that exclude some of their nodes.
        """
        for shape, ranking in list(self._ahead.items()):
            if not ranking.order:
                del self._ahead[shape]
            for _, number in ranking.order:
                yield self.jobs[number]
                if number not in apart:
                    break

    def _enter(self, job: SlurmJob) -> None:
        self.jobs[job.id] = job
        self.touched.add(job.id)
        if where := holds(job):
            self.placed[job.id] = job, where
            self.placed_of[_who(job)][job.id] = job
            self._use(job, 1.0)
            self.moved.add(job.id)
        if job.state is JobState.PENDING:
            self.pending[job.id] = job
            if job.begin is not None:
                self._begins.add((job.begin, job.id))
            if self._takes(job):
                self.ours[job.id] = job
            self._rank(job)

    def _leave(self, number: int) -> None:
        job = self.jobs.pop(number)
        self.touched.add(number)
        if self.placed.pop(number, None) is not None:
            _take_out(self.placed_of, _who(job), number)
            self._use(job, -1.0)
            self.moved.add(number)
        if self.pending.pop(number, None) is not None:
            if job.begin is not None:
                self._begins.drop((job.begin, number))
            self._unrank(job)
            self.ours.pop(number, None)

    def _use(self, job: SlurmJob, sign: float) -> None:
        """Add to, or take from, what the placed jobs use that count against the same limits."""
        who = _who(job)
        sums = self.used_of[who]
        for unit, amount in usage(job).items():
            sums[unit] = sums.get(unit, 0.0) + sign * amount
        if who not in self.placed_of:
            del self.used_of[who]

    def _rank(self, job: SlurmJob) -> None:
        """Count a waiting job that Slurm may start, unless it is ours."""
        if job.id in self.ours or job.id in self.placed or not startable(job, self._now):
            return
        self.startable_of[_who(job)][job.id] = job
        if job.start is not None:
            self.planned[job.id] = job
        else:
            self._ahead[_shape(job)].add((-job.priority, job.id))

    def _unrank(self, job: SlurmJob) -> None:
        if not _take_out(self.startable_of, _who(job), job.id):
            return
        if job.start is not None:
            del self.planned[job.id]
        else:
            self._ahead[_shape(job)].drop((-job.priority, job.id))


def _who(job: SlurmJob) -> Who:
    return job.qos, job.partition, job.account, job.uid


def _shape(job: SlurmJob) -> Shape:
    return job.partition, job.features, job.wanted, job.nodes if job.wanted else 0


def _take_out(groups: dict[Who, dict[int, SlurmJob]], who: Who, number: int) -> bool:
    """Drop a job from its group, and a group that is empty then; return whether it was there."""
    group = groups.get(who)
    if group is None or group.pop(number, None) is None:
        return False
    if not group:
        del groups[who]
    return True
