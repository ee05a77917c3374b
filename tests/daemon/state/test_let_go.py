"""Jobs that were handed over: what users see of them, also once the daemon no longer decides about them."""

from __future__ import annotations

import dataclasses
import os

import pytest

from pilotfish.cli.output.status import show_job_log
from pilotfish.daemon.config_sections import AccessConfig
from pilotfish.daemon.learning.job_profiles import GivenProfiles
from pilotfish.daemon.state.users import user_name
from pilotfish.simulate.model.job import Profile, Provenance, ThreadGroup
from pilotfish.simulate.model.observed_queue import ObservedJob, ObservedQueue
from pilotfish.simulate.model.plan import Release
from pilotfish.simulate.model.snapshot import JobState

ADA, BEN = 4242, 4243
LET_GO = "pilotfish has let it go: Slurm chooses its start"


def queued(kit, name: str, owner: int = ADA, partition: str = "short", called: str = "align.sh", **changes):
    traits = (("executable", called), ("queue", partition))
    return dataclasses.replace(kit.job(name, seconds=3), owner=owner, traits=traits, **changes)


def change(bench, **changes) -> None:
    bench.manager.views["rjms/1"] = dataclasses.replace(bench.manager.views["rjms/1"], **changes)


def release(bench) -> None:
    bench.manager.apply(Release("rjms/1", "it gains nothing"))
    change(bench, restartable=False, due_why=LET_GO)


def begin(bench) -> None:
    change(
        bench, state=JobState.RUNNING, nodes=("n2",), start_time=bench.manager.time, offered=False, restartable=False
    )


def let_go_and_begin(bench) -> None:
    release(bench)
    bench.run(1)
    begin(bench)


def end(bench, state: JobState = JobState.COMPLETED, **changes) -> None:
    let_go_and_begin(bench)
    bench.run(1)
    change(bench, state=state, finish_time=bench.manager.time, exit_code=changes.get("exit_code", 0))


def fail(bench) -> None:
    end(bench, JobState.FAILED, exit_code=3)


def requeue(bench) -> None:
    let_go_and_begin(bench)
    bench.run(1)
    change(bench, state=JobState.PENDING, nodes=(), start_time=None, submit_time=bench.manager.time, waits="Slurm says")


def hand_over_again(bench) -> None:
    release(bench)
    bench.run(1)
    change(bench, offered=True, restartable=True, waits="its user holds it")


def take_back(bench) -> None:
    change(bench, offered=False, restartable=False, waits="")


def take_back_and_cancel(bench) -> None:
    take_back(bench)
    bench.run(1)
    change(bench, state=JobState.CANCELLED, finish_time=bench.manager.time)


def cancel(bench) -> None:
    change(bench, state=JobState.CANCELLED, finish_time=bench.manager.time, offered=False, restartable=False)


def leave_the_queue(bench) -> None:
    let_go_and_begin(bench)
    bench.run(1)
    view = bench.manager.views.pop("rjms/1")
    bench.manager.records = {
        "rjms/1": dataclasses.replace(view, state=JobState.COMPLETED, exit_code=0, finish_time=bench.manager.time)
    }


def release_and_begin_at_once(bench) -> None:
    change(bench, due=bench.manager.time - 1, due_why="it was kept for 10 s")
    bench.run(1)
    assert not bench.manager.views["rjms/1"].offered
    change(bench, due_why="")
    begin(bench)


def release_and_end_at_once(bench) -> None:
    release_and_begin_at_once(bench)
    change(bench, state=JobState.COMPLETED, finish_time=bench.manager.time, exit_code=0)


def run_out_of_its_hold(bench) -> None:
    change(bench, due=None)


def be_evicted(bench) -> None:
    begin(bench)
    bench.run(1)
    change(bench, state=JobState.CANCELLED, finish_time=bench.manager.time, reason="killed for another job")


CASES = [
    (release_and_begin_at_once, "let go; running", ("started", "on n2")),
    (release_and_end_at_once, "let go; completed", ("ended", "completed")),
    (run_out_of_its_hold, "pending", ("waits", "not yet")),
    (be_evicted, "cancelled", ("ended", "cancelled: killed for another job")),
    (release, "let go; pending", ("waits", LET_GO)),
    (let_go_and_begin, "let go; running", ("started", "on n2")),
    (end, "let go; completed", ("ended", "completed")),
    (fail, "let go; failed (exit 3)", ("ended", "failed: exit code 3")),
    (requeue, "let go; pending", ("waits", LET_GO)),
    (hand_over_again, "pending", ("waits", "its user holds it")),
    (take_back, "taken back; pending", ("waits", "its user took it back")),
    (take_back_and_cancel, "taken back; cancelled", ("ended", "cancelled")),
    (cancel, "cancelled", ("ended", "it was cancelled in the resource manager before it began")),
    (leave_the_queue, "let go; completed", ("ended", "completed")),
    (begin, "running", None),
]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("happens", "heading", "line"), CASES, ids=[case[0].__name__ for case in CASES])
def test_a_job_is_headed_by_who_decides_and_by_its_state(offering, kit, capsys, happens, heading, line, restarted):
    offering.manager.offer(queued(kit, "1"), waits="not yet")
    offering.run(2)
    happens(offering)
    offering.run(2)
    if restarted:
        offering.restart()
        offering.run(1)
    reply = kit.requests(offering)("explain", job="rjms/1")
    show_job_log(reply)
    assert capsys.readouterr().out.startswith(f"rjms/1: {heading}; submitted ")
    lines = [
        ("waits", reply["waits"]),
        ("ended", reply["job"]["reason"]),
        *((record["kind"], record["text"]) for record in reply["story"]),
    ]
    assert line is None or any(kind == line[0] and text.startswith(line[1]) for kind, text in lines)
    assert all(record["time"] >= reply["submit_time"] for record in reply["story"])
    never_began = happens in (cancel, take_back_and_cancel)
    assert (reply["job"]["start_time"] is None) is (never_began or reply["job"]["state"] == "pending")
    (flow,) = kit.requests(offering)("status")["workflows"]
    assert [job["state"] for job in flow["jobs"]] == ([heading] if heading in ("pending", "running") else [])


