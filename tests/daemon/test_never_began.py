"""A job whose keeper died before it began is started again, and runs once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from pilotfish.daemon.socket.socket_server import Server
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Submit
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.real

SITE = Cluster("here", (Node("a", NodeType("t", 1, 1e9, 1e9), cpus=(min(os.sched_getaffinity(0)),)),))


def test_a_job_that_never_began_is_restartable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pilotfish.adapters.local.keeper_server import KeeperServer
    from pilotfish.adapters.registry import create

    mark = tmp_path / "ran"
    job = Job("x", Profile((ThreadGroup(1, 0.1),)), command=("/bin/sh", "-c", f"echo once >> {mark}"))
    child = os.fork()
    if child == 0:  # killed after the job's directory was made and before its keeper was started
        try:
            world = create("local", SITE, state_dir=str(tmp_path / "state"), cgroups=False)
            monkeypatch.setattr(KeeperServer, "start", lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
            world.apply(Submit("w/x", job, ("a",)))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    world = create("local", SITE, state_dir=str(tmp_path / "state"), cgroups=False)
    try:
        (view,) = world.snapshot().jobs
        assert (view.state, view.restartable, view.nodes) == (JobState.PENDING, True, ())
        world.apply(Submit("w/x", job, ("a",)))
        for _ in range(100):
            (view,) = world.snapshot().jobs
            if view.state.ended:
                break
            world.wait(0.1)
        assert view.state is JobState.COMPLETED and not view.restartable
        assert mark.read_text() == "once\n"
    finally:
        world.close()


def test_a_regular_file_in_place_of_the_socket_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("words")
    with pytest.raises(ConfigError, match="not a socket"):
        Server(f"ipc://{path}", lambda request, peer: {})
    assert path.read_text() == "words"
