"""Jobs that come through the resource manager: taken in, placed, let go of, and known again after a kill."""

from __future__ import annotations

import dataclasses

import pytest

from pilotfish.adapters.base import AdapterError, Capabilities
from pilotfish.daemon.requests import Requests
from pilotfish.simulate.job import DEFAULT_PROFILE
from pilotfish.simulate.plan import Release, Start
from pilotfish.simulate.snapshot import JobState, JobView


@pytest.fixture
def offering(tmp_path, kit):
    """A bench whose manager has a queue of its own; a start binds the job, and the next second begins it."""

    class Offering(kit.Manager):
        name = "rjms"
        stuck, releases = False, 0

        def offer(self, job, **changes) -> None:
            view = JobView(
                f"rjms/{job.id}", job, JobState.PENDING, submit_time=self.time, restartable=True, offered=True
            )
            self.views[view.key] = dataclasses.replace(view, **changes)

        def apply(self, action) -> None:
            if action.key in self.refuse:
                raise self.refuse[action.key]
            view = self.views[action.key]
            if isinstance(action, Start):
                self.runs[action.key] += 1
                self.views[action.key] = dataclasses.replace(
                    view, nodes=action.nodes, restartable=False, pinned_since=self.time
                )
            elif isinstance(action, Release) and action.why:
                self.views[action.key] = dataclasses.replace(view, offered=False, due_why="it was let go", due=None)
            elif isinstance(action, Release):
                self.releases += 1
                self.views[action.key] = dataclasses.replace(view, nodes=(), restartable=True, pinned_since=None)

        def advance(self, seconds: float) -> None:
            for key, view in self.views.items():
                if view.pinned_since is not None and not self.stuck:
                    began = dataclasses.replace(
                        view, state=JobState.RUNNING, offered=False, pinned_since=None, start_time=self.time
                    )
                    self.views[key] = began
            super().advance(seconds)

    manager = Offering(kit.cluster())
    manager.capabilities = Capabilities(events=False, offers=True)
    bench = kit.Bench(tmp_path / "journal.sqlite", manager)
    bench.kill()
    bench.start()
    bench.journal.keep_offers("rjms", manager.time)
    bench.kill()
    bench.start()
    return bench


def states(bench) -> dict[str, str]:
    return bench.states("rjms")


def test_what_is_offered_is_started_and_let_go_of_at_its_end(offering, kit) -> None:
    offering.manager.offer(kit.job("1", seconds=3))
    offering.manager.offer(kit.job("2", "1", seconds=3), waits="it depends on 1")
    offering.run(2)
    assert states(offering) == {"1": "running", "2": "pending"}
    offering.run(3)
    assert states(offering) == {"2": "pending"}
    offering.manager.offer(kit.job("2", "1", seconds=3))
    offering.run(6)
    assert states(offering) == {} and offering.manager.runs == {"rjms/1": 1, "rjms/2": 1}
    assert [record["kind"] for record in offering.journal.story("rjms/1")][-1] == "ended"
    found = offering.journal.find("rjms").entries["1"]
    assert (found.state, found.forecast is not None) == (JobState.COMPLETED, True)


def test_a_failure_ends_no_other_job(offering, kit) -> None:
    offering.manager.exits["1"] = 3
    offering.manager.offer(kit.job("1", seconds=1))
    offering.manager.offer(kit.job("2", "1"), waits="it depends on 1")
    offering.run(5)
    assert states(offering) == {"2": "pending"}


def test_what_is_taken_back_or_begins_by_itself(offering, kit) -> None:
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
    assert offering.journal.find("rjms").entries["1"].reason == "it was taken back"


def test_a_pin_that_becomes_no_start_is_taken_back_and_tried_again(offering, kit) -> None:
    offering.manager.stuck = True
    offering.manager.offer(kit.job("1", seconds=2))
    offering.run(14)
    assert offering.manager.releases == 1
    offering.manager.stuck = False
    offering.run(14)
    assert states(offering) == {} and offering.manager.runs["rjms/1"] == 2


