"""Columns are written as `repr` writes each number, whatever its digits."""

from __future__ import annotations

import csv
import io
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.documents.csv_text import Known, csv_table

ODD = [0.0, -0.0, 1e15, 1e16, 999999999999999.0, 1 / 3, 1e-4, 9e-5, 0.3, 0.1 + 0.2, 5e-324, math.inf, 1e9 - 1e-6, 2.5e9]
NUMBERS = st.one_of(
    st.floats(),
    st.sampled_from(ODD),
    st.integers(0, 10**17).map(float),
    st.integers(0, 10**14).map(lambda it: it / 1e6),
)


@given(st.lists(NUMBERS, min_size=1), st.integers(-(2**62), 2**62), st.text(max_size=5))
def test_every_cell(values: list[float], whole: int, text: str) -> None:
    rows = len(values)
    floats, wholes = np.array(values), np.array([whole, *range(rows)])[:rows]
    texts = np.array(['"' + text.replace('"', "") + '"'] * rows + [""], object)[:rows]
    columns = (floats, wholes, Known(floats, ~np.isinf(floats), b"none"), texts, b"p", (wholes, b"-", floats))
    table = csv_table("abcdef", columns).decode()
    assert list(csv.reader(io.StringIO(table, newline="")))[1:] == [
        [said(value), str(number), "none" if math.isinf(value) else repr(value), quoted.strip('"'), "p",
         f"{number}-{said(value)}"]
        for value, number, quoted in zip(values, wholes.tolist(), texts.tolist(), strict=True)
    ]  # fmt: skip


def said(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def test_more_rows_than_are_written_at_once() -> None:
    rows = np.arange(10_000)
    lines = csv_table(("a", "b"), (rows, rows / 7)).decode().splitlines()
    assert lines == ["a,b", *(f"{i},{i / 7!r}" for i in range(10_000))]
