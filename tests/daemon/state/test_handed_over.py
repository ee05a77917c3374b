"""Jobs handed over by the resource manager's users: followed, placed, dropped, and found again after a kill."""

from __future__ import annotations

import dataclasses

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.apply import Recording
from pilotfish.daemon.learning.job_profiles import GivenProfiles
from pilotfish.daemon.state.applied import describe
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Provenance
from pilotfish.simulate.model.plan import Release
from pilotfish.simulate.model.snapshot import JobState, JobView


def states(bench) -> dict[str, str]:
    return bench.states("rjms")


def test_a_job_handed_over_is_started_and_dropped_at_its_end(offering, kit) -> None:
    offering.manager.offer(kit.job("1", seconds=3))
    offering.manager.offer(kit.job("2", "1", seconds=3), waits="it depends on 1")
    offering.run(2)
    assert states(offering) == {"1": "running", "2": "pending"}
    offering.run(3)
    assert states(offering) == {"2": "pending"}
    offering.manager.offer(kit.job("2", "1", seconds=3))
    offering.run(6)
    assert states(offering) == {} and offering.manager.runs == {"rjms/1": 1, "rjms/2": 1}
    assert [record["kind"] for record in offering.journal.records("rjms/1")][-1] == "ended"
    found = offering.journal.find("rjms").entries["1"]
    assert (found.state, found.forecast is not None) == (JobState.COMPLETED, True)


def test_a_failure_ends_no_other_job(offering, kit) -> None:
    offering.manager.exits["1"] = 3
    offering.manager.offer(kit.job("1", seconds=1))
    offering.manager.offer(kit.job("2", "1"), waits="it depends on 1")
    offering.run(5)
    assert states(offering) == {"2": "pending"}


def test_jobs_taken_back_or_started_by_others_are_followed(offering, kit) -> None:
    for name in "123":
        offering.manager.offer(kit.job(name), waits="held")
    offering.run(2)
    del offering.manager.views["rjms/1"]
    offering.manager.views["rjms/2"] = dataclasses.replace(
        offering.manager.views["rjms/2"], offered=False, restartable=False, waits=""
    )
    offering.manager.views["rjms/3"] = dataclasses.replace(
        offering.manager.views["rjms/3"],
        state=JobState.RUNNING, nodes=("n2",), start_time=offering.manager.time, offered=False, restartable=False,
    )  # fmt: skip
    offering.run(2)
    assert states(offering) == {"3": "running"} and not offering.manager.runs
    ends = offering.journal.find("rjms").entries
    assert ends["1"].reason == "it has left the queue, and no record says that it began"
    assert (ends["2"].state, ends["2"].let_go) == (JobState.PENDING, "its user took it back")


def test_a_pin_without_a_start_is_released_and_tried_again(offering, kit) -> None:
    offering.manager.stuck = True
    offering.manager.offer(kit.job("1", seconds=2))
    offering.run(14)
    assert offering.manager.releases == 1
    offering.manager.stuck = False
    offering.run(14)
    assert states(offering) == {} and offering.manager.runs["rjms/1"] == 2


@pytest.mark.parametrize(("source", "expected_s"), [("given", 5.0), ("predicted", 5.0), ("default", None)])
def test_a_release_says_how_long_the_job_is_expected_to_run(offering, kit, monkeypatch, source, expected_s) -> None:
    releases, apply = [], offering.manager.apply
    monkeypatch.setattr(offering.manager, "apply", lambda action: (releases.append(action), apply(action)))
    for name in ("1", "2"):
        offering.manager.offer(kit.job(name, seconds=500, threads=2))
    job = kit.job("3", seconds=5, threads=2)
    profile = dataclasses.replace(job.profile, provenance=Provenance(source))
    offering.manager.offer(
        dataclasses.replace(job, profile=profile), due=offering.manager.time + 3, due_why="it needs 9 nodes"
    )
    offering.run(6)
    assert [one.expected_s for one in releases if isinstance(one, Release)] == [expected_s]


