"""Profiles learned from usage, and the classes of the jobs of plans, runs and status."""

import dataclasses
import json

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.cli.output.status import show_status
from pilotfish.cli.output.text import class_lines, tally
from pilotfish.daemon.learning.job_profiles import (
    classes_of,
    fitting,
    job_measurements,
    measurement_of,
    with_classes,
    with_learned_profiles,
)
from pilotfish.daemon.state.profile_labels import has_default_profile
from pilotfish.formats.text import width
from pilotfish.formats.workflows.workflow import default_warning
from pilotfish.simulate.model.capacity import EmptyNodes
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Plan, PlannedJob
from pilotfish.simulate.model.snapshot import JobState, JobView

BIG, SMALL = NodeType("big", 2, 1e10, 1e11), NodeType("small", 2, 1e10, 1e9)
SITE = Cluster("lab", (Node("a", BIG), Node("b", SMALL)))
STREAM = Profile((ThreadGroup(1, 5.0, bandwidth=2e9),), ipc=2.0)
NAP = Profile((ThreadGroup(1, 1.0, 0.1),))


def planned(name, node):
    return PlannedJob(name, (node,), 0.0, 5.0, 5.0, 1.0, None, None)


def test_the_class_is_that_on_the_planned_node():
    jobs = [Job("far", STREAM), Job("near", STREAM), Job("nap", NAP), Job("new", DEFAULT_PROFILE)]
    where = (("far", "a"), ("near", "b"), ("nap", "a"), ("new", "gone"))
    plan = Plan(workflow="w", cluster="lab", policy="mom", seed=0, makespan=5.0, energy_j=None, lower_bound=5.0,
                simulated_in=0.0, truncated=False, evaluations=0,
                jobs=tuple(planned(*each) for each in where))  # fmt: skip
    found = classes_of(plan, jobs, SITE)
    assert {name: shown["class"] for name, shown in found.items()} == {
        "far": "cpu-bound", "near": "bandwidth-bound", "nap": "sleeping", "new": None,
    }  # fmt: skip
    assert found["new"]["class_why"] == "no profile"
    shown = with_classes({"jobs": [{"id": "nap"}, {"id": "other"}]}, found)
    assert shown["jobs"][0]["class"] == "sleeping" and shown["jobs"][1] == {"id": "other"}


def job_class(kind, why="it is"):
    return {"class": kind, "class_why": why}


def test_the_summary_counts_each_class_with_unknown_last():
    classes = {f"j{i}": job_class("cpu-bound") for i in range(5)} | {"u": job_class(None, "why"), "x": {}}
    classes["s"] = job_class("sleeping")
    assert tally(classes) == "5 cpu-bound (j0, j1, j2, ...), 1 sleeping (s), 1 unknown (why)"
    assert tally({"a": job_class(None, "p"), "b": job_class(None, "q")}) == "2 unknown (a, b)"
    assert class_lines({}) == [] and class_lines({"x": {}}) == []
    kinds = ("mixed", "sleeping", "cpu-bound")
    hostile = {("\x1b[31m\n\u4e16" * 9 + kind) * 9: job_class(kind) for kind in kinds}
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


def test_plans_show_the_classes_of_their_jobs(files, capsys):
    assert main(files) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "classes   1 bandwidth-bound (run), 1 sleeping (nap)"
    assert main([*files, "--json"]) == 0
    text = capsys.readouterr().out
    classes = {job["id"]: job["class"] for job in json.loads(text)["jobs"]}
    assert classes == {"nap": "sleeping", "run": "bandwidth-bound"}


