"""Replays on nodes that jobs share: their speed, and what a bound on sharing gains over nodes of one's own.

Workloads: arrivals, sizes and run times are drawn, or those of a trace; jobs of a trace say nothing of memory, so each
gets one of four classes of bandwidth, drawn with a fixed seed: 40 % need a tenth of a node's bandwidth if they filled
it, and 20 % each half of it, all of it, and 1.6 times as much. No job alone needs more than a node has. Walltimes are
at least 1.5 times the run time, so that a slowdown within the bound kills no job.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from pilotfish.benchmarks.show import heading, number, on_nodes_policy, table
from pilotfish.formats.replays.swf import read_swf
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.node_allocation import NodeShapes

CORES, BANDWIDTH = 16, 40e9
#: Share of a node's bandwidth that a node full of such jobs needs, and how many jobs are of this class.
CLASSES = {0.1: 0.4, 0.5: 0.2, 1.0: 0.2, 1.6: 0.2}
SHARES = ("none", "1", "1.05", "1.1", "1.25", "any")
#: Trace, and nodes.
TRACES = (("lublin_256.swf.gz", 20), ("lublin_256.swf.gz", 32), ("metacentrum_1w_1361306800.swf.gz", 210))
#: Jobs, nodes, load, SPEC. Jobs that ask for more than there is wait, and slow each other down.
GROWTH = [
    (jobs, nodes, load, "easy") for load in (0.8, 1.1) for nodes in (100, 1_000, 10_000) for jobs in (10_000, 100_000)
]
SIZES = (
    *GROWTH, (100_000, 1_000, 0.8, "strict"), (100_000, 1_000, 0.8, "easy:share=1.1"), (30_000, 1_000, 0.8, "slf"),
    (3_000, 1_000, 0.8, "let"), (3_000, 1_000, 0.8, "mom"),
)  # fmt: skip


def cluster(nodes: int) -> Cluster:
    """Return a cluster of equal nodes."""
    kind = NodeType("std", CORES, 64e9, BANDWIDTH, contention=Contention.MAX_MIN)
    return Cluster("bench", tuple(Node(f"n{i}", kind) for i in range(nodes)))


def with_bandwidths(jobs: Workload, machine: Cluster) -> Workload:
    """Return a workload whose jobs move data."""
    shapes = NodeShapes(machine)
    threads = np.array([(shapes.of(int(size), 0.0) or (1, CORES))[1] for size in jobs.size])
    share = np.random.default_rng(1).choice(list(CLASSES), len(jobs), p=list(CLASSES.values()))
    bandwidths = np.minimum(share * BANDWIDTH / CORES, BANDWIDTH / threads)
    walltime = np.maximum(jobs.walltime, 1.5 * jobs.run_time)
    return replace(jobs, walltime=walltime, more={**jobs.more, "volume": bandwidths * jobs.run_time})


def drawn(count: int, nodes: int, load: float) -> Workload:
    """Return jobs that would keep this share of the cores busy if none slowed down another."""
    rng = np.random.default_rng(0)
    size = rng.choice([1, 2, 4, 8, 16, 32, 64], count, p=[0.25, 0.15, 0.2, 0.15, 0.15, 0.07, 0.03])
    run = np.round(rng.lognormal(6, 1.5, count)) + 1
    submit = np.cumsum(rng.exponential((size * run).mean() / (nodes * CORES * load), count))
    return Workload("drawn", np.arange(count), submit, run, run * 3, size.astype(np.int64))


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the speed by size, and turnaround and slowdown by the bound on sharing."""
    heading("Replays on shared nodes of 16 cores: jobs/s of CPU time, the best of three")
    rows = []
    for count, nodes, load, spec in SIZES[::4] if quick else SIZES:
        machine = cluster(nodes)
        jobs = with_bandwidths(drawn(count, nodes, load), machine)
        runs = [
            replay(jobs, machine_of(machine), on_nodes_policy(spec), clock=time.process_time, contention=True)
            for _ in range(3)
        ]
        best = min(run.simulation_time for run in runs)
        waited = float((runs[0].start_time - jobs.submit_time).sum())
        queue = waited / float(runs[0].start_time.max() - jobs.submit_time[0])
        rows.append((spec, number(count), number(nodes), f"{load:.0%}", number(queue), number(count / best)))
    table(("policy", "jobs", "nodes", "load", "mean queue", "jobs/s"), rows)
    if traces is None:
        return
    heading("EASY by how much jobs may slow each other down")
    shares = list[tuple[str, ...]]()
    for name, nodes in TRACES[:1] if quick else TRACES:
        machine = cluster(nodes)
        jobs = with_bandwidths(read_swf(traces / name), machine)
        alone = 0.0
        for share in SHARES:
            summary = summarise(
                replay(jobs, machine_of(machine), on_nodes_policy(f"easy:share={share}"), contention=True)
            )
            turnaround = summary.mean_turnaround_time or 0.0
            alone = alone or turnaround
            shares.append((
                f"{name}, {nodes} nodes", share, number(turnaround), f"{turnaround / alone - 1.0:+.0%}",
                f"{summary.mean_stretch:.3f}", f"{summary.p95_stretch:.3f}", str(summary.nb_jobs_killed),
            ))  # fmt: skip
    table(("trace", "share", "turnaround s", "against none", "stretch", "95 %", "killed"), shares)
