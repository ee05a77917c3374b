"""Adapters are found by name, and wrong names and options are one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest
from local_world import CLUSTER

from pilotfish.adapters import registry
from pilotfish.adapters.findings import Service
from pilotfish.simulate.errors import ConfigError


def test_local_is_made_with_its_options(tmp_path: Path) -> None:
    adapter = registry.create("local", CLUSTER, state_dir=tmp_path / "s", grace_s=1.5)
    assert adapter.name == "local"
    assert adapter.snapshot().cluster is CLUSTER
    adapter.close()


@pytest.mark.parametrize(
    "name, options, says",
    [
        ("locl", {}, r"found 'locl'; did you mean 'local'\? \(allowed: local, simulated, slurm\)"),
        ("", {}, "found ''"),
        ("slurm", {"partitions": "main"}, r"adapter slurm: partitions: found 'main' \(allowed: a list of texts"),
        ("slurm", {"qos": [7]}, r"qos: found \[7\]"),
        ("slurm", {"comment": "maybe"}, r"comment: found 'maybe' \(allowed: true or false\)"),
        ("slurm", {"timeout_s": -3}, r"timeout_s: found -3 \(allowed: seconds, above 0\)"),
        ("slurm", {"max_defer_s": "1h"}, "max_defer_s: found '1h'"),
        ("slurm", {"wide_nodes": 0}, r"wide_nodes: found 0 \(allowed: a whole number from 1\)"),
        ("slurm", {"output_dir": 7}, "output_dir: found 7"),
        ("local", {"state_dirr": "x"}, "adapter local: state_dirr: unknown option; did you mean 'state_dir'"),
        ("local", {}, "adapter local: state_dir: missing"),
        ("local", {"cluster_name": "x"}, "unknown option"),
        (
            "local",
            {"state_dir": "/nonexistent/x", "grace_s": -1},
            r"grace_s: found -1 \(allowed: seconds, >= 0\)",
        ),
        ("local", {"state_dir": "/nonexistent/x", "grace_s": "5"}, "grace_s: found '5'"),
        ("local", {"state_dir": 7}, "state_dir: found 7"),
    ],
)
def test_wrong_names_and_options(name: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        registry.create(name, CLUSTER, **options)


@pytest.mark.parametrize(
    "name, options, says",
    [
        ("slurn", {}, r"found 'slurn'; did you mean 'slurm'\? \(allowed: slurm\)"),
        ("local", {}, r"nothing to examine of 'local' \(allowed: slurm\)"),
        ("slurm", {"partitions": "main"}, "adapter slurm: partitions: found 'main'"),
        ("slurm", {"requests_per_minute": 1}, "adapter slurm: requests_per_minute: found 1"),
    ],
)
def test_an_examination_refuses_what_could_not_be_made(name: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        registry.examine(name, None, "somebody", Service(), **options)
