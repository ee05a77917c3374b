"""Columns of a large table: the records of `bar_table`, whatever pieces a file is read in."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.documents.unpack import unpacked_pieces
from pilotfish.formats.site.bar_columns import BarColumns, read_bar_columns
from pilotfish.formats.site.bar_table import bar_table, table_header
from pilotfish.simulate.errors import ConfigError

HEADERS = st.sampled_from(
    ["JobID|JobName|Submit|SubmitLine", "JobID|JobName|Submit|SubmitLine|", "Submit|JobID", "User|"]
)
PARTS = st.sampled_from(
    ["7", "7_1", "a", "2026-03-02T06:00:00", "Unknown", "", "|", "|", "|", "\n", "\n", "\r\n", " ", "é"]
)
TEXTS = st.lists(PARTS, max_size=40).map("".join)
PLAIN = st.lists(
    st.sampled_from(["7|a|None|x", "8|b|None|y|", "9|c\nd|None|z", "1|a|b|None|x", "\n", "5|x"]), max_size=9
)


def columns_of(table: BarColumns) -> list[dict[str, str]]:
    return [
        dict(zip(piece.columns, fields, strict=True))
        for piece in table.pieces()
        for fields in zip(*(piece.texts(name, range(len(piece))) for name in piece.columns), strict=True)
    ]


@given(HEADERS, TEXTS | PLAIN.map("\n".join), st.lists(st.integers(1, 5), min_size=1))
def test_records_are_those_of_the_table(header: str, text: str, sizes: list[int]) -> None:
    table = bar_table(f"{header}\n{text}", "s")
    lines = [f"{line}\n".encode() for line in text.replace("\r\n", "\n").split("\n")]

    def batches() -> Iterator[bytes]:
        place, turn = 0, 0
        while place < len(lines):
            yield b"".join(lines[place : place + sizes[turn % len(sizes)]])
            place, turn = place + sizes[turn % len(sizes)], turn + 1

    columns = BarColumns("s", table_header(header, 1, "s", ()), batches())
    assert columns_of(columns) == [dict(fields) for _, fields in table.rows]
    assert columns.left_out == table.left_out and columns.columns == table.columns


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_is_read_in_pieces(tmp_path: Path, size: int, is_packed: bool) -> None:
    text = "\ufeff\nJobID|JobName\r\n1|é\r\n2|a\0b\r\n3|" + "x" * 50 + "\r\nrest\r\n4|y"
    data = text.encode() + b"\xff"
    path = tmp_path / "sacct.psv"
    path.write_bytes(gzip.compress(data) if is_packed else data)
    assert [record["jobname"] for record in columns_of(read_bar_columns(path, (), size))] == [
        "é", "a?b", "x" * 50 + "\nrest", "y\ufffd",
    ]  # fmt: skip


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    packed = gzip.compress(b"JobID|x\n1|2\n" * 10_000)
    for data, message in (
        (packed[:-20], "cannot be unpacked"), (b" \n", "the file is empty"), (b"a\nb\n", "no header"),
        (b"a|b\n", "column jobid is missing"), (b"a|a\n", "column jobid is missing"), (b"jobid|jobid\n", "there twice"),
    ):  # fmt: skip
        path = tmp_path / "sacct.psv"
        path.write_bytes(data)
        with pytest.raises(ConfigError, match=message):
            columns_of(read_bar_columns(path, ("jobid",)))
    with pytest.raises(ConfigError, match="cannot be read"):
        columns_of(read_bar_columns(tmp_path / "none"))


def test_a_file_that_becomes_too_large(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"0" * 2**25))
    with pytest.raises(ConfigError, match=r"too large, unpacked \(allowed: at most 16 MiB"):
        list(unpacked_pieces(path, 2**30, 2**20))
    with pytest.raises(ConfigError, match="too large"):
        list(unpacked_pieces(path, 2**20, 2**20))
