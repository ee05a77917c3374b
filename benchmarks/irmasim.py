"""Reproduce IRMaSim's validation (Herrera et al., CCGrid 2021, VII-A); measure the speed of replays with contention.

Batches of serial NPB jobs on 15 nodes of 4 cores, with memory contention, and as a pool of independent cores
(baseline).

Rule: the paper does not state its five batches, see `learning.environments.irmasim`. Here they have 100 to 500 jobs,
with new batches for each seed; figures are means over the seeds for each resource rule. Errors of the baseline are
relative to the run with contention, which in the paper is within 3 % (homogeneous) and 5 % (heterogeneous) of the real
cluster in makespan, and 10 % in energy.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.learning.environments import irmasim as setting
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Nodes, Pairs
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.replay.worlds.contended import ContendedReplay

#: Figures of the paper: errors of the baseline, %; watts of the cluster with and without contention, where stated.
PAPER = {"homogeneous": ("37", "47", "440", "320"), "heterogeneous": ("30", "45", "", "")}
BATCHES = (100, 200, 300, 400, 500)
POLICIES = (Pairs("first", "high_core"), Pairs("first", "high_gflops"), Pairs("first", "random"))
FAST = (Pairs("first", "high_gflops"), Pairs("shortest", "low_power"), Pairs("random", "random"), Nodes())


def _contended(jobs: Workload, cluster: Cluster, policy: Any, **settings: Any) -> ContendedReplay:
    """Return the replay of a policy whose tasks contend."""
    replayed = replay(jobs, machine_of(cluster), policy, **settings)
    assert isinstance(replayed, ContendedReplay)
    return replayed


def compare(name: str, policy: Pairs, jobs: int, seed: int) -> list[float]:
    """Return makespan (s) with and without contention and the error of the latter (%), the same for energy (kJ), and
    watts."""
    machines = setting.cluster(name), setting.independent(setting.cluster(name))
    runs = [_contended(setting.batch(jobs, name, seed), machine, policy, seed=seed) for machine in machines]
    real, ideal = (float(run.finish_time.max() - run.workload.submit_time[0]) for run in runs)
    joules, least = (run.joules or 0.0 for run in runs)
    energies = joules / 1e3, least / 1e3, 100 * (joules - least) / joules
    return [real, ideal, 100 * (real - ideal) / real, *energies, joules / real, least / ideal]


def measure(quick: bool) -> None:
    """Print the tables."""
    heading("IRMaSim's validation: serial NPB jobs, 15 nodes of 4 cores, with contention and without")
    for name in setting.CLUSTERS:
        rows = []
        for policy in POLICIES[:1] if quick else POLICIES:
            means = [
                np.mean([compare(name, policy, jobs, seed) for seed in range(5 if quick else 20)], axis=0)
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
