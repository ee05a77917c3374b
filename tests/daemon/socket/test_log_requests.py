"""The audit: each write and each change of mode, with who decided it and its outcome; and who may read it."""

from __future__ import annotations

import dataclasses
import os

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.config_sections import AccessConfig
from pilotfish.daemon.state.audit import AuditQuestion
from pilotfish.simulate.model.snapshot import JobState, JobView

ADA, BOB, EVE = 70001, 70002, 70003


@pytest.fixture
def world(offering, kit):
    """A bench whose manager has jobs of two users."""
    offering.ask = kit.requests(offering, AccessConfig(admins=[EVE]))
    return offering


def offer(bench, kit, name: str, owner: int = ADA, **changes) -> str:
    job = dataclasses.replace(kit.job(name, seconds=500.0), owner=owner)
    bench.manager.offer(job, **changes)
    return f"rjms/{name}"


def lines(bench, uid=EVE, **arguments):
    reply = bench.ask("log", uid, **arguments)
    assert reply["ok"], reply
    return reply["lines"]


def writes(bench, uid=EVE, **arguments):
    return [line for line in lines(bench, uid, **arguments) if line["kind"] == "write"]


def test_a_placed_job_has_a_line_with_its_policy_and_both_sides(world, kit) -> None:
    key = offer(world, kit, "1", due=world.manager.time + 600.0)
    world.run(2)
    (line,) = writes(world)
    assert (line["target"], line["action"], line["by"], line["outcome"]) == (key, "start", "policy mom", "done")
    assert line["before"] == {"state": "pending", "held_until": 1600.0} and line["owner"] == ADA
    assert line["after"]["nodes"] == "n1" and line["after"]["begin"] == line["time"]


def test_refused_and_unanswered_writes_say_so(world, kit) -> None:
    first, second = offer(world, kit, "1"), offer(world, kit, "2")
    world.manager.refuse = {
        first: AdapterError("no rights", kind="rights"),
        second: AdapterError("slow", transient=True),
    }
    world.run(1)
    assert [line["outcome"] for line in writes(world)] == ["unknown", "unknown"]
    world.run(1)
    outcomes = {line["target"]: line["outcome"] for line in writes(world)[:2]}
    assert outcomes == {first: "refused: no rights", second: "the job did not start"}


def test_deadlines_pauses_and_users_are_named(world, kit) -> None:
    for node in ("n1", "n2"):
        job = kit.job(node, threads=2, seconds=1e5)
        world.manager.views[node] = JobView(node, job, JobState.RUNNING, (node,), start_time=world.manager.time)
    lapsed = offer(world, kit, "1", due=world.manager.time, due_why="it was held for an hour")
    paused = offer(world, kit, "2", due=world.manager.time + 1e4)
    world.run(1)
    assert world.ask("pause", EVE, why="fans")["ok"]
    world.run(2)
    by = {line["target"]: (line["by"], line["after"].get("why")) for line in writes(world)}
    assert by[lapsed] == ("deadline", "it was held for an hour")
    assert by[paused] == (f"administrator uid {EVE}", "pilotfish is paused: fans")
    changes = [(line["action"], line["by"], line["after"]["mode"]) for line in lines(world) if line["kind"] != "write"]
    assert changes == [
        ("start", "service", "live"),
        ("pause", f"administrator uid {EVE}", ""),
        ("mode", f"administrator uid {EVE}", "paused"),
    ]


def test_a_user_cancels_and_the_write_names_them(bench, kit) -> None:
    bench.ask = kit.requests(bench)
    workflow = bench.submit(kit.job("a", seconds=900.0))
    bench.run(2)
    assert bench.ask("cancel", target=f"{workflow}/a")["ok"]
    bench.run(2)
    last = writes(bench, None)[-1]
    assert (last["action"], last["target"]) == ("cancel", f"{workflow}/a")
    assert f"(uid {os.getuid()})" in last["by"] and last["after"] == {"state": "cancelled"}


