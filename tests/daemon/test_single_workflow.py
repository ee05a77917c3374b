"""Following a plan: order and mapping are held to, whatever reality does with the times."""

from __future__ import annotations

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.dispatch import Dispatch
from pilotfish.daemon.exporter import Metrics
from pilotfish.daemon.learned import measurement_of, rests_on_default, taught, with_learned
from pilotfish.daemon.outcome import outcome_of, outcome_to_dict
from pilotfish.daemon.sequence import released_by
from pilotfish.simulate.formats.workflow import default_warning
from pilotfish.simulate.job import DEFAULT_PROFILE, Job, Profile, Provenance, ThreadGroup, Workflow
from pilotfish.simulate.plan import Plan, PlannedJob
from pilotfish.simulate.snapshot import JobState, JobView


def plan_of(jobs, places: dict[str, tuple[tuple[str, ...], float, float]]) -> Plan:
    planned = tuple(PlannedJob(job.id, *places[job.id], places[job.id][2], 1.0) for job in jobs)
    makespan = max(job.finish_time for job in planned)
    return Plan("w", "lab", "mom", 0, makespan, None, makespan, 0.0, False, 1, planned)


@pytest.fixture
def follow(kit):
    """Run jobs by a plan on a manager whose clock only `wait` moves; returns submission, plan, manager."""

    def go(jobs, places, *, takes=(), exits=(), cores=2, cancel_at=None, watch=lambda report: None):
        class Virtual(kit.Manager):
            def wait(self, timeout_s: float) -> bool:
                self.advance(0.25)
                return True

        manager = Virtual(kit.cluster(2, cores))
        manager.takes, manager.exits = dict(takes), dict(exits)
        plan, workflow = plan_of(jobs, places), Workflow("w", tuple(jobs))
        dispatch = Dispatch("r.1", workflow, plan, manager, Metrics(), lambda: manager.time)
        cancelled = lambda: cancel_at is not None and manager.time >= 1000.0 + cancel_at  # noqa: E731
        submission = dispatch.until_ended(watch, cancelled)
        dispatch.close()
        return submission, plan, manager

    return go


def starts(manager) -> dict[str, float]:
    return {key.partition("/")[2]: view.start_time - 1000.0 for key, view in manager.views.items()}


def test_a_job_starts_as_soon_as_its_predecessor_has_really_ended(kit, follow):
    jobs = [kit.job("a"), kit.job("b", "a")]
    places = {"a": (("n1",), 0.0, 10.0), "b": (("n2",), 10.0, 20.0)}
    submission, _, manager = follow(jobs, places, takes={"a": 3.0})
    assert submission.state is JobState.COMPLETED
    assert starts(manager)["b"] == pytest.approx(3.0, abs=0.6)
    assert manager.views["r.1/b"].nodes == ("n2",)


def test_the_order_on_a_node_stays_the_plans(kit, follow):
    jobs = [kit.job("slow"), kit.job("first", "slow"), kit.job("second")]
    places = {"slow": (("n1",), 0.0, 1.0), "first": (("n2",), 1.0, 2.0), "second": (("n2",), 1.5, 3.0)}
    _, _, manager = follow(jobs, places, takes={"slow": 8.0})
    assert starts(manager)["second"] >= starts(manager)["first"] >= 8.0


def test_what_the_plan_waited_for_is_waited_for(kit, follow):
    """`b` could sit beside `a`, and the plan put it after `a` on purpose."""
    jobs = [kit.job("a"), kit.job("b")]
    places = {"a": (("n1",), 0.0, 10.0), "b": (("n1",), 10.0, 20.0)}
    assert [job.id for job in released_by(plan_of(jobs, places), Workflow("w", tuple(jobs)))["b"]] == ["a"]
    _, _, manager = follow(jobs, places, takes={"a": 15.0})
    assert starts(manager)["b"] >= 15.0


