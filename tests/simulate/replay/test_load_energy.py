"""Energy follows the load: by hand, by a plain loop, and by the law that a flop costs the same at any speed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotfish.simulate.model.machine import MixedPowers, Powers
from pilotfish.simulate.model.network import Link, Network, NetworkPlace, NetworkRoute
from pilotfish.simulate.model.programs import Even, Matrix, Part, Phase, ProgramBuilder, Steps, Wait, Work
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.energy import consumed, jobs_joules, track
from pilotfish.simulate.replay.replay import Replayed, replay
from pilotfish.simulate.world import power_log
from tests.reference.plain_network import Plain, plain_network, unrolled
from tests.simulate.replay.test_networked import OTHERS, crowds, scenes, workload

#: Idle 1 W, 2 W at a load of almost 0, 12 W at full load; the same when switched off and on, which takes no time.
POWERS = Powers(1.0, 12.0, 1.0, 12.0, 0.0, 1.0, 0.0, 1.0, 0.0, epsilon=2.0)
#: Host 0 has 10 flop/s and host 1 has 20; 100 bytes/s to and from each.
SPEEDS = np.array([10.0, 20.0])
#: Takes 40 s for 4000 bytes. Loads: 100 / 10 / 40 and 100 / 20 / 40. Watts: 2 + 10 * 0.25 and 2 + 10 * 0.125.
SENDS = Matrix((100.0, 100.0), (0.0, 4000.0, 0.0, 0.0))
WATTS = 4.5 + 3.25
#: 80 s of idle resources that send.
QUIET = Matrix((0.0, 0.0), (0.0, 8000.0, 0.0, 0.0))


@pytest.mark.parametrize("policy", ["easy", "strict", "conservative", "easy+opportunistic:t_idle=inf", "python"])
@pytest.mark.parametrize(
    ("part", "latency", "wall", "lasts", "joules"),
    [
        (SENDS, 0.0, math.inf, 40.0, 40 * WATTS),
        (SENDS, 2.0, math.inf, 42.0, 42 * WATTS),
        (SENDS, 0.0, 10.0, 10.0, 10 * WATTS),
        (SENDS, 2.0, 1.0, 1.0, 2.0),
        (QUIET, 0.0, math.inf, 80.0, 160.0),
        (Steps((SENDS, Wait(10.0)), 2), 0.0, math.inf, 100.0, 80 * WATTS + 40.0),
        (Even(100.0), 0.0, math.inf, 10.0, 10 * (12 + 7)),  # host 1 is busy for half of the time
    ],
)  # fmt: skip
def test_a_job_that_sends_draws_what_its_load_says(
    policy: str, part: Part, latency: float, wall: float, lasts: float, joules: float
) -> None:
    net = Network(
        SPEEDS, np.zeros(2, np.int64), [NetworkPlace("p", 100.0)], [Link("l", 1e6)], [NetworkRoute((0,), latency)]
    )
    laying = ProgramBuilder()
    wall = min(wall, 1e6) if policy == "conservative" else wall  # it needs walltimes
    jobs = workload([(0.0, wall, 2)], laying, [laying.add(part, 2) or 0])
    chosen = uncompiled(parse("easy"), 0) if policy == "python" else parse(policy)
    done = replay(jobs, 2, chosen, network=lambda: net, powers=POWERS)
    assert done.finish_time[0] == pytest.approx(lasts)
    assert jobs_joules(done, POWERS)[0] == pytest.approx(joules) == consumed(done, POWERS)
    assert track(done, POWERS).joules[-1] == pytest.approx(joules)


@given(crowds(), st.lists(st.floats(0.0, 9.0), min_size=12, max_size=12))
def test_a_flop_costs_the_same_next_to_other_jobs(
    scene: tuple[Workload, list[Part], Network], watts: list[float]
) -> None:
    """Host i draws 1 W when idle and `watts[i]` more at full load, so a flop costs watts[i] / speed joules."""
    jobs, parts, net = scene
    powers = MixedPowers(tuple((1, Powers(1.0, 1.0 + more, 1.0, 1.0 + more)) for more in watts))
    done = replay(jobs, 12, parse("easy"), network=lambda: net, powers=powers)
    for i, part in enumerate(parts):
        assert isinstance(part, Matrix)
        first, count = done.piece0[i], done.piece_count[i]
        hosts = [host for a, b in done.pieces[first : first + count].tolist() for host in range(a, b + 1)]
        idle = len(hosts) * (done.finish_time[i] - done.start_time[i])
        above = sum(watts[host] * flops / net.speeds[host] for host, flops in zip(hosts, part.flops, strict=True))
        assert jobs_joules(done, powers)[i] == pytest.approx(idle + above)


WATTS_OF = st.builds(
    lambda idle, least, full: Powers(idle, idle + least + full, idle, idle, epsilon=idle + least),
    *[st.integers(0, 9).map(float)] * 3,
)


def checked_energy(done: Replayed, powers: MixedPowers, drawn: list[tuple[float, float, float]]) -> None:
    """Check the energy at each change against what jobs drew above idle, and the power as its derivative."""
    found, idle = track(done, powers), sum(many * kind.idle for many, kind in powers.runs)
    begin, until, watts = np.array(drawn).reshape(-1, 3).T
    for time, joules in zip(found.time, found.joules, strict=True):
        above = (watts * np.clip(time - begin, 0.0, until - begin)).sum()
        assert joules == pytest.approx(idle * (time - found.time[0]) + above, rel=1e-6, abs=1e-6)
    integral = np.cumsum(found.watts[:-1] * np.diff(found.time))
    assert found.joules[1:] == pytest.approx(integral, rel=1e-9, abs=1e-9)
    assert found.joules[-1] == pytest.approx(consumed(done, powers), rel=1e-9, abs=1e-9)


@pytest.fixture
def short_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the kernels pause because of their log as often as possible."""
    monkeypatch.setattr(power_log, "_ROWS", 0)


