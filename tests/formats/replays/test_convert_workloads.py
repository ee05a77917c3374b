"""Converting workloads: the replay stays the same, and what is lost is counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.batsim.workload import load_batsim, workload_of
from pilotfish.formats.batsim.write import SHORTEST_S
from pilotfish.formats.convert import batsim_to_swf, swf_to_batsim
from pilotfish.formats.replays.swf import dump_swf, read_swf
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.order_ranks import CHANGING, ORDERS
from pilotfish.simulate.queue_policies.policy_specs import Conservative, Easy
from pilotfish.simulate.replay.replay import replay
from tests.support.batsim_files import SPEED, document, job, written

ODD = st.one_of(st.floats(1e-5, 1e9), st.sampled_from([0.1, 1 / 3]))  # no walltime is below the shortest of Batsim
TIMES = st.one_of(st.integers(0, 12).map(float), ODD)
WALLS = st.one_of(st.just(-1.0), TIMES.filter(bool))
ROWS = st.lists(st.tuples(TIMES, TIMES, WALLS, st.integers(1, 9), st.integers(-1, 3)), min_size=1, max_size=30)


def trace(folder: Path, rows: list[Any]) -> Path:
    """Return an SWF file of (submit time, run time, requested time, size, user)."""
    lines = [
        f"{i} {submit!r} -1 {run!r} {size} -1 -1 {size} {wall!r} -1 1 {user} -1 -1 -1 -1 -1 -1"
        for i, (submit, run, wall, size, user) in enumerate(rows, 7)
    ]
    path = folder / "t.swf"
    path.write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    return path


def same(one: Workload, other: Workload) -> None:
    """Return everything that decides a replay, and the users."""
    for name in ("id", "submit_time", "run_time", "size"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name
    shortest = [max(wall, SHORTEST_S) for wall in one.walltime.tolist()]
    assert shortest == [max(wall, SHORTEST_S) for wall in other.walltime.tolist()]
    assert one.machine == other.machine
    unknown = np.full(len(one), -1.0)
    assert one.more.get("user", unknown).tolist() == other.more.get("user", unknown).tolist()


def alike(one: Workload, other: Workload, order: str) -> None:
    """Return whether the schedules are equal, resources included."""
    for policy in (Easy(order), *([] if order in CHANGING else [Conservative(order)])):
        a, b = (replay(jobs, 8, policy, seed=1) for jobs in (one, other))
        assert np.array_equal(a.start_time, b.start_time, equal_nan=True)
        assert np.array_equal(a.finish_time, b.finish_time, equal_nan=True)
        assert np.array_equal(a.pieces, b.pieces) and np.array_equal(a.piece0, b.piece0)


@given(ROWS, st.sampled_from(list(ORDERS)))
@settings(max_examples=150, deadline=None)
def test_converting_back_gives_the_same_replay(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], order: str
) -> None:
    folder = tmp_path_factory.mktemp("convert")
    first = read_swf(trace(folder, rows))
    (folder / "t.json").write_text(swf_to_batsim(first, "a test").text)
    second = read_workload(folder / "t.json")
    (folder / "u.swf").write_text(batsim_to_swf(load_batsim(folder / "t.json"), second, "a test").text)
    third = read_swf(folder / "u.swf")
    for converted in (second, third):
        same(first, converted)
        alike(first, converted, order)
    assert not np.isinf(second.walltime).any()


@given(ROWS)
@settings(max_examples=50, deadline=None)
def test_converting_twice_gives_the_same_file(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("convert")
    text = swf_to_batsim(read_swf(trace(folder, rows)), "a test").text
    (folder / "t.json").write_text(text)
    swf = batsim_to_swf(load_batsim(folder / "t.json"), read_workload(folder / "t.json"), "a test").text
    (folder / "u.swf").write_text(swf)
    assert swf_to_batsim(read_swf(folder / "u.swf"), "a test").text == text


def test_a_converted_workload_is_valid_for_batsim(tmp_path: Path) -> None:
    """No delay and no walltime is 0, and all profiles are known."""
    rows = [
        (0, 0.0, -1.0, 1, -1),
        (1.5, 2.0, 9.0, 2, 5),
        (2, 3.0, 3.0, 1, -1),
        (3, 0.0, 1e-7, 1, -1),
        (4, 2.0, 5e-8, 1, -1),
    ]
    jobs = read_swf(trace(tmp_path, rows))
    converted = swf_to_batsim(jobs, "x")
    assert converted.lost == {
        "computing: a delay draws the power of idle resources": 3,
        "walltimes below 1e-6 s: now 1e-6 s, the shortest possible": 3,
        "success: Batsim kills jobs whose delay is their walltime": 1,
    }
    data = json.loads(converted.text)
    assert data["nb_res"] == 8 and data["description"] == "x"
    assert data["jobs"] == [
        {"id": 7, "subtime": 0, "res": 1, "profile": "nothing", "walltime": 1e-6, "status": 1},
        {"id": 8, "subtime": 1.5, "res": 2, "profile": "delay_2", "walltime": 9, "status": 1, "user": 5},
        {"id": 9, "subtime": 2, "res": 1, "profile": "delay_3", "walltime": 3, "status": 1},
        {"id": 10, "subtime": 3, "res": 1, "profile": "nothing", "walltime": 1e-6, "status": 1},
        {"id": 11, "subtime": 4, "res": 1, "profile": "delay_2", "walltime": 1e-6, "status": 1},
    ]
    assert all(float(f"{job['walltime']:.6f}") > 0 for job in data["jobs"]), "as Batsim's messages have it"
    assert data["profiles"] == {
        "nothing": {"type": "parallel_homogeneous", "cpu": 0, "com": 0},
        "delay_2": {"type": "delay", "delay": 2},
        "delay_3": {"type": "delay", "delay": 3},
    }


def test_what_swf_cannot_express_is_counted(tmp_path: Path) -> None:
    jobs = [job("a", "hg", walltime=-1), job(2, "wait", queue="fast", user=3), job(3, "par"), job(4, "nothing")]
    path = written(tmp_path, document(*jobs))
    batsim = load_batsim(path)
    converted = batsim_to_swf(batsim, workload_of(batsim, path, speeds=[SPEED]), "a test")
    assert converted.lost == {
        "names of profiles": 4,
        "flops: now run times": 2,
        "delays: jobs of SWF compute": 1,
        "ids that are not numbers: now numbered from 1": 4,
        "jobs without a walltime: now their run time": 1,
        "fields added by users": 1,
    }
    assert converted.what == "4 jobs for 4 resources" and "; Note: a test\n" in converted.text
    (tmp_path / "t.swf").write_text(converted.text)
    read = read_swf(tmp_path / "t.swf")
    assert read.run_time.tolist() == [3.0, 20.25, 2.0, 0.0] and read.walltime.tolist() == [3.0, 100.0, 100.0, 100.0]
    assert read.id.tolist() == [1, 2, 3, 4] and read.more["user"].tolist() == [-1, 3, -1, -1]


def test_jobs_that_fail_have_their_status_in_swf(tmp_path: Path) -> None:
    profiles = {"bad": {"type": "delay", "delay": 1, "ret": 1}, "good": {"type": "delay", "delay": 1}}
    path = written(tmp_path, document(job(1, "bad"), job(2, "good"), profiles=profiles))
    text = batsim_to_swf(load_batsim(path), read_workload(path), "").text
    (tmp_path / "t.swf").write_text(text)
    assert read_swf(tmp_path / "t.swf").more["status"].tolist() == [0, 1]


@pytest.mark.parametrize("value", ["fast", True, None, 10**400, [1]])
def test_only_numeric_fields_become_swf_columns(tmp_path: Path, value: Any) -> None:
    jobs = read_workload(written(tmp_path, document(job(1, user=2, group=4), job(2, user=value))))
    assert "user" not in jobs.more and jobs.more["group"].tolist() == [4.0, -1.0]


def test_an_unknown_machine_size_stays_unknown(tmp_path: Path) -> None:
    jobs = replace(read_swf(trace(tmp_path, [(0, 1.0, 2.0, 1, -1)])), machine=None)
    assert "MaxProcs" not in dump_swf(jobs) and swf_to_batsim(jobs, "").what == "1 job"
