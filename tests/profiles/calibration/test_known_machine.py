"""A simulated machine with known constants, and noise, is calibrated back to within 2 % of each of them."""

from __future__ import annotations

import numpy as np
import pytest

from pilotfish.profiles.calibration.curve import fit_curve
from pilotfish.profiles.calibration.figures import figure
from pilotfish.profiles.calibration.line import fit_power
from pilotfish.profiles.calibration.piecewise import NAMES, Sample, fit_piecewise, speeds
from pilotfish.profiles.calibration.sharing import OTHERS, kind
from pilotfish.simulate.engine import Outcome, Simulation
from pilotfish.simulate.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.platform import (
    Cluster,
    ContendingThreads,
    Contention,
    CpuSharing,
    Node,
    NodeType,
    PiecewiseLinear,
    Power,
)

WITHIN = 0.02
NOISE = 0.01
#: Published for the i5-7500 (IRMaSim, CCGrid 2021).
I5 = PiecewiseLinear(b=-1.85e-5, c=32000.0, da=1.75, db=3500.0, dc=45000.0, dd=3000.0)


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
def test_the_bandwidth_of_the_models_that_share_it(model: Contention, contending: ContendingThreads) -> None:
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
    """Tasks beside one to three others, each mix run `runs` times on the simulated machine."""
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


def test_the_constants_of_the_piecewise_linear_model() -> None:
    found = fit_piecewise(grid(I5, 0.005, 1))
    assert found is not None and found.trusted and found.constants.n_max == 3
    for name in NAMES:
        assert getattr(found.constants, name) == pytest.approx(getattr(I5, name), rel=WITHIN), name


def test_more_noise_makes_wider_intervals_that_still_hold_the_truth() -> None:
    calm, noisy = (fit_piecewise(grid(I5, noise, 2, runs=1)) for noise in (0.003, 0.01))
    assert calm is not None and noisy is not None
    for name in NAMES:
        narrow, wide = calm.intervals[name], noisy.intervals[name]
        assert narrow.low is not None and narrow.high is not None and wide.low is not None and wide.high is not None
        assert wide.high - wide.low > narrow.high - narrow.low
        room = wide.high - wide.low  # intervals are of 95 %: six of them at once may miss by a little
        assert wide.low - room / 2 <= getattr(I5, name) <= wide.high + room / 2


def test_our_formula_is_the_engines() -> None:
    truth = PiecewiseLinear(b=-2.5e-5, c=20000.0, da=2.0, db=2000.0, dc=30000.0, dd=4000.0)
    samples = grid(truth, 0.0, 0, runs=1)
    columns = (np.array([getattr(sample, key) for sample in samples], float) for key in ("rate", "total", "others"))
    assert speeds(truth, *columns) == pytest.approx([sample.speed for sample in samples], rel=1e-9)


def test_a_machine_without_contention_gives_no_constants_to_rely_on() -> None:
    calm = [Sample(rate, rate * (n + 1), n, 1.0) for n in (1, 2, 3) for rate in (1000.0, 2000.0, 4000.0)]
    found = fit_piecewise(calm)
    assert found is not None and not found.trusted


def test_too_few_kinds_of_company_give_none() -> None:
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


@pytest.mark.parametrize("truth", list(CpuSharing))
def test_how_cores_are_shared(truth: CpuSharing) -> None:
    machine = NodeType("t", 1, 1e11, 76e9, cpu_sharing=truth)
    time = float(simulated(machine, (1, 1.0, 0.0), (OTHERS, 100.0, 0.0)).finish[0])
    noise = np.random.default_rng(1).normal(1.0, 0.05, 5)
    assert kind(figure([1.0 / time * float(part) for part in noise])) is truth


def test_a_share_between_the_two_is_neither() -> None:
    assert kind(figure([0.37])) is None


def test_power_at_one_number_of_cores_says_nothing() -> None:
    assert fit_power([0, 4, 4], [5.0, 30.0, 31.0]) is None
