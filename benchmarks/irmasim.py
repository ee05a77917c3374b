"""Reproduce IRMaSim's validation (Herrera et al., CCGrid 2021, VII-A); measure the speed of replays with contention.

Batches of serial NPB jobs on 15 nodes of 4 cores, with memory contention, and as a pool of independent cores
(baseline).

Rule: the paper does not state the number of jobs of its five batches, the jobs, or their cores. Here batches have 100
to 500 jobs, drawn uniformly and submitted within two minutes, with new batches for each seed; figures are means over
the seeds for each resource rule. Errors of the baseline are relative to the run with contention, which in the paper is
within 3 % (homogeneous) and 5 % (heterogeneous) of the real cluster in makespan, and 10 % in energy.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType, PiecewiseLinear, Power
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Nodes, Pairs
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.worlds.contended import ContendedReplay

#: Table IV: instructions, IPC, bytes moved.
NPB = {
    "bt.C": (633.50e10, 3.06, 5.17e12),
    "cg.C": (60.31e10, 1.10, 7.30e12),
    "ep.C": (80.94e10, 1.16, 0.21e12),
    "is.C": (6.43e10, 0.95, 0.07e12),
    "lu.C": (370.25e10, 2.20, 8.70e12),
    "sp.C": (356.10e10, 2.74, 9.60e12),
    "ua.C": (312.57e10, 2.30, 4.32e12),
}
#: Table III: frequency -> watts of a core, and common watts of a processor.
WATTS = {3.4e9: (6.14, 5.59), 2.5e9: (3.51, 3.20), 1.7e9: (2.31, 1.59)}
I5 = PiecewiseLinear(b=-1.85e-5, c=32000.0, da=1.75, db=3500.0, dc=45000.0, dd=3000.0)
CLUSTERS = {"homogeneous": (15, 0, 0), "heterogeneous": (8, 4, 3)}
#: Figures of the paper: errors of the baseline, %; watts of the cluster with and without contention, where stated.
PAPER = {"homogeneous": ("37", "47", "440", "320"), "heterogeneous": ("30", "45", "", "")}
BATCHES = (100, 200, 300, 400, 500)
POLICIES = (Pairs("first", "high_core"), Pairs("first", "high_gflops"), Pairs("first", "random"))
FAST = (Pairs("first", "high_gflops"), Pairs("shortest", "low_power"), Pairs("random", "random"), Nodes())


def cluster(counts: tuple[int, ...], *, contended: bool = True) -> Cluster:
    """Return a cluster with a number of nodes of each frequency.

    Args:
        counts: nodes of each frequency of WATTS.
        contended: cores contend for memory and share common power; if not, they are independent.
    """
    nodes = list[Node]()
    for (hertz, (core, common)), count in zip(WATTS.items(), counts, strict=True):
        kind = NodeType(f"i5-{hertz / 1e9:g}", 4, 8e9, 38.4e9, 1, hertz, power=Power(0.0, core, common),
                        contention=Contention.PIECEWISE_LINEAR, piecewise=I5)  # fmt: skip
        if not contended:
            kind = replace(kind, contention=Contention.NONE, piecewise=None, power=Power(0.0, core))
        nodes += [Node(f"{kind.name}-{i}", kind) for i in range(count)]
    return Cluster("lab", tuple(nodes))


def batch(jobs: int, slowest: float, seed: int) -> Workload:
    """Return NPB jobs drawn uniformly and submitted within two minutes.

    Args:
        jobs: number of jobs.
        slowest: frequency of the slowest nodes, Hz.
        seed: seed of the random choices.
    """
    rng = np.random.default_rng(seed)
    names = np.array(list(NPB), object)[rng.integers(0, len(NPB), jobs)]
    numbers = np.array([NPB[name] for name in names])
    return Workload(
        f"npb-{jobs}", np.arange(1, jobs + 1), np.sort(rng.uniform(0.0, 120.0, jobs)),
        numbers[:, 0] / numbers[:, 1] / slowest, np.full(jobs, np.inf), np.ones(jobs, np.int64),
        more={"profile": names, "volume": numbers[:, 2]},
    )  # fmt: skip


def _contended(jobs: Workload, cluster: Cluster, policy: Any, **settings: Any) -> ContendedReplay:
    """Return the replay of a policy whose tasks contend."""
    replayed = replay(jobs, machine_of(cluster), policy, **settings)
    assert isinstance(replayed, ContendedReplay)
    return replayed


def compare(counts: tuple[int, ...], policy: Pairs, jobs: int, seed: int) -> list[float]:
    """Return makespan (s) with and without contention and the error of the latter (%), the same for energy (kJ), and
    watts."""
    slowest = min(hertz for hertz, count in zip(WATTS, counts, strict=True) if count)
    machines = cluster(counts), cluster(counts, contended=False)
    runs = [_contended(batch(jobs, slowest, seed), machine, policy, seed=seed) for machine in machines]
    real, ideal = (float(run.finish_time.max() - run.workload.submit_time[0]) for run in runs)
    joules, least = (run.joules or 0.0 for run in runs)
    energies = joules / 1e3, least / 1e3, 100 * (joules - least) / joules
    return [real, ideal, 100 * (real - ideal) / real, *energies, joules / real, least / ideal]


def measure(quick: bool) -> None:
    """Print the tables."""
    heading("IRMaSim's validation: serial NPB jobs, 15 nodes of 4 cores, with contention and without")
    for name, counts in CLUSTERS.items():
        rows = []
        for policy in POLICIES[:1] if quick else POLICIES:
            means = [
                np.mean([compare(counts, policy, jobs, seed) for seed in range(5 if quick else 20)], axis=0)
                for jobs in BATCHES
            ]
            for jobs, mean in zip(BATCHES, means, strict=True):
                rows.append([f"{policy.resource}, {jobs} jobs", *map(number, mean)])
            over = map(number, np.mean(means, axis=0)[[2, 5]])
            rows.append([f"{policy.resource}, mean", "", "", next(over), "", "", next(over), "", ""])
        makespan, energy, *watts = PAPER[name]
        rows.append(["the paper", "", "", makespan, "", "", energy, *watts])
        columns = ("makespan, s", "without", "off by, %", "energy, kJ", "without", "off by, %", "W", "without")
        table((name, *columns), rows)
    _speed(20_000 if quick else 100_000)


def _speed(jobs: int) -> None:
    """Print jobs/s in the engine."""
    heading("Replays with max-min contention on nodes of 4 cores; jobs/s in the engine, best of 5")
    rng, rows = np.random.default_rng(0), []
    kind = NodeType("i5", 4, 8e9, 38.4e9, frequency=3.4e9, power=Power(20.0, 6.14, 5.59))
    for nodes in (15, 250):
        run = rng.uniform(10.0, 1000.0, jobs)
        submit = np.cumsum(rng.exponential(run.mean() / (3.0 * nodes), jobs))
        trace = Workload("made", np.arange(jobs), submit, run, np.full(jobs, np.inf), np.ones(jobs, np.int64),
                         more={"volume": run * rng.uniform(0.0, 20e9, jobs)})  # fmt: skip
        machine = Cluster("c", tuple(Node(f"n{i}", kind) for i in range(nodes)))
        for policy in FAST:
            runs = (_contended(trace, machine, policy, clock=time.perf_counter) for _ in range(5))
            text = f"{policy.job}, {policy.resource if isinstance(policy, Pairs) else policy.rule}"
            rows.append([text, nodes, number(jobs / min(run.simulation_time for run in runs))])
    table((f"{jobs:,} jobs", "nodes", "jobs/s"), rows)
