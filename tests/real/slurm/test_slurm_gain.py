"""The same jobs under plain Slurm and with pilotfish: one pair of `benchmarks.slurm_gain`.

The cores do not depend on how busy this machine is. What is measured is reported; that all jobs ran, and no core was
used twice, is asserted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from slurm_cluster import missing

sys.path.insert(0, str(Path(__file__).parents[3]))
from benchmarks.slurm_gain import NAMES, Load, Way, compare

pytestmark = pytest.mark.xdist_group("slurm 4")
#: 40 to 60 s of computing for two cores.
LOAD = Load(12, 4, 8, 8.0)


def test_plain_slurm_and_pilotfish_in_turns(record_property: Callable[[str, object], None]) -> None:
    if why_not := missing():
        pytest.skip(f"SKIPPED, no real Slurm: {why_not}")
    alone, ours = compare("EMULATED", LOAD, Way(events=True), seed=0)
    for name in NAMES:
        text = f"{name}: Slurm alone {getattr(alone, name):.1f}, with pilotfish {getattr(ours, name):.1f}"
        record_property("measured", text)
    computing = sum(seconds for _, kind, seconds in LOAD.drawn(0) if kind != "nap")
    assert min(alone.makespan, ours.makespan) >= 0.95 * computing / 2  # no core was used twice
