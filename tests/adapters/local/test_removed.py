"""A job's directory that is removed while the job runs is restored, and nothing runs twice."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.local.job_files import BEGIN, END, SPEC, read_record, restore_directory, write_record
from pilotfish.adapters.local.keeper import SETTLE_S
from pilotfish.simulate.model.plan import Cancel
from pilotfish.simulate.model.snapshot import JobState
from tests.support.local_world import LocalWorld, gone, sh

REMOVALS = ('rm -rf "$PILOTFISH_JOB_DIR"', 'rm -rf "$PILOTFISH_JOB_DIR"/*', 'rm "$PILOTFISH_JOB_DIR"/begin.json')


def ended(world: LocalWorld, key: str = "j"):
    """Return the job once it has ended, however long its directory was missing."""
    return world.wait_for(lambda: [v for v in world.adapter.snapshot().jobs if v.key == key and v.state.ended])[0]


@pytest.mark.parametrize("removal", REMOVALS)
@pytest.mark.parametrize("then", ["", "sleep 1.2; "])
def test_a_job_that_removes_its_directory_keeps_its_exit_code(world: LocalWorld, removal: str, then: str) -> None:
    world.start(sh("j", f"echo ran >> {world.path}/j.runs; {removal}; {then}exit 3"), "b")
    view = ended(world)
    assert (view.state, view.exit_code, view.nodes) == (JobState.FAILED, 3, ("b",))
    assert "was removed" in view.reason or removal == REMOVALS[2]
    assert world.runs("j") == 1


@pytest.mark.parametrize("restart", [False, True])
def test_a_job_is_not_started_again_while_its_directory_is_missing(world: LocalWorld, restart: bool) -> None:
    job = sh("j", f"echo ran >> {world.path}/j.runs; until [ -e {world.path}/go ]; do sleep 0.05; done; exit 4")
    world.start(job)
    keeper = world.begun("j")["keeper_pid"]
    os.kill(keeper, signal.SIGSTOP)
    shutil.rmtree(world.directory("j"))
    if restart:
        world.restart()
    with pytest.raises(AdapterError, match="was not started: its directory was removed"):
        world.start(job)
    assert world.adapter.snapshot().jobs == ()
    os.kill(keeper, signal.SIGCONT)
    (world.path / "go").touch()
    assert ended(world).exit_code == 4
    assert world.runs("j") == 1


def test_a_restored_directory_accepts_a_cancel_and_a_forget(world: LocalWorld) -> None:
    world.start(sh("j", "sleep 600"))
    pid = world.begun("j")["pid"]
    shutil.rmtree(world.directory("j"))
    world.wait_for(lambda: [view for view in world.adapter.snapshot().jobs if view.nodes == ("a",)])
    world.adapter.apply(Cancel("j"))
    assert ended(world).state is JobState.CANCELLED and gone(pid)
    world.adapter.forget("j")
    world.wait_for(lambda: not world.keepers())
    assert world.adapter.snapshot().jobs == () and not world.directory("j").exists()
    assert world.finish(world.job("j", 0.0)).state is JobState.COMPLETED  # what is forgotten may run again


def test_without_a_keeper_a_removed_directory_stays_missing(world: LocalWorld) -> None:
    job = sh("j", f"echo ran >> {world.path}/j.runs; sleep 600")
    world.start(job)
    world.wait_for(lambda: world.runs("j"))
    world.kill_keeper("j")
    shutil.rmtree(world.directory("j"))
    with pytest.raises(AdapterError, match="was not started"):
        world.start(job)
    assert world.adapter.snapshot().jobs == () and world.runs("j") == 1


def test_a_removed_state_directory_is_not_restored(world: LocalWorld) -> None:
    world.start(sh("j", "sleep 0.8"))
    world.begun("j")
    (world.state / "jobs").rename(world.state / "gone")
    world.wait_for(lambda: not world.keepers())
    assert not (world.state / "jobs").exists()
    (world.state / "jobs").mkdir(0o700)


def test_a_slow_removal_is_not_disturbed(world: LocalWorld) -> None:
    """On a busy machine it may take longer than the keeper waits."""
    slowly = 'cd "$PILOTFISH_JOB_DIR" && rm begin.json && sleep 0.05 && rm -rf "$PILOTFISH_JOB_DIR"'
    result = world.path / "found"
    world.start(sh("j", f"begin=$(date +%s%N); {slowly}; echo $? $begin $(date +%s%N) > {result}; sleep 1"))
    code, begin, end = map(int, world.wait_for(lambda: result.exists() and result.read_text()).split())
    assert code == 0 or end - begin >= SETTLE_S * 1e9
    assert ended(world).exit_code == 0


MINE = {"pid": 7, "start_ticks": 1, "boot_id": "x", "start_time": 1.5, "keeper_pid": 6, "keeper_ticks": 2}


@pytest.fixture
def lock(tmp_path: Path):
    fd = os.open(tmp_path / "first", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def test_another_jobs_records_and_an_end_are_left_alone(tmp_path: Path, lock: int) -> None:
    foreign = tmp_path / "other"
    foreign.mkdir()
    write_record(str(foreign), BEGIN, MINE | {"pid": 8})
    assert restore_directory(str(foreign), lock, {}, MINE) is None
    assert read_record(str(foreign), BEGIN) == MINE | {"pid": 8}
    over = tmp_path / "over"
    over.mkdir()
    write_record(str(over), END, {"state": "completed"})
    assert restore_directory(str(over), lock, {}, MINE) is None
    assert not (over / BEGIN).exists() and not (over / SPEC).exists()


def test_the_holder_of_the_new_lock_is_not_disturbed(tmp_path: Path, lock: int) -> None:
    directory = str(tmp_path / "j")
    new_lock = restore_directory(directory, lock, {"key": "j"}, MINE)
    assert new_lock not in (None, lock) and read_record(directory, BEGIN) == MINE
    assert restore_directory(directory, new_lock, {"key": "j"}, MINE) == new_lock
    os.unlink(os.path.join(directory, BEGIN))
    assert restore_directory(directory, lock, {}, MINE) is None  # it is another's: ours is `first`
    assert read_record(directory, BEGIN) is None
    assert restore_directory(directory, new_lock, {}, MINE) == new_lock
    os.close(new_lock)
