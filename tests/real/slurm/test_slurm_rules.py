"""Rules of Slurm, one by one: the twin decides as a real Slurm did, and would decide otherwise without the rule."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from pathlib import Path

import fast_slurm
import guardian
import pytest
from rule_case import Case, differences, jobs_changed, no_limits
from rule_run import Record, RuleRun
from rule_sites import PLAIN, RULE_SITES, SITES, STRICT, TUNED, RuleSite

from pilotfish.simulate.slurm.site import Site
from pilotfish.simulate.slurm.twin import replay_site

#: How often a case is played at most.
PLAYED = 4
#: Sites whose cases one process plays, one after another.
GROUPS = {"gang": "tuned", "midnight": "strict", "tree": "strict"}


def _group(site: RuleSite) -> pytest.MarkDecorator:
    return pytest.mark.xdist_group(f"slurm rules {GROUPS.get(site.name, site.name)}")


CASES = [
    pytest.param(site, case, id=f"{site.name}-{case.name}", marks=_group(site))
    for site in RULE_SITES
    for case in site.cases
]


@pytest.mark.parametrize(("site", "case"), CASES)
def test_the_twin_decides_as_slurm_and_by_the_rule(site: RuleSite, case: Case) -> None:
    _, problems = _played(site)
    assert problems[case.name] == []


@_group(STRICT)
def test_the_twin_submits_a_job_that_slurm_refuses_once_it_would_take_it() -> None:
    records, _ = _played(STRICT)
    site, _ = records["submissions"]
    first = min(job.submit for job in site.jobs)
    early = jobs_changed("submissions", "again", submit=first + 20)(site)
    starts, ends = _first_runs(early)
    assert starts["again"] >= ends["first"]
    starts, ends = _first_runs(no_limits(qos="submissions")(early))
    assert starts["again"] < ends["first"]


@pytest.mark.parametrize("site", [pytest.param(one, id=one.name, marks=_group(one)) for one in (PLAIN, TUNED, STRICT)])
def test_the_twin_takes_the_jobs_that_sbatch_takes(site: RuleSite) -> None:
    records, _ = _played(site)
    record, _ = records["entry"]
    for job in next(case for case in site.cases if case.name == "entry").jobs:
        parts = tuple(job.options.split()[1].split(","))
        starts, _ = _first_runs(jobs_changed("entry", "long", partitions=parts)(record))
        assert ("long" in starts) == (not job.is_refused and not job.never_starts), job.name


def test_the_cases_of_the_guide_are_there() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guides" / "slurm-whatif.md").read_text(encoding="utf-8")
    rows = [
        line.split("|") for line in guide.split("## Where each rule is checked")[1].splitlines() if line.count("|") == 6
    ]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[3])}
    assert named and named <= {case.name for site in SITES for case in site.cases}


@cache
def _played(site: RuleSite) -> tuple[dict[str, Record], dict[str, list[str]]]:
    """Return the record of each case of a site, and its problems; one that a busy machine spoiled is played again."""
    if why := fast_slurm.missing():
        pytest.skip(f"SKIPPED, no real Slurm with a fast clock: {why}")
    records, problems, spoiled = dict[str, Record](), dict[str, list[str]](), site.cases
    with tempfile.TemporaryDirectory(prefix="rules-", dir=guardian.folder(), ignore_cleanup_errors=True) as folder:
        run = RuleRun(Path(folder) / "slurm", site)
        try:
            run.slurm.up()
            for _ in range(PLAYED):
                records |= run.records(spoiled)
                for case in spoiled:
                    refusal = run.refusals.get(case.name)
                    problems[case.name] = [refusal] if refusal else _problems(case, records[case.name])
                spoiled = [case for case in spoiled if problems[case.name]]
                if not spoiled:
                    break
        finally:
            run.slurm.down()
    return records, problems


def _problems(case: Case, record: Record) -> list[str]:
    """Return in what the twin differs from a record, and without what it does not."""
    site, phases = record
    unmoved = [words for words, change in case.without.items() if not differences(change(site), phases)]
    return [*differences(site, phases), *(f"without {words} the twin decides the same" for words in unmoved)]


def _first_runs(site: Site) -> tuple[dict[str, float], dict[str, float]]:
    """Return when each job of a case starts and ends in a replay."""
    runs = {site.jobs[one.job].name.partition(".")[2]: (one.start, one.end) for one in replay_site(site, 1).starts}
    return {name: start for name, (start, _) in runs.items()}, {name: end for name, (_, end) in runs.items()}
