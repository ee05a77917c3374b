"""Adapters are found by name, also those of other packages; wrong names and options are one clear error."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import pilotfish
from pilotfish.adapters import registry
from pilotfish.adapters.findings import ServiceState
from pilotfish.simulate.errors import ConfigError
from tests.support.local_world import CLUSTER


def test_local_is_made_with_its_options(tmp_path: Path) -> None:
    adapter = registry.create("local", CLUSTER, state_dir=tmp_path / "s", grace_s=1.5)
    assert adapter.name == "local"
    assert adapter.snapshot().cluster is CLUSTER
    adapter.close()


@pytest.mark.parametrize(
    "name, options, says",
    [
        ("locl", {}, r"found 'locl'; did you mean 'local'\? \(allowed: local, oar, simulated, slurm\)"),
        ("", {}, "found ''"),
        ("slurm", {"partitions": "main"}, r"adapter slurm: partitions: found 'main' \(allowed: a list of texts"),
        ("slurm", {"qos": [7]}, r"qos: found \[7\]"),
        ("slurm", {"comment": "maybe"}, r"comment: found 'maybe' \(allowed: true or false\)"),
        ("slurm", {"timeout_s": -3}, r"timeout_s: found -3 \(allowed: seconds, above 0, at most 15\)"),
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
        ("slurn", {}, r"found 'slurn'; did you mean 'slurm'\? \(allowed: local, oar, slurm\)"),
        ("simulated", {}, r"nothing to examine of 'simulated' \(allowed: local, oar, slurm\)"),
        ("slurm", {"partitions": "main"}, "adapter slurm: partitions: found 'main'"),
        ("slurm", {"requests_per_minute": 1}, "adapter slurm: requests_per_minute: found 1"),
    ],
)
def test_examine_refuses_invalid_options(name: str, options: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        registry.examine(name, None, "somebody", ServiceState(), **options)


#: The smallest adapter: it derives from the protocol and implements what has no default.
SMALLEST = """
from pilotfish.adapters.base import Adapter
from pilotfish.simulate.model.snapshot import NodeState, Snapshot

class Smallest(Adapter):
    name = "smallest"
    notes = ()

    def __init__(self, cluster, label):
        self.cluster, self.notes, self.version = cluster, (f"label {label}",), 0

    def snapshot(self):
        self.version += 1
        return Snapshot(0.0, self.version, self.cluster, (NodeState.UP,) * len(self.cluster.nodes), ())

    def apply(self, action):
        raise AssertionError("not needed here")

    def wait(self, timeout_s):
        return False

def create(cluster, label="none"):
    return Smallest(cluster, label)
"""


def install(folder: Path, distribution: str, name: str, module: str, source: str) -> None:
    """Write a module and the metadata that pip would write for its package."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{name} = {module}\n")


def test_an_adapter_of_another_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "smallest" not in registry.names()
    install(tmp_path / "site", "tiny-adapter", "smallest", "tiny_adapter", SMALLEST)
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert registry.names() == ["local", "oar", "simulated", "slurm", "smallest"]
    adapter = registry.create("smallest", CLUSTER, label="x")
    assert (adapter.name, adapter.notes, adapter.snapshot().version) == ("smallest", ("label x",), 1)
    assert adapter.refresh(["k"]).version == 2
    assert (adapter.fileno(), adapter.load(), adapter.output("k"), adapter.recall({}), adapter.usage({})) == (None,) * 5
    adapter.forget("k")
    adapter.close()
    for name, options, line in (
        (
            "smalest",
            {},
            r"found 'smalest'; did you mean 'smallest'\? \(allowed: local, oar, simulated, slurm, smallest\)",
        ),
        ("smallest", {"lable": "x"}, "adapter smallest: lable: unknown option; did you mean 'label'"),
    ):
        with pytest.raises(ConfigError, match=line):
            registry.create(name, CLUSTER, **options)
    with pytest.raises(ConfigError, match=r"'smallest' cannot list nodes \(allowed: local, oar, slurm\)"):
        registry.discover("smallest")


def test_a_broken_or_conflicting_package_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "a", "broken", "odd", "odd_adapter", "import no_such_module")
    install(tmp_path / "b", "also-local", "local", "not_local", "raise SystemExit(3)")
    for folder in ("a", "b"):
        monkeypatch.syspath_prepend(tmp_path / folder)
    with pytest.raises(
        ConfigError, match="adapter odd: odd_adapter cannot be imported: No module named 'no_such_module'"
    ):
        registry.create("odd", CLUSTER)
    with pytest.raises(ConfigError, match=r"found 'nothing' \(allowed: local, oar, simulated, slurm\)"):
        registry.create("nothing", CLUSTER)
    registry.create("local", CLUSTER, state_dir=tmp_path / "s").close()  # a built-in adapter cannot be replaced
    install(tmp_path / "b", "second", "odd", "second_adapter", SMALLEST)
    with pytest.raises(ConfigError, match="adapter odd: offered by odd_adapter and second_adapter"):
        registry.create("odd", CLUSTER)


def test_the_package_offers_its_own_adapters() -> None:
    """The metadata names what the direct fallback of a source checkout imports."""
    project = tomllib.loads((Path(pilotfish.__file__).parent / "pyproject.toml").read_text())["project"]
    offered = project["entry-points"][registry.GROUP]
    assert offered == {name: f"pilotfish.adapters.{name}" for name in registry.BUILT_IN}
    able = {name for name, module in offered.items() if hasattr(import_module(module), "create")}
    assert able == {*registry.BUILT_IN} and registry.exporters() == ["oar", "slurm"]


SCONTROL = "#!/bin/sh\necho 'PartitionName=long State=UP Nodes=n1'\necho 'PartitionName=short State=UP Nodes=n1'\n"


@pytest.mark.real
def test_queues_are_handed_over_in_the_options_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scontrol").write_text(SCONTROL)
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    configured = {"partitions": ["short"], "comment": False}
    options, queues = registry.as_if_handed_over("slurm", configured, ["long"], tmp_path)
    assert (options, queues) == ({"partitions": ["short", "long"], "comment": False}, ["long"])
    options, queues = registry.as_if_handed_over("slurm", {}, ["long", "all"], tmp_path)
    assert (options, queues) == ({"partitions": ["long", "short"]}, ["long", "short"])
    with pytest.raises(ConfigError, match="slurm shows no queue 'lonk'; did you mean 'long'"):
        registry.as_if_handed_over("slurm", {}, ["lonk"], tmp_path)
    with pytest.raises(ConfigError, match="'local' has no queues whose jobs could be handed over"):
        registry.as_if_handed_over("local", {}, ["all"], tmp_path)


def test_oar_counts_on_a_shim_where_queues_are_handed_over(tmp_path: Path) -> None:
    oar = import_module("pilotfish.adapters.oar")
    assert oar.with_queues({}, ["default"], tmp_path) == {
        "queues": ["default"], "placement_file": tmp_path / "placement",
    }  # fmt: skip
    configured = {"queues": ["pilot"], "placement_file": "/var/lib/placements"}
    assert oar.with_queues(configured, ["default"], tmp_path) == {**configured, "queues": ["pilot", "default"]}
