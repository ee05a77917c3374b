"""A begin time that was moved is known to be the user's by the next daemon and by the reaper, too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.adapters.slurm.handed_over.first_begins import FirstBegins
from tests.adapters.slurm.handed_over.test_job_update import JOB


def begins(folder: Path) -> FirstBegins:
    """After one look at a job that was handed over."""
    first = FirstBegins(folder)
    assert not first.moved(JOB)
    first.retain([JOB.id])
    return first


@pytest.mark.parametrize("read_only", [False, True])
def test_the_next_daemon_and_the_reaper_know_a_begin_time_that_was_moved(tmp_path: Path, read_only: bool) -> None:
    begins(tmp_path)
    reopened = FirstBegins(tmp_path, read_only=read_only)
    assert reopened.moved(replace(JOB, begin=(JOB.begin or 0.0) + 4)) and not reopened.moved(JOB)


def test_a_job_that_is_gone_and_an_earlier_job_with_its_id_are_forgotten(tmp_path: Path) -> None:
    first = begins(tmp_path)
    later = replace(JOB, submit=(JOB.submit or 0.0) + 900, begin=(JOB.begin or 0.0) + 900)
    assert not FirstBegins(tmp_path).moved(later)
    first.retain([])
    assert not FirstBegins(tmp_path).moved(replace(JOB, begin=(JOB.begin or 0.0) + 4))


@pytest.mark.parametrize("content", ["", "[1]", '{"7": 3}', '{"x": [1, 2]}', "\0", '{"7": [1, 2, 3]}'])
def test_a_file_that_cannot_be_read_is_as_none(tmp_path: Path, content: str) -> None:
    begins(tmp_path)
    (tmp_path / "begins.json").write_text(content)
    assert not FirstBegins(tmp_path).moved(replace(JOB, begin=(JOB.begin or 0.0) + 4))
    begins(tmp_path)
    assert FirstBegins(tmp_path).moved(replace(JOB, begin=(JOB.begin or 0.0) + 4))


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    first = FirstBegins(tmp_path / "state", read_only=True)
    assert not first.moved(JOB)
    first.retain([JOB.id])
    assert not [*tmp_path.iterdir()]


def test_a_disk_that_is_full_or_a_folder_of_others_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "begins.json").mkdir()
    first = begins(tmp_path)
    assert first.moved(replace(JOB, begin=(JOB.begin or 0.0) + 4))