def test_a_job_held_until_its_deadline_is_released_for_good(offering, kit) -> None:
    late, why = offering.manager.time + 3, "it needs 9 nodes"
    offering.manager.offer(kit.job("1", seconds=500, threads=2))
    offering.manager.offer(kit.job("2", seconds=500, threads=2))
    offering.manager.offer(kit.job("3", seconds=5, threads=2), due=late, due_why=why)
    offering.run(2)
    assert states(offering) == {"1": "running", "2": "running", "3": "pending"}
    offering.run(4)
    assert states(offering) == {"1": "running", "2": "running"} and offering.manager.runs["rjms/3"] == 0
    assert offering.journal.find("rjms").entries["3"].let_go == "it was released"
    records = [(record["kind"], record["text"]) for record in offering.journal.records("rjms/3")]
    assert ("applied", f"release rjms/3: {why}") in records
    ask = kit.requests(offering)
    (flow,) = ask("status")["workflows"]
    shown = ask("explain", job="rjms/3")
    assert flow["handed_over"] and (shown["job"]["state"], shown["waits"]) == ("pending", "it was released")
    began = {"state": JobState.RUNNING, "nodes": ("n1",), "start_time": offering.manager.time}
    offering.manager.views["rjms/3"] = dataclasses.replace(offering.manager.views["rjms/3"], **began)
    offering.run(1)
    shown = ask("explain", job="rjms/3")
    assert (shown["job"]["state"], shown["job"]["nodes"], shown["waits"]) == ("running", ["n1"], "")


def test_a_job_that_can_start_is_started_at_its_deadline(offering, kit) -> None:
    offering.manager.offer(kit.job("1", seconds=2), due=offering.manager.time, due_why="it is due")
    offering.run(6)
    assert offering.manager.runs["rjms/1"] == 1 and states(offering) == {}


def test_a_job_that_must_wait_is_not_planned_and_the_reason_is_shown(offering, kit) -> None:
    job = dataclasses.replace(kit.job("1", seconds=2), allowed=frozenset())
    offering.manager.offer(job, waits="job 9 comes first")
    offering.run(2)
    assert offering.cycle.tracker.queue.find("rjms/1").wait_reason == "job 9 comes first" and not offering.manager.runs
    offering.manager.offer(kit.job("1", seconds=2))
    offering.run(5)
    assert offering.manager.runs["rjms/1"] == 1


def test_a_refused_start_does_not_fail_the_job(offering, kit) -> None:
    offering.manager.refuse["rjms/1"] = AdapterError("not now", kind="refused")
    offering.manager.offer(kit.job("1", seconds=1))
    offering.run(3)
    assert states(offering) == {"1": "pending"}
    offering.manager.refuse.clear()
    offering.run(12)
    assert offering.manager.runs["rjms/1"] == 1 and states(offering) == {}


@pytest.mark.parametrize("cycles", range(6))
def test_after_a_kill_the_jobs_are_read_from_the_manager_again(offering, kit, cycles) -> None:
    for name in "1234":
        offering.manager.offer(kit.job(name, seconds=2))
    offering.run(cycles)
    offering.kill()
    offering.start()
    offering.run(12)
    assert states(offering) == {} and set(offering.manager.runs.values()) == {1}


def test_known_profiles_are_used_and_only_the_manager_cancels(offering, kit) -> None:
    known = kit.job("x", seconds=77).profile

    class Known(GivenProfiles):
        def with_profile(self, job):
            return dataclasses.replace(job, profile=known)

    offering.profiles = Known()
    offering.restart()
    offering.manager.offer(dataclasses.replace(kit.job("1"), profile=DEFAULT_PROFILE))
    offering.run(1)
    assert offering.cycle.tracker.queue.find("rjms/1").job.profile is known
    answer = kit.requests(offering)("cancel", target="rjms/1")
    assert not answer["ok"] and "can only be cancelled in the resource manager" in answer["error"]


def test_old_jobs_are_pruned_and_the_rest_stays(offering, kit) -> None:
    offering.manager.offer(kit.job("1", seconds=1))
    offering.manager.offer(kit.job("2", seconds=500))
    offering.run(4)
    offering.journal.prune(offering.manager.time + 1)
    assert list(offering.journal.find("rjms").entries) == ["2"] and not offering.journal.records("rjms/1")
    assert states(offering) == {"2": "running"}