def test_the_guard_rail_is_named_and_its_change_of_mode(world, kit) -> None:
    world.run(1)
    guard = world.cycle.planner.forecasts.guard
    for _ in range(3):
        guard.add(5.0)
    offer(world, kit, "1")
    world.run(2)
    (line,) = writes(world)
    assert line["by"] == "guard rail: policy slf"
    (mode,) = [line for line in lines(world) if line["action"] == "mode"]
    assert (mode["by"], mode["before"], mode["after"]) == ("guard rail", {"mode": "live"}, {"mode": "fallback"})
    assert "6.0" in mode["why"]


def test_users_see_their_own_lines_and_nothing_of_others(world, kit) -> None:
    mine, yours = offer(world, kit, "1", ADA), offer(world, kit, "2", BOB)
    world.run(2)
    assert world.ask("pause", EVE, partition="gpu", why="secret")["ok"]
    assert {line["target"] for line in lines(world, ADA)} == {mine}
    assert {line["target"] for line in lines(world, BOB)} == {yours}
    assert {mine, yours, "gpu", ""} == {line["target"] for line in lines(world)}
    assert lines(world, ADA, job=yours) == [] == lines(world, ADA, job="2") == lines(world, ADA, job="rjms")
    refusal = world.ask("log", ADA, user=str(BOB))
    assert refusal["code"] == 403 and "only an administrator" in refusal["error"]
    assert [line["target"] for line in lines(world, user=str(BOB))] == [yours]
    assert [line["target"] for line in lines(world, job="2")] == [yours]


def test_asking_writes_nothing(world, kit) -> None:
    offer(world, kit, "1")
    world.run(2)
    before = world.journal.content()
    for _ in range(50):
        lines(world, ADA), lines(world, BOB, job="1"), world.ask("log", BOB, user=str(ADA))
    assert world.journal.content() == before


@pytest.mark.parametrize(
    "wrong", [{"since": "soon"}, {"user": "no-such-user"}, {"job": "x" * 300}, {"job": "a\nb"}, {"since": ""}]
)
def test_wrong_questions_get_a_sentence(world, wrong) -> None:
    reply = world.ask("log", EVE, **wrong)
    assert (
        reply["ok"] is False and reply["code"] == 400 and next(iter(wrong)) in reply["error"]
    ) or "no user" in reply["error"]


def test_what_is_not_done_is_told_apart_and_is_one_line_of_each_job(world, kit) -> None:
    world.kill()
    world.start(applier=Recording(lambda text: None))
    world.ask = kit.requests(world, AccessConfig(admins=[EVE]))
    key = offer(world, kit, "1")
    for _again in range(10):
        world.cycle.applier.shown.clear()
        world.cycle.trigger.renew()
        world.run(1)
    (line,) = [line for line in lines(world) if line["target"] == key]
    assert (line["kind"], line["action"], line["outcome"]) == ("would", "start", "would have")
    assert line["number"] > 5 and line["since"] < line["time"]
    assert not world.journal._read("SELECT * FROM intents") and not world.manager.runs


def test_a_daemon_that_was_killed_says_so_at_the_next_start(world) -> None:
    world.run(1)
    world.restart()
    world.run(1)
    starts = [line["why"] for line in lines_of(world) if line["action"] == "start"]
    assert ["ended without a stop" in why for why in starts] == [False, True]
    world.cycle.tracker.note_change("stop", "signal", before="live")
    world.cycle.tracker.save()
    world.restart()
    world.run(1)
    assert "ended without a stop" not in lines_of(world)[-1]["why"]


def lines_of(bench):
    return bench.journal.audited(AuditQuestion())


def test_old_lines_go_and_open_ones_stay(world, kit) -> None:
    offer(world, kit, "1")
    world.run(2)
    world.journal._db.execute("INSERT INTO intents (key, action, time) VALUES ('rjms/9', 'place', 1.0)")
    world.journal._db.execute(
        "INSERT INTO intents (key, action, time, outcome) VALUES ('power off', 'poweroff', 1.0, 'done')"
    )
    world.journal.prune(500.0)
    assert [line["target"] for line in writes(world)] == ["rjms/9", "rjms/1"]
    world.journal.prune(1e9)
    assert [line["target"] for line in lines(world)] == ["rjms/9"]
