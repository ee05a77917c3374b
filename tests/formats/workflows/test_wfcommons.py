"""WfFormat: the same small workflow in the layout of every version."""

from __future__ import annotations

import json

import pytest

from pilotfish.formats.workflows.wfcommons import wfcommons_tasks
from pilotfish.formats.workflows.workflow import read_workflow
from pilotfish.formats.workflows.workflow_tasks import LEAST_UTILISATION, TINY_S, workflow_of
from pilotfish.simulate.errors import ConfigError, InvalidJobError
from pilotfish.simulate.model.job import DEFAULT_PROFILE


def parse_wfcommons(data, source):
    return workflow_of(wfcommons_tasks(data, source))


def old(version, **task):
    """Return a diamond's first half in the layout of up to 1.4: references by name, and only from one end."""
    newer = version == "1.4"
    runtime, memory = ("runtimeInSeconds", "memoryInBytes") if newer else ("runtime", "memory")
    tasks = [
        {
            "name": "split",
            "id": "ID1",
            "type": "compute",
            runtime: 4.0,
            "cores": 2,
            "avgCPU": 100.0,
            "children": ["map"],
        },
        {
            "name": "map",
            "id": "ID2",
            runtime: 10.0,
            memory: 3000000 if newer else 3000,
            "machine": "m",
            **task,
        },
        {"name": "join", "id": "ID3", "parents": ["map", "split"], runtime: 0},
    ]
    key = "jobs" if version < "1.3" else "tasks"
    machines = [{"nodeName": "m", "cpu": {"count": 4, "speed": 2500}}]
    return {
        "name": "w/x",
        "schemaVersion": version,
        "workflow": {key: tasks, "makespan": 14, "machines": machines},
    }


def new(version="1.5", **run):
    """Return the same as from 1.5 on: specification and execution apart, references by id."""
    specification = [
        {"name": "task", "id": "split", "parents": [], "children": ["map", "join"]},
        {"name": "task", "id": "map", "parents": ["split"], "children": ["join"]},
        {"name": "task", "id": "join", "parents": ["map", "split"], "children": []},
    ]
    execution = [
        {"id": "join", "runtimeInSeconds": 0},
        {"id": "split", "runtimeInSeconds": 4.0, "coreCount": 2, "avgCPU": 100.0},
        {"id": "map", "runtimeInSeconds": 10.0, "memoryInBytes": 3000000, "machines": ["m"], **run},
    ]
    machines = [{"nodeName": "m", "cpu": {"coreCount": 4, "speedInMHz": 2500}}]
    return {
        "name": "w/x",
        "schemaVersion": version,
        "unheard": {"of": 1},
        "workflow": {
            "specification": {"tasks": specification, "files": [], "metrics": {"numberOfTasks": 3}},
            "execution": {
                "makespanInSeconds": 14,
                "executedAt": "now",
                "tasks": execution,
                "machines": machines,
            },
        },
    }


@pytest.mark.parametrize("data", [old("1.2"), old("1.3"), old("1.4"), new("1.5"), new("1.6")])
def test_all_versions_give_the_same_workflow(data, tmp_path):
    path = tmp_path / "w.json"
    path.write_text(json.dumps(data))
    workflow = read_workflow(path)
    split, mapped, join = workflow.jobs
    assert workflow.name == "w-x"
    assert [job.id for job in workflow.jobs] == ["split", "map", "join"]
    assert (split.after, mapped.after, set(join.after)) == ((), ("split",), {"map", "split"})
    group = split.profile.groups[0]
    assert (group.count, group.utilisation, group.service_demand) == (2, 0.5, 2.0)
    assert group.isolated_time == pytest.approx(4.0)
    assert mapped.profile.memory == 3e6
    assert mapped.profile.groups[0].service_demand == 10.0
    assert join.profile.groups[0].service_demand == TINY_S
    assert split.command is None
    warnings = " | ".join(workflow.warnings)
    assert f"WfFormat {data['schemaVersion']} records no memory bandwidth" in warnings
    assert "1 of the tasks has a recorded run time of zero" in warnings
    assert "2500 MHz" in warnings
    assert len(workflow.warnings) == 3


@pytest.mark.parametrize(
    ("run", "threads", "utilisation"),
    [
        ({"avgCPU": 250}, 1, 1.0),
        ({"avgCPU": 0}, 1, LEAST_UTILISATION),
        ({"coreCount": 1.5}, 2, 0.75),
        ({"coreCount": 4, "avgCPU": 396}, 4, 0.99),
        ({"coreCount": 0}, 1, 1.0),
    ],
)
def test_cores_and_cpu_use_become_threads_and_utilisation(run, threads, utilisation):
    workflow = parse_wfcommons(new(**run), "f")
    group = workflow.jobs[1].profile.groups[0]
    assert (group.count, group.utilisation) == (threads, pytest.approx(utilisation))
    assert group.isolated_time == pytest.approx(10.0)
    assert any("more CPU" in warning for warning in workflow.warnings) == (run.get("avgCPU") == 250)


def test_a_workflow_that_never_ran_gets_the_default_profile():
    data = new()
    del data["workflow"]["execution"]
    workflow = parse_wfcommons(data, "f")
    assert all(job.profile is DEFAULT_PROFILE for job in workflow.jobs)
    assert any("3 of the tasks have no recorded run time" in warning for warning in workflow.warnings)


def test_files_imply_the_dependencies_if_none_are_declared():
    tasks = [
        {"name": "read", "runtime": 1, "files": [{"link": "input", "name": "f"}]},
        {
            "name": "write",
            "runtime": 1,
            "files": [{"link": "output", "name": "f"}, {"link": "input", "name": "f"}],
        },
    ]
    data = {"name": "w", "schemaVersion": "1.3", "workflow": {"tasks": tasks}}
    assert [job.after for job in parse_wfcommons(data, "f").jobs] == [("write",), ()]


def test_tasks_of_one_name_are_distinguished_by_id():
    tasks = [{"name": "t", "id": "1", "runtime": 1}, {"name": "t", "id": "2", "runtime": 1, "parents": ["1"]}]
    data = {"name": "w", "schemaVersion": "1.4", "workflow": {"tasks": tasks}}
    assert [(job.id, job.after) for job in parse_wfcommons(data, "f").jobs] == [
        ("t_1", ()),
        ("t_2", ("t_1",)),
    ]


def test_an_unknown_parent_is_an_error():
    data = new()
    data["workflow"]["specification"]["tasks"][0]["parents"] = ["nobody"]
    with pytest.raises(InvalidJobError, match="nobody"):
        parse_wfcommons(data, "f")


def test_an_error_names_the_task():
    with pytest.raises(ConfigError) as caught:
        parse_wfcommons(new(runtimeInSeconds=-1), "f.json")
    assert caught.value.key == "workflow.specification.tasks[1].runtimeInSeconds"
