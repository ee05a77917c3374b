"""A job without directory and keeper: nobody can learn how it ended, and its workflow ends all the same."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pilotfish.adapters.registry import create
from pilotfish.daemon import queue
from pilotfish.daemon.dispatch import Dispatch
from pilotfish.daemon.exporter import Metrics
from pilotfish.simulate.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.planner import plan
from pilotfish.simulate.platform import Cluster, Node, NodeType
from pilotfish.simulate.snapshot import JobState

SITE = Cluster("here", (Node("a", NodeType("t", 1, 1e9, 1e9), cpus=(min(os.sched_getaffinity(0)),)),))
KILLS_ALL_TRACES = (  # the keeper, which it finds in begin.json, and its own directory
    'import json, os, shutil; d = os.environ["PILOTFISH_JOB_DIR"]; open("ran", "a").write("x");'
    'keeper = json.load(open(d + "/begin.json"))["keeper_pid"]; os.kill(keeper, 9); shutil.rmtree(d)'
)


def test_a_job_that_left_no_trace_fails_once_it_was_missed_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MISSED_S", 0.5)
    monkeypatch.setattr(queue, "MISSED", 2)
    command = ("python3", "-I", "-c", KILLS_ALL_TRACES)
    profile = Profile((ThreadGroup(1, 0.1),))
    jobs = (
        Job("a", profile, command=command, directory=str(tmp_path)),
        Job("b", profile, after=("a",), command=("true",)),
    )
    workflow = Workflow("w", jobs)
    adapter = create("local", SITE, state_dir=str(tmp_path / "state"), cgroups=False)
    dispatch = Dispatch("r", workflow, plan(workflow, SITE, policy="mom"), adapter, Metrics(), time.monotonic)
    try:
        submission = dispatch.until_ended(lambda report: None, lambda: False)
    finally:
        dispatch.close()
        adapter.close()
    states = {name: (entry.state, entry.exit_code) for name, entry in submission.entries.items()}
    assert states == {"a": (JobState.FAILED, None), "b": (JobState.CANCELLED, None)}
    assert "how it ended is not known" in submission.entries["a"].reason
    assert (tmp_path / "ran").read_text() == "x" and submission.exit_code == 1
