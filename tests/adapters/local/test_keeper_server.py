"""The server that forks keepers: jobs outlive it, the next job gets a new one, and none is lost or run twice."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from pilotfish.adapters.local import keeper_server
from pilotfish.adapters.local.keeper_server import KeeperServer
from pilotfish.simulate.model.snapshot import JobState
from tests.support.local_world import PATIENCE_S, LocalWorld, gone


def servers() -> set[int]:
    """The keeper servers that are children of this process."""
    children = map(psutil.Process, map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))
    return {child.pid for child in children if any("keeper import serve" in word for word in command(child))}


def command(child: psutil.Process) -> list[str]:
    """What a child was started with; for a moment after exec the kernel shows nothing."""
    deadline = time.monotonic() + PATIENCE_S
    with suppress(psutil.ZombieProcess):
        while not (words := child.cmdline()):
            assert time.monotonic() < deadline
        return words
    return []


def test_one_server_forks_all_keepers(world: LocalWorld) -> None:
    for id in "jk":
        assert world.finish(world.job(id, 0.0)).state is JobState.COMPLETED
    (server,) = servers()
    world.adapter.close()
    assert gone(server) and not servers()


def test_jobs_outlive_the_server_and_the_next_job_gets_a_new_one(world: LocalWorld) -> None:
    world.start(world.job("j", 1.0, exit_code=7))
    world.begun("j")
    (first,) = servers()
    os.kill(first, signal.SIGKILL)
    world.wait_for(lambda: gone(first))
    assert world.finish(world.job("k", 0.0), "b").state is JobState.COMPLETED
    assert first not in servers() and len(servers()) == 1
    assert world.wait_for(lambda: (view := world.look("j")).state.ended and view).exit_code == 7
    assert world.runs("j") == world.runs("k") == 1


def test_a_job_on_its_way_to_a_server_that_dies_is_pending_and_can_be_started(world: LocalWorld) -> None:
    world.finish(world.job("first", 0.0))
    (server,) = servers()
    os.kill(server, signal.SIGSTOP)
    world.start(world.job("j", 0.0))
    assert world.look("j").state is JobState.RUNNING  # its lock is held
    os.kill(server, signal.SIGKILL)
    world.wait_for(lambda: world.look("j").state is JobState.PENDING)
    world.start(world.job("j", 0.0))
    assert world.wait_for(lambda: (view := world.look("j")).state.ended and view).state is JobState.COMPLETED
    assert world.runs("j") == 1


@pytest.mark.real
def test_a_server_that_takes_no_request_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_server, "END_S", 0.2)
    folder, server = str(tmp_path / "gone"), KeeperServer(tmp_path, {})
    with closing(server), open(tmp_path / "lock", "w") as lock:
        server.start(folder, lock.fileno())
        (first,) = servers()
        os.kill(first, signal.SIGSTOP)
        for _ in range(5000):
            server.start(folder, lock.fileno())
            if first not in servers():
                break
        assert len(servers()) == 1 and first not in servers()


def test_a_keeper_has_a_session_of_its_own_and_no_terminal(world: LocalWorld) -> None:
    world.start(world.job("j", 600.0))
    world.begun("j")
    (keeper,) = world.keepers()
    assert keeper == world.begun("j")["keeper_pid"]
    assert os.getsid(keeper) not in (os.getsid(0), *map(os.getsid, servers()))
    assert {os.readlink(f"/proc/{keeper}/fd/{number}") for number in range(3)} == {"/dev/null"}
    assert os.readlink(f"/proc/{keeper}/cwd") == "/"
