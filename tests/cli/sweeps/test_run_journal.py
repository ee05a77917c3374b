"""The journal of a sweep: records are read back exactly, also after a crash in the last line."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.cli.sweeps.run_journal import RunJournal, RunJournalError, read_journal
from pilotfish.simulate.errors import ConfigError

FOUND: dict[str, dict[str, Any]] = {"a1": {"makespan": 0.1 + 0.2, "jobs": 3, "energy": None}, "b2": {"makespan": 1e300}}


def test_records_are_read_back_exactly(tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal.jsonl"
    assert read_journal(path) == {}
    with RunJournal(path) as journal:
        journal.add({"a1": FOUND["a1"]})
        journal.add({"b2": FOUND["b2"]})
        assert read_journal(path) == journal.done == FOUND
    with RunJournal(path) as journal:
        assert journal.done == FOUND


@given(st.integers(0, 400))
@settings(deadline=None)
def test_a_truncated_journal_is_continued(tmp_path: Path, length: int) -> None:
    path = tmp_path / "journal.jsonl"
    path.unlink(missing_ok=True)
    with RunJournal(path) as journal:
        journal.add(FOUND)
    path.write_bytes(content := path.read_bytes()[:length])
    names = {json.loads(line)["run"] for line in content.split(b"\n")[1:-1]}
    with RunJournal(path) as journal:
        assert set(journal.done) == names
        journal.add({"c3": {"makespan": 3.0}})
    assert read_journal(path) == {name: FOUND[name] for name in names} | {"c3": {"makespan": 3.0}}


@given(st.data())
@settings(deadline=None)
def test_a_line_that_is_not_as_it_was_written_is_ignored(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "journal.jsonl"
    path.unlink(missing_ok=True)
    with RunJournal(path) as journal:
        journal.add(FOUND)
    heading, first, second = path.read_bytes().splitlines()
    place, other = data.draw(st.integers(0, len(first) - 1)), data.draw(st.integers(32, 126))
    changed = first[:place] + bytes([other]) + first[place + 1 :]
    path.write_bytes(b"\n".join((heading, changed, second, b"")))
    assert read_journal(path) == (FOUND if changed == first else {"b2": FOUND["b2"]})


@pytest.mark.parametrize(
    "line", [b"\0\0\0\0", b"[1]", b'{"run": "x"}', b'{"run":"x","numbers":{}}', b"\xff\xfe", b"[" * 100_000]
)
def test_invalid_lines_are_ignored(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    with RunJournal(path) as journal:
        journal.add({"a1": FOUND["a1"]})
    with path.open("ab") as file:
        file.write(line + b"\n")
    with RunJournal(path) as journal:
        journal.add({"b2": FOUND["b2"]})
    assert read_journal(path) == FOUND


@pytest.mark.parametrize("data", [b"my notes\n", b"{}", b'{"schema": "pilotfish/sweep-journal/v2"}\n'])
def test_a_file_that_is_not_a_journal_is_not_changed(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(data)
    for use in (RunJournal, read_journal):
        with pytest.raises(ConfigError, match="not a journal of a sweep"):
            use(path)
    assert path.read_bytes() == data


def test_one_sweep_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with RunJournal(path), pytest.raises(ConfigError, match="another sweep is writing to it"):
        RunJournal(path)
    RunJournal(path).__exit__()


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """Let this process write no file beyond a size, bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


#: Of a line about one of the runs below.
LINE_BYTES = len('{"run":"run 0","numbers":{"makespan":0.0},"sum":"708654983b49a678"}\n')


@pytest.mark.parametrize("room", [0, 10, 90, 2 * LINE_BYTES, 400])
def test_on_a_full_disk_the_runs_that_fit_are_kept(tmp_path: Path, room: int) -> None:
    path, runs = tmp_path / "journal.jsonl", {f"run {number}": {"makespan": float(number)} for number in range(9)}
    with RunJournal(path) as journal:
        journal.add({"first": {"makespan": 1.0}})
        size = path.stat().st_size
        with no_file_above(size + room), pytest.raises(RunJournalError, match="the same command goes on") as full:
            journal.add(runs)
    assert str(full.value).startswith(f"{path}: cannot be written: File too large")
    assert [*read_journal(path)] == ["first", *list(runs)[: room // LINE_BYTES]]
    assert path.read_bytes().endswith(b"\n")
    with RunJournal(path) as journal:
        journal.add(runs)
    assert read_journal(path) == {"first": {"makespan": 1.0}, **runs}


def test_a_journal_that_cannot_be_begun_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with no_file_above(5), pytest.raises(RunJournalError, match=f"{path}: cannot be written"):
        RunJournal(path)
    with RunJournal(path) as journal:
        assert journal.done == {}
