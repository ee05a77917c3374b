"""A record as a site whose own scheduler is conservative backfilling, so that its jobs can be replayed.

Rule: the site has what the looks at the queue show: jobs, their queues, and nodes that took jobs. Its rules are those
of Slurm's backfill with every limit out of the way: each job that waits has its place, first come, first served. What a
record does not show is in `unknown`.
Source: Mu'alem, Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM
SP2 with Backfilling" (2001), conservative backfilling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import ceil
from pathlib import Path

from ...simulate.errors import ConfigError
from ...simulate.model.observed_queue import ObservedJob
from ...simulate.model.snapshot import JobState
from ...simulate.slurm.site import (
    JobRecord,
    PriorityRules,
    SchedulerRules,
    Site,
    SiteJob,
    SiteNode,
    SitePartition,
    SiteRules,
)
from .changes import ChangeReader
from .segments import open_segments, segments

_MANY = 1_000_000
_RULES = SiteRules(
    scheduler=SchedulerRules(
        batch_sched_delay=0.0, default_queue_depth=_MANY, bf_interval=1.0, bf_window_min=43_200.0,
        bf_max_job_test=_MANY,
    ),
    priority=PriorityRules(is_multifactor=False), epilog_s=(0.0, 0.0), pass_s=(0.0, 0.0),
)  # fmt: skip
_UNKNOWN = (
    "fair shares of users and priorities of queues: the twin starts jobs first come, first served, by conservative "
    "backfilling",
    "properties of nodes that jobs ask for, reservations and dependencies: a job may get any nodes of the site",
    "ends of jobs that had left the queue at the next look: they count as ended then",
)


def is_record(folder: Path) -> bool:
    """Return whether a folder has a segment of a record."""
    try:
        return bool(segments(folder))
    except ConfigError:
        return False


def site_of_record(folder: Path) -> Site:
    """Return the site of a record. O(bytes). Raises ConfigError: it is none, is damaged, or has no look at a queue."""
    jobs, ends, nodes = dict[str, ObservedJob](), dict[str, float](), dict[str, tuple[int, float]]()
    last = 0.0
    for time, queue, seen_nodes in _looks(folder):
        nodes |= seen_nodes
        shown = {job.key: job for job in queue if job.tasks == 1}
        for key, job in jobs.items():
            if key not in shown and job.start_time is not None:
                ends.setdefault(key, time)
        jobs |= shown
        last = max(last, time)
    if not nodes:
        raise ConfigError(
            str(folder), "", "it has no look at a queue", "a record of Slurm or OAR, a minute old or older"
        )
    widest = max(cores for cores, _ in nodes.values())
    site_jobs = [
        _job(job, ends.get(key), last) for key, job in jobs.items()
        if job.submit_time is not None and job.nodes <= len(nodes) and job.cores <= widest
    ]  # fmt: skip
    site_jobs.sort(key=lambda job: (job.submit, len(job.id), job.id))
    queues = dict.fromkeys(name for job in site_jobs for name in job.partitions)
    names = tuple(nodes)
    return Site(
        _RULES,
        tuple(SiteNode(name, cpus=cores, cores=cores) for name, (cores, _) in nodes.items()),
        tuple(SitePartition(name, names, is_default=not place) for place, name in enumerate(queues)),
        jobs=tuple(site_jobs),
        unknown=_UNKNOWN,
        scheduler="conservative backfilling",
    )


def _looks(folder: Path) -> Iterator[tuple[float, Iterable[ObservedJob], dict[str, tuple[int, float]]]]:
    """Yield the time, the jobs and the new nodes of each look at the queue."""
    for segment in open_segments(segments(folder), []):
        reader = ChangeReader(ObservedJob)
        try:
            for line in segment.lines():
                for name, answer, *_ in line.get("calls", ()):
                    if name == "queue" and answer is not None:
                        news = {node: (int(cores), memory) for node, (cores, memory) in answer.get("nodes", {}).items()}
                        yield answer["time"], reader.values(answer["jobs"]), news
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ConfigError(str(segment.path), "", f"it is damaged: {error}") from None


def _job(job: ObservedJob, gone: float | None, last: float) -> SiteJob:
    """Return a job of the site.

    Args:
        job: as it was seen last.
        gone: when it was not seen any more; None: it was.
        last: time of the last look.
    """
    end = job.finish_time if job.finish_time is not None else gone
    runs = tuple[JobRecord, ...]()
    run_s = job.walltime or last
    if job.start_time is not None:
        has_ended = end is not None and end >= job.start_time
        run_s = (end if has_ended and end is not None else max(last, job.start_time + run_s)) - job.start_time
        state = "COMPLETED" if has_ended else "RUNNING"
        where = tuple(sorted(job.where)) if job.state is not JobState.PENDING else ()
        runs = (JobRecord(state, job.submit_time, job.start_time, end if has_ended else None, job.queue, where,
                          job.nodes * job.cores),)  # fmt: skip
    return SiteJob(
        job.key.rpartition("/")[2], job.name, "unknown" if job.owner is None else str(job.owner), job.account, "",
        tuple(job.queue.split(",")), job.submit_time or 0.0, runs,
        limit_min=None if job.walltime is None else ceil(job.walltime / 60.0), min_nodes=job.nodes, max_nodes=job.nodes,
        tasks=job.nodes, cpus_per_task=job.cores, tasks_per_node=1, min_cpus=job.nodes * job.cores,
        is_exclusive=job.alone, run_s=run_s,
    )  # fmt: skip
