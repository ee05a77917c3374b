"""Rules of Slurm, one by one: the twin decides as a real Slurm did, and would decide otherwise without the rule."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import fast_slurm
import guardian
import pytest
from rule_case import Case, differences
from rule_cases import ACCOUNTS, CASES, RULES
from rule_run import RuleRun

from pilotfish.simulate.slurm.site import Site
from pilotfish.simulate.slurm.site_tables import Phases

pytestmark = pytest.mark.xdist_group("slurm rules")


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[Site, Phases]]:
    """All cases as they happened."""
    if why := fast_slurm.missing():
        pytest.skip(f"SKIPPED, no real Slurm with a fast clock: {why}")
    with tempfile.TemporaryDirectory(prefix="rules-", dir=guardian.folder(), ignore_cleanup_errors=True) as folder:
        run = RuleRun(Path(folder) / "slurm", RULES, ACCOUNTS, CASES)
        try:
            run.slurm.up()
            site = run.play()
            yield site, run.phases(site)
        finally:
            run.slurm.down()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_twin_decides_as_slurm_and_by_the_rule(case: Case, recorded: tuple[Site, Phases]) -> None:
    site, phases = recorded
    assert differences(site, case.name, phases) == []
    for words, change in case.without.items():
        assert differences(change(site), case.name, phases), f"without {words} the twin decides the same"
