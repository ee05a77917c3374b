"""Rules of Slurm that a site uses and the twin does not follow, and what that does to a result."""

from __future__ import annotations

from collections.abc import Iterator

from .limit_tables import unfollowed_limits
from .preemption_tables import unfollowed_preemption
from .reservation_tables import unfollowed_reservations
from .share_tables import unfollowed_shares
from .site import Site
from .version_rules import unfollowed_version


def unfollowed_rules(site: Site) -> tuple[str, ...]:
    """Return one sentence for each rule that the site uses and the twin does not follow.

    Args:
        site: the site.
    """
    return (
        *_scheduler_rules(site), *_other_rules(site), *unfollowed_shares(site), *unfollowed_limits(site),
        *unfollowed_reservations(site), *unfollowed_version(site),
    )  # fmt: skip


def _scheduler_rules(site: Site) -> Iterator[str]:
    rules = site.rules.scheduler
    if rules.bf_licenses:
        yield "bf_licenses: jobs that lack a licence have no reservation here, and may start later than in Slurm"
    if rules.bf_max_job_assoc:
        yield "bf_max_job_assoc: more jobs of an association are tried in a pass than Slurm tries"
    if rules.bf_max_job_user_part:
        yield "bf_max_job_user_part: more jobs of a user are tried in a pass than Slurm tries"
    if rules.bf_running_job_reserve:
        yield "bf_running_job_reserve: running jobs have no reservation in the plan of a pass"
    if rules.pack_serial_at_end:
        yield "pack_serial_at_end: jobs of one CPU run on other nodes than in Slurm"


def _other_rules(site: Site) -> Iterator[str]:
    rules = site.rules
    yield from unfollowed_preemption(site)
    if rules.selects == "sockets":
        yield "CR_Socket: jobs get cores, not whole sockets; more of them run at once than in Slurm"
    if rules.max_memory_per_cpu_mib is not None:
        yield "MaxMemPerCPU: a job that asks for more memory gets no more CPUs for it"
    if rules.kills_invalid_dependents:
        yield "kill_invalid_depend: jobs whose dependencies can no longer be met stay in the queue"
