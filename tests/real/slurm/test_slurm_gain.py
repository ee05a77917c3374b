"""The same jobs under plain Slurm and with pilotfish beside it, in turns, and what the simulation says of them.

One turn of `benchmarks.slurm_gain`, with the cores that do not depend on how busy this machine is. What is
measured is reported; that all of it ran, and no core was used twice, is asserted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm_cluster import SlurmCluster, missing

sys.path.insert(0, str(Path(__file__).parents[3]))
from benchmarks.slurm_gain import CORES, SECONDS, compare, lines_of
from benchmarks.slurm_overhead import a_slurm

pytestmark = pytest.mark.xdist_group("slurm 2")


@pytest.fixture
def two_nodes() -> Iterator[SlurmCluster]:
    if why_not := missing():
        pytest.skip(f"SKIPPED, no real Slurm: {why_not}")
    with a_slurm(nodes=2, cpus=2) as slurm:
        yield slurm


def test_plain_slurm_and_pilotfish_in_turns(
    two_nodes: SlurmCluster, record_property: Callable[[str, object], None]
) -> None:
    alone, beside, planned = compare(two_nodes, lines_of(CORES["EMULATED"]), turn=0)
    for name in ("makespan", "turnaround", "waiting"):
        theirs, ours, plan = (getattr(result, name) for result in (alone, beside, planned))
        text = f"{name}: Slurm alone {theirs:.1f} s, with pilotfish {ours:.1f} s, simulated {plan:.1f} s"
        record_property("measured", text)
    assert min(alone.makespan, beside.makespan) >= planned.makespan * 0.95 >= 3 * SECONDS  # no core was used twice
