"""Which limits of QOS and associations hold a job back, in plain Python over all running jobs.

Rule: for each kind of limit and resource the QOS's value hides those of the associations; a group limit of an
association binds in each account above it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pilotfish.simulate.slurm.site import SiteAssociation, SiteLimits, SitePartition
from tests.reference.slurm_machine import Job, Machine, Share


def blocks_before(machine: Machine, job: Job, part: SitePartition) -> bool:
    """Return whether a limit of numbers of jobs or of time holds a job back."""
    if not machine.site.rules.enforces_limits:
        return False
    qos, association, above = _levels(machine, job)
    of_qos, of_user = _of_qos(machine, job), _of_user(machine, job)
    association_jobs = _of_association(machine, association)
    groups = [(qos.group_jobs, of_qos)] if qos.group_jobs is not None else [
        (one.limits.group_jobs, _of_association(machine, one)) for one in above
    ]  # fmt: skip
    groups += (
        [(qos.user_jobs, of_user)] if qos.user_jobs is not None else [(association.limits.max_jobs, association_jobs)]
    )
    wall = qos.max_wall_min if qos.max_wall_min is not None else association.limits.max_wall_min
    return (wall is not None and job.limit > wall) or any(
        most is not None and len(jobs) + 1 > most for most, jobs in groups
    )


def blocks_after(machine: Machine, job: Job, part: SitePartition, shares: Mapping[int, Share]) -> bool:
    """Return whether a limit of resources holds a job back that is to get these shares of nodes."""
    if not machine.site.rules.enforces_limits:
        return False
    qos, association, above = _levels(machine, job)
    for name in ("cpu", "mem", "node", "gres/gpu"):
        bounds = list[tuple[float, list[Job]]]()
        for jobs, amounts in (
            (_of_qos(machine, job), qos.group_tres),
            (_of_user(machine, job), qos.user_tres),
            ([], qos.max_tres),
        ):
            bounds += [(amounts[name], jobs)] if name in amounts else []
        if name not in qos.group_tres:
            bounds += [
                (one.limits.group_tres[name], _of_association(machine, one))
                for one in above
                if name in one.limits.group_tres
            ]
        if name in association.limits.max_tres and name not in qos.max_tres:
            bounds.append((association.limits.max_tres[name], []))
        if any(amount(name, [*(other.shares for other in jobs), shares]) > most for most, jobs in bounds):
            return True
    return False


def amount(name: str, jobs: Iterable[Mapping[int, Share]]) -> int:
    """Return how much of a resource jobs have together; a node counts once."""
    shares = [(node, share) for one in jobs for node, share in one.items()]
    if name == "node":
        return len({node for node, _ in shares})
    return sum({"cpu": share.cpus, "mem": share.memory, "gres/gpu": share.gpus}[name] for _, share in shares)


def _levels(machine: Machine, job: Job) -> tuple[SiteLimits, SiteAssociation, list[SiteAssociation]]:
    """Return the limits of a job's QOS, its association, and the association with all accounts above it."""
    qos = next((one.limits for one in machine.site.qos if one.name == (job.asked.qos or "normal")), SiteLimits())
    above = list(_upwards(machine, job))
    return qos, above[0], above


def _upwards(machine: Machine, job: Job) -> Iterator[SiteAssociation]:
    rows = machine.site.associations
    association = next(one for one in rows if (one.account, one.user) == (job.asked.account, job.asked.user))
    yield association
    while association.parent >= 0:
        association = rows[association.parent]
        yield association


def _of_qos(machine: Machine, job: Job) -> list[Job]:
    return [other for other in machine.running() if other.asked.qos == job.asked.qos]


def _of_user(machine: Machine, job: Job) -> list[Job]:
    return [other for other in _of_qos(machine, job) if other.asked.user == job.asked.user]


def _of_association(machine: Machine, association: SiteAssociation) -> list[Job]:
    return [other for other in machine.running() if association in list(_upwards(machine, other))]
