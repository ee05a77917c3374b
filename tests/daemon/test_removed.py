"""A job without directory and keeper: how it ended cannot be known, and its workflow ends all the same."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pilotfish.adapters.registry import create
from pilotfish.daemon.one_off import WorkflowRun
from pilotfish.daemon.planning.problem import Options
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.state import queue
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.snapshot import JobState

SITE = Cluster("here", (Node("a", NodeType("t", 1, 1e9, 1e9), cpus=(min(os.sched_getaffinity(0)),)),))
KILLS_ALL_TRACES = (  # the keeper, which it finds in begin.json, and its own directory
    'import json, os, shutil; d = os.environ["PILOTFISH_JOB_DIR"]; open("ran", "a").write("x");'
    'keeper = json.load(open(d + "/begin.json"))["keeper_pid"]; os.kill(keeper, 9); shutil.rmtree(d)'
)


@pytest.mark.real
def test_a_job_without_a_trace_fails_after_missing_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    dispatch = WorkflowRun("r", workflow, adapter, Metrics(), time.monotonic, Options("mom"))
    try:
        submission = dispatch.until_ended(lambda report: None, lambda: False)
    finally:
        dispatch.close()
        adapter.close()
    states = {name: (entry.state, entry.exit_code) for name, entry in submission.entries.items()}
    assert states == {"a": (JobState.FAILED, None), "b": (JobState.CANCELLED, None)}
    assert "how it ended is not known" in submission.entries["a"].reason
    assert (tmp_path / "ran").read_text() == "x" and submission.exit_code == 1
