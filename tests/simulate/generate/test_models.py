"""The model of Lublin and Feitelson: drawn workloads against its definitions.

Rule: shares are compared with the defined probabilities, within a few standard errors.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.replays.swf import dump_swf
from pilotfish.simulate.generate.models import (
    BATCH,
    INTERACTIVE,
    KINDS,
    LONGEST,
    LONGEST_GAP,
    UNTYPED,
    JobKind,
    Walltimes,
    gamma_cdf,
    lublin,
)
from pilotfish.simulate.model.workload import Workload

COUNT = 100_000
NAMED = {"batch": BATCH, "interactive": INTERACTIVE, "untyped": UNTYPED}


@pytest.fixture(scope="module", params=NAMED)
def drawn(request: pytest.FixtureRequest) -> tuple[JobKind, Workload]:
    """Return a kind, and many of its jobs, for the 128 processors of the published constants."""
    return NAMED[request.param], lublin(COUNT, 128, kind=request.param, walltimes=Walltimes("exact"), seed=5)


def assert_share(found: float, expected: float, count: int = COUNT) -> None:
    """Assert a share within five standard errors."""
    assert abs(found - expected) <= 5.0 * math.sqrt(expected * (1.0 - expected) / count) + 1e-9


def stages(kind: JobKind, begin: float, end: float) -> float:
    """Return the probability of a log2 size in [begin, end], two-stage uniform, on 128 processors."""
    low, middle, high = kind.low, 7.0 - kind.middle, 7.0 - kind.high

    def within(first: float, last: float) -> float:
        return max(0.0, min(end, last) - max(begin, first)) / (last - first)

    return kind.lower * within(low, middle) + (1.0 - kind.lower) * within(middle, high)


def test_shares_of_each_power_of_two(drawn: tuple[JobKind, Workload]) -> None:
    kind, jobs = drawn
    assert_share(float(np.mean(jobs.size == 1)), kind.serial)
    others = 1.0 - kind.serial - kind.power
    for power in range(1, 8):
        meant = kind.power * stages(kind, power - 0.5, power + 0.5)
        by_chance = others * stages(kind, math.log2(2**power - 0.5), math.log2(2**power + 0.5))
        assert_share(float(np.mean(jobs.size == 2**power)), meant + by_chance)


def test_sizes_stay_within_their_bounds(drawn: tuple[JobKind, Workload]) -> None:
    kind, jobs = drawn
    parallel = jobs.size[jobs.size > 1]
    assert parallel.min() == 2 and parallel.max() == {1.5: 45, 0.0: 128}[kind.high]
    middle = 7.0 - kind.middle
    meant = kind.power * stages(kind, math.floor(middle) + 0.5, 7.0)
    others = (1.0 - kind.serial - kind.power) * stages(kind, math.log2(math.floor(2**middle) + 0.5), 7.0)
    assert_share(float(np.mean(jobs.size > 2**middle)), meant + others)


@pytest.mark.parametrize("size", [1, 2, 8])
def test_run_times_are_hyper_gamma_with_a_share_that_depends_on_the_size(
    drawn: tuple[JobKind, Workload], size: int
) -> None:
    kind, jobs = drawn
    run = jobs.run_time[jobs.size == size]
    short = min(max(kind.slope * size + kind.offset, 0.0), 1.0)

    def below(log_time: float) -> float:
        parts = [gamma_cdf(log_time / scale, shape) for shape, scale in (kind.short, kind.long)]
        return short * parts[0] + (1.0 - short) * parts[1]

    for seconds in (3, 30, 300, 3_000, 10_000, 20_000, 60_000):
        expected = below(math.log(seconds + 1.0)) / below(LONGEST)
        assert_share(float(np.mean(run <= seconds)), expected, len(run))
    assert run.max() <= math.exp(LONGEST) and run.min() >= 1.0


def test_large_jobs_run_longer(drawn: tuple[JobKind, Workload]) -> None:
    jobs = drawn[1]
    run, large = np.log(jobs.run_time), jobs.size >= 16
    assert run[large].mean() > run[~large].mean() + 0.05


def test_rush_seconds_between_arrivals_are_gamma_in_their_logarithm(drawn: tuple[JobKind, Workload]) -> None:
    kind, jobs = drawn
    gaps = np.diff(kind.cycle.rush(jobs.submit_time))
    shape, scale = kind.gap
    for seconds in (100.0, 300.0, 1_000.0, 10_000.0, 100_000.0):
        expected = gamma_cdf(math.log(seconds) / scale, shape) / gamma_cdf(LONGEST_GAP / scale, shape)
        assert abs(float(np.mean(gaps <= seconds)) - expected) < 0.01  # arrivals are cut to whole seconds


def test_arrivals_have_the_cycle_of_the_day(drawn: tuple[JobKind, Workload]) -> None:
    kind, jobs = drawn
    found = np.bincount((jobs.submit_time % 86400.0 // 3600.0).astype(int), minlength=24) / COUNT
    expected = kind.cycle.weights.reshape(24, 2).mean(axis=1) / 24.0
    assert np.abs(found - expected).max() < 0.012  # gaps have a long tail: hours are less even than single draws
    assert found[12:16].min() > 5.0 * found[3:5].max()


def test_batch_and_interactive_jobs_come_in_their_queues() -> None:
    jobs = lublin(COUNT, 128, seed=2)
    batch = jobs.more["queue"] == 1.0
    assert 0.1 < batch.mean() < 0.2
    assert_share(float(np.mean(jobs.size[batch] == 1)), BATCH.serial, int(batch.sum()))
    assert_share(float(np.mean(jobs.size[~batch] == 1)), INTERACTIVE.serial, int((~batch).sum()))
    assert np.median(jobs.run_time[batch]) > 20.0 * np.median(jobs.run_time[~batch])


def test_statistics_agree_with_the_archives_own_sample() -> None:
    """10,000 jobs for 256 processors, as their program wrote them: what was measured of that file."""
    jobs = lublin(10_000, 256, kind="untyped", seed=3)
    powers = (jobs.size & (jobs.size - 1) == 0) & (jobs.size > 1)
    assert np.mean(jobs.size == 1) == pytest.approx(0.2493, abs=0.02)
    assert powers.mean() == pytest.approx(0.612, abs=0.02)
    assert jobs.size.mean() == pytest.approx(22.10, rel=0.06) and jobs.size.max() <= 256
    assert np.log(jobs.run_time).mean() == pytest.approx(5.683, abs=0.1)
    assert np.log(jobs.run_time).std() == pytest.approx(3.02, abs=0.06)
    assert jobs.submit_time[-1] / 10_000 == pytest.approx(771, rel=0.4)  # a long tail: means differ by tens of percent


OPTIONS = {
    "jobs": st.integers(1, 60),
    "machine": st.one_of(st.integers(1, 300), st.sampled_from([1024, 65_536, 10_000_000])),
    "kind": st.sampled_from(list(KINDS)),
    "load": st.one_of(st.none(), st.floats(0.001, 1000.0)),
    "walltimes": st.sampled_from([Walltimes("exact"), Walltimes("round"), Walltimes("factor", 0.5, 3.0)]),
    "seed": st.integers(0, 2**70),
}


@given(st.fixed_dictionaries(OPTIONS))
@settings(deadline=None)
def test_jobs_are_valid_for_all_options(options: dict[str, object]) -> None:
    jobs = lublin(**options)
    machine, load = options["machine"], options["load"]
    assert len(jobs) == options["jobs"] and jobs.id.tolist() == list(range(1, len(jobs) + 1))
    assert jobs.size.min() >= 1 and jobs.size.max() <= machine and jobs.run_time.min() >= 1.0
    assert np.all(np.diff(jobs.submit_time) >= 0) and jobs.submit_time[0] >= 0.0 and jobs.walltime.min() >= 1.0
    for column in (jobs.submit_time, jobs.run_time, jobs.walltime):
        assert np.array_equal(column, np.floor(column))
    if load is not None:
        span = float((jobs.size * jobs.run_time).sum()) / (machine * load)
        assert abs(jobs.submit_time[-1] - span) <= 1.0 + 1e-9 * span
    assert dump_swf(jobs) == dump_swf(lublin(**options))


def test_walltimes_and_load_change_nothing_else() -> None:
    plain, asked = lublin(500, 64, seed=4), lublin(500, 64, walltimes=Walltimes("factor", 2.0, 3.0), seed=4)
    for name in ("submit_time", "run_time", "size"):
        assert np.array_equal(getattr(plain, name), getattr(asked, name))
    busy = lublin(500, 64, load=0.9, seed=4)
    assert sorted(busy.size.tolist()) == sorted(plain.size.tolist())


@pytest.mark.parametrize(
    ("options", "digest"),
    [
        ({"jobs": 2000, "machine": 128}, "e20f5753a6147ab8"),
        ({"jobs": 2000, "machine": 256, "kind": "untyped", "load": 0.9, "seed": 7}, "373ca415cf217ee5"),
    ],
)
def test_the_same_bytes_on_any_machine(options: dict[str, object], digest: str) -> None:
    text = dump_swf(lublin(**options))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest
