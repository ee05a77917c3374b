"""Columns of texts: the values that each text has alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats import slurm_values
from pilotfish.formats.hostlist import expand
from pilotfish.formats.site.bar_fields import BarFields
from pilotfish.formats.site.text_columns import (
    NAMES,
    NO_NAMES,
    UNREAD,
    UNREAD_NAMES,
    FieldTexts,
    ListedNodes,
    NumberColumn,
    TextCodes,
    TimeColumn,
    ValueCodes,
    job_ids,
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


def fields_of(texts: Sequence[str]) -> BarFields:
    return BarFields.of(("other", "text"), [("x", text) for text in texts])


@pytest.mark.parametrize("name", ZONES)
@given(texts=st.lists(TIMES, max_size=8))
def test_times_are_those_of_each_text(name: str, texts: list[str]) -> None:
    zone = UTC if name == "UTC" else ZoneInfo(name)
    column = TimeColumn(zone)
    times = column.column(fields_of(texts), "text").tolist()
    is_read = []
    for text, time in zip(texts, times, strict=True):
        try:
            expected = slurm_values.dump_moment(text.strip(), zone)
        except ValueError:
            assert time == UNREAD
            continue
        assert time == expected if expected is not None else math.isnan(time)
        is_read.append(text)
    records = np.array([math.isnan(time) or time != UNREAD for time in times], bool)
    assert column.repeated(fields_of(texts), "text", records) == sum(
        slurm_values.is_repeated(text.strip(), zone) for text in is_read
    )


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
        column = nodes.column(fields_of([text]), "text")
        codes.append(int(column[0]))
        (kind,) = lists.kinds(column).tolist()
        if text.strip() in ("", "None", "None assigned"):
            assert kind == NO_NAMES and lists[codes[-1]] == ()
            continue
        try:
            names = expand(text.strip())
        except ConfigError:
            assert kind == UNREAD_NAMES
        else:
            assert kind == NAMES and lists[codes[-1]] == names
    assert len(lists) <= len({*texts, *map(str.strip, texts)})


FIELDS = st.lists(
    st.sampled_from(["a", " a", "a ", "b", "", " ", "é", "\x1fé", "a\xa0", "long" * 50]) | st.text(max_size=9)
)


@given(st.lists(FIELDS, max_size=3))
def test_codes_of_texts(pieces: list[list[str]]) -> None:
    codes, values, numbers = TextCodes(), ValueCodes(str.upper), FieldTexts()
    for texts in pieces:
        fields, plain = fields_of(texts), [text.replace("\0", "?") for text in texts]
        column = codes.column(fields, "text").tolist()
        assert [codes.values_by_code[code] for code in column] == [text.strip() for text in plain]
        assert len(set(column)) == len({text.strip() for text in plain})
        after = codes.values_by_code.kept()
        assert [after[code] for code in column] == [text.strip() for text in plain]
        assert [*after.have_blanks()] == [" " in text for text in after]
        clean = [values.values_by_code[code] for code in values.column(fields, "text")]
        assert clean == [text.strip().upper() for text in plain]
        assert [numbers[number] for number in numbers.numbers(fields, "text")] == plain
        codes.column(fields, "no such column")


def test_more_texts_than_there_is_room_for_at_first() -> None:
    texts, columns = [f"{number}{'x' * (number % 50)}" for number in range(9000)], TextCodes()
    for first in range(0, len(texts), 700):
        columns.column(fields_of(texts[first : first + 700]), "text")
    assert columns.column(fields_of(texts), "text").tolist() == [*range(9000)]
    assert [*columns.values_by_code.kept()] == texts


@pytest.mark.parametrize(
    ("text", "job", "task"),
    [("77", 77, -1), ("77_5", 77, 5), ("123456789012", 123456789012, -1), ("1234567890123", -1, -1), ("77_", -1, -1),
     ("7_1234567890", -1, -1), ("77_[1-5]", -1, -1), ("77+1", -1, -1), (" 77", -1, -1), ("", -1, -1), ("٣", -1, -1)],
)  # fmt: skip
def test_ids_of_jobs(text: str, job: int, task: int) -> None:
    assert [column.tolist() for column in job_ids(fields_of([text]), "text")] == [[job], [task]]


def test_each_number_is_read_once() -> None:
    calls = list[str]()

    def number(text: str) -> float | None:
        calls.append(text)
        return float(text) if text else None

    column = NumberColumn(number)
    numbers = [column.column(fields_of(["1", "x", "", "1", " 1", "x"] * 100), "text") for _ in range(2)][1]
    assert numbers[:2].tolist() == [1.0, UNREAD] and math.isnan(numbers[2]) and numbers[4] == 1.0
    assert sorted(calls) == ["", "1", "1", "x"]
