"""Rules of Slurm that a site uses and the twin does not follow, and what that does to a result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .job_columns import SiteJobs
from .limit_tables import unfollowed_limits
from .preemption_tables import unfollowed_preemption
from .reservation_tables import unfollowed_reservations
from .share_tables import unfollowed_shares
from .site import Site
from .version_rules import unfollowed_version

#: Flags of QOS that are followed.
_QOS_FLAGS = frozenset((
    "denyonlimit", "nodecay", "noreserve", "overpartqos", "partitionmaxnodes", "partitionminnodes",
    "partitiontimelimit", "requiresreservation", "usagefactorsafe",
))  # fmt: skip


def unfollowed_rules(site: Site) -> tuple[str, ...]:
    """Return one sentence for each rule that the site uses and the twin does not follow.

    Args:
        site: the site.
    """
    return (
        *_scheduler_rules(site), *_other_rules(site), *_qos_flags(site), *unfollowed_shares(site),
        *unfollowed_limits(site), *unfollowed_reservations(site), *unfollowed_version(site),
    )  # fmt: skip


def reasons_not_to_forecast(site: Site, missing: Mapping[str, str]) -> Iterator[str]:
    """Yield why the starts of a site's queue are better not forecast by its rules: these decide, and are not known.

    Args:
        site: the site.
        missing: name of a file of the site -> why it could not be read.
    """
    rules = site.rules
    needs: dict[str, float] = {
        "qos.psv": rules.enforces_qos or rules.enforces_limits or rules.priority.qos,
        "assoc.psv": rules.enforces_associations or rules.priority.fair_share,
        "sshare.psv": rules.priority.fair_share,
        "scontrol_res.txt": True,
    }
    for name, is_needed in needs.items():
        if is_needed and name in missing:
            yield missing[name]
    yield from unfollowed_preemption(site)


def _scheduler_rules(site: Site) -> Iterator[str]:
    rules = site.rules.scheduler
    if rules.bf_licenses:
        yield "bf_licenses: jobs that lack a licence have no reservation here, and may start later than in Slurm"
    if rules.bf_running_job_reserve:
        yield "bf_running_job_reserve: running jobs have no reservation in the plan of a pass"
    if rules.bf_max_time and not site.rules.test_s:
        yield "bf_max_time: no sdiag says how long a test takes; passes test more jobs than in Slurm if it cuts them"


def _qos_flags(site: Site) -> Iterator[str]:
    """Yield a sentence for each flag of QOS that the twin does not follow."""
    followed = _QOS_FLAGS | ({"relative"} if site.rules.version >= (23, 11) else set())
    owners = dict[str, list[str]]()
    for qos in site.qos:
        for flag in sorted(qos.flags):
            if flag.lower() not in followed:
                owners.setdefault(flag, []).append(qos.name)
    for flag, names in sorted(owners.items()):
        yield f"flag {flag} of QOS {', '.join(names[:3])}: not followed; its limits or times may differ"


def _other_rules(site: Site) -> Iterator[str]:
    rules = site.rules
    yield from unfollowed_preemption(site)
    if rules.suspend_time_s is None and any(node.is_asleep for node in site.nodes):
        yield "nodes that sleep, or State=CLOUD, without SuspendTime: they are awake, and starts do not wait for a boot"
    columns = SiteJobs.of(site.jobs)
    described = {"", *(one.name for one in site.reservations)}
    if names := sorted({job.reservation for job in columns.patterns} - described):
        yield f"reservations that no file has ({', '.join(names[:5])}): their jobs start as if they named none"
    if names := sorted({name for job in columns.patterns for name in job.licences} - {*rules.licences}):
        yield f"licences that Licenses of slurm.conf lacks ({', '.join(names[:5])}): jobs do not wait for them"
    if rules.max_memory_per_cpu_mib is not None:
        yield "MaxMemPerCPU: a job that asks for more memory by node gets no more CPUs for it"