@given(st.one_of(scenes(), crowds()), st.lists(WATTS_OF, min_size=12, max_size=12))
@pytest.mark.usefixtures("short_log")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_energy_at_each_change_equals_the_reference(
    scene: tuple[Workload, list[Part], Network], kinds: list[Powers]
) -> None:
    jobs, parts, net = scene
    hosts = len(net.speeds)
    jobs, powers = replace(jobs, walltime=np.full(len(jobs), math.inf)), MixedPowers(tuple((1, it) for it in kinds[:hosts]))  # fmt: skip
    done = replay(jobs, hosts, parse("easy"), network=lambda: net, powers=powers, log_power=True)
    plain = Plain(net, kinds)
    plain_network(jobs, parts, net, plain=plain)
    checked_energy(done, powers, plain.drawn)


@given(st.one_of(scenes(), crowds()), st.one_of(OTHERS, st.sampled_from(["easy", "python"])))
@pytest.mark.usefixtures("short_log")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_log_changes_nothing_and_holds_the_energy_of_all_jobs(
    scene: tuple[Workload, list[Part], Network], policy: str
) -> None:
    jobs, _, net = scene
    jobs = replace(jobs, walltime=np.minimum(jobs.walltime, 1e4))
    done, without = (
        replay(
            jobs, len(net.speeds), uncompiled(parse("easy"), 0) if policy == "python" else parse(policy),
            network=lambda: net, powers=POWERS, log_power=logs,
        ) for logs in (True, False)
    )  # fmt: skip
    for name in ("start_time", "finish_time", "above_idle", "pieces"):
        assert np.array_equal(getattr(done, name), getattr(without, name), equal_nan=name != "pieces"), name
    assert done.instants == without.instants and without.power_log is None and done.power_log is not None
    logged = (done.power_log["watts"] * (done.power_log["until"] - done.power_log["begin"])).sum()
    assert logged == pytest.approx(np.nansum(without.above_idle))
    assert track(done, POWERS).joules[-1] == pytest.approx(track(without, POWERS).joules[-1])


def matrix(flops: tuple[float, float]) -> Matrix:
    """Return a phase that sends nothing."""
    return Matrix(flops)


