"""Forecasts of a queue that a resource manager decides about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.observed_queue import ObservedJob, ObservedQueue
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Easy
from pilotfish.simulate.replay import queue_forecast
from pilotfish.simulate.replay.queue_forecast import SAME_S, ExpectedRun, forecast_queue
from pilotfish.simulate.replay.replay import replay
from tests.support.calls import Calls

NOW = 1e9
NODES = {"n1": (4, 8e9), "n2": (4, 8e9)}
BOTH = frozenset(NODES)


def waiting(name: str, **changes: object) -> ObservedJob:
    return replace(ObservedJob(name, JobState.PENDING, walltime=100.0, submit_time=NOW, where=BOTH), **changes)


def running(name: str, node: str = "n1", **changes: object) -> ObservedJob:
    began = {"start_time": NOW - 10.0, "where": frozenset({node})}
    return replace(waiting(name), state=JobState.RUNNING, **(began | changes))


def queue(*jobs: ObservedJob, nodes: dict[str, tuple[int, float]] = NODES) -> ObservedQueue:
    return ObservedQueue(NOW, jobs, nodes)


@st.composite
def queues(draw: st.DrawFn) -> ObservedQueue:
    left, jobs = 8, list[ObservedJob]()
    for number in range(draw(st.integers(0, 4))):
        cores = draw(st.integers(1, 4))
        if cores <= left:
            left -= cores
            age = draw(st.integers(0, 300))
            more = {"cores": cores, "walltime": float(draw(st.integers(1, 300))), "start_time": NOW - age}
            jobs.append(running(f"r{number}", draw(st.sampled_from(sorted(BOTH))), **more))
    for number in range(draw(st.integers(0, 8))):
        more = {
            "cores": draw(st.integers(1, 4)), "nodes": draw(st.integers(1, 2)),
            "walltime": float(draw(st.integers(1, 300))), "begin": draw(st.sampled_from([None, NOW - 5.0, NOW + 50.0])),
        }  # fmt: skip
        jobs.append(waiting(f"w{number}", **more))
    return queue(*jobs)


@st.composite
def expectations(draw: st.DrawFn) -> dict[str, ExpectedRun | None]:
    found = dict[str, ExpectedRun | None]()
    for name in [f"{kind}{number}" for kind in "rw" for number in range(8)]:
        low, median, high = sorted(draw(st.tuples(*[st.floats(0.0, 500.0)] * 3)))
        found[name] = draw(st.sampled_from([None, ExpectedRun(median, low, high, name)]))
    return found


def drawn_queue(rng: np.random.Generator) -> tuple[ObservedQueue, dict[str, ExpectedRun | None]]:
    """Return a queue, and the exact run times of some of its jobs."""
    free, jobs = 8, list[ObservedJob]()
    for number in range(rng.integers(0, 5)):
        cores = int(rng.integers(1, 5))
        if cores <= free:
            free -= cores
            more = {"cores": cores, "walltime": rng.uniform(1, 300), "start_time": NOW - rng.integers(0, 301)}
            jobs.append(running(f"r{number}", str(rng.choice(sorted(BOTH))), **more))
    for number in range(rng.integers(1, 9)):
        more = {
            "cores": int(rng.integers(1, 5)), "nodes": int(rng.integers(1, 3)), "walltime": rng.uniform(1, 300),
            "begin": [None, NOW - 5.0, NOW + 50.0][rng.integers(0, 3)],
        }  # fmt: skip
        jobs.append(waiting(f"w{number}", **more))
    runs = {job.key: rng.uniform(0, 500) if rng.random() < 0.5 else None for job in jobs}
    return queue(*jobs), {key: run and ExpectedRun(run, run, run) for key, run in runs.items()}


@pytest.mark.long
def test_intervals_hold_if_jobs_of_which_nothing_is_known_end_at_once() -> None:
    """Nearly always: under EASY a job that ends a moment later can let another one start earlier."""
    rng, outside, jobs = np.random.default_rng(20), 0, 0
    for _ in range(300):
        seen, exact = drawn_queue(rng)

        def at_once(job: ObservedJob, exact: dict[str, ExpectedRun | None] = exact) -> ExpectedRun | None:
            run = 1e-6 if job.start_time is None else NOW - job.start_time + 1e-6
            return exact[job.key] or ExpectedRun(run, run, run)

        forecasts = forecast_queue(seen, lambda job, exact=exact: exact[job.key], draws=3)
        for key, soonest in forecast_queue(seen, at_once, draws=3).items():
            early, late = forecasts[key].start_within
            assert early <= forecasts[key].start_time <= late
            assert forecasts[key].finish_within[0] <= forecasts[key].finish_time <= forecasts[key].finish_within[1]
            difference = abs(soonest.start_time - forecasts[key].start_time)
            holds = early - 1e-3 <= soonest.start_time <= late + 1e-3
            holds &= (
                forecasts[key].finish_within[0] - 1e-3 <= soonest.finish_time <= forecasts[key].finish_within[1] + 1e-3
            )
            holds &= forecasts[key].guessed or difference < SAME_S + 1e-3
            outside, jobs = outside + (not holds), jobs + 1
    assert jobs > 1000 and outside <= jobs / 100


@settings(deadline=None)
@given(queues(), expectations(), st.lists(st.floats(0.0, 5.0), max_size=3))
def test_no_start_is_before_now_or_its_begin_time_and_no_run_exceeds_its_walltime(
    seen: ObservedQueue, runs: dict[str, ExpectedRun | None], gaps: list[float]
) -> None:
    found = forecast_queue(seen, lambda job: runs[job.key], gaps, draws=3)
    assert found.keys() == {job.key for job in seen.jobs if job.waiting}
    assert found == forecast_queue(seen, lambda job: runs[job.key], gaps, draws=3)
    for job in seen.jobs:
        if not job.waiting:
            continue
        said = found[job.key]
        assert said.start_time is not None and said.finish_time is not None, said.unknown
        assert said.start_within is not None and said.finish_within is not None
        assert job.walltime is not None
        earliest = max(NOW, job.begin or NOW)
        for start, finish in zip(
            (said.start_time, *said.start_within), (said.finish_time, *said.finish_within), strict=True
        ):
            assert earliest <= start <= finish
        assert said.start_within[0] <= said.start_time <= said.start_within[1]
        assert said.finish_within[1] - said.start_within[1] <= job.walltime * (1 + 1e-6) + 1e-3


@settings(deadline=None)
@given(queues())
def test_without_predictions_it_is_a_replay_of_the_walltimes(seen: ObservedQueue) -> None:
    jobs = sorted(seen.jobs, key=lambda job: job.waiting)
    begin = np.array([max(0.0, (job.begin or NOW) - NOW) if job.waiting else 0.0 for job in jobs])
    age = [0.0 if job.waiting else NOW - (job.start_time or NOW) for job in jobs]
    left = np.array([max(0.0, (job.walltime or 0.0) - since) for job, since in zip(jobs, age, strict=True)])
    order = np.argsort(begin, kind="stable")
    sizes = np.array([job.cores * job.nodes for job in jobs], np.int64)
    whole = Workload("queue", order, begin[order], left[order], left[order], sizes[order])
    expected = dict(zip(order.tolist(), replay(whole, 8, Easy()).start_time.tolist(), strict=True))
    for place, job in enumerate(jobs):
        if job.waiting:
            found = forecast_queue(seen)[job.key]
            assert found.start_time == pytest.approx(NOW + expected[place])
            assert found.start_within == pytest.approx((NOW + expected[place],) * 2)


def test_a_short_prediction_brings_the_next_start_forward() -> None:
    seen = queue(running("r", cores=4), running("s", "n2", cores=4), waiting("w", cores=4))
    assert forecast_queue(seen)["w"].start_time == NOW + 90.0
    runs = {"r": ExpectedRun(20.0, 15.0, 30.0, "r")}
    short = forecast_queue(seen, lambda job: runs.get(job.key, ExpectedRun(100.0, 100.0, 100.0)), (2.0,))
    assert short["w"].start_within == pytest.approx((NOW + 7.0, NOW + 22.0), abs=5.0)
    late = forecast_queue(seen, lambda job: ExpectedRun(1.0, 1.0, 1.0, job.key))
    assert late["w"].start_time == NOW + 5.0, "what outlasts its prediction is expected to go on for half as long"


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (waiting("w", unknown="it is held"), "it is held"),
        (waiting("w", after=("held",)), "it waits for held, whose start is not known"),
        (waiting("w", where=frozenset({"n9"})), "0 of the nodes that it may use take jobs, it needs 1"),
        (waiting("w", cores=4, nodes=2, where=frozenset({"n1"})), "1 of the nodes that it may use take jobs, it needs 2"),
        (waiting("w", cores=9, nodes=1, alone=False, memory=0.0), ""),
    ],
)  # fmt: skip
def test_what_cannot_be_known_says_why(job: ObservedJob, why: str) -> None:
    found = forecast_queue(queue(waiting("held", unknown="it is held"), waiting("other"), job))
    assert found["w"].unknown == why and (found["w"].start_time is None) is bool(why)
    assert found["held"].start_time is None and found["other"].start_time == NOW


def test_memory_and_whole_nodes_keep_others_waiting() -> None:
    full = running("r", memory=6e9), running("s", "n2", alone=True)
    assert forecast_queue(queue(*full, waiting("w", cores=1)))["w"].start_time == NOW
    assert forecast_queue(queue(*full, waiting("w", cores=2)))["w"].start_time == NOW + 90.0


def test_pools_without_a_common_node_do_not_delay_each_other() -> None:
    one, two = frozenset({"n1"}), frozenset({"n2"})
    found = forecast_queue(queue(running("r", cores=4), waiting("a", cores=4, where=one), waiting("b", where=two)))
    assert found["a"].start_time == NOW + 90.0 and found["b"].start_time == NOW


def test_a_job_that_may_use_some_nodes_of_a_pool_waits_for_these() -> None:
    one, two = frozenset({"n1"}), frozenset({"n2"})
    long, short = running("r", cores=4), running("s", "n2", cores=4, walltime=40.0)
    jobs = long, short, waiting("a", cores=4, where=one), waiting("b", cores=4), waiting("c", cores=4, where=two)
    found = forecast_queue(queue(*jobs))
    assert [found[name].start_time for name in "abc"] == [NOW + 90.0, NOW + 30.0, NOW + 130.0]
    runs = {"s": ExpectedRun(20.0, 15.0, 35.0, "s")}
    uncertain = forecast_queue(queue(*jobs), lambda job: runs.get(job.key, ExpectedRun(100.0, 100.0, 100.0)))
    (early, late), start = uncertain["b"].start_within or (0.0, 0.0), uncertain["b"].start_time
    assert NOW + 5.0 <= early < (start or 0.0) < late <= NOW + 25.0 and uncertain["a"].start_time == NOW + 90.0


def test_with_too_many_classes_of_nodes_only_the_jobs_of_all_nodes_are_forecast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = waiting("a", where=frozenset({"n1"})), waiting("b")
    assert [each.unknown for each in forecast_queue(queue(*jobs)).values()] == ["", ""]
    monkeypatch.setattr(queue_forecast, "MOST_CLASSES", 1)
    found = forecast_queue(queue(*jobs))
    assert found["a"].unknown == "it may run only on some of the nodes that other jobs use" and not found["b"].unknown


def test_a_job_starts_after_those_that_it_waits_for() -> None:
    first, then = waiting("a"), waiting("b", after=("a", "r"))
    found = forecast_queue(queue(running("r", walltime=200.0), first, then))
    assert found["b"].start_time == NOW + 190.0


@settings(deadline=None)
@given(queues(), st.lists(st.integers(1, 5), min_size=8, max_size=8), st.floats(1.0, 500.0))
def test_the_tasks_of_an_array_are_jobs(seen: ObservedQueue, tasks: list[int], run: float) -> None:
    count = {job.key: tasks[i % 8] if job.waiting else 1 for i, job in enumerate(seen.jobs)}
    alike = [replace(job, key=f"{job.key}.{i}") for job in seen.jobs for i in range(count[job.key])]
    arrays = replace(seen, jobs=[replace(job, tasks=count[job.key]) for job in seen.jobs])
    expected = ExpectedRun(run, run / 2.0, run * 2.0)
    found = forecast_queue(arrays, lambda job: expected, draws=3)
    separate = forecast_queue(replace(seen, jobs=alike), lambda job: expected, draws=3)
    for key, said in found.items():
        first, last = separate[f"{key}.0"], separate[f"{key}.{count[key] - 1}"]
        assert (said.start_time, said.start_within) == (first.start_time, first.start_within)
        assert (said.finish_time, said.finish_within) == (last.finish_time, last.finish_within)


def test_a_limit_of_an_array_counts_the_tasks_that_run() -> None:
    limited = {"array": "7", "tasks_at_once": 2}
    whole = forecast_queue(queue(waiting("7", tasks=6, **limited), waiting("next")))
    assert (whole["7"].start_time, whole["7"].finish_time) == (NOW, NOW + 300.0) and whole["next"].start_time == NOW
    began = [running(name, **limited) for name in ("8", "9")]
    assert forecast_queue(queue(*began, waiting("7", tasks=2, **limited)))["7"].start_time == NOW + 90.0
    merge = waiting("merge", after=("7", "8", "9"))
    found = forecast_queue(queue(*began, waiting("7", tasks=3, **limited), merge))
    assert found["7"].finish_time == found["merge"].start_time == NOW + 290.0


def test_what_waits_behind_a_very_long_array_is_not_known() -> None:
    long = waiting("7", tasks=1_000_000)
    found = forecast_queue(queue(long, waiting("next"), waiting("merge", after=("7",)), waiting("8", tasks=2)))
    assert found["7"].unknown == found["8"].unknown == "more than 5,000 jobs wait before its last task"
    assert found["next"].unknown == found["merge"].unknown == "more than 5,000 jobs wait before it"
    many = waiting("m", tasks=60_000, after=("a", "b"))
    assert forecast_queue(queue(waiting("a"), waiting("b"), many))["m"].unknown == "it waits for too many jobs"


def long_queue(jobs: int, nodes: int, lists: int = 1) -> ObservedQueue:
    """Return a queue of jobs that may use one of some lists of nodes; a tenth of them runs."""
    names = [f"n{number}" for number in range(nodes)]
    where = [frozenset(names[: nodes * (number + 1) // lists]) for number in range(lists)]
    run = [running(f"r{number}", names[number % nodes]) for number in range(jobs // 10)]
    wait = [waiting(f"w{number}", where=where[number % lists], cores=2) for number in range(jobs - len(run))]
    return queue(*run, *wait, nodes=dict.fromkeys(names, (8, 8e9)))


@pytest.mark.parametrize("lists", [1, 4])
def test_the_caller_can_do_other_work_between_two_steps(lists: int) -> None:
    """The longest step of Python is a small part of the whole, and there is one for each replay of machine code."""
    whole = long_queue(6 * queue_forecast.STEP, 50, lists)
    expected = lambda job: ExpectedRun(50.0, 10.0, 90.0, guess=True)  # noqa: E731
    with Calls() as calls:
        found = forecast_queue(whole, expected, breathe=calls.step)
    assert calls.steps >= queue_forecast.FEWEST_DRAWS + 6
    assert calls.most <= 120_000 < calls.number
    assert found == forecast_queue(whole, expected)


@pytest.mark.parametrize("lists", [1, 4])
def test_each_job_costs_the_same_whatever_the_number_of_nodes(lists: int) -> None:
    """What depends on nodes is found once for each list of nodes."""

    def cost(jobs: int, nodes: int) -> int:
        with Calls() as calls:
            forecast_queue(long_queue(jobs, nodes, lists), draws=1)
        return calls.number

    cost(20, 10)
    few, many = (cost(200, nodes) - cost(100, nodes) for nodes in (20, 400))
    assert many <= 1.2 * few


def test_jobs_with_too_many_lists_of_nodes_cost_little() -> None:
    names = [f"n{number}" for number in range(queue_forecast.MOST_LISTS + 50)]
    lists = [frozenset(names) - {name} for name in names]
    jobs = [waiting(f"w{number}", where=where) for number, where in enumerate(lists)]
    found = forecast_queue(queue(*jobs, waiting("any", where=frozenset(names)), nodes=dict.fromkeys(names, (4, 8e9))))
    assert found["w0"].unknown == "it may run only on some of the nodes that other jobs use"
    assert found["any"].start_time == NOW
