"""Converting workflows: the tasks stay the same, and what is lost is counted."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.convert import to_dax, to_swf, to_wfcommons, to_workflow
from pilotfish.formats.replays.swf import read_swf
from pilotfish.formats.replays.workloads import jobs_of
from pilotfish.formats.workflows.dax import dax_tasks
from pilotfish.formats.workflows.workflow import document_tasks, parse_workflow, read_tasks, read_workflow
from pilotfish.formats.workflows.workflow_tasks import Task, Tasks, earliest, tasks_of
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.replay.replay import replay

SECONDS = st.one_of(st.integers(0, 9).map(float), st.floats(0, 1e9, allow_subnormal=False))
NAMES = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=5)


@st.composite
def workflows(draw: st.DrawFn) -> Tasks:
    """Draw tasks with dependencies, in any order."""
    tasks: list[Task] = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=8, unique=True)):
        before = draw(st.lists(st.sampled_from(tasks), max_size=3, unique_by=lambda task: task.id)) if tasks else []
        tasks.append(Task(
            name, draw(st.none() | SECONDS), tuple(task.id for task in before), draw(st.integers(1, 99)),
            draw(st.none() | st.floats(0, 100)), draw(st.sampled_from([0.0, 1e6, 2.0**31])), name=name,
        ))  # fmt: skip
    return Tasks("w", tuple(draw(st.permutations(tasks))), "w.json")


#: Names of programs are any text that JSON holds.
PROGRAMS = st.text(st.characters(), max_size=4)


def in_order(task: Task) -> Task:
    """Return tasks with sorted predecessors: WfFormat may declare an edge at either end, so their order is lost."""
    return replace(task, after=tuple(sorted(task.after)))


@given(workflows())
def test_converted_tasks_read_back_unchanged(given: Tasks) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "w.dax").write_text(to_dax(given, "a -- note").text)
        dax = read_tasks(Path(folder) / "w.dax")
    expected = [replace(task, busy=None) for task in given.tasks]
    assert [replace(task, memory=0.0) for task in dax.tasks] == [replace(task, memory=0.0) for task in expected]
    assert [task.memory for task in dax.tasks] == pytest.approx([task.memory for task in expected])
    # WfFormat has no place for the requests of a task that never ran
    ran = [task if task.time is not None else Task(task.id, None, task.after, name=task.name) for task in given.tasks]
    copy = document_tasks(json.loads(to_wfcommons(given, "note").text), "w.json")
    assert [in_order(task) for task in copy.tasks] == [in_order(task) for task in ran] and copy.name == "w"


@given(workflows())
def test_a_task_starts_when_its_predecessors_have_ended(given: Tasks) -> None:
    times = dict(zip((task.id for task in given.tasks), earliest(given.tasks), strict=True))
    for task in given.tasks:
        start, end = times[task.id]
        assert start == max((times[before][1] for before in task.after), default=0.0)
        assert end == start + (task.time or 0.0)


@given(workflows(), st.lists(PROGRAMS, min_size=8, max_size=8), st.text("-> a", max_size=9))
def test_what_is_written_is_read_whatever_programs_and_files_are_called(
    given: Tasks, names: list[str], note: str
) -> None:
    named = replace(
        given, tasks=tuple(replace(task, name=name) for task, name in zip(given.tasks, names, strict=False))
    )
    dax = dax_tasks(to_dax(named, note).text.encode(), "w.dax")
    assert [(task.id, task.time, task.after, task.cores) for task in dax.tasks] == [
        (task.id, task.time, task.after, task.cores) for task in given.tasks
    ]
    again = dax_tasks(to_dax(dax, note).text.encode(), "w.dax")
    assert again.tasks == dax.tasks
    copy = document_tasks(json.loads(to_wfcommons(named, note).text.encode()), "w.json")
    assert [task.name for task in copy.tasks] == [task.name or task.id for task in named.tasks]


@given(workflows())
def test_a_trace_of_a_workflow_keeps_one_dependency_of_each_task(given: Tasks) -> None:
    given = replace(given, tasks=tuple(replace(task, time=task.time or 0.0) for task in given.tasks))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.swf"
        path.write_text(to_swf(given, None, "", skip_invalid=False).text)
        jobs = read_swf(path)
    waiting = sum(bool(task.after) for task in given.tasks)
    assert not jobs.left_out and (0 if jobs.dependencies is None else len(jobs.dependencies)) == waiting
    machine = sum(task.cores for task in given.tasks)
    apart, trace = replay(jobs_of(given), machine), replay(jobs, machine)
    assert sorted(trace.start_time.tolist()) == pytest.approx(sorted(apart.start_time.tolist()))


CHAIN = Tasks(
    "w",
    (
        Task("c", 1.0, ("a", "b"), memory=5.0),
        Task("a", 2.0, cores=2, walltime=9.0),
        Task("b", 4.0, ("a",), busy=50.0),
        Task("d", 0.0, ("a",)),
    ),
    "w.json",
    {"commands": 2},
)


def test_a_trace_has_submit_times_and_one_preceding_job(tmp_path: Path) -> None:
    converted = to_swf(CHAIN, 8, "note", skip_invalid=False)
    path = tmp_path / "w.swf"
    path.write_text(converted.text)
    jobs = read_swf(path)
    assert jobs.submit_time.tolist() == [0.0, 2.0, 2.0, 6.0] and jobs.run_time.tolist() == [2.0, 4.0, 0.0, 1.0]
    assert jobs.more["preceding"].tolist() == [-1, 1, 1, 2] and jobs.more["think_time"].tolist() == [-1, 0, 0, 0]
    assert jobs.walltime.tolist() == [9.0, 4.0, 0.0, 1.0] and jobs.machine == 8
    apart = replay(jobs_of(CHAIN), 8).submit_time
    assert sorted(apart.tolist()) == replay(jobs, 8).submit_time.tolist()
    assert converted.lost == {
        "dependencies other than the last to end: now submit times, as on an unlimited machine": 1,
        "ids that are not numbers: now numbered from 1": 4, "commands": 2, "CPU use": 1, "memory": 1,
    }  # fmt: skip


def test_a_trace_needs_run_times() -> None:
    unknown = replace(CHAIN, tasks=(*CHAIN.tasks, Task("e", None, ("c",)), Task("f", 3.0, ("e", "a"))))
    with pytest.raises(ConfigError, match=r"task e: no run time"):
        to_swf(unknown, None, "note", skip_invalid=False)
    converted = to_swf(unknown, None, "note", skip_invalid=True)
    assert converted.left_out["tasks without a run time"] == 1 and converted.text.splitlines()[-1].split()[1] == "6"
    assert [line.split()[1] for line in converted.text.splitlines() if line[0] != ";"] == ["0", "2", "2", "2", "6"]


def test_what_a_format_cannot_express_is_counted(tmp_path: Path) -> None:
    assert to_dax(CHAIN, "").lost == {"commands": 2, "CPU use": 1, "walltimes": 1}
    assert to_wfcommons(CHAIN, "").lost == {"commands": 2, "walltimes": 1}
    path = tmp_path / "w.json"
    path.write_text(to_wfcommons(CHAIN, "").text)
    converted = to_workflow(read_tasks(path), read_workflow(path), "note")
    assert converted.lost == {"run times of 0: now the shortest possible": 1}
    (tmp_path / "w.yaml").write_text(converted.text)
    again = read_tasks(tmp_path / "w.yaml").tasks
    assert [(task.id, task.after, task.cores) for task in again] == [
        (task.id, task.after, task.cores) for task in CHAIN.tasks
    ]
    assert [task.time for task in again] == pytest.approx([1.0, 2.0, 4.0, 0.0], abs=1e-5) and again[2].busy == 50.0


def test_tasks_of_a_workflow() -> None:
    jobs = {
        "a": {"nodes": 2, "profile": {"threads": 3, "service_demand": 6.0, "utilisation": 0.5, "bandwidth": 1e9}},
        "b": {"after": "a", "command": "make"},
    }
    tasks = tasks_of(parse_workflow({"schema": "pilotfish/workflow/v1", "name": "w", "jobs": jobs}, "w"))
    assert tasks.tasks == (Task("a", 12.0, cores=6, busy=300.0), Task("b", None, ("a",)))
    assert tasks.extras == {"memory bandwidth": 1, "commands": 1, "nodes: now cores": 1}
