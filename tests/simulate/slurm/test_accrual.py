"""Limits on how many waiting jobs of a user, an account or a QOS grow older (MaxJobsAccrue)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.simulate.slurm.site import PriorityRules, SiteJob, SiteLimits, SiteQos
from pilotfish.simulate.slurm.twin import replay_site
from tests.simulate.slurm.small_sites import NODES, RULES, T0, job, site

ONE = SiteLimits(max_accrue=1)
LIMITED: dict[str, tuple[dict[str, SiteLimits], SiteLimits]] = {
    "of a user": ({"alice": ONE}, SiteLimits()),
    "of an account, for each user": ({"physics": ONE}, SiteLimits()),
    "of a group": ({"physics": SiteLimits(group_accrue=1)}, SiteLimits()),
    "of a QOS": ({}, SiteLimits(group_accrue=1)),
    "of a QOS, for each user": ({}, SiteLimits(user_accrue=1)),
    "of a QOS, for each account": ({}, SiteLimits(account_accrue=1)),
    "of a QOS, before that of a user": ({"alice": SiteLimits(max_accrue=2)}, SiteLimits(user_accrue=1)),
}


def whole(user: str, name: str, after: float, **changes: object) -> SiteJob:
    """Return a job on all nodes for ten minutes, submitted some seconds after T0."""
    return job(user, id=name, submit=T0 + after, min_nodes=len(NODES), is_exclusive=True, qos="high", **changes)


def order(associations: dict[str, SiteLimits], limits: SiteLimits, flags: str = "") -> list[str]:
    """Return the jobs as they start: `second` waits longer than `young`, whose age counts whatever the limits are."""
    priority = PriorityRules(age=100_000.0, max_age_s=100_000.0, period_s=60.0, flags=frozenset(flags.split()))
    jobs = [
        whole("bob", "gate", 0),
        whole("alice", "first", 10),
        whole("alice", "second", 20),
        replace(whole("carol", "young", 200), qos="normal"),
    ]
    place = site(
        jobs, associations=associations, rules=replace(RULES, priority=priority), qos=[SiteQos("high", limits=limits)]
    )
    return [place.jobs[one.job].id for one in replay_site(place, 1).starts]


@pytest.mark.parametrize("name", LIMITED)
def test_a_job_without_a_place_grows_no_older_until_the_one_before_it_has_started(name: str) -> None:
    associations, limits = LIMITED[name]
    assert order({}, SiteLimits()) == ["gate", "first", "second", "young"]
    assert order(associations, limits) == ["gate", "first", "young", "second"]


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    assert order({"alice": SiteLimits(max_accrue=2)}, SiteLimits()) == ["gate", "first", "second", "young"]


def test_with_accrue_always_there_is_no_limit() -> None:
    assert order({"alice": ONE}, SiteLimits(), "ACCRUE_ALWAYS") == ["gate", "first", "second", "young"]
