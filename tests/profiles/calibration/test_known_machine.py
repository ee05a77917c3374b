"""A simulated machine with known constants and noise is calibrated to within 2 % of each of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from pilotfish.profiles.calibration.bandwidth import fit_curve, fit_remote
from pilotfish.profiles.calibration.cpu_sharing import JOB_MIXES, OTHERS, WaitSample, fit_waiting, sharing_of, slowdown
from pilotfish.profiles.calibration.fits import (
    NAMES,
    Mix,
    Sample,
    SharedBandwidth,
    choose,
    fit_piecewise,
    samples,
    speeds,
)
from pilotfish.profiles.calibration.power_line import fit_power
from pilotfish.profiles.calibration.statistics import figure
from pilotfish.simulate.model.cluster import (
    Cluster,
    ContendingThreads,
    Contention,
    CpuSharing,
    Node,
    NodeType,
    PiecewiseLinear,
    Power,
)
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.planning.simulation import Outcome, Simulation
from tests.profiles.calibration.known_engine import measured_mixes
from tests.profiles.calibration.known_engine import speeds as speeds_together
from tests.support import effort

WITHIN = 0.02
NOISE = 0.01
#: Of tasks alone, MB/s.
RATES = (1500.0, 3000.0, 6000.0, 9000.0, 12000.0, 18000.0, 24000.0, 30000.0)
#: Published for the i5-7500 (IRMaSim, CCGrid 2021).
I5 = PiecewiseLinear(b=-1.85e-5, c=32000.0, da=1.75, db=3500.0, dc=45000.0, dd=3000.0)


@cache
def simulated(kind: NodeType, *groups: tuple[int, float, float]) -> Outcome:
    """Run jobs together on one node of a type: (threads, service demand, bandwidth) each."""
    jobs = tuple(
        Job(f"j{i}", Profile((ThreadGroup(threads, demand, 1.0, bandwidth=rate),)))
        for i, (threads, demand, rate) in enumerate(groups)
    )
    cluster = Cluster("lab", (Node("n0", kind),), float("inf"))
    return Simulation(Workflow("w", jobs), cluster).run("loadavg")


@pytest.mark.parametrize("model", [Contention.MAX_MIN, Contention.EQUAL_SHARE])
@pytest.mark.parametrize("contending", list(ContendingThreads))
def test_bandwidth_of_the_sharing_models(model: Contention, contending: ContendingThreads) -> None:
    truth = NodeType("t", 16, 1e11, 76e9, contention=model, contending_threads=contending)
    rng, threads, seen = np.random.default_rng(3), [], []
    for n in (1, 2, 3, 4, 6, 8, 12, 16):
        time = simulated(truth, (n, 1.0, 12.5e9)).makespan
        for _ in range(5):
            threads.append(n)
            seen.append(n * 12.5e9 / (time * rng.normal(1.0, NOISE)))
    found = fit_curve(threads, seen)
    assert found.saturated
    assert found.most.value == pytest.approx(76e9, rel=WITHIN)
    assert found.per_thread.value == pytest.approx(12.5e9, rel=WITHIN)
    assert found.quality.r2 is not None and found.quality.r2 > 0.99


def grid(truth: PiecewiseLinear, noise: float, seed: int, runs: int = 40) -> list[Sample]:
    """Tasks next to one to three others, each mix run `runs` times on the simulated machine."""
    machine = NodeType("t", 4, 1e11, 38.4e9, contention=Contention.PIECEWISE_LINEAR, piecewise=truth)
    rng, samples = np.random.default_rng(seed), []
    for others in (1, 2, 3):
        for rate in np.linspace(2000, 44000, 22):
            for beside in (8000.0, 15000.0, 44000.0):
                company = [(1, 100.0, beside * 1e6)] * others
                time = float(simulated(machine, (1, 1.0, rate * 1e6), *company).finish[0])
                speed = 1.0 / (time * rng.normal(1.0, noise, runs).mean())
                samples.append(Sample(float(rate), float(rate) + others * beside, others, speed))
    return samples


@pytest.mark.parametrize("weight", [1.0, 0.6])  # the paper's, and that of its authors' code of today
def test_the_constants_of_the_piecewise_linear_model(weight: float) -> None:
    truth = replace(I5, d_weight=weight)
    found = fit_piecewise(grid(truth, 0.005, 1))
    assert found is not None and found.trusted and found.constants.n_max == 3
    for name in NAMES:
        assert getattr(found.constants, name) == pytest.approx(getattr(truth, name), rel=WITHIN), name


def test_more_noise_widens_intervals_that_still_contain_the_truth() -> None:
    calm, noisy = (fit_piecewise(grid(I5, noise, 2, runs=1)) for noise in (0.003, 0.01))
    assert calm is not None and noisy is not None
    for name in NAMES:
        narrow, wide = calm.intervals[name], noisy.intervals[name]
        assert narrow.low is not None and narrow.high is not None and wide.low is not None and wide.high is not None
        assert wide.high - wide.low > narrow.high - narrow.low
        room = wide.high - wide.low  # intervals are of 95 %: seven of them at once may miss by a little
        assert wide.low - room / 2 <= getattr(I5, name) <= wide.high + room / 2


def test_our_formula_equals_the_engine() -> None:
    truth = PiecewiseLinear(b=-2.5e-5, c=20000.0, da=2.0, db=2000.0, dc=30000.0, dd=4000.0)
    samples = grid(truth, 0.0, 0, runs=1)
    columns = (np.array([getattr(sample, key) for sample in samples], float) for key in ("rate", "total", "others"))
    assert speeds(truth, *columns) == pytest.approx([sample.speed for sample in samples], rel=1e-9)


def test_without_contention_constants_are_not_trusted() -> None:
    calm = [Sample(rate, rate * (n + 1), n, 1.0) for n in (1, 2, 3) for rate in (1000.0, 2000.0, 4000.0)]
    found = fit_piecewise(calm)
    assert found is not None and not found.trusted


def test_too_few_numbers_of_others_give_no_fit() -> None:
    assert fit_piecewise([Sample(rate, 2 * rate, 1, 0.9) for rate in (1e3, 2e3, 3e3, 4e3, 5e3, 6e3, 7e3)]) is None


def test_power_by_cores() -> None:
    truth = NodeType("t", 8, 1e11, 76e9, sockets=2, power=Power(0.0, 6.14, 5.59, idle_uncore=0.4))
    rng, cores, watts = np.random.default_rng(5), [], []
    for busy in (1, 2, 3, 4, 6, 8):
        out = simulated(truth, (busy, 10.0, 0.0))
        for _ in range(10):
            cores.append(busy)
            watts.append(out.energy_j / out.makespan * rng.normal(1.0, NOISE))
    found = fit_power([0, 0, *cores], [0.4 * 2 * 5.59] * 2 + watts)
    assert found is not None
    power = found.power(sockets=2)
    assert power.per_core == pytest.approx(6.14, rel=WITHIN)
    assert power.per_socket == pytest.approx(5.59, rel=WITHIN)
    assert power.idle_uncore == pytest.approx(0.4, rel=WITHIN)


def test_speeds_for_scaling_profiles() -> None:
    rng, found = np.random.default_rng(6), []
    slow = NodeType("slow", 4, 1e11, 76e9, speed=5e8)
    fast = replace(slow, name="fast", speed=8.5e8)
    cluster = Cluster("lab", (Node("n0", slow), Node("n1", fast)))
    for node in cluster.nodes:
        loop = Job("loop", Profile((ThreadGroup(1, 2.0),)), allowed=frozenset([node.name]))
        time = Simulation(Workflow("w", (loop,)), cluster).run("loadavg").makespan
        found.append(figure([1.0 / (time * rng.normal(1.0, NOISE)) for _ in range(20)]).value)
    assert found[1] / found[0] == pytest.approx(8.5 / 5.0, rel=WITHIN)


@pytest.mark.parametrize("truth", list(CpuSharing))
def test_how_cores_are_shared(truth: CpuSharing) -> None:
    machine = NodeType("t", 1, 1e11, 76e9, cpu_sharing=truth)
    time = float(simulated(machine, (1, 1.0, 0.0), (OTHERS, 100.0, 0.0)).finish[0])
    noise = np.random.default_rng(1).normal(1.0, 0.05, 5)
    assert sharing_of(figure([1.0 / time * float(part) for part in noise])) is truth


@pytest.mark.parametrize("contention", effort.some(list(Contention), 1))
@pytest.mark.parametrize("contending", list(ContendingThreads))
def test_model_and_bandwidth_are_found_from_mixes(contention: Contention, contending: ContendingThreads) -> None:
    constants = I5 if contention is Contention.PIECEWISE_LINEAR else None
    truth = NodeType("t", 4, 1e11, 38.4e9, contention=contention, contending_threads=contending, piecewise=constants)
    mixes = measured_mixes(truth, NOISE, 1, RATES)
    found = choose(mixes, fit_piecewise(samples(mixes)))
    assert found is not None and found.candidates[0].error < 2 * NOISE
    shares = contention in (Contention.EQUAL_SHARE, Contention.MAX_MIN)
    if contention is Contention.NONE:
        assert found.default  # with bandwidth for all it is the same
    else:
        assert found.contention is contention and (found.contending_threads is contending or not shares)
    if shares:
        assert found.candidates[0].memory_bandwidth == pytest.approx(38.4e9, rel=WITHIN)


@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_is_not_better_does_not_replace_the_default(seed: int) -> None:
    truth = NodeType("t", 4, 1e11, 1e12, contention=Contention.EQUAL_SHARE)
    found = choose(measured_mixes(truth, 0.05, seed, RATES))
    assert found is not None and found.default


def test_too_few_mixes_choose_no_model() -> None:
    assert choose([Mix(2, (1.0, 1.0), (1.0, 1.0))] * 5) is None


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("contending", list(ContendingThreads))
@pytest.mark.parametrize("contention", [Contention.NONE, Contention.EQUAL_SHARE, Contention.MAX_MIN])
def test_model_speeds_equal_the_engine(contention: Contention, contending: ContendingThreads, share: float) -> None:
    truth = NodeType("t", 4, 1e11, 20e9, contention=contention, contending_threads=contending)
    tasks = (30000.0, 9000.0, 9000.0, 500.0) * round(1 / share)
    model = SharedBandwidth(contention, contending, 20e3)
    expected = np.array(speeds_together(truth, [(1.0, rate * 1e6) for rate in tasks]))
    assert model.speeds(Mix(4, tasks, ())) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("truth", effort.some([0.0, 0.2, 0.58, 1.5], 2))
def test_waiting_of_sleeping_jobs(truth: float) -> None:
    rng = np.random.default_rng(1)
    waits = [
        WaitSample(u, beside, slowdown(truth, u, beside) * rng.normal(1.0, NOISE / 4))
        for _ in range(20)
        for u, beside in JOB_MIXES
    ]
    found = fit_waiting(waits)
    assert found is not None and found.trusted
    assert found.strength.value == pytest.approx(truth, rel=WITHIN, abs=0.005)


def test_unexplained_slowdowns_are_not_trusted() -> None:
    found = fit_waiting([WaitSample(0.5, (1.0,), time) for time in (0.8, 3.0, 1.1, 0.7)])
    assert found is not None and not found.trusted
    assert fit_waiting([WaitSample(0.5, (1.0,), 1.3)]) is None


@pytest.mark.parametrize("contention", [Contention.EQUAL_SHARE, Contention.MAX_MIN])
@pytest.mark.parametrize("penalty", [1.0, 1.5, 3.0])
def test_remote_memory_penalty_under_contention(contention: Contention, penalty: float) -> None:
    rng, seen = np.random.default_rng(4), dict[float, list[tuple[int, float]]]()
    for remote in (1.0, penalty):  # bound to their own memory, and not
        truth = NodeType("t", 16, 1e11, 76e9, contention=contention, remote_access_penalty=remote)
        seen[remote] = rates = []
        for n in (1, 2, 4, 6, 8, 12, 16):
            (speed, *_) = speeds_together(truth, [(1.0, 12.5e9)] * n)
            rates += [(n, n * 12.5e9 * speed / rng.normal(1.0, NOISE / 4)) for _ in range(20)]
    bound = seen[1.0]
    curve = fit_curve([n for n, _ in bound], [rate for _, rate in bound])
    found = fit_remote(curve, bound, [sample for sample in seen[penalty] if sample[0] >= 8])
    assert found is not None and found.penalty.value == pytest.approx(penalty, rel=WITHIN)


def test_unsaturated_memory_gives_no_remote_penalty() -> None:
    rising = [(1, 1e9), (2, 2e9), (4, 4e9)]
    assert fit_remote(fit_curve([1, 2, 4], [1e9, 2e9, 4e9]), rising, rising) is None


def test_a_share_between_both_kinds_is_unknown() -> None:
    assert sharing_of(figure([0.37])) is None


def test_power_at_one_number_of_cores_gives_no_fit() -> None:
    assert fit_power([0, 4, 4], [5.0, 30.0, 31.0]) is None
