"""Classes beside the jobs of plans, runs and status: each job has one, and unknown is unknown."""

import json

import pytest

from pilotfish.daemon.__main__ import main
from pilotfish.daemon.classed import classes_of, with_classes
from pilotfish.daemon.render.classes import class_lines, tally
from pilotfish.daemon.render.service import show_status
from pilotfish.daemon.render.text import width
from pilotfish.simulate.formats.plan import parse_plan
from pilotfish.simulate.job import DEFAULT_PROFILE, Job, Profile, ThreadGroup
from pilotfish.simulate.plan import Plan, PlannedJob
from pilotfish.simulate.platform import Cluster, Node, NodeType

BIG, SMALL = NodeType("big", 2, 1e10, 1e11), NodeType("small", 2, 1e10, 1e9)
SITE = Cluster("lab", (Node("a", BIG), Node("b", SMALL)))
STREAM = Profile((ThreadGroup(1, 5.0, bandwidth=2e9),), ipc=2.0)
NAP = Profile((ThreadGroup(1, 1.0, 0.1),))


def planned(name, node):
    return PlannedJob(name, (node,), 0.0, 5.0, 5.0, 1.0, None, None)


def test_the_class_is_that_on_the_node_which_the_plan_gives():
    jobs = [Job("far", STREAM), Job("near", STREAM), Job("nap", NAP), Job("new", DEFAULT_PROFILE)]
    where = (("far", "a"), ("near", "b"), ("nap", "a"), ("new", "gone"))
    plan = Plan(workflow="w", cluster="lab", policy="mom", seed=0, makespan=5.0, energy_j=None, lower_bound=5.0,
                simulated_in=0.0, truncated=False, evaluations=0,
                jobs=tuple(planned(*each) for each in where))  # fmt: skip
    found = classes_of(plan, jobs, SITE)
    assert {name: told["class"] for name, told in found.items()} == {
        "far": "cpu-bound", "near": "bandwidth-bound", "nap": "sleeping", "new": None,
    }  # fmt: skip
    assert found["new"]["class_why"] == "nothing is known of it"
    shown = with_classes({"jobs": [{"id": "nap"}, {"id": "other"}]}, found)
    assert shown["jobs"][0]["class"] == "sleeping" and shown["jobs"][1] == {"id": "other"}


def told(kind, why="it is"):
    return {"class": kind, "class_why": why}


def test_a_line_names_the_most_of_each_class_and_unknown_last():
    classes = {f"j{i}": told("cpu-bound") for i in range(5)} | {"u": told(None, "why"), "s": told("sleeping"), "x": {}}
    assert tally(classes) == "5 cpu-bound (j0, j1, j2, ...), 1 sleeping (s), 1 unknown (why)"
    assert tally({"a": told(None, "p"), "b": told(None, "q")}) == "2 unknown (a, b)"
    assert class_lines({}) == [] and class_lines({"x": {}}) == []
    kinds = ("mixed", "sleeping", "cpu-bound")
    hostile = {("\x1b[31m\n\u4e16" * 9 + kind) * 9: told(kind) for kind in kinds}
    lines = class_lines(hostile)
    assert len(lines) > 1 and all(width(line) <= 80 and line.isprintable() for line in lines)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "flow.yaml").write_text(
        "schema: pilotfish/workflow/v1\nname: w\njobs:\n"
        "  nap: {command: 'true', profile: {service_demand: 0.01, utilisation: 0.1}}\n"
        "  run: {command: 'true', profile: {service_demand: 0.01, bandwidth: 9GB/s}}\n"
    )
    (tmp_path / "lab.yaml").write_text(
        "schema: pilotfish/cluster/v1\nname: lab\nnode_types: {t: {cores: 2, memory: 1GiB, memory_bandwidth: 9GB/s}}\n"
        "nodes: [{names: n, type: t}]\n"
    )
    return ["plan", str(tmp_path / "flow.yaml"), "--cluster", str(tmp_path / "lab.yaml"), "--policy", "mom"]


def test_plans_tell_the_classes_of_their_jobs(files, capsys):
    assert main(files) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "classes   1 bandwidth-bound (run), 1 sleeping (nap)"
    assert main([*files, "--json"]) == 0
    text = capsys.readouterr().out
    classes = {job["id"]: job["class"] for job in json.loads(text)["jobs"]}
    assert classes == {"nap": "sleeping", "run": "bandwidth-bound"}
    assert len(parse_plan(json.loads(text), "f").jobs) == 2  # a plan with classes can be read back


def test_status_tells_the_classes_of_the_jobs_that_it_shows(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    common = {"state": "running", "nodes": ["a"], "start_time": 0.0, "finish_time": None, "exit_code": None,
              "signal": None, "forecast_run_time": 5.0}  # fmt: skip
    jobs = [{"id": "one", **common, **told("sleeping")}, {"id": "two", **common, **told(None)}]
    flow = {"id": "w.1", "state": "running", "finish_time": None, "jobs": jobs}
    show_status({"cluster": "lab", "blocked": "", "time": 1.0, "workflows": [flow]}, everything=False)
    assert "classes   1 sleeping (one), 1 unknown (it is)" in capsys.readouterr().out.splitlines()
