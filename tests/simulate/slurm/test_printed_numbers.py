"""Priorities and fair-share factors of a site that is followed, next to those that a real Slurm printed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.formats.site.site_folder import read_site
from pilotfish.simulate.slurm.printed_numbers import PrintedNumbers, printed_checks
from pilotfish.simulate.slurm.site import Site
from pilotfish.simulate.slurm.site_tables import Phases
from tests.simulate.slurm.recorded_priorities import samples
from tests.support.slurm_recordings import Run, recorded_case
from tests.support.twin_checks import recorded_phases


def recorded(case: str) -> tuple[Site, PrintedNumbers, Phases]:
    """Return a recorded site, what sprio and sshare printed when its queue was longest, and the phases of its clocks."""
    run = Run(recorded_case(case) / "r1")
    site = read_site(run.folder.parent, run.folder / "sacct.psv.gz")
    seconds, tables = max(samples(run.folder), key=lambda sample: len(sample[1]["sprio"]))
    at, parts = run.t0 + seconds, {job.id: job.partitions for job in site.jobs}
    priorities = {
        (job, part): int(value)
        for job, value, *_ in tables["sprio"]
        for part in parts.get(job, ())
        if len(parts[job]) == 1
    }
    factors = {(line[0].strip(), line[1]): float(line[7]) for line in tables["sshare"] if line[1]}
    return site, PrintedNumbers(at, priorities, factors), recorded_phases(run, site)


@pytest.mark.parametrize("case", ["plain", "tiers", "memory", "preempt"])
def test_a_followed_site_has_the_numbers_that_its_slurm_printed(case: str) -> None:
    checks = printed_checks(*recorded(case))
    assert checks.priorities.number >= 10 and checks.factors.number >= 5
    assert checks.priorities.near > 0.8 and checks.factors.near > 0.8


def test_other_weights_and_other_shares_are_seen() -> None:
    site, printed, phases = recorded("plain")
    good, priority = printed_checks(site, printed, phases), site.rules.priority
    rules = replace(site.rules, priority=replace(priority, fair_share=2 * priority.fair_share))
    assert (
        printed_checks(replace(site, rules=rules), printed, phases).priorities.difference
        > 3 * good.priorities.difference
    )
    rules = replace(site.rules, priority=replace(priority, flags=frozenset({"NO_FAIR_TREE"})))
    assert printed_checks(replace(site, rules=rules), printed, phases).factors.difference > 3 * good.factors.difference


def test_jobs_and_users_that_only_one_side_has_do_not_count() -> None:
    site, printed, phases = recorded("plain")
    nothing = PrintedNumbers(printed.at, {("x", "main"): 5}, {("x", "y"): 0.5})
    checks = printed_checks(site, nothing, phases)
    assert (checks.priorities.number, checks.factors.number) == (0, 0)