ONE, TWO, NOTHING = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.zeros(2)
AMOUNT = st.integers(0, 8).map(float)
PARTS = st.recursive(
    st.one_of(st.builds(Wait, AMOUNT), st.builds(Even, AMOUNT), st.tuples(AMOUNT, AMOUNT).map(matrix)),
    lambda inner: st.builds(Steps, st.lists(inner, min_size=1, max_size=3).map(tuple), st.integers(1, 3)),
    max_leaves=5,
)


def spent(phases: list[Phase], seconds: float) -> tuple[Any, Any]:
    """Return the busy and the active seconds of two resources of 2 flop/s."""
    busy, active = np.zeros(2), np.zeros(2)
    for phase in phases:
        flops = np.array(phase.flops if isinstance(phase, Matrix) else [getattr(phase, "flops", 0.0)] * 2)
        lasts = phase.seconds if isinstance(phase, Wait) else float(flops.max()) / 2
        share = min(seconds / lasts, 1.0) if lasts else 0.0
        busy, active, seconds = busy + share * flops / 2, active + share * lasts * (flops > 0), seconds - share * lasts
    return busy, active


@given(PARTS, st.floats(0.0, 200.0))
def test_what_the_first_seconds_of_work_take(part: Part, seconds: float) -> None:
    work, (busy, active) = Work(part, 2, 2.0), spent(unrolled(part), seconds)
    for lift, slope, expected in ((ONE, NOTHING, active[0]), (TWO, NOTHING, active[1]),
                                  (NOTHING, ONE, busy[0]), (NOTHING, TWO, busy[1])):  # fmt: skip
        found = work.joules(np.array([0.0, seconds, 0.5 * seconds]), lift, slope)
        assert found[0] == 0.0 and found[2] <= found[1] == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.tuples(PARTS, st.integers(0, 9)), min_size=1, max_size=6), WATTS_OF)
def test_energy_of_known_work_at_each_change(rows: list[tuple[Part, int]], power: Powers) -> None:
    works = [Work(part, 2, 2.0) for part, _ in rows]
    jobs = workload([(0.0, 1e6, 2)] * len(rows), ProgramBuilder(), [0] * len(rows))
    run = np.array([float(sum(seconds_of(phase) for phase in unrolled(part))) for part, _ in rows])
    column = np.empty(len(rows), object)
    column[:] = works
    submit = np.cumsum([float(gap) for _, gap in rows])
    jobs = replace(jobs, submit_time=submit, run_time=run, programs=None, more={"work": column})
    done, powers = replay(jobs, 4, parse("easy"), powers=power), MixedPowers(((4, power),))
    drawn = []
    for (part, _), start in zip(rows, done.start_time.tolist(), strict=True):
        for phase in unrolled(part):
            flops, lasts = np.broadcast_to(getattr(phase, "flops", 0.0), 2), seconds_of(phase)
            watts = sum((power.least - power.idle) * (x > 0) + (power.computing - power.least) * x / 2 / lasts
                        for x in flops) if lasts else 0.0  # fmt: skip
            drawn.append((start, start + lasts, watts))
            start += lasts
    checked_energy(done, powers, drawn)


def seconds_of(phase: Phase) -> float:
    """Return how long a phase takes at 2 flop/s."""
    return phase.seconds if isinstance(phase, Wait) else float(np.max(getattr(phase, "flops", 0.0))) / 2


@pytest.mark.parametrize(("wall", "joules"), [(100.0, 20 + (60 + 20)), (12.0, 20 + 0.4 * (60 + 20)), (5.0, 10.0)])
def test_a_job_with_a_known_run_time_draws_what_its_load_says(wall: float, joules: float) -> None:
    """Both wait for 10 s. Then host 0 works for 5 s at 12 W, and host 1 at 2 + 10 * 0.2 W."""
    work = Work(Steps((Wait(10.0), Matrix((50.0, 10.0)))), 2, 10.0)
    laying = ProgramBuilder()
    jobs = workload([(0.0, wall, 2)], laying, [0])
    jobs = replace(jobs, run_time=np.array([15.0]), programs=None, more={"work": np.array([work], object)})
    done = replay(jobs, 2, parse("easy"), powers=POWERS)
    assert jobs_joules(done, POWERS)[0] == pytest.approx(joules) == track(done, POWERS).joules[-1]
