"""Plug-ins of other packages: formats of workloads and mapping policies, found by package metadata."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotfish.cli.__main__ import app
from pilotfish.daemon.config import load_config
from pilotfish.formats import entry_points
from pilotfish.formats.replays import workloads
from pilotfish.simulate.errors import ConfigError

MODULE = """
from pilotfish.api import Start
from pilotfish.formats.replays.workloads import Format
from pilotfish.formats.replays.swf import read_swf
from pilotfish.simulate.planning.mapping_policies import choosing

def read(path, *, skip_invalid, **_):
    text = path.with_suffix(".swf")
    text.write_text(path.read_text().removeprefix("LOG"))
    return read_swf(text, skip_invalid=skip_invalid)

log = Format("log", (".joblog",), b"LOG", "", read)

class Last:
    def __init__(self, most: int = 9):
        self.most = most

    def decide(self, now):
        free = now.free_nodes()
        for job in sorted(now.waiting, key=lambda job: -job.number)[: self.most]:
            if (nodes := free.where(job)) is not None:
                free.take(job, nodes)
                yield Start(job, nodes=nodes)

@choosing
def first(simulation, job):
    return simulation.decide(job.id, "let")
"""
JOBS = "LOG1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n"
FLOW = """schema: pilotfish/workflow/v1
jobs: {a: {profile: {service_demand: 5}}, b: {profile: {service_demand: 5}, after: a}}
"""
CLUSTER = """schema: pilotfish/cluster/v1
node_types: {t: {cores: 2, memory: 1GiB, memory_bandwidth: 1GB/s}}
nodes: [{names: "n[1-2]", type: t}]
"""
Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a package with these entry points on the path."""
    caches = (entry_points.plug_ins, workloads._plugged_in)

    def make(points: str) -> None:
        site = tmp_path / "site"
        (site / "joblog-1.0.dist-info").mkdir(parents=True)
        (site / "pilotfish_joblog.py").write_text(MODULE)
        (site / "joblog-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: joblog\nVersion: 1.0\n")
        (site / "joblog-1.0.dist-info" / "entry_points.txt").write_text(points)
        monkeypatch.syspath_prepend(str(site))
        importlib.invalidate_caches()
        for cache in caches:
            cache.cache_clear()

    yield make
    sys.modules.pop("pilotfish_joblog", None)
    for cache in caches:
        cache.cache_clear()


def test_a_format_of_another_package_is_found_by_suffix_and_by_content(install: Install, tmp_path: Path) -> None:
    install("[pilotfish.formats]\nlog = pilotfish_joblog:log\n")
    for name in ("a.joblog", "b.dat"):
        (tmp_path / name).write_text(JOBS)
        assert workloads.format_of(tmp_path / name).name == "log"
        assert workloads.read_workload(tmp_path / name).run_time.tolist() == [10.0]
    (tmp_path / "c.swf").write_text(JOBS.removeprefix("LOG"))
    assert workloads.format_of(tmp_path / "c.swf").name == "SWF"


@pytest.mark.parametrize(
    "target, words",
    [
        ("pilotfish_joblog:nothing", "package joblog: pilotfish.formats.log: cannot load 'pilotfish_joblog:nothing'"),
        ("no_such_module:log", "ModuleNotFoundError"),
        ("pilotfish_joblog:read", "pilotfish.formats: log: found function .allowed: a workloads.Format"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_named(install: Install, tmp_path: Path, target: str, words: str) -> None:
    install(f"[pilotfish.formats]\nlog = {target}\n")
    (tmp_path / "a.joblog").write_text(JOBS)
    with pytest.raises(ConfigError, match=words):
        workloads.format_of(tmp_path / "a.joblog")


def test_a_mapping_policy_of_another_package_plans_and_configures(install: Install, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(FLOW)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "d.yaml").write_text("schema: pilotfish/daemon/v1\ncluster: c.yaml\npolicy: first-fit\n")
    plan = ["plan", str(tmp_path / "w.yaml"), "--cluster", str(tmp_path / "c.yaml"), "--policy", "first-fit"]
    assert CliRunner().invoke(app, plan).exit_code != 0
    with pytest.raises(ConfigError, match="found 'first-fit'"):
        load_config(tmp_path / "d.yaml")
    install("[pilotfish.mapping_policies]\nfirst-fit = pilotfish_joblog:first\n")
    result = CliRunner().invoke(app, plan)
    assert result.exit_code == 0, result.output
    assert "first-fit" in result.output
    assert load_config(tmp_path / "d.yaml").policy == "first-fit"


def test_a_queue_policy_of_another_package_replays_plans_and_configures(install: Install, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(FLOW)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "t.swf").write_text(JOBS.removeprefix("LOG"))
    (tmp_path / "d.yaml").write_text("schema: pilotfish/daemon/v1\ncluster: c.yaml\npolicy: last:most=2\n")
    (tmp_path / "s.yaml").write_text(
        "schema: pilotfish/sweep/v1\nworkloads: [t.swf]\npolicies: [last]\nmachines: [4]\n"
    )
    plan = ["plan", str(tmp_path / "w.yaml"), "--cluster", str(tmp_path / "c.yaml"), "--policy", "last:most=2"]
    replay = ["simulate", str(tmp_path / "t.swf"), "--procs", "4", "--policy", "last:most=2"]
    for command in (plan, replay):
        assert CliRunner().invoke(app, command).exit_code == 2, "no such policy"
    install("[pilotfish.policies]\nlast = pilotfish_joblog:Last\neasy = pilotfish_joblog:nothing\n")
    for command in (plan, replay):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
    wrong = CliRunner().invoke(app, [*replay[:-1], "last:depth=2"])
    assert wrong.exit_code != 0 and "depth" in wrong.output
    assert CliRunner().invoke(app, [*replay[:-1], "easy"]).exit_code == 0, "built-in names win"
    assert load_config(tmp_path / "d.yaml").policy == "pilotfish_joblog:Last:most=2"
    assert "a sweep hashes its file" in str(CliRunner().invoke(app, ["sweep", str(tmp_path / "s.yaml")]).exception)