def test_status_shows_the_classes_of_its_jobs(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    common = {"state": "running", "nodes": ["a"], "start_time": 0.0, "finish_time": None, "exit_code": None,
              "signal": None, "forecast_run_time": 5.0}  # fmt: skip
    jobs = [{"id": "one", **common, **job_class("sleeping")}, {"id": "two", **common, **job_class(None)}]
    flow = {"id": "w.1", "state": "running", "finish_time": None, "jobs": jobs}
    show_status({"cluster": "lab", "blocked": "", "time": 1.0, "workflows": [flow]}, everything=False)
    assert "classes   1 sleeping (one), 1 unknown (it is)" in capsys.readouterr().out.splitlines()


def bare(name: str) -> Job:
    return Job(name, DEFAULT_PROFILE, command=("true", name))


def test_learned_profiles_replace_only_the_default():
    known = Profile((ThreadGroup(2, 3.0),), name="cmd: true b")
    given_ = Job("c", Profile((ThreadGroup(1, 9.0),)), command=("true",))
    flow = Workflow("w", (bare("a"), bare("b"), given_), warnings=("other", *default_warning(["a", "b"])))
    found = with_learned_profiles(flow, lambda job: known if job.id == "b" else None)
    assert [has_default_profile(job) for job in found.jobs] == [True, False, False]
    assert found.jobs[1].profile is known and found.jobs[2] is given_
    assert found.warnings == ("other", *default_warning(["a"]))
    assert with_learned_profiles(flow, lambda job: known).warnings == ("other",)
    predicted = dataclasses.replace(known, provenance=Provenance("predicted"))
    (_, warning) = with_learned_profiles(flow, lambda job: predicted).warnings
    assert warning.endswith("are predicted from other runs of their programs: a, b")


def view(**changes) -> JobView:
    base = JobView("w/a", bare("a"), JobState.COMPLETED, ("n1",), start_time=100.0, finish_time=110.0, exit_code=0)
    return dataclasses.replace(base, **changes)


def test_a_measurement_excludes_waiting_for_a_core():
    usage = (("cpu_seconds", 8.0), ("waiting_seconds", 8.0), ("threads", 2.0), ("memory_bytes", 5e6))
    found = measurement_of(view(usage=usage))
    assert found.threads == 2 and found.groups[0].service_demand == pytest.approx(4.0)
    assert found.isolated_s == pytest.approx(6.0) and found.waiting == pytest.approx(0.4)
    assert found.groups[0].utilisation == pytest.approx(4 / 6) and found.memory_bytes == 5e6
    assert measurement_of(view()) is None and measurement_of(view(start_time=None)) is None


@pytest.mark.parametrize(("stalled_s", "isolated_s"), [(0.0, 9.0), (1.0, 9.0), (6.0, 4.0), (9.0, 3.0)])
def test_a_control_group_knows_what_threads_waited_that_ended_between_two_samples(stalled_s, isolated_s):
    usage = (("cpu_seconds", 3.0), ("waiting_seconds", 1.0), ("stalled_cpu_full_seconds", stalled_s))
    assert measurement_of(view(usage=usage)).isolated_s == pytest.approx(isolated_s), "never less than it computed"


@pytest.mark.parametrize(
    ("seen", "cpu_s", "waiting_s", "threads"),
    [
        (3, 9.9, 0.0, 1),  # a shell, and two programs in sequence
        (3, 5.0, 5.0, 1),  # the same, sharing cores with another job
        (2, 8.0, 8.0, 2),
        (4, 39.0, 0.5, 4),
        (4, 11.4, 0.0, 1),  # a few per cent over one thread are noise
        (4, 12.0, 0.0, 2),
        (1, 30.0, 0.0, 1),
        (9, 0.0, 0.0, 1),
    ],
)
def test_threads_are_bounded_by_core_and_waiting_time(seen, cpu_s, waiting_s, threads):
    usage = (("cpu_seconds", cpu_s), ("waiting_seconds", waiting_s), ("threads", float(seen)))
    assert measurement_of(view(usage=usage)).threads == threads


def test_a_profile_describes_one_node():
    usage = (("cpu_seconds", 40.0), ("waiting_seconds", 0.0), ("threads", 4.0), ("memory_bytes", 8e9))
    found = measurement_of(view(usage=usage, nodes=("n1", "n2")))
    assert (found.threads, found.groups[0].demand, found.cpu_s) == (2, 10.0, 20.0)
    assert found.memory_bytes == 4e9 and found.isolated_s == pytest.approx(10.0)


def test_only_completed_jobs_teach():
    usage = (("cpu_seconds", 1.0),)
    found = job_measurements([view(usage=usage), view(usage=usage, state=JobState.FAILED), view()])
    assert [(job.id, measured.cpu_s) for job, measured in found] == [("a", 1.0)]


ONE_CORE, TWO_CORES = (EmptyNodes(Cluster("lab", (Node("n", NodeType("t", cores, 1e9, 1e10)),))) for cores in (1, 2))


@pytest.mark.parametrize("used", [0.2, 0.5, 0.9])
def test_a_profile_of_more_threads_than_a_node_takes_does_the_same_work_with_fewer(used):
    job = Job("a", DEFAULT_PROFILE, command=("x",))
    wide = Profile((ThreadGroup(2, 3.0, used, bandwidth=1e9),), name="cmd: x")
    found = fitting(job, wide, ONE_CORE)
    (group,) = found.groups
    assert (group.count, group.demand, found.name) == (1, pytest.approx(6.0), "cmd: x")
    assert group.isolated_time == pytest.approx(max(6.0, 3.0 / used)), "no longer than before if its threads take turns"
    assert fitting(job, wide, TWO_CORES) is wide


def test_a_learned_profile_never_makes_a_job_that_fits_fit_nowhere():
    job = Job("a", DEFAULT_PROFILE, command=("x",))
    large = Profile((ThreadGroup(2, 3.0),), memory=1e12)
    assert fitting(job, large, ONE_CORE) is None and fitting(job, large, None) is large
    assert fitting(job, None, ONE_CORE) is None
    nowhere = Job("a", DEFAULT_PROFILE, nodes=2, command=("x",))
    assert fitting(nowhere, large, ONE_CORE) is large
