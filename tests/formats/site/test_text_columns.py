"""Columns of texts: the values that each text has alone."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats import slurm_values
from pilotfish.formats.hostlist import expand
from pilotfish.formats.site.text_columns import (
    NAMES,
    NO_NAMES,
    UNREAD,
    UNREAD_NAMES,
    ListedNodes,
    NumberColumn,
    TextCodes,
    TimeColumn,
    ValueCodes,
)  # fmt: skip
from pilotfish.simulate.errors import ConfigError

ZONES = ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kathmandu"]
#: Around the changes of the clock of these zones, and any other time.
DATES = st.one_of(
    st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1)),
    st.datetimes(datetime(2026, 10, 25), datetime(2026, 10, 25, 4)),
    st.datetimes(datetime(2026, 3, 29), datetime(2026, 3, 29, 4)),
    st.datetimes(datetime(2026, 4, 5), datetime(2026, 4, 5, 4)),
    st.datetimes(datetime(2026, 11, 1), datetime(2026, 11, 1, 4)),
)
WRITTEN = DATES.map(lambda date: date.replace(microsecond=0).isoformat())
TIMES = WRITTEN | st.sampled_from(
    ["", "Unknown", "None", "1772431200", " 2026-03-02T06:00:00 ", "2026-03-02 06:00:00", "2026-13-02T06:00:00",
     "2026-03-02T06:61:00", "2026-03-02T24:00:00", "20260302T060000.000", "x", "２026-03-02T06:00:00"]
)  # fmt: skip


@pytest.mark.parametrize("name", ZONES)
@given(texts=st.lists(TIMES, max_size=8))
def test_times_are_those_of_each_text(name: str, texts: list[str]) -> None:
    zone = UTC if name == "UTC" else ZoneInfo(name)
    column = TimeColumn(zone)
    times = column.column(texts).tolist()
    is_read = []
    for text, time in zip(texts, times, strict=True):
        try:
            expected = slurm_values.dump_moment(text.strip(), zone)
        except ValueError:
            assert time == UNREAD
            continue
        assert time == expected if expected is not None else math.isnan(time)
        is_read.append(text)
    assert column.repeated(is_read) == sum(slurm_values.is_repeated(text.strip(), zone) for text in is_read)


LISTS = st.lists(
    st.sampled_from(["n", "a", "[", "]", "1", "2", "08", "-", ",", "9", "10", "/2", " ", "None", ""]), max_size=9
)


@given(
    st.lists(
        LISTS.map("".join) | st.sampled_from(["None assigned", "n[1-3,7]", "n[3-1]", "n[1,1]", "n[1-2,2]"]), max_size=6
    )
)
def test_lists_of_nodes_are_checked_as_they_are_expanded(texts: list[str]) -> None:
    nodes, codes = TextCodes(), []
    lists = ListedNodes(nodes.values_by_code)
    for text in texts:  # one by one, so that the list grows
        codes.append(int(nodes.column([text])[0]))
        (kind,) = lists.kinds(nodes.column([text])).tolist()
        if text.strip() in ("", "None", "None assigned"):
            assert kind == NO_NAMES and lists[codes[-1]] == ()
            continue
        try:
            names = expand(text.strip())
        except ConfigError:
            assert kind == UNREAD_NAMES
        else:
            assert kind == NAMES and lists[codes[-1]] == names
    assert len(lists) == len(set(map(str.strip, texts)))


@given(st.lists(st.sampled_from(["a", " a", "a ", "b", "", " "]), max_size=9))
def test_codes_of_texts(texts: list[str]) -> None:
    codes, values = TextCodes(), ValueCodes(str.upper)
    assert [codes.values_by_code[code] for code in codes.column(texts)] == [text.strip() for text in texts]
    assert [values.values_by_code[code] for code in values.column(texts)] == [text.strip().upper() for text in texts]
    assert len(codes.values_by_code) == len({text.strip() for text in texts})


def test_each_number_is_read_once() -> None:
    calls = list[str]()

    def number(text: str) -> float | None:
        calls.append(text)
        return float(text) if text else None

    numbers = NumberColumn(number).column(["1", "x", "", "1", " 1", "x"] * 100)
    assert numbers[:2].tolist() == [1.0, UNREAD] and math.isnan(numbers[2]) and numbers[4] == 1.0
    assert sorted(calls) == ["", "1", "1", "x"]