def test_an_end_that_nothing_records_is_unknown_and_not_followed_for_ever(offering, kit, capsys):
    offering.manager.offer(queued(kit, "1"), waits="not yet")
    offering.run(2)
    let_go_and_begin(offering)
    offering.run(1)
    del offering.manager.views["rjms/1"]
    offering.run(2, step_s=40.0)
    show_job_log(kit.requests(offering)("explain", job="1"))
    assert capsys.readouterr().out.startswith("rjms/1: let go; unknown; submitted ")
    assert not offering.cycle.tracker.queue.submissions["rjms"].let_go
    offering.restart()
    assert not offering.cycle.tracker.queue.submissions["rjms"].let_go


def test_a_job_that_is_let_go_takes_part_in_no_plan_and_has_no_forecast_of_ours(offering, kit):
    offering.manager.offer(queued(kit, "1"), waits="not yet")
    offering.run(2)
    release(offering)
    offering.run(3)
    assert not offering.manager.runs and not offering.cycle.tracker.any_waiting
    assert kit.requests(offering)("explain", job="rjms/1")["job"]["plan"] is None


def test_a_forecast_of_a_job_that_was_let_go_is_not_compared_with_its_run(offering, kit):
    offering.manager.stuck = True
    offering.manager.offer(queued(kit, "1"))
    while not offering.manager.releases:
        offering.run(1)
    offering.run(1)
    release(offering)
    offering.run(1)
    begin(offering)
    offering.run(6)
    assert kit.requests(offering)("explain", job="1")["job"]["standing"] == "let go"
    assert offering.journal.find("rjms").entries["1"].finish_time is not None
    assert kit.requests(offering)("accuracy")["jobs"] == []


def test_a_job_that_the_plan_leaves_to_the_manager_has_no_planned_start(offering, kit):
    why, plans = "placing 1 waiting job saves less than it costs", []
    tracker = offering.cycle.tracker
    note = tracker.note_forecasts

    def left(plan, problem, snapshot, released):
        plans.append(plan)
        return note(plan, problem, snapshot, {**released, "rjms/5": why})

    tracker.note_forecasts = left
    for name in "12345":
        offering.manager.offer(queued(kit, name))
    offering.run(1)
    assert any(job.id == "rjms/5" for plan in plans for job in plan.jobs), "the plan has a start for it"
    shown = {name: kit.requests(offering)("explain", job=f"rjms/{name}") for name in "5"}
    assert (shown["5"]["job"]["plan"], shown["5"]["waits"]) == (None, why)


