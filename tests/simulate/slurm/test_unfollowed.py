"""A rule that is not followed, or not as Slurm does, is said where a site uses it, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.simulate.slurm.site import SchedulerRules, Site, SiteJob, SiteNode, SitePartition, SiteRules
from pilotfish.simulate.slurm.unfollowed import unfollowed_rules

NODES = (SiteNode("n1", cpus=4, cores=4),)
PARTITION = SitePartition("main", ("n1",), is_default=True)
JOB = SiteJob("1", "a", "ann", "lab", "normal", ("main",), 0.0)
PLAIN = Site(SiteRules(), NODES, (PARTITION,))


@pytest.mark.parametrize(
    ("rule", "site"),
    [
        ("bf_licenses", replace(PLAIN, rules=SiteRules(scheduler=SchedulerRules(bf_licenses=True)))),
        ("bf_max_time", replace(PLAIN, rules=SiteRules(scheduler=SchedulerRules(bf_max_time=20.0)))),
        ("licences that Licenses", replace(PLAIN, jobs=(replace(JOB, licences={"matlab": 1}),))),
        ("reservations that no file has (course)", replace(PLAIN, jobs=(replace(JOB, reservation="course"),))),
        ("MaxMemPerCPU", replace(PLAIN, rules=SiteRules(max_memory_per_cpu_mib=100))),
    ],
)
def test_a_rule_that_differs_is_said(rule: str, site: Site) -> None:
    assert [text for text in unfollowed_rules(site) if text.startswith(rule)]
    assert not [text for text in unfollowed_rules(PLAIN) if text.startswith(rule)]


def test_a_bound_of_a_pass_whose_time_was_measured_is_followed() -> None:
    site = replace(PLAIN, rules=SiteRules(scheduler=SchedulerRules(bf_max_time=20.0), test_s=0.01))
    assert not unfollowed_rules(site)