def test_no_node_is_overfilled_when_a_job_is_late(kit, follow):
    jobs = [kit.job("late", threads=2), kit.job("other"), kit.job("next", "other", threads=1)]
    places = {"late": (("n1",), 0.0, 5.0), "other": (("n2",), 0.0, 6.0), "next": (("n1",), 6.0, 9.0)}
    _, _, manager = follow(jobs, places, takes={"late": 12.0, "other": 6.0})
    assert starts(manager)["next"] >= 12.0


def test_a_failed_job_cancels_what_waits_for_it_and_nothing_else(kit, follow):
    jobs = [kit.job("bad"), kit.job("after", "bad"), kit.job("last", "after"), kit.job("free")]
    places = {name: (("n1",), t, t + 1.0) for name, t in (("bad", 0.0), ("after", 1.0), ("last", 2.0))}
    places["free"] = (("n2",), 0.0, 4.0)
    submission, plan, manager = follow(jobs, places, exits={"bad": 3})
    states = {name: entry.state for name, entry in submission.entries.items()}
    assert states == {
        "bad": JobState.FAILED,
        "after": JobState.CANCELLED,
        "last": JobState.CANCELLED,
        "free": JobState.COMPLETED,
    }
    assert set(starts(manager)) == {"bad", "free"}
    outcome = outcome_of(submission, plan)
    assert outcome.exit_code == 1 and outcome.makespan_error is None
    document = outcome_to_dict(outcome, {"bad": ("out", "err")})
    assert [job["state"] for job in document["jobs"]] == ["failed", "cancelled", "cancelled", "completed"]
    assert document["jobs"][0]["stderr"] == "err" and document["jobs"][1]["stderr"] is None


def test_cancelling_ends_what_runs_and_drops_what_waits(kit, follow):
    jobs = [kit.job("runs", seconds=50.0), kit.job("waits", "runs")]
    places = {"runs": (("n1",), 0.0, 50.0), "waits": (("n1",), 50.0, 60.0)}
    submission, plan, manager = follow(jobs, places, cancel_at=2.0)
    assert submission.state is JobState.CANCELLED and manager.time < 1010.0
    assert set(starts(manager)) == {"runs"} and outcome_of(submission, plan).exit_code == 1


def test_a_resource_manager_that_is_gone_for_good_ends_the_run(kit, follow):
    def vanish(report):
        raise AdapterError("gone", kind="unreachable")

    with pytest.raises(AdapterError, match="gone"):
        follow([kit.job("a")], {"a": (("n1",), 0.0, 1.0)}, watch=vanish)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_any_drift_keeps_dependencies_mapping_and_capacity(follow, kit, seed):
    draw = random.Random(seed)
    jobs, places, free = [], {}, {"n1": 0.0, "n2": 0.0}
    for i in range(8):
        before = tuple(draw.sample([job.id for job in jobs], min(len(jobs), draw.choice((0, 1, 2)))))
        node, length = draw.choice(("n1", "n2")), draw.uniform(0.5, 4.0)
        begin = max([free[node], *(places[name][2] for name in before)])
        jobs.append(kit.job(f"j{i}", *before, threads=draw.choice((1, 2))))
        places[f"j{i}"] = ((node,), begin, begin + length)
        free[node] = begin + length if draw.random() < 0.7 or jobs[-1].profile.threads == 2 else begin
        if free[node] == begin:
            free[node] = begin + length
    takes = {job.id: draw.uniform(0.1, 6.0) for job in jobs}
    submission, _, manager = follow(jobs, places, takes=takes)
    assert submission.state is JobState.COMPLETED
    views = {key.partition("/")[2]: view for key, view in manager.views.items()}
    assert set(manager.runs.values()) == {1} and len(views) == len(jobs)
    for job in jobs:
        assert views[job.id].nodes == places[job.id][0]
        assert all(views[name].finish_time <= views[job.id].start_time for name in job.after)
        beside = [
            other.job.profile.threads
            for other in views.values()
            if other.nodes == views[job.id].nodes and other.start_time <= views[job.id].start_time < other.finish_time
        ]
        assert sum(beside) <= 2
        for other in jobs:
            same = places[other.id][0] == places[job.id][0]
            if same and places[other.id][1] < places[job.id][1]:
                assert views[other.id].start_time <= views[job.id].start_time


