"""A copy of a SQLite file is consistent while others write, and leaves the original unchanged."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pilotfish.daemon.state import journal_db
from pilotfish.daemon.state.journal_db import copy_database


@pytest.fixture
def live(tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "live.sqlite", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE numbers (value INTEGER, padding BLOB)")
        yield database


def write(database: sqlite3.Connection, count: int) -> None:
    for value in range(count):
        database.execute("INSERT INTO numbers VALUES (?, zeroblob(3000))", (value,))
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def count_in(copy: Path) -> int:
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return int(database.execute("SELECT count(*) FROM numbers").fetchone()[0])


def test_a_write_between_the_two_files_is_copied_again(live, tmp_path, monkeypatch) -> None:
    write(live, 5)
    folder, plain, busy = tmp_path / "copy", shutil.copyfileobj, [3]
    folder.mkdir()

    def copy(source, target, size):
        plain(source, target, size)
        if busy[0]:
            busy[0] -= 1
            write(live, 50)

    monkeypatch.setattr(journal_db.shutil, "copyfileobj", copy)
    assert count_in(copy_database(tmp_path / "live.sqlite", folder)) == 155


def test_a_file_that_always_changes_is_an_error(live, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(journal_db, "_state_of", lambda files, is_fresh, count=iter(range(10**6)): next(count))
    (tmp_path / "copy").mkdir()
    with pytest.raises(sqlite3.OperationalError, match="all the time"):
        copy_database(tmp_path / "live.sqlite", tmp_path / "copy")


def test_the_wal_is_copied_too_and_the_original_stays_unchanged(live, tmp_path) -> None:
    live.execute("INSERT INTO numbers VALUES (1, '')")
    folder = tmp_path / "copy"
    folder.mkdir()
    before = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in tmp_path.glob("live*")}
    assert count_in(copy_database(tmp_path / "live.sqlite", folder)) == 1
    assert {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in tmp_path.glob("live*")} == before
