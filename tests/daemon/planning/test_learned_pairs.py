"""A learned choice of pairs in the daemon: it places jobs on the nodes it chooses, and is caught if it lies."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.planning.live_component import use_policy
from pilotfish.daemon.planning.problem import WINDOW, Options
from pilotfish.daemon.trace_run import DaemonReplay, TraceJobs, TraceRun
from pilotfish.formats.model_file import write_model
from pilotfish.simulate.learned.pair_network import Layer
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType
from pilotfish.simulate.model.workload import Workload
from tests.daemon.planning.test_learned_policy import waits_of
from tests.support.pair_models import PAIR_NODES, SEEN, pair_model

#: Scores only the requested time: the shortest, or the longest and so the worst, goes first; on the fastest node.
SHORTEST, LONGEST = (
    ((((0.0,), (sign,), (0.0,), (0.0,), (0.0,), (0.0,), (1e-3,)), (0.0,)),) for sign in (-1.0, 1.0)
)  # fmt: skip


@pytest.fixture(scope="module")
def jobs() -> Workload:
    """Jobs that fill four nodes of 24 cores for a while."""
    random, count = np.random.default_rng(2), 60
    submit, run = np.sort(random.uniform(0, 1200, count)), random.lognormal(5.3, 1.2, count).clip(5, 5000)
    limit, size = run * random.uniform(1.05, 3, count) + 1, random.choice([1, 2, 4], count)
    return Workload("trace", np.arange(count), submit, run, limit, size.astype(int))


def played(jobs: Workload, layers: tuple[Layer, ...], folder: Path, enabled: bool = True) -> DaemonReplay:
    """Let the daemon decide about all jobs under a network, on the simulated adapter."""
    path = folder / "m.pfmodel.json"
    write_model(path, pair_model(layers=layers, seen=SEEN, max_wait=1e7))
    path.chmod(0o600)
    kinds = {
        node: NodeType(f"{node}", node[0], 8e9, 1e10, frequency=node[1] * 1e9, contention=Contention.NONE)
        for node in PAIR_NODES
    }
    cluster = Cluster("lab", tuple(Node(f"n{place}", kinds[node]) for place, node in enumerate(PAIR_NODES)))
    use_policy(f"learned:{path}")
    trace = TraceJobs(jobs, cluster, "walltime")
    guard = Guard(bound=0.5, window=20, fallback="slf", enabled=enabled)
    options = Options(policy=f"learned:{path}", objective="turnaround", window=WINDOW)
    run = TraceRun(trace, SimulatedAdapter(cluster, truth=trace.truth), options, guard)
    return run.run(progress=lambda now: None, clock=lambda: 0.0)


@pytest.mark.long
def test_a_network_that_lies_is_caught_and_no_job_is_lost(
    jobs: Workload, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = played(jobs, SHORTEST, tmp_path)
    with caplog.at_level(logging.ERROR):
        caught = played(jobs, LONGEST, tmp_path)
    assert [record for record in caplog.records if "decides in place of" in record.getMessage()]
    policy = f"learned:{tmp_path}/m.pfmodel.json"
    assert caught.counts()["plans"]["easy:order=sjf"] > 0 and [*good.counts()["plans"]] == [policy]
    free = played(jobs, LONGEST, tmp_path, enabled=False)
    assert waits_of(good).mean() < waits_of(caught).mean() < waits_of(free).mean()