def test_what_was_kept_long_enough_is_let_go_for_good(offering, kit) -> None:
    late, why = offering.manager.time + 3, "it needs 9 nodes"
    offering.manager.offer(kit.job("1", seconds=500, threads=2))
    offering.manager.offer(kit.job("2", seconds=500, threads=2))
    offering.manager.offer(kit.job("3", seconds=5, threads=2), due=late, due_why=why)
    offering.run(2)
    assert states(offering) == {"1": "running", "2": "running", "3": "pending"}
    offering.run(4)
    assert states(offering) == {"1": "running", "2": "running"} and offering.manager.runs["rjms/3"] == 0
    assert offering.journal.find("rjms").entries["3"].reason == "it was let go"
    told = [(record["kind"], record["text"]) for record in offering.journal.story("rjms/3")]
    assert ("applied", f"let go rjms/3: {why}") in told


def test_what_can_start_is_started_rather_than_let_go(offering, kit) -> None:
    offering.manager.offer(kit.job("1", seconds=2), due=offering.manager.time, due_why="it is due")
    offering.run(6)
    assert offering.manager.runs["rjms/1"] == 1 and states(offering) == {}


def test_what_has_to_wait_is_left_out_of_the_plan_and_says_why(offering, kit) -> None:
    job = dataclasses.replace(kit.job("1", seconds=2), allowed=frozenset())
    offering.manager.offer(job, waits="job 9 comes first")
    offering.run(2)
    assert offering.cycle.queue.find("rjms/1").waits == "job 9 comes first" and not offering.manager.runs
    offering.manager.offer(kit.job("1", seconds=2))
    offering.run(5)
    assert offering.manager.runs["rjms/1"] == 1


def test_a_refusal_is_no_failure_of_the_job(offering, kit) -> None:
    offering.manager.refuse["rjms/1"] = AdapterError("not now", kind="refused")
    offering.manager.offer(kit.job("1", seconds=1))
    offering.run(3)
    assert states(offering) == {"1": "pending"}
    offering.manager.refuse.clear()
    offering.run(12)
    assert offering.manager.runs["rjms/1"] == 1 and states(offering) == {}


@pytest.mark.parametrize("cycles", range(6))
def test_after_a_kill_the_manager_tells_what_there_is(offering, kit, cycles) -> None:
    for name in "1234":
        offering.manager.offer(kit.job(name, seconds=2))
    offering.run(cycles)
    offering.kill()
    offering.start()
    offering.run(12)
    assert states(offering) == {} and set(offering.manager.runs.values()) == {1}


def test_known_profiles_are_used_and_cancelling_is_the_managers(offering, kit) -> None:
    known = kit.job("x", seconds=77).profile
    offering.cycle.know = lambda job: dataclasses.replace(job, profile=known)
    offering.manager.offer(dataclasses.replace(kit.job("1"), profile=DEFAULT_PROFILE))
    offering.run(1)
    assert offering.cycle.queue.find("rjms/1").job.profile is known
    answer = Requests(
        offering.cycle, offering.journal, offering.manager.cluster, offering.manager.capabilities
    ).handle({"do": "cancel", "target": "rjms/1"})
    assert not answer["ok"] and "theirs to cancel" in answer["error"]


def test_old_offers_are_pruned_and_the_rest_stays(offering, kit) -> None:
    offering.manager.offer(kit.job("1", seconds=1))
    offering.manager.offer(kit.job("2", seconds=500))
    offering.run(4)
    offering.journal.prune(offering.manager.time + 1)
    assert list(offering.journal.find("rjms").entries) == ["2"] and not offering.journal.story("rjms/1")
    assert states(offering) == {"2": "running"}


def test_the_managers_order_is_kept(offering, kit) -> None:
    for name in "12":
        offering.manager.offer(kit.job(name), waits="held")
    offering.run(1)
    offering.manager.views = dict(reversed(offering.manager.views.items()))
    offering.run(1)
    assert list(states(offering)) == ["2", "1"]


def gone(bench, kit, **found) -> JobView:
    """An offered job that waits, and that is not shown any more after a restart; returns what may be on record."""
    bench.manager.records = {}
    bench.manager.offer(kit.job("1"), waits="not yet")
    bench.run()
    view = bench.manager.views.pop("rjms/1")
    bench.kill()
    bench.start()
    return dataclasses.replace(view, offered=False, restartable=False, **found)


