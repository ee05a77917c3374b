"""A read of a file is seen, whoever replaces the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pilotfish.adapters.file_watch import EVERY_S, FileWatch
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "unheld").write_text("")
    return tmp_path / "unheld"


@pytest.fixture
def watch(file: Path, clock: Clock) -> Iterator[FileWatch]:
    with closing(FileWatch([file], clock)) as watch:
        yield watch


def test_a_read_is_seen_once(watch: FileWatch, file: Path) -> None:
    assert not watch.read(0.0)
    file.read_text()
    assert watch.read(1.0) and not watch.read(0.0)


def test_what_is_done_to_other_files_or_by_the_daemon_is_no_hint(watch: FileWatch, file: Path) -> None:
    draft = file.with_name(".unheld.new")
    draft.write_text("1000 a\n")
    os.replace(draft, file)
    file.with_name("unheld.old").write_text("")
    assert not watch.read(0.0)


def test_a_file_that_was_replaced_is_still_watched(watch: FileWatch, file: Path) -> None:
    draft = file.with_name(".unheld.new")
    draft.write_text("1000 a\n")
    os.replace(draft, file)
    file.read_text()
    assert watch.read(1.0)


def test_any_of_several_files_is_watched_in_its_own_folder_only(tmp_path: Path, clock: Clock) -> None:
    files = [tmp_path / folder / folder for folder in "ab"]
    unwatched = [tmp_path / "a" / "b", tmp_path / "b" / "a"]
    for file in (*files, *unwatched):
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    with closing(FileWatch(files, clock)) as watch:
        for file in (*unwatched, *files):
            file.read_text()
            assert watch.read(0.0) is (file in files)
            clock.now += EVERY_S


def test_a_flood_is_one_hint_in_a_while(watch: FileWatch, file: Path, clock: Clock) -> None:
    hints = 0
    for _ in range(1000):
        file.read_text()
        clock.now += EVERY_S / 100
        hints += watch.read(0.0)
    assert 9 <= hints <= 11


def test_a_folder_that_is_not_there_gives_no_hints_and_is_reported(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(FileWatch([tmp_path / "missing" / "unheld"], clock)) as watch:
        assert not watch.read(0.0)
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}/missing cannot be watched, so the daemon sees handed-over jobs later: No such file or directory"
    ]
