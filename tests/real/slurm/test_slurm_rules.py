"""Rules of Slurm, one by one: the twin decides as a real Slurm did, and would decide otherwise without the rule."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import fast_slurm
import guardian
import pytest
from rule_case import Case, differences
from rule_run import Record, RuleRun
from rule_sites import PLAIN, SETTING_SITE, TUNED, RuleSite

pytestmark = pytest.mark.xdist_group("slurm rules")
#: How often a case is played at most.
PLAYED = 4


def names(case: Case) -> str:
    """Return the name of a case."""
    return case.name


@pytest.fixture(scope="module")
def plain() -> dict[str, Record]:
    """The cases of a plain site."""
    return _records(PLAIN)


@pytest.fixture(scope="module")
def tuned() -> dict[str, Record]:
    """The cases of a site that chose much."""
    return _records(TUNED)


@pytest.mark.parametrize("case", PLAIN.cases, ids=names)
def test_the_twin_decides_as_a_plain_slurm_and_by_the_rule(plain: dict[str, Record], case: Case) -> None:
    assert _problems(case, plain[case.name]) == []


@pytest.mark.parametrize("case", TUNED.cases, ids=names)
def test_the_twin_decides_as_a_tuned_slurm_and_by_the_rule(tuned: dict[str, Record], case: Case) -> None:
    assert _problems(case, tuned[case.name]) == []


def test_the_cases_of_the_guide_are_there() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "slurm-whatif.md").read_text(encoding="utf-8")
    rows = [
        line.split("|") for line in guide.split("## Where each rule is checked")[1].splitlines() if line.count("|") == 6
    ]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[3])}
    assert named and named <= {case.name for site in (PLAIN, TUNED, SETTING_SITE) for case in site.cases}


def _records(site: RuleSite) -> dict[str, Record]:
    """Return each case of a site as it happened; one that a busy machine spoiled has happened up to PLAYED times."""
    if why := fast_slurm.missing():
        pytest.skip(f"SKIPPED, no real Slurm with a fast clock: {why}")
    with tempfile.TemporaryDirectory(prefix="rules-", dir=guardian.folder(), ignore_cleanup_errors=True) as folder:
        run = RuleRun(Path(folder) / "slurm", site)
        try:
            run.slurm.up()
            records = run.records(site.cases)
            for _ in range(PLAYED - 1):
                if spoiled := [case for case in site.cases if _problems(case, records[case.name])]:
                    records |= run.records(spoiled)
        finally:
            run.slurm.down()
    return records


def _problems(case: Case, record: Record) -> list[str]:
    """Return in what the twin differs from a record, and without what it does not."""
    site, phases = record
    unmoved = [words for words, change in case.without.items() if not differences(change(site), phases)]
    return [*differences(site, phases), *(f"without {words} the twin decides the same" for words in unmoved)]
