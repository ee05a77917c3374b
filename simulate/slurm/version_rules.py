"""Rules that changed between versions of Slurm: one table, by the first version that has each.

Rule: kernels ask for a rule by its name, never for a version. The twin is compared with a real Slurm 22.05 only.
Source: release notes of Slurm 23.11 to 25.11, and what its scheduler does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .site import Site, SiteRules

Version = tuple[int, int]
#: The newest version whose rules are in the table. Later ones are followed as this one.
NEWEST: Version = (25, 11)
OLDEST: Version = (22, 5)


class VersionRule(NamedTuple):
    """A rule; `since`: the first version; `parameter`: the word of SchedulerParameters that it needs, or ""."""

    since: Version
    parameter: str
    meaning: str


#: Name of the rule in `kernels.slurm.tables.RULES` -> the rule.
VERSION_RULES = {
    "soft_time_min": VersionRule(
        (23, 11), "time_min_as_soft_limit", "a job with TimeMin is planned with it, and keeps its time limit"
    ),
    "short_jobs_apart": VersionRule(
        (24, 5), "", "jobs shorter than bf_resolution have no nodes of each other's in the plan"
    ),
    "closes_late": VersionRule(
        (24, 11), "", "a closed partition takes its nodes from others when its next job comes by, not at once"
    ),
    "searches_from_start": VersionRule(
        (24, 11), "", "a start is looked for from the time on at which the plan has room, not from now"
    ),
    "waits_for_own_nodes": VersionRule(
        (25, 5), "", "a planned start waits only for the ends of jobs on the nodes that it uses"
    ),
}


def version_rules(rules: SiteRules) -> dict[str, int]:
    """Return the name of each rule, and 1 if the version of a site has it, else 0."""
    return {
        name: int(rules.version >= rule.since and (not rule.parameter or getattr(rules.scheduler, rule.parameter)))
        for name, rule in VERSION_RULES.items()
    }


def unfollowed_version(site: Site) -> Iterator[str]:
    """Yield a sentence for each change of Slurm that the version of a site has and the replay does not follow."""
    version, scheduler = site.rules.version, site.rules.scheduler
    if version > NEWEST:
        name, newest = (f"{year}.{month:02}" for year, month in (version, NEWEST))
        yield f"Slurm {name}: it is followed as {newest}; what changed since then is not known"
    if version >= (25, 11) and scheduler.time_min_as_soft_limit:
        yield "time_min_as_soft_limit: running jobs are expected to end at their time limits, and others start later"
