"""Environment C is the plain one, gives the schedules of the engine, delays no promise, and knows no secrets."""

from __future__ import annotations

import math
from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.api import lublin
from pilotfish.learning.environments.orders import DECIDES, OBJECTIVES, QUEUES, OrderEnvironment, OrderOptions
from pilotfish.simulate.arrays import Array
from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.learned_order import LearnedOrder
from pilotfish.simulate.queue_policies.policy_specs import Easy
from pilotfish.simulate.replay.replay import replay
from tests.learning.environments.pair_worlds import any_action, workload
from tests.reference.plain_orders import Job, PlainOrders
from tests.support.learned_models import weights_of

CHOICES = st.tuples(st.sampled_from(sorted(DECIDES)), st.sampled_from(QUEUES), st.sampled_from(sorted(OBJECTIVES)))
WAIT, LIMIT, SIZE = 0, 1, 3


@st.composite
def traces(draw: st.DrawFn, processors: int) -> list[Job]:
    """Draw jobs of which many share an instant; times are seconds or minutes."""
    unit = draw(st.sampled_from([1.0, 60.0]))
    job = st.tuples(st.integers(0, 30), st.integers(1, 40), st.integers(0, 20), st.integers(1, processors))
    rows = sorted(draw(st.lists(job, min_size=2, max_size=12)))
    return [(at * unit, run * unit, (run + more) * unit, size) for at, run, more, size in rows]