@pytest.mark.parametrize("uid", [ADA, BEN])
def test_the_owner_of_a_job_that_was_handed_over_decides_who_sees_it(offering, kit, uid):
    ask = kit.requests(offering, AccessConfig(see="own"))
    for name, owner in (("1", ADA), ("2", BEN), ("3", ADA)):
        offering.manager.offer(queued(kit, name, owner), waits="not yet")
    offering.run(2)
    change(offering, offered=False, restartable=False, due_why=LET_GO)
    offering.run(2)
    for restarted in (False, True):
        if restarted:
            offering.restart()
            offering.run(1)
            ask = kit.requests(offering, AccessConfig(see="own"))
        seen = {"1": uid == ADA, "2": uid == BEN, "3": uid == ADA}
        for name, visible in seen.items():
            for target in (name, f"rjms/{name}"):
                reply = ask("explain", uid=uid, job=target)
                assert reply["ok"] is visible and (visible or "did you mean" not in reply["error"])
            refused = ask("cancel", uid=uid, target=f"rjms/{name}")["error"]
            assert ("can only be cancelled in the resource manager" in refused) is visible
        (flow,) = ask("status", uid=uid)["workflows"]
        assert [job["id"] for job in flow["jobs"]] == [name for name in "23" if seen[name]]
        assert flow["job_counts"] == {"pending": 1}
        (flow,) = ask("status", uid=uid, workflow="rjms")["workflows"]
        assert flow["job_counts"] == {"pending": 1}
        (flow,) = ask("status", uid=0)["workflows"]
        assert flow["job_counts"] == {"pending": 2}


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({}, "123"),
        ({"of_user": user_name(ADA)}, "13"),
        ({"of_user": user_name(BEN)}, "2"),
        ({"of_user": "nobody-of-this-name"}, ""),
        ({"of_partition": "short"}, "12"),
        ({"of_partition": "long", "of_user": user_name(ADA)}, "3"),
        ({"of_name": "*.sh"}, "13"),
        ({"of_name": "align.sh", "of_state": "pending"}, "13"),
        ({"of_workflow": "rjms", "of_name": "t?ain"}, "2"),
        ({"of_state": "running"}, ""),
        ({"of_workflow": "other"}, ""),
    ],
)
def test_jobs_that_were_handed_over_are_chosen_by_user_partition_and_name(offering, kit, chosen, names):
    offering.manager.offer(queued(kit, "1"), waits="not yet", priority=7.0)
    offering.manager.offer(queued(kit, "2", BEN, called="train"), waits="not yet")
    offering.manager.offer(queued(kit, "3", partition="long"), waits="not yet")
    offering.run(2)
    flows = kit.requests(offering)("status", **chosen)["workflows"]
    assert [job["id"] for flow in flows for job in flow["jobs"]] == list(names)
    assert bool(flows) is bool(names)
    if "1" in names:
        job = flows[0]["jobs"][0]
        assert (job["name"], job["owner"], job["partition"]) == ("align.sh", user_name(ADA), "short")
        assert (job["priority"], job["submit_time"]) == (7.0, 1000.0)


class Learned(GivenProfiles):
    """Profiles that are replaced meanwhile."""

    def __init__(self, name: str) -> None:
        self.profile = Profile((ThreadGroup(1, 3.0),), name=name, provenance=Provenance("measured"))

    def with_profile(self, job):
        return dataclasses.replace(job, profile=self.profile)


def test_explain_keeps_the_profile_of_the_forecast_after_the_end_and_a_restart(offering, kit):
    offering.profiles = Learned("align of March")
    offering.restart()
    offering.manager.offer(queued(kit, "1"))
    offering.run(1)
    shown = []
    for cycles in (0, 1, 6):
        offering.run(cycles)
        shown.append(kit.requests(offering)("explain", job="rjms/1")["job"])
        offering.profiles = Learned("align of April")
        offering.restart()
        shown.append(kit.requests(offering)("explain", job="rjms/1")["job"])
    assert shown[-1]["state"] == "completed" and shown[-1]["forecast_run_time"] == pytest.approx(3.0)
    assert {(job["profile"], job["profile_source"]) for job in shown} == {("align of March", "measured")}


def test_a_placed_job_that_has_not_begun_has_no_run_time(offering, kit):
    offering.manager.stuck = True
    offering.manager.offer(queued(kit, "1"))
    offering.run(5)
    job = kit.requests(offering)("explain", job="rjms/1")["job"]
    assert (job["state"], job["start_time"]) == ("pending", None)


def test_times_count_from_the_first_submission_also_after_a_requeue(offering, kit):
    offering.manager.offer(queued(kit, "1"))
    offering.run(3)
    change(
        offering, state=JobState.PENDING, nodes=(), start_time=None, submit_time=offering.manager.time + 60.0,
        restartable=True, offered=True, waits="Slurm lets it wait after a requeue",
    )  # fmt: skip
    offering.run(2)
    reply = kit.requests(offering)("explain", job="rjms/1")
    assert (reply["submit_time"], reply["job"]["start_time"]) == (1000.0, None)
    assert [record["text"] for record in reply["story"] if record["kind"] == "retry"] == [
        "the resource manager requeued it; it is tried again"
    ]
    assert all(record["time"] >= reply["submit_time"] for record in reply["story"])


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING, JobState.COMPLETED])
def test_a_job_that_is_left_alone_is_explained_for_as_long_as_it_is_known(offering, kit, capsys, state):
    why = "it is moldable, so it is left to OAR"
    begun = {"start_time": 1001.0, "nodes": ("n1",)} if state is not JobState.PENDING else {}
    offering.manager.offer(queued(kit, "7"), offered=False, restartable=False, due_why=why, state=state, **begun)
    offering.manager.observed = ObservedQueue(1000.0, [ObservedJob("rjms/7", state, "align.sh", ADA)], {})
    offering.run(1)
    for uid in (ADA, BEN):
        reply = kit.requests(offering, AccessConfig(see="own"))("explain", uid=uid, job="7")
        assert reply["ok"] is (uid == ADA)
        if reply["ok"]:
            show_job_log(reply)
            assert " ".join(capsys.readouterr().out.split()).startswith(f"rjms/7: left alone; {state}; submitted ")
            assert reply["job"]["let_go"] == why and reply["owner"] == user_name(ADA)


def test_oneself_is_first(offering, kit):
    offering.manager.offer(queued(kit, "1", os.getuid()), waits="not yet")
    offering.run(1)
    assert kit.requests(offering)("status")["workflows"][0]["jobs"][0]["owner"] == user_name(os.getuid())
