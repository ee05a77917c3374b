"""Slurm's whole queue as Slurm's own scheduler sees it, for forecasts of its decisions.

Rule: pure. A start is unknown if it depends on something that is not simulated: holds, limits, reservations, licenses,
heterogeneous jobs, cores that jobs share. Users see the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...simulate.model.observed_queue import ObservedJob, ObservedQueue
from ...simulate.model.snapshot import JobState
from . import dependency
from .job_views import key_of
from .placement import node_constraints
from .placement.node_capacity import NodeSharing, sharing_of
from .placement.partitions import Partition, SlurmReservation, of_job
from .records import SlurmJob, SlurmNode
from .site_state import SiteState

#: Reasons with which a job waits for nothing but nodes, a time, or other jobs. Slurm says ReqNodeNotAvail also of a job
#: that excludes nodes, while all others are busy (seen, 22.05); nodes that take no jobs, and reservations, are known.
_PLAIN = frozenset(("None", "", "Resources", "Priority", "BeginTime", "Cleaning", "Dependency", "ReqNodeNotAvail"))


def observed_queue(
    jobs: Mapping[int, SlurmJob], nodes: Mapping[str, SlurmNode], site: SiteState, now: float, uid: int
) -> ObservedQueue:
    """Return the queue in Slurm's order. O(jobs log jobs + nodes x distinct requests for nodes).

    Args:
        jobs: All jobs, by id.
        nodes: All nodes, by name.
        site: Partitions and reservations, as far as they were read.
        now: Controller's clock, epoch seconds.
        uid: User id of our own jobs.
    """
    partitions = {name: of_job(job, site.partitions) for name, job in {j.partition: j for j in jobs.values()}.items()}
    tiers = {
        name: max((partition.tier for partition in queued_jobs), default=1) for name, queued_jobs in partitions.items()
    }
    by_number: dict[int, list[SlurmJob]] = {}
    for job in jobs.values():
        for number in {job.id, job.array} - {0}:
            by_number.setdefault(number, []).append(job)
    order = sorted(jobs.values(), key=lambda job: (-tiers[job.partition], -job.priority, job.id))
    possible: dict[object, frozenset[str]] = {}
    queued_jobs = []
    for job in order:
        unwanted = site.excluded.get(job.id) or ()
        shape = (job.partition, job.features, job.wanted, job.nodes, unwanted)
        if job.state is not JobState.PENDING:
            where = frozenset(job.placed)
        elif shape in possible:
            where = possible[shape]
        else:
            where = possible[shape] = node_constraints.possible(job, nodes.values(), unwanted)
        queued_jobs.append(
            _queued(job, key_of(job, uid), where, partitions[job.partition], site.reservations, by_number, now, uid)
        )
    usable = {name: (node.cpus, node.memory) for name, node in nodes.items() if node.state.takes_jobs}
    return ObservedQueue(now, queued_jobs, usable)


def _queued(
    job: SlurmJob, key: str, where: frozenset[str], chosen: Collection[Partition],
    reserved: Collection[SlurmReservation], by_number: Mapping[int, Sequence[SlurmJob]], now: float, uid: int,
) -> ObservedJob:  # fmt: skip
    waits, after = job.state is JobState.PENDING, _followed(job) or ()
    return ObservedJob(
        key=key,
        state=job.state,
        name=job.name,
        owner=job.uid,
        account=job.account,
        queue=job.partition,
        nodes=job.nodes if waits else max(1, len(job.placed)),
        cores=job.cores,
        memory=job.memory,
        alone=sharing_of(job, chosen) is NodeSharing.ALONE,
        walltime=job.time_limit,
        submit_time=job.submit,
        begin=job.begin,
        tasks=max(1, job.tasks),
        array=str(job.array) if job.array else "",
        tasks_at_once=job.tasks_at_once,
        after=tuple(key_of(precursor, uid) for number in after for precursor in by_number.get(number, ()))
        if waits
        else (),
        where=where,
        start_time=job.start if job.placed and not waits else None,
        finish_time=job.end if job.state.ended else None,
        manager_start=job.start if waits and job.start is not None and job.start >= now else None,
        unknown=_unknown(job, where, chosen, reserved, by_number, now) if waits else "",
    )


def _followed(job: SlurmJob) -> tuple[int, ...] | None:
    """Return the ids of all jobs and arrays whose ends the job waits for; None if it waits for anything else."""
    return dependency.followed(job.dependency.replace("_*", ""))


def _unknown(
    job: SlurmJob, where: frozenset[str], chosen: Collection[Partition], reserved: Collection[SlurmReservation],
    by_number: Mapping[int, Sequence[SlurmJob]], now: float,
) -> str:  # fmt: skip
    """Return why the start of a waiting job is not known, or ""."""
    if job.part and not job.tasks:
        return "how many tasks wait is not known" if job.array else "it is part of a heterogeneous job"
    if job.left_to_slurm and not job.part:
        return job.left_to_slurm.removesuffix(", which is left to Slurm")
    if job.priority == 0:
        return "it is held"
    after = _followed(job)
    if after is None or any(number not in by_number for number in after):
        return f"it depends on {job.dependency}"
    if job.reason.split(",")[0] not in _PLAIN:
        return f"Slurm says {job.reason}"
    if not node_constraints.understood(job.features):
        return f"it asks for nodes with {job.features}"
    if chosen and all(partition.obstacle(job) for partition in chosen):
        return next(partition.obstacle(job) for partition in chosen)
    if sharing_of(job, chosen) is NodeSharing.CORES:
        return f"jobs of partition {job.partition} share cores"
    window = next(
        (reservation for reservation in reserved if reservation.end > now and not where.isdisjoint(reservation.nodes)),
        None,
    )
    return "" if window is None else f"reservation {window.name} has nodes that it may use"
