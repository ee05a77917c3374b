"""An unsafe or unusable state directory is refused in one sentence."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.local import create, remove_ended
from tests.support.local_world import CLUSTER, LocalWorld, gone


@pytest.mark.parametrize("mode", [0o777, 0o772, 0o702])
def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s").chmod(mode)
    with pytest.raises(AdapterError, match="others can write to it"):
        create(CLUSTER, tmp_path / "s")
    assert list((tmp_path / "s").iterdir()) == []


def test_another_users_directory_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "s"
    directory.mkdir()
    if os.geteuid() == 0:
        os.chown(directory, 12345, 12345)
    else:
        directory = Path("/usr")
    with pytest.raises(AdapterError, match="belongs to user" if os.geteuid() == 0 else "Permission denied"):
        create(CLUSTER, directory)


def test_a_file_is_refused_as_state_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("file", "link", "file/below"):
        with pytest.raises(AdapterError, match="state directory"):
            create(CLUSTER, tmp_path / name)


def test_a_missing_one_is_made_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        create(CLUSTER, tmp_path / "x" / "y" / "state").close()
    finally:
        os.umask(old)
    assert (tmp_path / "x" / "y" / "state").stat().st_mode & 0o777 == 0o700


def test_an_interrupted_removal_is_finished(tmp_path: Path) -> None:
    create(CLUSTER, tmp_path / "s").close()
    (tmp_path / "s" / "forgotten" / "1").mkdir()
    (tmp_path / "s" / "forgotten" / "1" / "spec.json").write_text("{}")
    create(CLUSTER, tmp_path / "s").close()
    assert list((tmp_path / "s" / "forgotten").iterdir()) == []


def test_it_is_removed_when_everything_in_it_has_ended(world: LocalWorld) -> None:
    world.finish(world.job("a", 0.0))
    assert not remove_ended(world.state)  # the adapter has it
    world.adapter.close()
    assert remove_ended(world.state) and not world.state.exists()
    assert not remove_ended(world.state)


def test_it_stays_while_a_job_goes_on_without_the_adapter(world: LocalWorld) -> None:
    keeper = world.begun(world.start(world.job("a", 600.0)))["keeper_pid"]
    world.adapter.close()
    assert not remove_ended(world.state)
    os.kill(keeper, signal.SIGKILL)
    while not gone(keeper):
        time.sleep(0.01)
    assert not remove_ended(world.state)
    assert world.members() and world.directory("a").exists()


def test_other_directories_stay(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    assert not remove_ended(tmp_path / "mine") and (tmp_path / "mine" / "thesis.tex").exists()
    assert not remove_ended(tmp_path / "missing") and not remove_ended(tmp_path / "mine" / "thesis.tex")
