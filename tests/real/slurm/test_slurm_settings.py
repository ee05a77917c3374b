"""Settings of slurm.conf, one by one: the real Slurm decides one way with it and another way without, and so does the
twin."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import fast_slurm
import guardian
import pytest
from rule_case import SEEDS, are_apart, differences
from rule_run import Record, RuleRun
from rule_sites import SETTING_SITE
from rules_of_settings import NO_BACKFILL, SETTINGS, SHARED, Setting

from pilotfish.simulate.slurm.site import Site

#: The record with a setting, and without it.
Records = tuple[Record, Record]
#: How often a case is played at most.
PLAYED = 4


def _group(setting: Setting) -> str:
    """Return whose plays a setting has part in: those of main passes alone, or that it shares with others, or its own."""
    if NO_BACKFILL in setting.words.split():
        return "main"
    return "shared" if setting.words in SHARED else "alone"


CASES = [
    pytest.param(
        setting,
        id=setting.case.name,
        marks=pytest.mark.xdist_group(f"slurm settings {_group(setting)}"),
    )
    for setting in SETTINGS
]


@pytest.mark.parametrize("setting", CASES)
def test_a_setting_decides_in_slurm_as_in_the_twin(setting: Setting) -> None:
    assert _problems_of(_group(setting))[setting.case.name] == []


@cache
def _problems_of(group: str) -> dict[str, list[str]]:
    """Return the problems of the settings of a group.

    A case that a busy machine spoiled is played up to PLAYED times.
    """
    if why := fast_slurm.missing():
        pytest.skip(f"SKIPPED, no real Slurm with a fast clock: {why}")
    problems, spoiled = dict[str, list[str]](), [one for one in SETTINGS if _group(one) == group]
    with tempfile.TemporaryDirectory(prefix="settings-", dir=guardian.folder(), ignore_cleanup_errors=True) as folder:
        run = RuleRun(Path(folder) / "slurm", SETTING_SITE)
        try:
            run.slurm.up()
            for _ in range(PLAYED):
                records = _played(run, spoiled)
                problems |= {one.case.name: [*_problems(one, records[one.case.name])] for one in spoiled}
                spoiled = [one for one in spoiled if problems[one.case.name]]
                if not spoiled:
                    break
        finally:
            run.slurm.down()
    return problems


def _played(run: RuleRun, settings: Sequence[Setting]) -> dict[str, Records]:
    """Return the records of each setting's case."""
    plays = defaultdict[str, list[Setting]](list)
    for setting in settings:
        plays[setting.before].append(setting)
        plays[setting.words].append(setting)
    played = dict[str, dict[str, Record]]()
    for words, played_settings in plays.items():
        run.configure(words)
        played[words] = run.records([setting.case for setting in played_settings])
        assert not run.refusals
    names = {one.case.name: one for one in settings}
    return {name: (played[one.words][name], played[one.before][name]) for name, one in names.items()}


def _problems(setting: Setting, records: Records) -> Iterator[str]:
    (site, phases), (other, other_phases) = records
    if setting.epilog_s:
        site, other = (replace(one, rules=replace(one.rules, epilog_s=setting.epilog_s)) for one in (site, other))
    yield from (f"with it: {line}" for line in differences(site, phases, has_steps=setting.has_steps))
    yield from (f"without it: {line}" for line in differences(other, other_phases, has_steps=setting.has_steps))
    if _orders(setting, site) == _orders(setting, other):
        yield "with it and without, the real Slurm decides the same"
    for seed in SEEDS:
        if _orders(setting, replace(site, rules=other.rules), seed) == _orders(setting, site):
            yield f"seed {seed}: without it, the twin decides as the real Slurm with it"
        if _orders(setting, replace(other, rules=site.rules), seed) == _orders(setting, other):
            yield f"seed {seed}: with it, the twin decides as the real Slurm without it"


def _orders(setting: Setting, site: Site, seed: int | None = None) -> list[bool]:
    return [are_apart(site, *pair, seed) for pair in setting.orders]
