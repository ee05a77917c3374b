"""The CPU time that other programs took from a job while it ran, and the share of the nodes that they leave.

Rule: the estimate is rather too small than too large, because a run that others slowed down does not count against its
forecast. Others took at most the time that the job's threads waited for a core, and at most what its CPUs did beyond
our own jobs. Our jobs that still run count with all that their threads could have used, as far as these are known. The
share that others leave now is assumed to be the share that they left recently: of the jobs that ended in the last
RECENT_S the latest LATEST count, by the time for which they wanted a core. If that was measured when the
work began, it counts until jobs have wanted a core for ENOUGH_S.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

from ...simulate.model.cluster import Cluster
from ...simulate.model.snapshot import JobView
from ..report.accuracy import MUCH
from .job_profiles import measurement_of
from .node_speeds import at_speeds

#: For how long what a job saw says something about the next (s), how many jobs count, and the least that is left.
RECENT_S, LATEST, LEAST = 300.0, 10, 0.1
#: Seconds for which the jobs that ended must have wanted a core, to replace what was measured at the start.
ENOUGH_S = 1.0
#: Steps of what is left, as a logarithm, so that plans and their caches do not follow every small change.
_STEP = 0.05


def taken_by_others(view: JobView, views: Iterable[JobView]) -> float | None:
    """Return the share of a job's run time for which others kept its threads from their cores, [0, 1]; None = unknown.

    Args:
        view: of the job, which has ended.
        views: of all jobs of ours that may have run on its CPUs.
    """
    usage, run = dict(view.usage), measurement_of(view)
    if run is None or run.waiting is None or "busy_seconds" not in usage:
        return None
    cpus, begin, end = _cpus(view), view.start_time or 0.0, view.finish_time or 0.0
    ours = usage["cpu_seconds"]
    for other in views:
        if other.key != view.key and (used := _used(other, begin, end)) and not cpus.isdisjoint(_cpus(other)):
            ours += used
    threads = run.threads * max(1, len(view.nodes))
    return min(run.waiting, max(0.0, usage["busy_seconds"] - ours) / (threads * run.wall_s), 1.0)


def _cpus(view: JobView) -> set[int]:
    return {cpu for cpus in view.cores for cpu in cpus}


def _used(view: JobView, begin: float, end: float) -> float:
    """Return the CPU seconds that a job of ours used between two times, at most; epoch seconds."""
    if view.start_time is None:
        return 0.0
    shared = min(end, end if view.finish_time is None else view.finish_time) - max(begin, view.start_time)
    if shared <= 0.0:
        return 0.0
    if view.finish_time is None:
        measured = view.job.profile.provenance.source in ("measured", "predicted")
        return shared * (min(view.job.profile.threads, len(_cpus(view))) if measured else len(_cpus(view)))
    lasted = max(view.finish_time - view.start_time, shared)
    return dict(view.usage).get("cpu_seconds", lasted * len(_cpus(view))) * shared / lasted


class LoadOfOthers:
    """The CPU share that others leave on one machine, measured on the jobs that ended lately.

    Args:
        at_start: share of each node that others left at the start, above 0, at most 1, in the order of the cluster;
            empty = not known.
    """

    def __init__(self, at_start: Sequence[float] = ()) -> None:
        self._at_start = tuple(at_start)
        self._wanted_s = 0.0
        self._samples: deque[tuple[float, float, float]] = deque(maxlen=LATEST)
        self._memo: tuple[Cluster, tuple[float, ...], Cluster] | None = None

    def learn(self, view: JobView, taken: float | None) -> None:
        """Note a job that has ended, and the share of its run time that others took; None = unknown."""
        run = measurement_of(view)
        if taken is not None and run is not None and view.finish_time is not None:
            had_s, lost_s = run.groups[0].demand, taken * run.wall_s
            self._samples.append((view.finish_time, had_s, lost_s))
            self._wanted_s += had_s + lost_s

    def left(self, now: float) -> float:
        """Return the share of CPU time that others leave, [LEAST, 1], to 5 % of itself; `now` in epoch seconds."""
        recent = [(had_s, lost_s) for end, had_s, lost_s in self._samples if now - end < RECENT_S]
        had_s, lost_s = sum(had for had, _ in recent), sum(lost for _, lost in recent)
        share = had_s / (had_s + lost_s) if lost_s else 1.0  # of the time for which threads wanted a core
        if share > 1.0 - MUCH:
            return 1.0
        return max(LEAST, round(math.exp(round(math.log(max(share, LEAST)) / _STEP) * _STEP), 4))

    def leave(self, cluster: Cluster, now: float) -> Cluster:
        """Return the cluster with what others leave; the same object while neither changes.

        Args:
            cluster: the nodes.
            now: epoch seconds.
        """
        shares = self._at_start
        if not shares or self._wanted_s >= ENOUGH_S:
            shares = (self.left(now),) * len(cluster.nodes)
        if self._memo is None or self._memo[0] is not cluster or self._memo[1] != shares:
            self._memo = cluster, shares, at_speeds(cluster, shares)
        return self._memo[2]
