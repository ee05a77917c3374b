"""Walltimes that users would have requested."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.generate.models import LEAST_USE, USUAL, Walltimes, generator, parse_walltimes, rounded

RUN = np.floor(np.exp(np.linspace(0.0, 12.0, 50_000)))


def test_exact_is_the_run_time_and_at_least_a_second() -> None:
    assert Walltimes("exact").of(np.array([0.0, 1.0, 7.0]), generator(0)).tolist() == [1.0, 1.0, 7.0]


def test_factors_are_uniform_between_their_bounds() -> None:
    factor = (Walltimes("factor", 2.0, 6.0).of(RUN, generator(1)) / RUN)[RUN > 1e4]
    assert factor.min() >= 2.0 and factor.max() <= 6.001
    assert np.quantile(factor, [0.25, 0.5, 0.75]) == pytest.approx([3.0, 4.0, 5.0], abs=0.1)


def test_round_values_hold_the_run_time_and_are_what_people_type() -> None:
    walltime = Walltimes("round").of(RUN, generator(1))
    assert np.all(walltime >= RUN) and np.all(walltime >= 300.0)
    assert np.all(np.isin(walltime, USUAL) | (walltime % 86400.0 == 0.0))
    use = (RUN / walltime)[RUN > 86400.0 * 1.5]
    assert use.min() > LEAST_USE * 0.7 and 0.4 < use.mean() < 0.6  # uniform, except for rounding up


@given(st.floats(0.0, 1e7))
@example(300.0)
@example(86400.0)
@example(172800.0)
def test_rounding_goes_up_to_the_next(time: float) -> None:
    (up,) = rounded(np.array([time]))
    below = [value for value in (*USUAL, *(86400.0 * np.arange(2, 120))) if value >= time]
    assert up == below[0]


@pytest.mark.parametrize("text", ["exact", "round", "factor:1.0:5.0", "factor:0.1:0.1"])
def test_parsing_and_printing_agree(text: str) -> None:
    assert str(parse_walltimes(text)) == text


@pytest.mark.parametrize(
    "text", ["", "exactly", "exact:1", "factor", "factor:1", "factor:2:1", "factor:0:1", "factor:nan:2", "factor:1:inf",
             "factor:a:b", "round:1:2", "factor:1:2:3"]
)  # fmt: skip
def test_an_invalid_walltime_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="exact, factor:A:B"):
        parse_walltimes(text)
