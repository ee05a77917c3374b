"""The turnaround that jobs would have had in the resource manager's own order, simulated after they have ended.

Rule: what happened is compared with what would have happened to the same jobs: each with the run time that it really
had, from its submission, without a hold. All jobs of the queue are replayed under EASY backfilling, by walltimes, on
one pool of all cores. Jobs that still run take part with the time that they have run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...simulate.model.cluster import Cluster
from ...simulate.model.workload import Dependencies, Workload, in_order
from ...simulate.queue_policies.policy_specs import Easy
from ..state.recorded_outcome import ForecastOutcome, QueueRecord


def own_turnarounds(records: Iterable[QueueRecord], cores: int, now: float) -> dict[str, float]:
    """Return the simulated turnaround of each job that has ended, seconds, by key. O(jobs log jobs).

    Args:
        records: of all jobs of the queue that have begun; those without a time of submission are left out.
        cores: of all nodes.
        now: epoch seconds.
    """
    from ...simulate.replay.replay import replay

    jobs = [
        (record, record.submit_time, max(0.0, (record.finish_time or now) - record.start_time))
        for record in records
        if record.submit_time is not None and record.start_time is not None and record.size <= cores
    ]
    if not jobs:
        return {}
    zero = min(submitted for _, submitted, _ in jobs)
    submit = np.array([submitted - zero for _, submitted, _ in jobs])
    run = np.array([run for _, _, run in jobs])
    limit = np.maximum(run, [run if record.walltime is None else record.walltime for record, _, run in jobs])
    size = np.array([record.size for record, _, _ in jobs], np.int64)
    nothing = np.empty(0, np.int64)
    number = np.arange(len(jobs))
    work = Workload("queue", number, submit, run, limit, size, dependencies=Dependencies(nothing, nothing))
    result = replay(in_order(work), cores, Easy())
    start = np.empty(len(jobs))
    start[result.workload.id] = result.start_time
    turnarounds = (start + run - submit).tolist()
    return {
        record.key: turnaround
        for (record, *_), turnaround in zip(jobs, turnarounds, strict=True)
        if record.finish_time is not None
    }


def with_own_order(
    jobs: Sequence[ForecastOutcome], records: Sequence[QueueRecord], cluster: Cluster, now: float
) -> list[ForecastOutcome]:
    """Return jobs with their turnaround in the resource manager's own order, if they were handed over.

    Args:
        jobs: that have ended.
        records: of all jobs of the queue.
        cluster: whose cores run them.
        now: epoch seconds.
    """
    handed = [job for job in jobs if job.turnaround_s is not None]
    spans_s: Mapping[str, float] = {}
    if handed:
        spans_s = own_turnarounds(records, sum(node.type.cores for node in cluster.nodes), now)
    return [
        replace(job, plain_turnaround_s=spans_s.get(job.key)) if job.turnaround_s is not None else job for job in jobs
    ]
