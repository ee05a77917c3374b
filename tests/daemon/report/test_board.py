"""The board: a row for each job that has not ended and may be seen, with what is expected of it."""

from __future__ import annotations

import dataclasses

import pytest

from pilotfish.daemon.config_sections import AccessConfig
from pilotfish.daemon.report import board as boards
from pilotfish.daemon.report.board import JOB_COLUMNS, NODE_COLUMNS
from pilotfish.simulate.model.observed_queue import ObservedJob, ObservedQueue
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState

ADA, BOB, EVE = 70001, 70002, 70003


def rows(reply) -> dict[str, dict]:
    assert reply["ok"], reply
    assert tuple(reply["columns"]) == JOB_COLUMNS
    return {row[0]: dict(zip(JOB_COLUMNS, row, strict=True)) for row in reply["jobs"]}


@pytest.fixture
def site(offering, kit):
    """A bench next to a manager with one running and one waiting job, besides one that is handed over."""
    manager = offering.manager
    job = dataclasses.replace(kit.job("1", threads=2, seconds=50.0), owner=ADA)
    manager.views["rjms/1"] = JobView("rjms/1", job, JobState.RUNNING, ("n1",), start_time=900.0)
    queued = {"nodes": 1, "cores": 2, "walltime": 200.0, "queue": "batch", "where": frozenset({"n1", "n2"})}
    running = ObservedJob(
        "rjms/1", JobState.RUNNING, "sim", ADA, **queued | {"where": frozenset({"n1"})}, start_time=900.0
    )
    waiting = ObservedJob("rjms/2", JobState.PENDING, "post", BOB, **queued | {"nodes": 2}, manager_start=1150.0)
    manager.observed = ObservedQueue(1000.0, [running, waiting], {"n1": (2, 1e9), "n2": (2, 1e9)})
    manager.offer(dataclasses.replace(kit.job("3", threads=2, seconds=500.0), owner=BOB), due=2000.0)
    offering.run(1, 0.0)
    return offering


def test_every_job_has_a_row_whoever_decides_about_it(site, kit) -> None:
    shown = rows(kit.requests(site)("board"))
    assert set(shown) == {"rjms/1", "rjms/2", "rjms/3"}
    assert shown["rjms/1"] | {"nodes": [(0, 0)], "start_time": 900, "state": "running"} == shown["rjms/1"]
    assert shown["rjms/2"]["decided_by"] == "the resource manager"
    assert shown["rjms/2"]["manager_start_time"] == 1150 and shown["rjms/2"]["partition"] == "batch"
    assert 1000 <= shown["rjms/2"]["start_early"] <= shown["rjms/2"]["start_time"] <= shown["rjms/2"]["start_late"]
    assert shown["rjms/3"]["nodes"] and shown["rjms/3"]["decided_by"] == ""


def test_nodes_are_columns_of_one_length(site, kit) -> None:
    site.manager.states[1] = NodeState.DRAINED
    site.run(1)
    nodes = kit.requests(site)("board")["nodes"]
    assert tuple(nodes) == NODE_COLUMNS and {len(column) for column in nodes.values()} == {2}
    assert nodes["state"] == ["up", "drained"] and nodes["threads"] == [0, 2]


@pytest.mark.parametrize(
    ("uid", "keys"), [(ADA, {"rjms/1"}), (BOB, {"rjms/2", "rjms/3"}), (EVE, {f"rjms/{n}" for n in "123"})]
)
def test_a_user_sees_what_access_lets_them_see(site, kit, uid, keys) -> None:
    ask = kit.requests(site, AccessConfig(see="own", admins=[EVE]))
    reply = ask("board", uid)
    assert set(rows(reply)) == keys and not reply["for_everybody"]
    assert set(reply["users"]) == {str(row["uid"]) for row in rows(reply).values()}


def test_what_has_not_changed_is_not_sent_again(site, kit) -> None:
    ask = kit.requests(site)
    first = ask("board")
    again = ask("board", unless=first["mark"])
    assert "jobs" not in again and again["mark"] == first["mark"]
    site.run(1)
    assert "jobs" in ask("board", unless=first["mark"])


def test_a_board_is_bounded_and_counts_what_it_leaves_out(site, kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "MOST_JOBS", 2)
    monkeypatch.setattr(boards, "ROWS_AT_ONCE", 1)
    reply = kit.requests(site)("board")
    assert (len(reply["jobs"]), reply["jobs_left_out"]) == (2, 1)


def test_jobs_that_have_ended_are_not_on_it(bench, kit) -> None:
    workflow = bench.submit(kit.job("a", seconds=2.0), kit.job("b", "a", seconds=500.0))
    bench.run(6)
    shown = rows(kit.requests(bench)("board"))
    assert set(shown) == {f"{workflow}/b"} and shown[f"{workflow}/b"]["state"] == "running"