def test_the_managers_order_is_kept(offering, kit) -> None:
    for name in "12":
        offering.manager.offer(kit.job(name), waits="held")
    offering.run(1)
    offering.manager.views = dict(reversed(offering.manager.views.items()))
    offering.run(1)
    assert list(states(offering)) == ["2", "1"]


def gone(bench, kit, **found) -> JobView:
    """Let a waiting job leave the manager's queue during a restart; return its possible record."""
    bench.manager.records = {}
    bench.manager.offer(kit.job("1"), waits="not yet")
    bench.run()
    view = bench.manager.views.pop("rjms/1")
    bench.kill()
    bench.start()
    return dataclasses.replace(view, offered=False, restartable=False, **found)


def test_a_job_that_ran_without_us_is_found_in_the_records(offering, kit) -> None:
    view = gone(offering, kit, state=JobState.FAILED, start_time=1001.0, finish_time=1002.0, exit_code=3, nodes=("n1",))
    offering.manager.records_down = "away"
    offering.run(cycles=2)
    entry = offering.cycle.tracker.queue.find("rjms/1")
    assert entry.state is JobState.PENDING and not offering.cycle.tracker.queue.ready(entry)
    offering.manager.records_down, offering.manager.records = "", {"rjms/1": view}
    offering.kill()
    offering.start()
    entry = offering.cycle.tracker.queue.find("rjms/1")
    offering.run()
    assert (entry.state, entry.exit_code, entry.nodes) == (JobState.FAILED, 3, ("n1",)) and not offering.manager.runs


@pytest.mark.parametrize("found", [None, {"state": JobState.CANCELLED, "finish_time": 1002.0}])
def test_a_job_that_ended_before_it_began_is_cancelled(offering, kit, found) -> None:
    view = gone(offering, kit, **(found or {}))
    offering.manager.records = {"rjms/1": view} if found else {}
    entry = offering.cycle.tracker.queue.find("rjms/1")
    offering.run()
    reason = "it was cancelled in the resource manager before it began" if found else "no record says that it began"
    assert entry.state is JobState.CANCELLED and reason in entry.reason


def test_a_job_is_planned_after_its_running_predecessor(offering, kit) -> None:
    posed = []
    planner = offering.cycle.planner.make_plan
    offering.cycle.planner.make_plan = lambda problem, *rest: posed.append(problem) or planner(problem, *rest)
    offering.manager.offer(kit.job("1", seconds=9))
    offering.manager.offer(kit.job("2", "1"), waits="it depends on 1")
    offering.run(1)
    offering.manager.offer(kit.job("3", "2"), waits="it depends on 2")
    offering.manager.offer(kit.job("4"))
    offering.run(1)
    assert states(offering) == {"1": "running", "2": "pending", "3": "pending", "4": "running"}
    after = {job.id: job.after for job in posed[-1].workflow.jobs}
    assert after == {"rjms/1": (), "rjms/2": ("rjms/1",), "rjms/3": ("rjms/2",), "rjms/4": ()}


@pytest.mark.parametrize("before", ["missing", "neighbour"])
def test_a_job_that_waits_for_other_reasons_reserves_no_nodes(offering, kit, before) -> None:
    """A job that we cannot start (held by its user, or waiting for a neighbour) must not delay those that we can."""
    if before == "neighbour":
        offering.manager.views["rjms/neighbour"] = JobView("rjms/neighbour", kit.job("neighbour"), JobState.PENDING)
    offering.manager.offer(kit.job("1", before, nodes=2, threads=2), waits=f"it depends on {before}")
    offering.manager.offer(kit.job("2", nodes=2, threads=2, seconds=1))
    offering.run(4)
    assert offering.manager.runs == {"rjms/2": 1} and states(offering) == {"1": "pending"}
    offering.manager.offer(kit.job("1", nodes=2, threads=2, seconds=1))
    offering.run(4)
    assert offering.manager.runs["rjms/1"] == 1


