"""Speed of the service in a trace: `pilotfish replay`, by policy, number of jobs and number of nodes.

Rule: the loop of the service runs on the simulated adapter with the defaults of its configuration. Jobs are those of
Lublin and Feitelson at a load of 0.8 on nodes of 16 cores. CPU time, because nothing waits for a disk.
"""

from __future__ import annotations

import time

import numpy as np

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.benchmarks.show import heading, number, table
from pilotfish.cli.kernel_loading import load_kernels
from pilotfish.daemon.assembly import guard_of, options_of
from pilotfish.daemon.config import DaemonConfig
from pilotfish.daemon.trace_run import DaemonReplay, TraceJobs, TraceRun
from pilotfish.formats.entry_points import register_mapping_policy
from pilotfish.simulate.generate.models import lublin, parse_walltimes
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.workload import Workload

CORES, LOAD = 16, 0.8
#: Jobs and nodes of each run.
SIZES = (500, 100), (2000, 100), (500, 1000), (2000, 1000), (10_000, 1000)
QUICK = (200, 100), (200, 1000)
#: For the others, whose plans take longer: `lookahead` is bounded by its budget alone, see `lookahead.queue_budget`.
SEARCHED = (50, 50), (200, 50)


def run(jobs: int, nodes: int, policy: str) -> tuple[float, DaemonReplay]:
    """Return the CPU seconds of a trace under the service, and what it did."""
    kind = NodeType("t", CORES, 64 * 2.0**30, 80e9)
    cluster = Cluster("bench", tuple(Node(f"n{i}", kind) for i in range(nodes)))
    workload: Workload = lublin(jobs, CORES * nodes, load=LOAD, walltimes=parse_walltimes("round"))
    config = DaemonConfig(cluster="bench.yaml", policy=policy)
    trace = TraceJobs(workload, cluster, "walltime")
    service = TraceRun(trace, SimulatedAdapter(cluster, truth=trace.truth), options_of(config), guard_of(config))
    began = time.process_time()
    trace_replay = service.run(progress=lambda now: None, clock=time.perf_counter)
    return time.process_time() - began, trace_replay


def measure(quick: bool) -> None:
    """Print the table."""
    heading("The service in a trace; target: 10,000 jobs on 1,000 nodes in 3 CPU minutes, under easy and under slf")
    load_kernels("mapping.entry")
    rows = []
    for policy in ("easy", "slf", "conservative", "lookahead"):
        register_mapping_policy(policy)
        sizes = (QUICK if quick else SIZES) if policy in ("easy", "slf") else SEARCHED[: 1 if quick else None]
        for jobs, nodes in sizes:
            spent, trace_replay = run(jobs, nodes, policy)
            waited = trace_replay.replayed.start_time - trace_replay.replayed.submit_time
            rows.append(
                (policy, f"{jobs:,}", f"{nodes:,}", number(spent), number(jobs / spent), f"{trace_replay.cycles:,}",
                 number(1e3 * spent / trace_replay.cycles), number(float(np.nanmean(waited))))
            )  # fmt: skip
    table(("policy", "jobs", "nodes", "CPU s", "jobs/s", "cycles", "ms a cycle", "mean wait s"), rows)
