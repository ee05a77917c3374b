"""Following the last plan: what a freed node gets at once, and when news ends a search."""

from __future__ import annotations

import dataclasses

import pytest

from pilotfish.daemon.planning.plan_cache import _moved
from pilotfish.daemon.planning.problem import Options
from pilotfish.simulate.model.plan import PlannedJob, PredictionInterval
from pilotfish.simulate.model.snapshot import NodeState

MANY = 24


class Searching:
    """A planner like an expensive one: it asks whether to stop, and counts its plans."""

    def __init__(self, first_fit) -> None:
        self.first_fit, self.whole, self.ended = first_fit, 0, 0

    def __call__(self, problem, cluster, options):
        if options.should_stop():
            self.ended += 1
            return self.first_fit(problem, cluster, options)
        self.whole += 1
        plan = self.first_fit(problem, cluster, options)
        at, jobs = dict.fromkeys(problem.available, 0.0), []
        for job in plan.jobs:  # the rest one after another, on the nodes in turns
            if job.start_time > 0.0:
                node = min(at, key=lambda name: at[name])
                job = PlannedJob(job.id, (node,), at[node], at[node] + 10.0, 10.0, 1.0)
            at[job.nodes[0]] = job.finish_time
            jobs.append(job)
        return dataclasses.replace(plan, jobs=tuple(jobs))


@pytest.fixture
def busy(bench, kit, monkeypatch):
    """A cycle with two running and many waiting jobs, and a resource manager that may have news."""
    bench.manager.news = False
    monkeypatch.setattr(bench.manager, "wait", lambda timeout_s: bench.manager.news, raising=False)
    monkeypatch.setattr(bench.manager, "fileno", lambda: 0, raising=False)
    bench.search = bench.cycle.planner.make_plan = Searching(kit.first_fit)
    bench.submit(*(kit.job(f"j{i:02}", threads=2, seconds=10.0 if i else 4.0) for i in range(MANY)))
    assert len(bench.run(1)[0].applied) == 2
    assert not bench.run(1)[0].applied
    return bench


def started(report) -> list[str]:
    return [applied.action.key for applied in report.applied]


def test_a_freed_node_gets_the_next_job_of_the_last_plan_before_the_search(busy):
    busy.manager.advance(10.0)
    made = busy.search.whole
    report = busy.cycle.run()
    assert len(started(report)) == 2 and busy.search.whole == made
    assert report.plan.evaluations == 0 and busy.cycle.trigger.changed
    assert not started(busy.cycle.run()) and busy.search.whole == made + 1
    assert not busy.cycle.trigger.changed


def test_news_ends_one_search_after_a_start_from_the_cache(busy):
    busy.manager.advance(10.0)
    busy.cycle.run()
    busy.manager.news = True
    report = busy.cycle.run()
    assert report.plan is None and busy.search.ended == 1 and busy.cycle.trigger.changed
    made = busy.search.whole
    report = busy.cycle.run()
    assert report.plan is not None and (busy.search.ended, busy.search.whole) == (1, made + 1)


def test_news_ends_no_search_without_a_start_from_the_cache(busy, kit):
    busy.manager.news = True
    busy.submit(kit.job("more", threads=2))
    busy.cycle.run()
    assert busy.search.ended == 0


@pytest.mark.parametrize("what", ["submission", "failure", "node", "policy"])
def test_other_news_makes_the_last_plan_void(busy, kit, what):
    made = busy.search.whole
    if what == "submission":
        busy.submit(kit.job("more"))
    elif what == "failure":
        busy.manager.exits["j01"] = 3
    elif what == "node":
        busy.manager.states[0] = NodeState.DRAINED
    else:
        busy.cycle.planner.options = Options(policy="slf")
    busy.manager.advance(10.0)
    busy.cycle.run()
    assert busy.search.whole == made + 1


def test_every_job_beyond_the_window_runs_once(busy, kit):
    busy.cycle.planner.options = Options(policy="mom", window=3)
    busy.run(140, step_s=2.0)
    assert set(busy.manager.runs.values()) == {1} and len(busy.manager.runs) == MANY


def test_jobs_beyond_the_window_are_planned_once_the_window_has_started(bench, kit):
    bench.cycle.planner.options = Options(policy="mom", window=1)
    bench.submit(*(kit.job(f"j{i}") for i in range(4)))
    counts = []
    while bench.cycle.trigger.changed:
        counts.append(len(bench.cycle.run().applied))
    assert sum(counts) == 4 and len(counts) <= 5


def test_a_dry_run_does_not_plan_without_end(bench, kit):
    from pilotfish.daemon.apply import Recording

    bench.cycle.applier = Recording(lambda line: None)
    bench.cycle.planner.options = Options(policy="mom", window=1)
    bench.submit(*(kit.job(f"j{i}") for i in range(4)))
    bench.cycle.run()
    assert not bench.cycle.trigger.changed


def test_a_prediction_interval_moves_with_the_job_and_narrows_at_its_start():
    job = PlannedJob("j", ("n1",), 10.0, 20.0, 10.0, 1.0, within=PredictionInterval(15.0, 26.0, 9.0, 12.0))
    waits = _moved(job, "w/j", 4.0, 0.0, set(), set())
    assert (waits.start_time, waits.finish_time, waits.within) == (6.0, 16.0, PredictionInterval(11.0, 22.0, 9.0, 12.0))
    starts = _moved(job, "w/j", 4.0, 0.0, {"j"}, set())
    assert (starts.finish_time, starts.within) == (10.0, PredictionInterval(9.0, 12.0, 9.0, 12.0))
    runs = _moved(dataclasses.replace(job, start_time=0.0), "w/j", 18.0, 0.0, set(), {"j"})
    assert (runs.finish_time, runs.within) == (2.0, PredictionInterval(0.0, 8.0, 9.0, 12.0))


def test_a_late_job_is_expected_at_the_same_time_until_it_starts():
    """It takes 3 s to start, and so did the job before it."""
    job = PlannedJob("j", ("n1",), 10.0, 20.0, 10.0, 1.0, late_s=6.0)
    waits = _moved(job, "w/j", 4.0, 3.0, set(), set())
    assert waits.start_time + waits.late_s == 12.0
    waits = _moved(job, "w/j", 14.0, 3.0, set(), set())  # its time in a world without delays is over
    assert waits.start_time > 0.0 and waits.start_time + waits.late_s == pytest.approx(2.0)
    starts = _moved(job, "w/j", 13.0, 3.0, {"j"}, set())
    assert (starts.start_time, starts.late_s) == (0.0, 3.0)
    runs = _moved(job, "w/j", 18.0, 3.0, set(), {"j"})
    assert (runs.finish_time, runs.late_s) == (8.0, 0.0)


def test_a_plan_is_not_followed_if_a_client_was_answered_since_its_problem_was_made(busy, kit):
    breaths = 0

    def submit_after_the_problem() -> None:
        nonlocal breaths
        breaths += 1
        if breaths == 2:  # the first is before the problem is made
            busy.submit(kit.job("late", threads=2))

    busy.submit(kit.job("more", threads=2))
    busy.cycle.planner.breathe = submit_after_the_problem
    plans = busy.search.whole
    busy.cycle.run()
    assert breaths >= 2 and busy.search.whole == plans + 1 and busy.cycle.trigger.changed
    busy.manager.advance(10.0)
    busy.cycle.run()
    assert busy.search.whole == plans + 2
