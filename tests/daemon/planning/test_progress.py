"""The simulated progress of running jobs equals that of the engine that made the forecast."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.planning.problem import running_view
from pilotfish.daemon.planning.progress import Progress
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Cancel, Submit
from tests.support.calls import Calls

SITE = Cluster("lab", tuple(Node(name, NodeType("t", 4, 1e9, 10e9)) for name in "ab"), 2.0)


def hog(name: str, seconds: float) -> Job:
    """Return a job of four threads that demand twice the node's bandwidth."""
    return Job(name, Profile((ThreadGroup(4, seconds, bandwidth=5e9),)))


def test_it_does_not_breathe_in_the_middle_of_a_problem_once_it_is_settled() -> None:
    """What a client does in a breath there would change the queue while it is read."""
    breaths = list[str]()
    real, progress = SimulatedAdapter(SITE, start_time=100.0), Progress(lambda: breaths.append("breath"))
    for name in "ab":
        real.apply(Submit(f"w/{name}", hog(name, 10.0), (name,)))
    running = {view.key: running_view(view.key, view.job, view.nodes, 100.0) for view in real.snapshot().jobs}
    progress.follow(SITE, running, {}, 100.0)
    del running["w/a"]
    progress.follow(SITE, running, {}, 102.0)
    progress.settle()
    before = len(breaths)
    assert progress.of("w/b") == pytest.approx(0.1) and len(breaths) == before > 0


def test_it_follows_jobs_that_started_and_ended_between_two_snapshots() -> None:
    real, progress = SimulatedAdapter(SITE, start_time=100.0), Progress()
    real.apply(Submit("w/long", hog("long", 10.0), ("a",)))
    real.apply(Submit("w/short", hog("short", 2.0), ("a",)))
    running, ended = {}, {}
    real.wait(1e9)  # the short job has started and ended
    for view in real.snapshot().jobs:
        seen = running_view(view.key, view.job, view.nodes, view.start_time or 0.0)
        (ended if view.state.ended else running)[view.key] = seen
    assert set(ended) == {"w/short"}
    progress.follow(SITE, running, ended, real.time)
    assert progress.of("w/long") == pytest.approx(real.progress("w/long"), abs=1e-12)
    assert progress.of("w/short") is None
    real.advance(3.0)
    progress.follow(SITE, running, {}, real.time)
    assert 0.0 < progress.of("w/long") == pytest.approx(real.progress("w/long"), abs=1e-12)


def test_a_job_that_cannot_be_simulated_is_not_followed() -> None:
    progress = Progress()
    progress.follow(SITE, {"w/x": running_view("w/x", hog("x", 1.0), ("elsewhere",), 0.0)}, {}, 5.0)
    assert progress.of("w/x") is None


def test_it_starts_over_when_time_goes_back_or_the_cluster_changes() -> None:
    progress, running = Progress(), {"w/x": running_view("w/x", hog("x", 10.0), ("a",), 50.0)}
    progress.follow(SITE, running, {}, 60.0)
    later = progress.of("w/x")
    progress.follow(SITE, running, {}, 55.0)
    assert progress.of("w/x") == pytest.approx(later / 2)
    progress.follow(Cluster("other", SITE.nodes, 2.0), running, {}, 60.0)
    assert progress.of("w/x") == pytest.approx(later)


STEPS = st.lists(
    st.tuples(
        st.floats(0.0, 8.0),  # seconds until the next look
        st.lists(st.tuples(st.floats(0.5, 20.0), st.sampled_from(["a", "b", "ab"])), max_size=2),  # jobs that start
        st.booleans(),  # whether the oldest job is cancelled
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
@example([(3.0, [(0.5, "a"), (2.0, "a")], False)])  # a job had ended before the first look
def test_it_equals_a_cluster_on_which_jobs_start_and_end_one_by_one(steps: list[Any]) -> None:
    real, progress, seen = SimulatedAdapter(SITE, start_time=100.0), Progress(), set[str]()
    for number, (seconds, jobs, cancel) in enumerate(steps):
        for position, (length, where) in enumerate(jobs):
            real.apply(Submit(f"w/{number}.{position}", replace(hog("x", length), nodes=len(where)), tuple(where)))
            real.advance(seconds / 4)
        views = {view.key: view for view in real.snapshot().jobs}
        alive = [key for key, view in views.items() if not view.state.ended]
        if cancel and alive:
            real.apply(Cancel(alive[0]))
        views = {view.key: view for view in real.snapshot().jobs}
        shown = {key: running_view(key, view.job, view.nodes, view.start_time or 0.0) for key, view in views.items()}
        running = {key: view for key, view in shown.items() if not views[key].state.ended}
        ended = {key: view for key, view in shown.items() if views[key].state.ended and key not in seen}
        seen |= ended.keys()
        progress.follow(SITE, running, ended, real.time)
        real.advance(seconds)
        progress.follow(SITE, running, {}, real.time)
        for key in running:
            assert progress.of(key) == pytest.approx(real.progress(key), abs=1e-9)
        assert not any(progress.of(key) for key in ended)


def test_the_caller_can_do_other_work_between_the_starts_of_many_jobs() -> None:
    site = Cluster("lab", tuple(Node(f"n{number}", NodeType("t", 4, 1e9, 10e9)) for number in range(100)))
    running = {
        f"w/{number}": running_view(f"w/{number}", hog(str(number), 900.0), (f"n{number}",), 50.0 + number)
        for number in range(100)
    }
    quiet = Progress()
    quiet.follow(site, running, {}, 200.0)
    with Calls() as calls:
        progress = Progress(calls.step)
        progress.follow(site, running, {}, 200.0)
    assert calls.steps > len(running) and 2 * calls.most < calls.number
    assert [progress.of(key) for key in running] == [quiet.of(key) for key in running]