def bare(name: str) -> Job:
    return Job(name, DEFAULT_PROFILE, command=("true", name))


def test_what_was_learned_replaces_the_default_and_only_that():
    known = Profile((ThreadGroup(2, 3.0),), name="cmd: true b")
    given_ = Job("c", Profile((ThreadGroup(1, 9.0),)), command=("true",))
    flow = Workflow("w", (bare("a"), bare("b"), given_), warnings=("other", *default_warning(["a", "b"])))
    found = with_learned(flow, lambda job: known if job.id == "b" else None)
    assert [rests_on_default(job) for job in found.jobs] == [True, False, False]
    assert found.jobs[1].profile is known and found.jobs[2] is given_
    assert found.warnings == ("other", *default_warning(["a"]))
    assert with_learned(flow, lambda job: known).warnings == ("other",)
    foretold = dataclasses.replace(known, provenance=Provenance("predicted"))
    (_, warning) = with_learned(flow, lambda job: foretold).warnings
    assert warning.endswith("are predicted from other runs of their programs: a, b")


def view(**changes) -> JobView:
    base = JobView("w/a", bare("a"), JobState.COMPLETED, ("n1",), start_time=100.0, finish_time=110.0, exit_code=0)
    return dataclasses.replace(base, **changes)


def test_a_measurement_takes_the_wait_for_a_core_out():
    usage = (("cpu_seconds", 8.0), ("waiting_seconds", 8.0), ("threads", 2.0), ("memory_bytes", 5e6))
    found = measurement_of(view(usage=usage))
    assert found.threads == 2 and found.groups[0].service_demand == pytest.approx(4.0)
    assert found.isolated_s == pytest.approx(6.0) and found.waiting == pytest.approx(0.4)
    assert found.groups[0].utilisation == pytest.approx(4 / 6) and found.memory_bytes == 5e6
    assert measurement_of(view()) is None and measurement_of(view(start_time=None)) is None


@pytest.mark.parametrize(
    ("seen", "cpu_s", "waiting_s", "threads"),
    [
        (3, 9.9, 0.0, 1),  # a shell, and two programs one after the other
        (3, 5.0, 5.0, 1),  # the same, beside another job
        (2, 8.0, 8.0, 2),
        (4, 39.0, 0.5, 4),
        (4, 11.4, 0.0, 1),  # a few per cent over one thread's worth is noise
        (4, 12.0, 0.0, 2),
        (1, 30.0, 0.0, 1),
        (9, 0.0, 0.0, 1),
    ],
)
def test_threads_are_no_more_than_there_was_time_for(seen, cpu_s, waiting_s, threads):
    usage = (("cpu_seconds", cpu_s), ("waiting_seconds", waiting_s), ("threads", float(seen)))
    assert measurement_of(view(usage=usage)).threads == threads


def test_a_profile_is_of_one_node():
    usage = (("cpu_seconds", 40.0), ("waiting_seconds", 0.0), ("threads", 4.0), ("memory_bytes", 8e9))
    found = measurement_of(view(usage=usage, nodes=("n1", "n2")))
    assert (found.threads, found.groups[0].demand, found.cpu_s) == (2, 10.0, 20.0)
    assert found.memory_bytes == 4e9 and found.isolated_s == pytest.approx(10.0)


def test_only_jobs_that_completed_teach():
    usage = (("cpu_seconds", 1.0),)
    found = taught([view(usage=usage), view(usage=usage, state=JobState.FAILED), view()])
    assert [(job.id, measured.cpu_s) for job, measured in found] == [("a", 1.0)]
