"""A dry run, a live daemon and a preview decide the same on the same answers of a real Slurm (more: `pairs.py`)."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pairs import pair
from slurm_cluster import SlurmCluster

pytestmark = pytest.mark.xdist_group("slurm 4")


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_dry_run_prints_what_a_live_daemon_does(
    slurm: SlurmCluster, tmp_path: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    found = pair(slurm, tmp_path, random.Random(seed))
    record_property("measured", f"{len(found.live)} actions, {len(found.refused)} refused")
    assert found.equal, found
