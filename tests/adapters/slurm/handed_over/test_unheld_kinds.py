"""Which kinds of jobs job_submit.lua need not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.adapters.slurm.handed_over.unheld_kinds import (
    AGAIN_S,
    FEWEST,
    LONGEST_NAME,
    LONGEST_S,
    MOST,
    UnheldKinds,
)
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.simulate.model.snapshot import JobState
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "unheld"


@pytest.fixture
def kinds(file: Path, clock: Clock) -> UnheldKinds:
    return UnheldKinds(file, clock)


def in_vain(kinds: UnheldKinds, times: int, name: str = "spin", uid: int = 1000) -> None:
    for _ in range(times):
        kinds.note(SlurmJob(1, JobState.PENDING, name=name, uid=uid), -1.0)
    kinds.write()


def test_a_kind_is_written_after_some_jobs(kinds: UnheldKinds, file: Path) -> None:
    in_vain(kinds, FEWEST - 1)
    assert file.read_text() == ""
    in_vain(kinds, 1)
    assert file.read_text() == "1000 spin\n"
    assert file.stat().st_mode & 0o777 == 0o644


def test_users_and_names_are_kinds_of_their_own(kinds: UnheldKinds, file: Path) -> None:
    for uid, name in ((1000, "spin"), (1001, "spin"), (1000, "nap")):
        in_vain(kinds, FEWEST - 1, name, uid)
    assert file.read_text() == ""


def test_a_gain_that_outweighs_the_losses_ends_it_at_once(kinds: UnheldKinds, file: Path) -> None:
    in_vain(kinds, FEWEST)
    kinds.note(SlurmJob(2, JobState.PENDING, name="spin", uid=1000), 20.0)
    kinds.write()
    assert file.read_text() == ""
    in_vain(kinds, FEWEST - 1)
    assert file.read_text() == ""


def test_it_is_tried_again_and_then_rests_for_longer(kinds: UnheldKinds, file: Path, clock: Clock) -> None:
    in_vain(kinds, FEWEST)
    rests = []
    for _ in range(12):
        began = clock.now
        while file.read_text():
            clock.now += AGAIN_S / 10
            kinds.write()
        rests.append(round((clock.now - began) / AGAIN_S))
        in_vain(kinds, 1)  # one job of the kind was held, in vain
    assert rests[:4] == [1, 2, 4, 8] and max(rests) == LONGEST_S / AGAIN_S


@pytest.mark.parametrize("name", ["", "a\n0 root", "é", "x" * (LONGEST_NAME + 1), "a\x00b"])
def test_names_that_a_line_cannot_hold_are_left_out(kinds: UnheldKinds, file: Path, name: str) -> None:
    in_vain(kinds, 2 * FEWEST, name)
    assert file.read_text() == ""


def test_the_file_stays_small(kinds: UnheldKinds, file: Path) -> None:
    for number in range(3 * MOST):
        in_vain(kinds, FEWEST, f"{number:0{LONGEST_NAME}}", 2**32 - 2)
    lines = file.read_text().splitlines()
    assert len(lines) == MOST and f"{3 * MOST - 1:0{LONGEST_NAME}}" in lines[-1]
    assert file.stat().st_size < 65536  # which is what the script reads


def test_without_a_file_or_read_only_nothing_is_written(tmp_path: Path, clock: Clock) -> None:
    none, dry = UnheldKinds(None, clock), UnheldKinds(tmp_path / "unheld", clock)
    dry.read_only = True
    for kinds in (none, dry):
        in_vain(kinds, FEWEST)
        kinds.remove()
    assert not any(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_reported_once(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    kinds = UnheldKinds(tmp_path / "missing" / "unheld", clock)
    for _ in range(3):
        in_vain(kinds, 0)
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}/missing/unheld cannot be written, so job_submit.lua holds every job: No such file or directory"
    ]


def test_the_file_goes_with_the_daemon(kinds: UnheldKinds, file: Path) -> None:
    in_vain(kinds, FEWEST)
    kinds.remove()
    assert not file.exists()


def test_a_small_gain_now_and_then_does_not_outweigh_the_losses(kinds: UnheldKinds, file: Path) -> None:
    for _ in range(20):
        in_vain(kinds, 4)
        kinds.note(SlurmJob(2, JobState.PENDING, name="spin", uid=1000), 1.0)
    kinds.write()
    assert file.read_text() == "1000 spin\n"


def test_a_kind_that_mostly_gains_is_held(kinds: UnheldKinds, file: Path) -> None:
    for _ in range(20):
        kinds.note(SlurmJob(2, JobState.PENDING, name="spin", uid=1000), 10.0)
        in_vain(kinds, 4)
    assert file.read_text() == ""
