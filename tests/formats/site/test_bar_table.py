"""Tables divided by bars: any order, a bar at the end, bars and line ends in texts, records that were cut off."""

from __future__ import annotations

import pytest

from pilotfish.formats.site.bar_table import BarTable, bar_table
from pilotfish.simulate.errors import ConfigError

HEADER = "JobID|JobName|Submit|Start|ReqCPUS|SubmitLine"
TIMES = "2026-03-02T06:00:00|Unknown|1"


def rows(text: str) -> list[dict[str, str]]:
    return [dict(record.fields) for record in bar_table(text, "sacct.psv").records()]


def names(text: str) -> list[tuple[str, str]]:
    return [(fields["jobname"], fields["submitline"]) for fields in rows(text)]


def test_columns_in_any_order_with_and_without_a_bar_at_the_end() -> None:
    assert rows("Job Name|JobID\nx|1\n") == [{"jobname": "x", "jobid": "1"}]
    assert rows("JobID|JobName|\n1|x|\n2||\n") == [{"jobid": "1", "jobname": "x"}, {"jobid": "2", "jobname": ""}]
    assert rows("\ufeffJobID|JobName\r\n1|x\r\n".removeprefix("\ufeff")) == [{"jobid": "1", "jobname": "x"}]


def test_bars_in_texts() -> None:
    assert names(f"{HEADER}\n1|a|{TIMES}|sbatch --wrap=a|b | c\n") == [("a", "sbatch --wrap=a|b | c")]
    assert names(f"{HEADER}\n1|a|b|{TIMES}|sbatch x\n") == [("a|b", "sbatch x")]
    assert names(f"{HEADER}\n1|a|b|{TIMES}|sbatch -J a|b x\n") == [("a|b", "sbatch -J a|b x")]


def test_line_ends_in_texts() -> None:
    text = f"{HEADER}\n1|a\nb|{TIMES}|sbatch x\n2|c|{TIMES}|sbatch --wrap=a\nb | c\n\n3|d|{TIMES}|e\n"
    assert names(text) == [("a\nb", "sbatch x"), ("c", "sbatch --wrap=a\nb | c"), ("d", "e")]


def test_records_that_cannot_be_read_are_counted() -> None:
    table = bar_table(f"{HEADER}\n1|a|2026-03-02\n2|b|{TIMES}|x\n3|a|x|y|z|u|v|w\n", "sacct.psv")
    assert [fields["jobid"] for _, fields in table.rows] == ["2"]
    assert table.left_out == {
        "records that were cut off": 1, "records whose fields cannot be separated": 1,
    }  # fmt: skip


def test_records_know_their_line() -> None:
    assert [line for line, _ in bar_table(f"\n{HEADER}\n1|a\nb|{TIMES}|x\n2|b|{TIMES}|y\n", "s").rows] == [3, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing\n", r"s: line 1: no header"),
        ("a|b\n", r"s: line 1: column jobid is missing \(allowed: among a, b\)"),
        ("jobid|b|JobID\n", r"s: line 1: a column is there twice"),
    ],
)
def test_a_table_without_its_columns_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        bar_table(text, "s", ("jobid",))


def test_many_short_lines_are_one_record() -> None:
    table = bar_table(f"{HEADER}\n1|a|{TIMES}|{'x' * 10}\n" + "y\n" * 100_000 + f"2|b|{TIMES}|z\n", "s")
    assert [len(fields["submitline"]) for _, fields in table.rows] == [10 + 200_000, 1]


def test_many_bars_take_no_long_time() -> None:
    """The ways to share 100,000 bars between two texts are not tried."""
    table: BarTable = bar_table(f"{HEADER}\n1|a|{TIMES}|{'|' * 100_000}\n2|{'|' * 100_000}\n", "s")
    assert len(table.rows) + sum(table.left_out.values()) == 2