def of_users(jobs: list[Job]) -> Workload:
    return replace(workload(jobs), more={"user": np.arange(len(jobs)) // 3})


def in_minutes(jobs: int = 300) -> Workload:
    """Return jobs whose limits are whole minutes, so that they differ in 32 bits, too."""
    jobs_in_seconds = lublin(jobs, 64, load=1.5, seed=3)
    return replace(jobs_in_seconds, walltime=np.ceil(jobs_in_seconds.walltime / 60.0) * 60.0)


def small(decides: str = "order", jobs: int = 300, **options: object) -> OrderEnvironment:
    more = {key: options.pop(key) for key in ("copies", "seed") if key in options}
    settings = OrderOptions(decides, **{"episode": 40, **options})
    return OrderEnvironment([in_minutes(jobs)], 64, settings, **more)


def least(world: OrderEnvironment, column: int, sign: float = 1.0) -> Array:
    """Return the action of each copy whose job has the least of a column, or the most."""
    shown = np.where(world.mask[:, :-1], sign * world.jobs[:, :, column], np.inf)
    return shown.argmin(axis=1)


@given(st.data(), st.integers(1, 8), CHOICES, st.integers(1, 5))
@settings(max_examples=200)
def test_it_is_the_plain_one(data, processors, choices, rows) -> None:
    jobs = data.draw(traces(processors))
    warm = data.draw(st.integers(0, len(jobs) - 1))
    options, users = (
        OrderOptions(*choices, episode=len(jobs), warm=warm, rows=rows),
        [number // 3 for number in range(len(jobs))],
    )
    if PlainOrders(jobs, users, processors, *choices, rows=rows).over:
        with pytest.raises(ConfigError, match="no decision in 1,000 episodes"):
            OrderEnvironment([of_users(jobs)], processors, options)
        return
    world, random = OrderEnvironment([of_users(jobs)], processors, options), np.random.default_rng(len(jobs))
    for _ in range(2):  # the second episode begins by itself
        plain, total = PlainOrders(jobs, users, processors, *choices, rows=rows, warm=warm), 0.0
        assert world.mask[0, world.first_actions].all()
        while not plain.over:
            assert world.mask[0].tolist() == plain.allowed() and world.mask.any()
            np.testing.assert_allclose(world.jobs[0], plain.seen_jobs(), rtol=1e-6)
            np.testing.assert_allclose(world.machine[0], plain.seen_machine(), rtol=1e-6)
            starts = world.schedule()
            assert {job: start for job, start in enumerate(starts.tolist()) if start == start} == plain.start
            action = any_action(world, random)
            world.step(action)
            reward = plain.step(int(action[0]))
            total += reward
            assert world.reward[0] == pytest.approx(reward, rel=1e-12)
            assert bool(world.done[0]) == plain.over
        np.testing.assert_allclose(world.last_machine[0], plain.seen_machine(), rtol=1e-6)
        assert world.last_return[0] == pytest.approx(total, rel=1e-12)


@given(st.data(), st.integers(1, 8), st.sampled_from(QUEUES))
@settings(max_examples=100)
def test_a_policy_that_sorts_gives_the_schedule_of_easy_in_that_order(data, processors, queue) -> None:
    jobs = data.draw(traces(processors))
    columns = {"fcfs": (WAIT, -1.0), "sjf": (LIMIT, 1.0), "smallest": (SIZE, 1.0), "largest": (SIZE, -1.0)}
    world = OrderEnvironment([workload(jobs)], processors, OrderOptions("order", episode=len(jobs), rows=12))
    while not world.done[0]:
        starts = world._world.starts[0]
        world.step(least(world, *columns[queue]))
    assert starts.tolist() == replay(workload(jobs), processors, Easy(order=queue)).start_time.tolist()


def test_behind_the_smallest_job_nothing_fits() -> None:
    with pytest.raises(ConfigError, match=r"no decision in 1,000 episodes .allowed: a smaller machine"):
        small("fill", queue="smallest")


@pytest.mark.parametrize("queue", ["fcfs", "sjf", "largest"])
def test_a_rule_behind_the_reservation_is_the_learned_order_of_kind_fill(queue) -> None:
    jobs = in_minutes()
    head = {"fcfs": weights_of(f3=-1.0), "sjf": weights_of(f0=1.0), "largest": weights_of(f1=-1.0)}[queue]  # fmt: skip
    for column, sign, fill in ((LIMIT, 1.0, weights_of(f0=1.0)), (SIZE, -1.0, weights_of(f1=-1.0))):
        world = small("fill", queue=queue, objective="wait", episode=300, rows=300)
        while not world.done[0]:
            world.step(least(world, column, sign))
        replayed = replay(jobs, 64, Easy(order=LearnedOrder("m", head, math.inf, fill)))
        assert -world.last_return[0] == pytest.approx((replayed.start_time - jobs.submit_time).mean())


@pytest.mark.parametrize("queue", QUEUES)
def test_who_never_waits_has_the_schedule_of_the_rule(queue) -> None:
    jobs, world = in_minutes(), small("inspect", queue=queue, objective="wait", episode=300)
    while not world.done[0]:
        world.step([0])
    waits = replay(jobs, 64, Easy(order=queue)).start_time - jobs.submit_time
    assert -world.last_return[0] == pytest.approx(waits.mean())


def test_who_always_waits_keeps_each_promise_and_waits_no_longer_than_the_patience() -> None:
    world, delays = small("inspect", episode=250, jobs=250, objective="wait"), []
    while True:
        promise, waited = world._world.promise[0].copy(), world._world.waited[0].copy()
        world.step([int(world.mask[0].nonzero()[0][-1])])
        if world.done[0]:
            break
        starts = world.schedule()
        started = ~np.isnan(starts)
        assert (starts[started] <= promise[started]).all() and (waited <= 43_200.0).all()
        delays.append(waited.max())
    assert max(delays) > 600.0


@given(st.data(), st.integers(1, 8), CHOICES)
@settings(max_examples=100)
def test_later_run_times_and_submissions_and_names_change_no_observation(data, processors, choices) -> None:
    jobs = data.draw(traces(processors))
    options = OrderOptions(*choices, episode=len(jobs), rows=4)
    plain = PlainOrders(jobs, [-1] * len(jobs), processors, *choices, rows=4)
    if plain.over:
        return
    world, random, actions = OrderEnvironment([workload(jobs)], processors, options), np.random.default_rng(2), []
    for _ in range(data.draw(st.integers(0, len(jobs) - 1))):
        action = any_action(world, random)
        plain.step(int(action[0]))
        if plain.over:
            break
        actions.append(action)
        world.step(action)
    else:
        longer, now = data.draw(st.integers(1, 50)), plain.time
        changed = [
            (
                at + (longer if at > now else 0.0),
                run if i in plain.start and plain.end(i) <= now else limit,
                limit,
                size,
            )
            for i, (at, run, limit, size) in enumerate(jobs)
        ]
        other = OrderEnvironment([replace(workload(changed), id=np.arange(len(jobs))[::-1])], processors, options)
        for action in actions:
            other.step(action)
        for one, two in zip(
            (world.jobs, world.machine, world.mask), (other.jobs, other.machine, other.mask), strict=True
        ):
            assert (one == two).all()


@pytest.mark.parametrize("decides", DECIDES)
def test_what_the_mask_forbids_is_refused_and_changes_nothing(decides) -> None:
    world, random = small(decides), np.random.default_rng(1)
    for _ in range(60):
        before = [table.copy() for table in (world.jobs, world.machine, world.mask)]
        forbidden = np.flatnonzero(~world.mask[0]).tolist()
        for action in (*forbidden[:3], -1, world.mask.shape[1]):
            with pytest.raises(PolicyError, match=f"copy 0: the mask forbids action {action}"):
                world.step([action])
        after = world.jobs, world.machine, world.mask
        assert all((one == two).all() for one, two in zip(before, after, strict=True))
        world.step(any_action(world, random))


def test_a_copy_plays_the_same_for_any_number_of_copies() -> None:
    runs = []
    for copies in (1, 3, 8):
        world, rewards = small(copies=copies, seed=5), []
        for _ in range(200):
            world.step(least(world, LIMIT))
            rewards.append(float(world.reward[0]))
        runs.append(rewards)
    assert runs[0] == runs[1] == runs[2]
    assert len({tuple(world.jobs[copy].ravel().tolist()) for copy in range(8)}) > 1


@pytest.mark.parametrize(
    "options, allowed",
    [({"decides": "x"}, "order, fill, inspect"), ({"queue": "x"}, "fcfs, sjf"), ({"objective": "sld"}, "bsld, wait"),
     ({"episode": 0}, "1 or more"), ({"warm": 40}, "less than the jobs"), ({"rows": 0}, "1 or more"),
     ({"copies": 0}, "1 or more"), ({"episode": 400}, "300 jobs, episodes of 400")],
)  # fmt: skip
def test_wrong_options_are_named(options, allowed) -> None:
    with pytest.raises(ConfigError, match=allowed):
        small(**options)


def test_wrong_worlds_are_named() -> None:
    jobs = workload([(0.0, 5.0, 9.0, 4)])
    for trace, processors, problem in (
        (jobs, 2, "made: a job of 4 processors .allowed: at most those of the machine, 2"), (jobs, 0, "processors: 0"),
        (replace(jobs, walltime=np.array([np.inf])), 4, "without a run time or a limit"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=problem):
            OrderEnvironment([trace], processors, OrderOptions(episode=1))


def test_steps_a_second(record_property) -> None:
    world, actions = small(copies=20, episode=256), []
    for _ in range(200):
        actions.append(least(world, LIMIT))
        world.step(actions[-1])
    best = np.inf
    for _ in range(5):
        world.seed(0)
        begin = process_time()
        for action in actions:
            world.step(action)
        best = min(best, process_time() - begin)
    record_property("measured", f"environment C, 20 copies: {20 * len(actions) / best:,.0f} steps/s of CPU time")
