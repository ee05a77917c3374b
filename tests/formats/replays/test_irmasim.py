"""IRMaSim's platforms and workloads."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.replays.irmasim import is_irmasim_workload, parse_irmasim, parse_platform
from pilotfish.formats.replays.machines import read_machine
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType, PiecewiseLinear, Power
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.queue_policies.policy_specs import Pairs
from pilotfish.simulate.replay.replay import replay

I5 = {"b": -1.85e-05, "c": 32000, "da": 1.75, "db": 3500, "dc": 45000, "dd": 3000}
PLATFORM: dict[str, Any] = {
    "platform": {
        "lab": {
            "id": "lab",
            "clusters": [
                {"id": "a", "nodes": [{"type": "fast", "number": 2}, {"type": "slow", "id": "old"}], "local_links": {}},
                {"nodes": [{"type": "fast"}]},
            ],
        }
    },
    "node": {
        "fast": {"processors": [{"type": "i5", "number": 2}], "memory": {"type": "DDR4-2400", "capacity": 8}},
        "slow": {"processors": [{"type": "i5slow"}]},
    },
    "processor": {
        "i5": {"cores": 4, "clock_rate": 3.4, "dpflops_per_cycle": 1, "uarch": "x", "pa": 6.14, "pb": 5.59, **I5},
        "i5slow": {"cores": 4, "clock_rate": 1.7, "dynamic_power": 2.31, "static_power": 1.59, "min_power": 0.05},
    },
}
WORKLOAD: dict[str, Any] = {
    "nb_res": 8,
    "jobs": [
        {"id": "b", "subtime": 2, "res": 3, "profile": "lu"},
        {"id": "a", "subtime": 0.5, "nodes": 2, "ntasks_per_node": 2, "req_ops": 3.4e9, "ipc": 2, "mem_vol": 19},
        {"subtime": 3, "ntasks": 5, "profile": "lu", "estimated_execution_time": 1},
    ],
    "profiles": {"lu": {"req_ops": 68e9, "ipc": 2, "req_time": 10, "mem": 1000, "mem_vol": 4000}},
}


def written(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def changed(whole: dict[str, Any], keys: str, value: Any) -> dict[str, Any]:
    """Return a copy with another part at this dotted key; ... removes it."""
    copied: Any = copy.deepcopy(whole)
    *path, last = [int(key) if key.isdigit() else key for key in keys.split(".")]
    part = copied
    for key in path:
        part = part[key]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return copied


def test_a_platform_is_a_cluster(tmp_path: Path) -> None:
    cluster = read_machine(written(tmp_path / "p.json", PLATFORM))
    assert [node.name for node in cluster.nodes] == ["a.node0", "a.node1", "a.old", "cluster1.node0"]
    assert cluster.groups == {"a": ("a.node0", "a.node1", "a.old"), "cluster1": ("cluster1.node0",)}
    fast, slow = cluster.types
    assert (fast.cores, fast.sockets, fast.memory, fast.frequency, fast.speed) == (8, 2, 8e9, 3.4e9, 3.4e9)
    assert fast.contention is Contention.PIECEWISE_LINEAR and fast.piecewise == PiecewiseLinear(**I5)
    assert fast.memory_bandwidth == 2 * 32e9 and fast.power == Power(0.0, 6.14, 5.59)
    assert slow.contention is Contention.NONE and slow.power == Power(0.0, 2.31, 1.59, idle_uncore=0.05)


def test_types_may_be_in_a_library(tmp_path: Path) -> None:
    written(tmp_path / "node_types.json", {"_doc": {}, **PLATFORM["node"]})
    written(tmp_path / "processor_types.json", PLATFORM["processor"])
    alone = read_machine(written(tmp_path / "p.json", {"platform": PLATFORM["platform"]}))
    (tmp_path / "q").mkdir()
    assert alone.nodes == read_machine(written(tmp_path / "q" / "p.json", PLATFORM)).nodes


@pytest.mark.parametrize(
    ("keys", "value", "why"),
    [
        ("platform.more", {}, "platform: found 2 platforms"),
        ("platform.lab.model_name", "modelV2", "platform.lab.model_name: found 'modelV2'"),
        ("platform.lab.clusters", [], "platform.lab.clusters: found a list that is empty"),
        ("platform.lab.clusters.0.nodes.1.number", 0, r"clusters\[0\].nodes\[1\].number: found 0"),
        ("platform.lab.clusters.0.nodes.1.type", "fsat", "no type 'fsat'; did you mean 'fast'"),
        ("platform.lab.clusters.1.nodes.0.number", 10**9, r"number: found 1000000000"),
        ("node.fast.processors.0.type", "i7", "processor: no type 'i7'"),
        (
            "node.fast.processors",
            [{"type": "i5"}, {"type": "i5slow"}],
            "processors: found processors of 2 types",
        ),
        ("node.fast.memory.capacity", -1, "node.fast.memory.capacity: found -1"),
        ("processor.i5.clock_rate", ..., "processor.i5.clock_rate: missing"),
        ("processor.i5.cores", "four", "processor.i5.cores: found 'four'"),
        ("processor.i5.dd", ..., "processor.i5.dd: missing"),
        ("processor.i5.dd", 15000, "processor.i5.dc: found 45000"),
        ("processor.i5.pb", ..., "processor.i5.pb: missing"),
        ("processor", 3, "processor: found 3"),
        ("platform", 3, "platform: found 3"),
    ],
)
def test_wrong_platforms_are_refused(tmp_path: Path, keys: str, value: Any, why: str) -> None:
    path = written(tmp_path / "p.json", changed(PLATFORM, keys, value))
    with pytest.raises(ConfigError, match=why) as caught:
        read_machine(path)
    assert caught.value.source == str(path)


def test_a_workload(tmp_path: Path) -> None:
    jobs = read_workload(written(tmp_path / "w.json", WORKLOAD), speeds=(3.4e9, 1.7e9))
    assert (jobs.name, jobs.machine) == ("w", 8)
    assert jobs.more["name"].tolist() == ["a", "b", "job2"] and jobs.more["profile"].tolist() == ["a", "lu", "lu"]
    assert jobs.submit_time.tolist() == [0.5, 2.0, 3.0] and jobs.size.tolist() == [4, 3, 5]
    assert jobs.run_time.tolist() == [1.0, 20.0, 20.0]
    assert jobs.more["volume"].tolist() == [19e6, 4e9, 4e9] and jobs.more["memory"].tolist() == [0.0, 1e9, 1e9]
    assert jobs.more["asked"].tolist() == [np.inf, 10.0, 10.0] and np.isinf(jobs.walltime).all()


@pytest.mark.parametrize(
    ("keys", "value", "why"),
    [
        ("jobs.0.subtime", ..., r"jobs\[0\].subtime: missing"),
        ("jobs.0.profile", "ul", r"jobs\[0\].profile: found 'ul'"),
        ("jobs.0.res", 0, r"jobs\[0\].res: found 0"),
        ("jobs.0.res", ..., r"jobs\[0\].res: missing"),
        ("jobs.1.req_ops", ..., r"jobs\[1\].req_ops: missing"),
        ("profiles.lu.ipc", 0, "profiles.lu.ipc: found 0"),
        ("profiles.lu.mem_vol", "many", "profiles.lu.mem_vol: found 'many'"),
        ("jobs.2", 7, r"jobs\[2\]: found 7"),
        ("jobs", {}, "jobs: found a mapping that is empty"),
        ("nb_res", -1, "nb_res: found -1"),
    ],
)
def test_wrong_workloads_are_refused(tmp_path: Path, keys: str, value: Any, why: str) -> None:
    path = written(tmp_path / "w.json", changed(WORKLOAD, keys, value))
    with pytest.raises(ConfigError, match=why) as caught:
        read_workload(path, speeds=(1e9,))
    assert caught.value.source == str(path)


def test_wrong_jobs_can_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "w.json", changed(WORKLOAD, "jobs.0.res", -1))
    jobs = read_workload(path, speeds=(1e9,), skip_invalid=True)
    assert len(jobs) == 2 and jobs.left_out == {"jobs that cannot be replayed": 1}


def test_instructions_need_a_speed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the speed of the cores is unknown"):
        read_workload(written(tmp_path / "w.json", WORKLOAD))


JUNK = st.sampled_from([None, True, -1, 0, 1e300, float("nan"), "", "\u0000", "fast", [], [1], {}, {"a": 1}, 2**70])


def keys_of(value: Any, before: str = "") -> list[str]:
    """Return the dotted keys of all parts."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [key for name, part in parts for key in (before + str(name), *keys_of(part, f"{before}{name}."))]


