"""The first use ever compiles the simulator and says so; nobody notices after that."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_world import pilotfish

pytestmark = pytest.mark.xdist_group("machine")

CLUSTER = """\
schema: pilotfish/cluster/v1
name: lab
node_types: {t: {cores: 2, memory: 1GiB, memory_bandwidth: 10GB/s}}
nodes: [{names: "n[1-2]", type: t}]
"""
WORKFLOW = """\
schema: pilotfish/workflow/v1
name: dag
jobs:
  a: {profile: {service_demand: 10}}
  b: {after: [a], profile: {service_demand: 5, bandwidth: 2GB/s}}
"""


def test_compiling_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    argv, cache = ("plan", "w.yaml", "--cluster", "c.yaml", "--json"), {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, second = pilotfish(*argv, **cache), pilotfish(*argv, **cache)
    assert first.returncode == second.returncode == 0, first.stderr
    assert first.stderr.startswith("pilotfish: compiling the simulator for this machine, once")
    assert first.stderr.count("\n") == 1 and second.stderr == ""
    assert any(path.is_file() for path in (tmp_path / "cache").rglob("*"))
    without_time = [
        [line for line in done.stdout.splitlines() if "simulated_in" not in line] for done in (first, second)
    ]
    assert without_time[0] == without_time[1]
