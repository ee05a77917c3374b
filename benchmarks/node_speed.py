"""Gain of queue policies that start jobs on the faster of the free nodes.

Nodes of one type differ as GPUs of one model do on five HPC systems (Sinha et al., SC 2022): by 8 % on average, by 22 %
on the system where they differ most, and outliers take up to 1.5 times as long as the median. Here run times on the
nodes are spread evenly over such a range, and every 25th node takes 1.5 times as long. A run time in a trace is that on
the slowest node. The policies are compared with themselves where they do not see the speeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pilotfish.benchmarks.shared_nodes import CORES, drawn
from pilotfish.benchmarks.show import heading, number, table
from pilotfish.formats.replays.swf import read_swf
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.interface import Decision, QueueView
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.world_parts import Part

#: Spread of the run times, and every how many nodes one is an outlier (0: no node is).
SPREADS = ((0.08, 0), (0.22, 0), (0.22, 25))
OUTLIER = 1.5
POLICIES = "easy", "strict", "conservative"
#: Trace, and nodes.
TRACES = (("lublin_256.swf.gz", 20),)
#: Jobs and nodes of a drawn workload, and its load on the slowest nodes.
DRAWN = ((5_000, 64, 0.7), (5_000, 64, 0.95))


class Blind:
    """A policy that does not see how fast nodes are."""

    def __init__(self, spec: str) -> None:
        policy: Any = parse(spec)
        self._policy: Any = uncompiled(policy, 0)

    def decide(self, now: QueueView) -> Iterable[Decision]:
        """Return the decisions of the policy."""
        decided: Iterable[Decision] = self._policy.decide(
            replace(now, _free_nodes=lambda: replace(now.free_nodes(), speeds=None))
        )
        return decided


def cluster(nodes: int, spread: float, outliers: int) -> Cluster:
    """Return nodes of one type in random order of their speeds.

    Args:
        nodes: number of nodes.
        spread: width of the range of run times, as a share of the median.
        outliers: every how many nodes one is an outlier; 0: no node is.
    """
    slowness = np.random.default_rng(0).permutation(1.0 + spread * np.linspace(-0.5, 0.5, nodes))
    if outliers:
        slowness[::outliers] = OUTLIER
    kind = NodeType("std", CORES, 64e9, 40e9, contention=Contention.NONE)
    members = [Node(f"n{i}", kind.at_pace(round(1.0 / slow, 4))) for i, slow in enumerate(slowness.tolist())]
    return Cluster("bench", tuple(members))


def measured(jobs: Workload, machine: Cluster, policy: Any) -> tuple[float, float, float]:
    """Return the mean turnaround and the mean run time of the jobs, and the makespan, seconds."""
    replayed = replay(jobs, machine_of(machine), policy, parts=(Part(),), contention=True)
    turnaround, run = replayed.finish_time - jobs.submit_time, replayed.finish_time - replayed.start_time
    return float(np.nanmean(turnaround)), float(np.nanmean(run)), float(np.nanmax(replayed.finish_time))


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print what each policy gains."""
    heading("Faster nodes first: difference to the same policy that does not see how fast nodes are")
    workloads = [(f"drawn, load {load:.0%}", drawn(count, nodes, load), nodes) for count, nodes, load in DRAWN]
    workloads += [(name, read_swf(traces / name), nodes) for name, nodes in TRACES] if traces is not None else []
    rows = []
    for name, jobs, nodes in workloads[:1] if quick else workloads:
        for spread, outliers in SPREADS:
            machine = cluster(nodes, spread, outliers)
            for spec in POLICIES[:1] if quick else POLICIES:
                sighted, blind = (measured(jobs, machine, choice) for choice in (parse(spec), Blind(spec)))
                gains = [f"{new / old - 1.0:+.1%}" for new, old in zip(sighted, blind, strict=True)]
                shown = f"{spread:.0%}" + (f", 1 in {outliers} {OUTLIER:g} times" if outliers else "")
                rows.append((f"{name}, {nodes} nodes", shown, spec, number(blind[0]), *gains))
    table(("trace", "spread", "policy", "turnaround s", "turnaround", "run time", "makespan"), rows)