@given(st.data(), st.booleans())
def test_random_changes_are_read_or_one_clear_error(data: st.DataObject, machine: bool) -> None:
    valid = PLATFORM if machine else WORKLOAD
    document = changed(valid, data.draw(st.sampled_from(keys_of(valid))), data.draw(JUNK))
    try:
        if machine:
            parse_platform(document, "p.json")
        elif is_irmasim_workload(document):
            jobs = parse_irmasim(document, Path("w.json"), speeds=(1e9,))
            replay(jobs, machine_of(Cluster("c", (Node("n", NodeType("n", 4, 8e9, 1e9)),))), Pairs())
    except ConfigError as error:
        assert error.source and error.problem and "\n" not in str(error)


def test_a_run_time_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "w.json", changed(WORKLOAD, "profiles.lu.req_ops", 1e18))
    with pytest.raises(
        ConfigError, match=r"w.json: jobs\[0\].req_ops: the job takes 5e.15 seconds .allowed: at most 1e.15"
    ):
        read_workload(path, speeds=[100.0])
    jobs = read_workload(path, speeds=[100.0], skip_invalid=True)
    assert jobs.more["name"].tolist() == ["a"] and jobs.left_out == {"jobs that cannot be replayed": 2}


@pytest.mark.parametrize(
    "more",
    [
        {"type": "parallel_homogeneous", "com": 0},
        {"type": "delay", "delay": 5},
        {"type": "parallel", "cpu": [1e9, 1e9], "com": [0, 0, 0, 0]},
        {"com": 0},
    ],
)
def test_keys_of_batsims_in_a_profile_are_ignored(tmp_path: Path, more: dict[str, Any]) -> None:
    alone = WORKLOAD | {"jobs": [job for job in WORKLOAD["jobs"] if "profile" in job]}
    both = changed(alone, "profiles.lu", WORKLOAD["profiles"]["lu"] | more)
    plain = read_workload(written(tmp_path / "w.json", alone), speeds=(3.4e9, 1.7e9))
    jobs = read_workload(written(tmp_path / "w.json", both), speeds=(3.4e9, 1.7e9))
    assert jobs.run_time.tolist() == plain.run_time.tolist() and jobs.more["volume"].tolist() == [4e9, 4e9]


def test_a_profile_of_batsims_stays_batsims() -> None:
    profile = {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0, "ipc": 2}
    job = {"id": "1", "subtime": 0, "res": 1, "profile": "p"}
    assert not is_irmasim_workload({"nb_res": 2, "jobs": [job], "profiles": {"p": profile}})