def test_a_job_whose_predecessor_was_dropped_is_not_stuck(offering, kit) -> None:
    """The predecessor has ended and left our queue before the manager drops the dependency."""
    offering.manager.offer(kit.job("1", seconds=1))
    offering.manager.offer(kit.job("2", "1", seconds=1), waits="it depends on 1")
    offering.run(5)
    assert states(offering) == {"2": "pending"}
    offering.manager.offer(kit.job("2", seconds=1))
    offering.run(4)
    assert offering.manager.runs["rjms/2"] == 1


def test_nodes_freed_early_by_a_neighbour_are_used_at_once(offering, kit) -> None:
    """The neighbour's end is the only event."""
    whole = kit.job("x", seconds=3000, threads=2, nodes=2)
    view = JobView("rjms/x", whole, JobState.RUNNING, ("n1", "n2"), start_time=offering.manager.time)
    offering.manager.views["rjms/x"] = view
    offering.manager.offer(kit.job("1", seconds=2))
    offering.run(3)
    assert not offering.manager.runs
    del offering.manager.views["rjms/x"]
    offering.run(2)
    assert offering.manager.runs["rjms/1"] == 1


def test_a_dry_run_makes_each_decision_once_and_not_every_cycle(offering, kit, caplog) -> None:
    printed: list[str] = []
    offering.kill()
    offering.start(in_memory=True, applier=Recording(printed.append, lambda action: ["the command"]))
    offering.manager.offer(kit.job("1"), due=offering.manager.time, due_why="it asks for licenses", waits="licenses")
    offering.manager.offer(kit.job("2"), pinned_since=offering.manager.time - 60, nodes=("n1",), restartable=False)
    with caplog.at_level("INFO", logger="pilotfish"):
        reports = offering.run(20)
    assert printed == [
        *("release rjms/2", "  the command"),
        *("release rjms/1: it asks for licenses", "  the command"),
    ]
    assert sum(len(report.applied) for report in reports) == 2
    lines = [record for record in caplog.records if "would have released rjms/" in record.message]
    assert [(line.job, line.cycle) for line in lines] == [("rjms/2", 1), ("rjms/1", 1)]
    assert offering.manager.releases == 0


def test_a_job_that_makes_planning_fail_is_set_aside_alone(offering, kit) -> None:
    def picky(problem, cluster, options):
        if any(job.id == "rjms/2" for job in problem.workflow.jobs):
            raise IndexError("the second")
        return kit.first_fit(problem, cluster, options)

    offering.planner = picky
    offering.restart()
    for name in ("1", "2", "3"):
        offering.manager.offer(kit.job(name))
    offering.run(3)
    assert set(offering.manager.runs) == {"rjms/1", "rjms/3"}
    assert set(offering.cycle.planner.isolation.reasons) == {"rjms/2"}
    assert "planning fails with it: IndexError: the second" in kit.requests(offering)("explain", job="rjms/2")["waits"]


def test_a_pause_gives_back_what_is_pinned_and_held_and_starts_nothing(offering, kit) -> None:
    manager, tracker = offering.manager, offering.cycle.tracker
    manager.offer(kit.job("1"), due=manager.time + 600)
    manager.offer(kit.job("2"), pinned_since=manager.time - 1, nodes=("n1",), restartable=False)
    tracker.paused = True
    manager.offer(kit.job("free"))
    (report,) = offering.run(1)
    assert [describe(applied.action) for applied in report.applied] == [
        "release rjms/2: pilotfish is paused",
        "release rjms/1: pilotfish is paused",
    ]
    assert (offering.cycle.mode, report.mode) == ("paused", "paused")
    manager.offer(kit.job("3"), due=manager.time + 600)
    assert offering.run(3)[0].applied[0].action.key == "rjms/3" and not tracker.holds_anything
    assert not manager.runs and tracker.queue.find("rjms/free").waiting
    tracker.paused = False
    offering.cycle.trigger.renew()
    offering.run(2)
    assert manager.runs == {"rjms/free": 1} and offering.cycle.mode == "live"
