"""`pilotfish run` on the demo: real programs on two nodes of one CPU each, in order and where the outcome says."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from real_world import COMMAND, CPUS, pilotfish

from pilotfish.adapters import registry
from pilotfish.daemon.one_off import WorkflowRun
from pilotfish.daemon.planning.plan_cache import FixedPlan
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report.accuracy import RunOutcome, outcome_of
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.formats.cluster import read_cluster
from pilotfish.formats.workflows.workflow import read_workflow
from pilotfish.profiles import demo_folder
from pilotfish.simulate.model.cluster import Cluster
from pilotfish.simulate.model.job import Workflow
from pilotfish.simulate.model.plan import Plan, PlannedJob
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.simulation import Simulation

pytestmark = pytest.mark.xdist_group("machine")

#: Writes down on which CPUs it may run, and when the program began and ended.
WITNESS = """\
log=seen/$PILOTFISH_JOB_ID
sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status > $log
date +%s.%N >> $log
"$@"
code=$?
date +%s.%N >> $log
exit $code
"""
JOBS, SEED = 14, 3
#: Programs take this share of the time that the demo's take; users' documents run the whole demo.
SHARE = 0.3


@dataclass(frozen=True)
class Demo:
    """The demo's folder, and what is in it."""

    folder: Path
    flow: dict[str, Any]
    cluster: Cluster

    def write(self, flow: dict[str, Any]) -> Path:
        path = self.folder / "mine.yaml"
        path.write_text(yaml.safe_dump(flow, sort_keys=False))
        return path


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Demo:
    if len(CPUS) < 2:
        pytest.skip("there is one CPU that we may use: a workflow on two nodes was NOT run")
    shorter = re.compile(r"[0-9.]+$")  # the last word is a time
    programs = {
        name: shorter.sub(lambda seconds: f"{SHARE * float(seconds[0]):g}", work)
        for name, work in demo_folder.PROGRAMS.items()
    }
    monkeypatch.setattr(demo_folder, "PROGRAMS", programs)
    monkeypatch.setattr(demo_folder, "STREAM_S", SHARE * demo_folder.STREAM_S)
    folder = tmp_path / "demo"
    written = pilotfish("demo", folder)
    assert written.returncode == 0, written.stderr
    monkeypatch.chdir(folder)
    return Demo(
        folder,
        yaml.safe_load((folder / "workflow.yaml").read_text()),
        read_cluster(folder / "cluster.yaml"),
    )


def measure(demo: Demo) -> None:
    """Profile the demo's programs, as its own script does."""
    surroundings = os.environ | {"PILOTFISH": COMMAND[0]}
    done = subprocess.run(["sh", "measure.sh"], capture_output=True, text=True, env=surroundings)
    assert done.returncode == 0, done.stderr


def test_the_demo_runs_in_order_and_where_it_is_reported(demo: Demo, record_property: Any) -> None:
    measure(demo)
    (demo.folder / "seen").mkdir()
    jobs = demo.flow["jobs"]
    assert 12 <= len(jobs) <= 16
    for job in jobs.values():
        job["command"] = ["/bin/sh", "-c", WITNESS, "sh", *job["command"]]
    done = pilotfish("run", demo.write(demo.flow), "--cluster", demo.folder / "cluster.yaml", "--json")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert (outcome["state"], outcome["exit_code"]) == ("completed", 0)
    ran = {job["id"]: job for job in outcome["jobs"]}
    assert ran.keys() == jobs.keys()
    began, ended = {}, {}
    for name, job in ran.items():
        assert (job["state"], job["exit_code"]) == ("completed", 0)
        cpus, began[name], ended[name] = (demo.folder / "seen" / name).read_text().split()
        (node,) = job["nodes"]
        assert cpus == ",".join(map(str, demo.cluster.nodes[demo.cluster.index[node]].cpus))
    assert {job["nodes"][0] for job in ran.values()} == {"cpu0", "cpu1"}
    for name, job in jobs.items():
        for before in job.get("after", ()):
            assert float(ended[before]) <= float(began[name])
    error = outcome["median_run_time_factor"] - 1.0
    record_property(
        "measured",
        f"median job-time forecast error {error:.1%}; makespan {outcome['makespan']:.2f} s,"
        f" forecast {outcome['plan']['makespan']:.2f} s",
    )
    assert 0 <= error < float("inf")  # how large it is depends on what else this machine does


