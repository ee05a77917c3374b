"""Joined workloads: no job is lost, and each keeps its origin."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.workload import LONGEST, Workload, joined

TIMES = st.lists(st.integers(0, 9), max_size=12).map(sorted)


def made(name: str, times: list[int], more: dict[str, list[object]] | None = None) -> Workload:
    """Return jobs submitted at these times, numbered from 1."""
    column = np.array(times, np.float64)
    columns = {key: np.array(values, object) for key, values in (more or {}).items()}
    ids, sizes = np.arange(1, len(times) + 1), np.ones(len(times), np.int64)
    return Workload(name, ids, column, column, column, sizes, more=columns, machine=len(times), left_out={"odd": 1})


@given(st.lists(TIMES, min_size=2, max_size=4))
def test_joined_jobs_are_complete_and_in_order_of_submission(every: list[list[int]]) -> None:
    whole = joined([made(f"w{i}", times) for i, times in enumerate(every)])
    expected = sorted((time, i, k + 1) for i, times in enumerate(every) for k, time in enumerate(times))
    found = zip(whole.submit_time.tolist(), whole.more["workload"].tolist(), whole.id.tolist(), strict=True)
    assert list(found) == [(float(time), f"w{i}", k) for time, i, k in expected]
    assert whole.left_out == {"odd": len(every)} and whole.machine == max(map(len, every))


def test_joined_workloads_keep_names_profiles_and_common_columns() -> None:
    own = made("a", [0, 2], {"name": ["a!x", "a!y"], "profile": ["p", "q"], "user": [1, 2]})
    whole = joined([own, made("b", [1])])
    assert whole.name == "a+b" and set(whole.more) == {"name", "profile", "workload"}
    assert whole.more["name"].tolist() == ["a!x", "1", "a!y"] and whole.more["profile"].tolist() == ["p", "1", "q"]


def test_the_columns_of_joined_workloads_keep_the_order_of_the_first_one() -> None:
    names = [f"column{i}" for i in range(20)]
    first, second = ({name: [0] for name in order} for order in (names, names[::-1]))
    assert [name for name in joined([made("a", [0], first), made("b", [1], second)]).more if name in names] == names


def test_missing_task_columns_are_filled_with_zero() -> None:
    moves = made("a", [0, 2], {"volume": [5.0, 6.0], "asked": [1.0, 2.0]})
    whole = joined([moves, made("b", [1])])
    assert whole.more["volume"].tolist() == [5.0, 0.0, 6.0] and whole.more["asked"].tolist() == [1.0, 1.0, 2.0]
    assert "memory" not in whole.more


def test_joining_one_workload_returns_it() -> None:
    own = made("a", [0, 2])
    assert joined([own]) is own


@pytest.mark.parametrize(
    ("column", "time"),
    [
        ("submit_time", 1.001e15), ("submit_time", math.inf), ("submit_time", math.nan),
        ("run_time", 1e308), ("run_time", math.inf),
        ("walltime", 1e16), ("walltime", math.nan), ("walltime", -math.inf),
    ],
)  # fmt: skip
def test_a_time_beyond_the_limit_is_refused(column: str, time: float) -> None:
    own = made("a", [0, 2, 3])
    times = np.array([0.0, time, 5.0])
    with pytest.raises(ConfigError, match=f"a: job 2, {column}: .* seconds .allowed: at most 1e.15"):
        replace(own, **{column: times})
    with pytest.raises(ConfigError, match=f"a: job y, {column}: "):
        replace(own, more={"name": np.array(["x", "y", "z"], object)}, **{column: times})


def test_the_largest_and_unknown_times_are_accepted() -> None:
    longest, unknown, endless = np.array([[0.0, LONGEST], [math.nan, LONGEST], [math.inf, LONGEST]])
    whole = replace(made("a", [0, 2]), submit_time=longest, run_time=unknown, walltime=endless)
    assert len(whole.take(np.array([False, True]))) == 1 and len(made("b", [])) == 0
