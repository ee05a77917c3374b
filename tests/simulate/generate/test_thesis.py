"""The thesis's workloads: drawn ones against their definitions."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pilotfish.formats.replays.swf import dump_swf
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.generate.models import Walltimes
from pilotfish.simulate.generate.thesis import BOUNDS, thesis

COUNT = 50_000


def normal(value: float) -> float:
    """Return the standard normal distribution function."""
    return 0.5 * math.erfc(-value / math.sqrt(2.0))


def test_arrivals_are_weibull() -> None:
    gaps = np.diff(thesis(COUNT, 32, seed=1).submit_time)
    assert gaps.mean() == pytest.approx(15.0 * math.gamma(1.5), rel=0.02)
    for seconds in (5, 10, 20, 30, 40):  # whole seconds on both sides: right in the mean
        expected = np.mean([1.0 - math.exp(-((s / 15.0) ** 2)) for s in np.linspace(seconds - 1.0, seconds + 1.0, 41)])
        share = 0.5 * (np.mean(gaps < seconds) + np.mean(gaps <= seconds))
        assert abs(float(share) - float(expected)) < 0.01


def test_sizes_are_powers_of_two_from_a_truncated_lognormal() -> None:
    sizes = thesis(COUNT, 32, seed=2).size
    below = [normal((math.log(k) - 0.25) / 0.5) for k in range(1, 7)]
    for power in range(6):
        expected = (below[power] - (below[power - 1] if power else 0.0)) / below[5]
        assert abs(float(np.mean(sizes == 2**power)) - expected) < 0.01
    assert set(sizes.tolist()) <= {1, 2, 4, 8, 16, 32}


@pytest.mark.parametrize("size", [(-1e-17, 0.0), (-1e-17, 1e-18), (0.0, 1e-300)])
def test_drawing_ends_if_sizes_hardly_vary(size: tuple[float, float]) -> None:
    """The next machine number is the limit: drawing again until it fits would never end."""
    assert thesis(10, 1, size=size).size.tolist() == [1] * 10


def test_run_times_are_lognormal() -> None:
    run = thesis(COUNT, 32, run_time=(6.0, 0.8), seed=3).run_time
    assert np.log(run).mean() == pytest.approx(6.0, abs=0.02) and np.log(run).std() == pytest.approx(0.8, abs=0.02)
    assert thesis(COUNT, 32, seed=3).run_time.mean() == pytest.approx(151.0, rel=0.05)  # of the published workload


@st.composite
def options(draw: st.DrawFn) -> dict[str, object]:
    """Draw arguments of `thesis`."""
    pairs = {name: tuple(draw(st.floats(*bounds)) for bounds in both) for name, both in BOUNDS.items()}
    return {
        **pairs,
        "jobs": draw(st.integers(1, 40)),
        "machine": draw(st.integers(1, 5000)),
        "load": draw(st.one_of(st.none(), st.floats(0.001, 1000.0))),
        "walltimes": Walltimes("round"),
        "seed": draw(st.integers(0, 1000)),
    }


@given(options())
@settings(deadline=None)
def test_jobs_are_valid_for_all_options(asked: dict[str, object]) -> None:
    try:
        jobs = thesis(**asked)
    except ConfigError as error:
        assert error.key == "size" and "fit a machine" in error.problem
        assume(False)
    assert len(jobs) == asked["jobs"] and jobs.size.min() >= 1 and jobs.size.max() <= asked["machine"]
    assert np.all(np.diff(jobs.submit_time) >= 0) and jobs.run_time.min() >= 1.0
    assert np.isfinite(jobs.submit_time).all() and np.all(jobs.walltime >= jobs.run_time)
    if asked["load"] is not None and jobs.submit_time[-1] > 100.0:
        offered = float((jobs.size * jobs.run_time).sum()) / (jobs.submit_time[-1] * jobs.machine)
        assert offered == pytest.approx(asked["load"], rel=0.011)


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"gap": (0.1, 15.0)}, "gap"),
        ({"gap": (2.0, math.nan)}, "gap"),
        ({"size": (0.0, -1.0)}, "size"),
        ({"size": (5.0, 0.1)}, "size"),
        ({"size": (0.7, 0.0), "machine": 1}, "size"),
        ({"run_time": (13.0, 1.0)}, "run_time"),
    ],
)
def test_impossible_parameters_are_refused(wrong: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        thesis(**wrong)
    assert caught.value.key == key


def test_the_same_bytes_on_any_machine() -> None:
    digest = hashlib.sha256(dump_swf(thesis(seed=1, load=0.8)).encode()).hexdigest()[:16]
    assert digest == "01793fa5f96a12d5"