def test_the_gain_of_knowing_contention_is_reported(demo: Demo, record_property: Any) -> None:
    flow = read_workflow(demo.write(mixed(demo)), lambda name: None)
    ours, theirs = plan(flow, demo.cluster), round_robin(flow, demo.cluster)
    gain = 1 - carry_out("ours", flow, ours, demo).makespan / carry_out("theirs", flow, theirs, demo).makespan
    record_property(
        "measured",
        f"makespan under round-robin mapping less ours: {gain:.1%} (forecast {1 - ours.makespan / theirs.makespan:.1%})",
    )


def mixed(demo: Demo) -> dict[str, Any]:
    """A random DAG of the demo's programs with all kinds of lengths, and the profiles that they have by making."""
    (moved,) = {float(job["command"][-1]) for job in demo.flow["jobs"].values() if job["command"][1] == "stream"}
    rate = round(moved / SHARE, 1)  # gigabytes that take a second alone
    chance = random.Random(SEED)
    jobs: dict[str, Any] = {}
    for i in range(JOBS):
        program, s = chance.choice(["cpu", "stream", "duty", "sleep"]), round(chance.uniform(0.1, 0.4), 2)
        words, profile = {
            "cpu": ([s], {"service_demand": s}),
            "stream": ([64, round(rate * s, 1)], {"service_demand": s, "bandwidth": f"{rate}GB/s"}),
            "duty": ([0.5, s], {"service_demand": s / 2, "utilisation": 0.5}),
            "sleep": ([s], {"service_demand": 0.02, "utilisation": 0.02 / (s + 0.02)}),
        }[program]
        before = [f"{j}" for j in range(i) if chance.random() < 0.15]
        jobs[f"{i}"] = {
            "after": before, "command": ["./work.py", program, *map(str, words)], "profile": profile
        }  # fmt: skip
    return demo.flow | {"jobs": jobs}


def round_robin(flow: Workflow, cluster: Cluster) -> Plan:
    """The plan that hands jobs to the nodes in turn, in file order."""
    simulation = Simulation(flow, cluster)
    places = np.arange(len(flow.jobs)) % len(cluster.nodes)
    makespan, _ = simulation.follow(
        places,
        np.arange(len(flow.jobs), dtype=float),
        np.full(len(flow.jobs), -1),
        np.full(len(cluster.nodes), np.inf),
    )
    rows, names = simulation.world.jobs, [node.name for node in cluster.nodes]
    jobs = tuple(
        PlannedJob(job.id, (names[place],), float(row["start"]), float(row["finish"]), 1.0, 1.0)
        for job, row, place in zip(flow.jobs, rows, places, strict=True)
    )
    return Plan(flow.name, cluster.name, "round-robin", 0, makespan, None, 0.0, 0.0, False, 1, jobs)


def carry_out(name: str, flow: Workflow, made: Plan, demo: Demo) -> RunOutcome:
    """Run a plan for real."""
    adapter = registry.create("local", demo.cluster, state_dir=demo.folder / name, cgroups=False)
    fixed = FixedPlan(f"{name}/", made, flow, time.monotonic)
    dispatch = WorkflowRun(name, flow, adapter, Metrics(), time.monotonic, Options("mom"), planner=fixed)
    outcome = outcome_of(dispatch.until_ended(lambda report: None, lambda: False), made)
    dispatch.close()
    adapter.close()
    assert outcome.exit_code == 0
    assert all(job.nodes == job.planned.nodes for job in outcome.jobs)
    return outcome
