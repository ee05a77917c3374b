"""When placing jobs gains more than it costs, and what becomes of them where it does not."""

from __future__ import annotations

import dataclasses

import pytest

from pilotfish.daemon.planning.placement_gain import placement_gain
from pilotfish.daemon.planning.problem import Problem
from pilotfish.daemon.state.queue_entry import Entry
from pilotfish.simulate.model.job import Job, Profile, Provenance, ThreadGroup, Workflow
from pilotfish.simulate.model.objective import Submitted
from pilotfish.simulate.model.plan import Plan, PlannedJob

MEASURED = Profile((ThreadGroup(1, 10.0),), provenance=Provenance("measured"))
UNKNOWN = dataclasses.replace(MEASURED, provenance=Provenance("default"))


def case(ends: dict[str, tuple[float, float]], held: str = "abcdef", unknown: str = "") -> tuple[Plan, Problem]:
    """A plan of jobs of 10 s; `ends`: the planned end and that in the queue's own order, by job."""
    jobs = tuple(Job(f"rm/{name}", UNKNOWN if name in unknown else MEASURED) for name in ends)
    startable = {}
    for name, job in zip(ends, jobs, strict=True):
        entry = Entry("rm", dataclasses.replace(job, id=name), 0, offered=True)
        entry.held = name in held
        startable[job.id] = entry
    planned = tuple(PlannedJob(f"rm/{name}", ("n1",), end - 10.0, end, 10.0, 1.0) for name, (end, _) in ends.items())
    plain = {f"rm/{name}": end for name, (_, end) in ends.items()}
    plan = Plan("q", "c", "lookahead", 0, 1.0, None, 1.0, 0.0, False, 7, planned, plain_finish_times=plain)
    submitted = tuple(Submitted((job.id,)) for job in jobs)
    return plan, Problem(Workflow("q", jobs), (), ("n1",), startable, {}, submitted=submitted)


def test_a_gain_above_the_cost_places_every_job() -> None:
    found = placement_gain(*case({"a": (10.0, 15.0), "b": (20.0, 20.0)}), latency_s=1.0)
    assert (found.gain_s, found.cost_s, found.released) == (5.0, 1.0, {})


def test_without_gain_what_would_wait_is_released_and_what_starts_now_is_placed() -> None:
    found = placement_gain(*case({"a": (10.0, 10.0), "b": (20.0, 20.5), "c": (30.0, 30.0)}), latency_s=1.0)
    assert found.released.keys() == {"rm/b", "rm/c"}
    assert found.released["rm/b"] == (
        "placing 2 waiting jobs would save 0.5 s of turnaround and cost 3.0 s, both summed over all of them"
    )


@pytest.mark.parametrize(
    ("more", "cost"), [({}, 1.0), ({"c": 30.0}, 3.0), ({"c": 30.0, "d": 40.0}, 6.0), ({"c": 25.0}, 2.0)]
)
def test_each_wait_is_paid_again_by_those_behind(more: dict[str, float], cost: float) -> None:
    ends = {"a": (10.0, 15.0), "b": (20.0, 25.0)} | {name: (end, end + 5.0) for name, end in more.items()}
    assert placement_gain(*case(ends), latency_s=1.0).cost_s == cost


def test_without_gain_a_job_that_may_start_by_itself_is_left_alone() -> None:
    found = placement_gain(*case({"a": (10.0, 10.0)}, held=""), latency_s=1.0)
    assert found.released.keys() == {"rm/a"}


@pytest.mark.parametrize(("unknown", "gain"), [("", 7.0), ("a", -2.0), ("b", 9.0 - 2.0), ("ab", -2.0)])
def test_what_is_not_known_gains_nothing_and_may_lose(unknown: str, gain: float) -> None:
    found = placement_gain(*case({"a": (10.0, 19.0), "b": (22.0, 20.0)}, unknown=unknown), latency_s=1.0)
    assert found.gain_s == pytest.approx(gain)


def test_a_plan_that_was_not_compared_is_carried_out() -> None:
    plan, problem = case({"a": (10.0, 10.0)})
    assert placement_gain(dataclasses.replace(plan, plain_finish_times={}), problem, latency_s=1.0).released == {}


@pytest.mark.parametrize(
    ("saved", "each"),
    [({"a": 0.0}, -1.0), ({"a": 1.5}, 0.5), ({"a": 2.0, "b": 0.0}, -0.5), ({"a": 4.0, "b": 0.0}, 0.5)],
)
def test_holding_also_costs_what_starts_now(saved: dict[str, float], each: float) -> None:
    ends = {name: 10.0 * rank for rank, name in enumerate(saved, 1)}
    found = placement_gain(*case({name: (ends[name], ends[name] + saved[name]) for name in saved}), latency_s=1.0)
    assert found.of_holding_s == pytest.approx(each)


def test_a_plan_that_was_not_compared_says_nothing_of_holding() -> None:
    plan, problem = case({"a": (10.0, 15.0)})
    assert placement_gain(dataclasses.replace(plan, plain_finish_times={}), problem, 1.0).of_holding_s is None
