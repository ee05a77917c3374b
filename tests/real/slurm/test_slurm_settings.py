"""Settings of slurm.conf, one by one: the real Slurm decides one way with it and another way without, and so does the
twin."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fast_slurm
import guardian
import pytest
from rule_case import SEEDS, are_apart, differences
from rule_run import Record, RuleRun
from rule_sites import SETTING_SITE
from rules_of_settings import SETTINGS, Setting

from pilotfish.simulate.slurm.site import Site

pytestmark = pytest.mark.xdist_group("slurm settings")
#: The record with a setting, and without it.
Records = dict[str, tuple[Record, Record]]
#: How often a case is played at most.
PLAYED = 4


def name(setting: Setting) -> str:
    """Return the name of a setting's case."""
    return setting.case.name


@pytest.fixture(scope="module")
def records() -> Records:
    """Both records of each setting; those that a busy machine spoiled have happened up to PLAYED times."""
    if why := fast_slurm.missing():
        pytest.skip(f"SKIPPED, no real Slurm with a fast clock: {why}")
    with tempfile.TemporaryDirectory(prefix="settings-", dir=guardian.folder(), ignore_cleanup_errors=True) as folder:
        run, both, spoiled = RuleRun(Path(folder) / "slurm", SETTING_SITE), Records(), list(SETTINGS)
        try:
            run.slurm.up()
            for _ in range(PLAYED):
                both |= _played(run, spoiled)
                spoiled = [setting for setting in spoiled if [*_problems(setting, both)]]
                if not spoiled:
                    break
        finally:
            run.slurm.down()
    return both


@pytest.mark.parametrize("setting", SETTINGS, ids=name)
def test_a_setting_decides_in_slurm_as_in_the_twin(records: Records, setting: Setting) -> None:
    assert [*_problems(setting, records)] == []


def _played(run: RuleRun, settings: list[Setting]) -> Records:
    plays = defaultdict[str, list[Setting]](list)
    for setting in settings:
        plays[setting.before].append(setting)
        plays[setting.words].append(setting)
    played = dict[str, dict[str, Record]]()
    for words, played_settings in plays.items():
        run.configure(words)
        played[words] = run.records([setting.case for setting in played_settings])
    return {name(one): (played[one.words][name(one)], played[one.before][name(one)]) for one in settings}


def _problems(setting: Setting, records: Records) -> Iterator[str]:
    (site, phases), (other, other_phases) = records[name(setting)]
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
