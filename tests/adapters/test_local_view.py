"""A view of the local state reads it and changes nothing, also beside an adapter that works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.local.view import LocalView
from pilotfish.adapters.registry import create
from pilotfish.simulate.job import Job, Profile, ThreadGroup
from pilotfish.simulate.plan import Start
from pilotfish.simulate.platform import Cluster, Node, NodeType
from pilotfish.simulate.snapshot import JobState

SITE = Cluster("here", (Node("a", NodeType("t", 1, 1e9, 1e9), cpus=(min(os.sched_getaffinity(0)),)),))


def tree(path: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below with its time of change and content."""
    return {
        str(file): (file.stat().st_mtime_ns, file.read_bytes() if file.is_file() else b"")
        for file in sorted(path.rglob("*"))
    }


def test_a_state_that_is_not_there_is_an_empty_world_and_stays_absent(tmp_path: Path) -> None:
    view = LocalView(SITE, tmp_path / "none")
    assert view.snapshot().jobs == ()
    with pytest.raises(AdapterError):
        view.apply(Start("w/x", Job("x", Profile((ThreadGroup(1, 0.1),)), command=("true",)), ("a",)))
    assert list(tmp_path.iterdir()) == []


def test_it_sees_what_a_working_adapter_does_and_leaves_it_alone(tmp_path: Path) -> None:
    live = create("local", SITE, state_dir=str(tmp_path / "state"), cgroups=False)
    try:
        job = Job("x", Profile((ThreadGroup(1, 0.1),)), command=("/bin/sh", "-c", "exit 3"))
        live.apply(Start("w/x", job, ("a",)))
        for _ in range(100):
            if live.snapshot().jobs[0].state.ended:
                break
            live.wait(0.1)
        before = tree(tmp_path)
        (seen,) = LocalView(SITE, tmp_path / "state").snapshot().jobs
        assert (seen.key, seen.state, seen.exit_code) == ("w/x", JobState.FAILED, 3)
        assert tree(tmp_path) == before
    finally:
        live.close()
