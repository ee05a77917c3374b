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
def prefix(tmp_path: Path) -> Path:
    return tmp_path / "unheld"


@pytest.fixture
def kinds(prefix: Path, clock: Clock) -> UnheldKinds:
    return UnheldKinds(prefix, clock)


def written(prefix: Path) -> list[str]:
    return sorted(path.name.removeprefix("unheld.") for path in prefix.parent.iterdir())


def in_vain(kinds: UnheldKinds, times: int, name: str = "spin", uid: int = 1000) -> None:
    for _ in range(times):
        kinds.note(SlurmJob(1, JobState.PENDING, name=name, uid=uid), -1.0)
    kinds.write()


def test_a_kind_is_written_after_some_jobs(kinds: UnheldKinds, prefix: Path) -> None:
    in_vain(kinds, FEWEST - 1)
    assert written(prefix) == []
    in_vain(kinds, 1)
    assert written(prefix) == ["1000.spin"]
    assert prefix.with_name("unheld.1000.spin").read_text() == ""


def test_users_and_names_are_kinds_of_their_own(kinds: UnheldKinds, prefix: Path) -> None:
    for uid, name in ((1000, "spin"), (1001, "spin"), (1000, "nap")):
        in_vain(kinds, FEWEST - 1, name, uid)
    assert written(prefix) == []


def test_a_gain_that_outweighs_the_losses_ends_it_at_once(kinds: UnheldKinds, prefix: Path) -> None:
    in_vain(kinds, FEWEST)
    kinds.note(SlurmJob(2, JobState.PENDING, name="spin", uid=1000), 20.0)
    kinds.write()
    assert written(prefix) == []
    in_vain(kinds, FEWEST - 1)
    assert written(prefix) == []


def test_it_is_tried_again_and_then_rests_for_longer(kinds: UnheldKinds, prefix: Path, clock: Clock) -> None:
    in_vain(kinds, FEWEST)
    rests = []
    for _ in range(12):
        began = clock.now
        while written(prefix):
            clock.now += AGAIN_S / 10
            kinds.write()
        rests.append(round((clock.now - began) / AGAIN_S))
        in_vain(kinds, 1)  # one job of the kind was held, in vain
    assert rests[:4] == [1, 2, 4, 8] and max(rests) == LONGEST_S / AGAIN_S


@pytest.mark.parametrize("name", ["", "a\n0 root", "é", "x" * (LONGEST_NAME + 1), "a\x00b"])
def test_names_that_a_file_name_cannot_hold_are_left_out(kinds: UnheldKinds, prefix: Path, name: str) -> None:
    in_vain(kinds, 2 * FEWEST, name)
    assert written(prefix) == []


def test_the_number_of_files_is_bounded(kinds: UnheldKinds, prefix: Path) -> None:
    for number in range(MOST + 20):
        in_vain(kinds, FEWEST, f"{number:0{LONGEST_NAME}}", 2**32 - 2)
    names = written(prefix)
    assert len(names) == MOST and names[-1].endswith(f"{MOST + 19:0{LONGEST_NAME}}")


def test_kinds_of_one_user_displace_no_others(kinds: UnheldKinds, prefix: Path) -> None:
    in_vain(kinds, FEWEST, "mine", 7)
    for number in range(MOST + 20):
        in_vain(kinds, FEWEST, f"x{number}", 8)
    assert "7.mine" in written(prefix) and len(written(prefix)) == MOST


def test_names_are_escaped_as_the_script_does(kinds: UnheldKinds, prefix: Path) -> None:
    in_vain(kinds, FEWEST, "../a b%.c-1_")
    assert written(prefix) == ["1000.%2E%2E%2Fa%20b%25%2Ec-1_"]


def test_files_of_a_daemon_that_was_killed_go(kinds: UnheldKinds, prefix: Path) -> None:
    prefix.with_name("unheld.5.old").touch()
    in_vain(kinds, 1)
    assert written(prefix) == []


def test_without_a_file_or_read_only_nothing_is_written(tmp_path: Path, clock: Clock) -> None:
    unset, dry = UnheldKinds(None, clock), UnheldKinds(tmp_path / "unheld", clock)
    dry.read_only = True
    for kinds in (unset, dry):
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
        f"{tmp_path}/missing/unheld.*: cannot be written, so job_submit.lua holds every job: No such file or directory"
    ]


def test_the_files_go_with_the_daemon(kinds: UnheldKinds, prefix: Path) -> None:
    in_vain(kinds, FEWEST)
    kinds.remove()
    assert written(prefix) == []


def test_a_small_gain_now_and_then_does_not_outweigh_the_losses(kinds: UnheldKinds, prefix: Path) -> None:
    for _ in range(20):
        in_vain(kinds, 4)
        kinds.note(SlurmJob(2, JobState.PENDING, name="spin", uid=1000), 1.0)
    kinds.write()
    assert written(prefix) == ["1000.spin"]


def test_a_kind_that_mostly_gains_is_held(kinds: UnheldKinds, prefix: Path) -> None:
    for _ in range(20):
        kinds.note(SlurmJob(2, JobState.PENDING, name="spin", uid=1000), 10.0)
        in_vain(kinds, 4)
    assert written(prefix) == []