def test_what_began_and_ended_without_us_and_unseen_is_known_by_the_records(offering, kit) -> None:
    view = gone(offering, kit, state=JobState.FAILED, start_time=1001.0, finish_time=1002.0, exit_code=3, nodes=("n1",))
    offering.manager.records_down = "away"
    offering.run(cycles=2)
    entry = offering.cycle.queue.find("rjms/1")
    assert entry.state is JobState.PENDING and not offering.cycle.queue.ready(entry)
    offering.manager.records_down, offering.manager.records = "", {"rjms/1": view}
    offering.kill()
    offering.start()
    entry = offering.cycle.queue.find("rjms/1")
    offering.run()
    assert (entry.state, entry.exit_code, entry.nodes) == (JobState.FAILED, 3, ("n1",)) and not offering.manager.runs


@pytest.mark.parametrize("found", [None, {"state": JobState.CANCELLED, "finish_time": 1002.0}])
def test_what_ended_before_it_began_was_taken_back(offering, kit, found) -> None:
    view = gone(offering, kit, **(found or {}))
    offering.manager.records = {"rjms/1": view} if found else {}
    entry = offering.cycle.queue.find("rjms/1")
    offering.run()
    assert (entry.state, entry.reason) == (JobState.CANCELLED, "it was taken back")


def test_a_job_is_planned_behind_what_it_waits_for_also_once_that_runs(offering, kit) -> None:
    posed = []
    planner = offering.cycle.planner
    offering.cycle.planner = lambda problem, *rest: posed.append(problem) or planner(problem, *rest)
    offering.manager.offer(kit.job("1", seconds=9))
    offering.manager.offer(kit.job("2", "1"), waits="it depends on 1")
    offering.run(1)
    offering.manager.offer(kit.job("3", "2"), waits="it depends on 2")
    offering.manager.offer(kit.job("4"))
    offering.run(1)
    assert states(offering) == {"1": "running", "2": "pending", "3": "pending", "4": "running"}
    after = {job.id: job.after for job in posed[-1].workflow.jobs}
    assert after == {"rjms/1": (), "rjms/2": ("rjms/1",), "rjms/3": ("rjms/2",), "rjms/4": ()}


@pytest.mark.parametrize("before", ["nobody", "neighbour"])
def test_what_waits_for_others_keeps_no_place(offering, kit, before) -> None:
    """A job that nobody here can start (held by its user, behind a neighbour) must not stand before those that may."""
    if before == "neighbour":
        offering.manager.views["rjms/neighbour"] = JobView("rjms/neighbour", kit.job("neighbour"), JobState.PENDING)
    offering.manager.offer(kit.job("1", before, nodes=2, threads=2), waits=f"it depends on {before}")
    offering.manager.offer(kit.job("2", nodes=2, threads=2, seconds=1))
    offering.run(4)
    assert offering.manager.runs == {"rjms/2": 1} and states(offering) == {"1": "pending"}
    offering.manager.offer(kit.job("1", nodes=2, threads=2, seconds=1))
    offering.run(4)
    assert offering.manager.runs["rjms/1"] == 1


def test_a_job_whose_precursor_was_let_go_of_is_not_stuck(offering, kit) -> None:
    """The precursor has ended and is gone from the journal's queue before the manager says that nothing is left."""
    offering.manager.offer(kit.job("1", seconds=1))
    offering.manager.offer(kit.job("2", "1", seconds=1), waits="it depends on 1")
    offering.run(5)
    assert states(offering) == {"2": "pending"}
    offering.manager.offer(kit.job("2", seconds=1))
    offering.run(4)
    assert offering.manager.runs["rjms/2"] == 1


def test_room_that_a_neighbour_leaves_early_is_used_at_once(offering, kit) -> None:
    """Nothing of ours happens then: it is the neighbour's end alone that makes the room."""
    whole = kit.job("x", seconds=3000, threads=2, nodes=2)
    view = JobView("rjms/x", whole, JobState.RUNNING, ("n1", "n2"), start_time=offering.manager.time)
    offering.manager.views["rjms/x"] = view
    offering.manager.offer(kit.job("1", seconds=2))
    offering.run(3)
    assert not offering.manager.runs
    del offering.manager.views["rjms/x"]
    offering.run(2)
    assert offering.manager.runs["rjms/1"] == 1
