"""The setting of IRMaSim's experiments, and two small examples of its authors, whose results environment B reproduces.

Rule: the paper does not state the jobs of its batches, their cores, or how long "the first minutes" are: here a batch
is of serial jobs, drawn uniformly and submitted within two minutes.
Sources: Herrera et al., CCGrid 2021, tables III and IV, section VII; the files of the examples `save` and `spread` in
the authors' repository, whose program weighs the other tasks of a processor by 0.6 in the least speed of a task.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...simulate.arrays import Array
from ...simulate.model.cluster import Cluster, Contention, Node, NodeType, PiecewiseLinear, Power
from ...simulate.model.workload import Workload

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
#: Nodes of each frequency.
CLUSTERS = {"homogeneous": (15, 0, 0), "heterogeneous": (8, 4, 3)}
#: Seconds in which the jobs of a batch are submitted.
SUBMITTED_S = 120.0


def cluster(name: str) -> Cluster:
    """Return a cluster of section VII.

    Args:
        name: a key of CLUSTERS.
    """
    nodes = list[Node]()
    for (hertz, (core, common)), count in zip(WATTS.items(), CLUSTERS[name], strict=True):
        kind = NodeType(f"i5-{hertz / 1e9:g}", 4, 8e9, 38.4e9, 1, hertz, power=Power(0.0, core, common),
                        contention=Contention.PIECEWISE_LINEAR, piecewise=I5)  # fmt: skip
        nodes += [Node(f"{kind.name}-{i}", kind) for i in range(count)]
    return Cluster("lab", tuple(nodes))


def independent(cluster: Cluster) -> Cluster:
    """Return a cluster as the paper's baseline sees it: cores do not contend, and have no power in common."""
    kinds = {
        kind: replace(
            kind, contention=Contention.NONE, piecewise=None,
            power=None if kind.power is None else Power(kind.power.idle, kind.power.per_core),
        )
        for kind in cluster.types
    }  # fmt: skip
    return Cluster(cluster.name, tuple(replace(node, type=kinds[node.type]) for node in cluster.nodes))


def batch(jobs: int, name: str, seed: int) -> Workload:
    """Return NPB jobs drawn uniformly and submitted within two minutes.

    Args:
        jobs: number of jobs.
        name: the cluster, a key of CLUSTERS; run times are those on its slowest nodes.
        seed: of the draws.
    """
    slowest = min(hertz for hertz, count in zip(WATTS, CLUSTERS[name], strict=True) if count)
    rng = np.random.default_rng(seed)
    names = np.array(list(NPB), object)[rng.integers(0, len(NPB), jobs)]
    numbers = np.array([NPB[name] for name in names])
    return Workload(
        f"npb-{jobs}", np.arange(1, jobs + 1), np.sort(rng.uniform(0.0, SUBMITTED_S, jobs)),
        numbers[:, 0] / numbers[:, 1] / slowest, np.full(jobs, np.inf), np.ones(jobs, np.int64),
        more={"profile": names, "volume": numbers[:, 2]},
    )  # fmt: skip


def save() -> tuple[Workload, Cluster]:
    """Return the example in which the slow node saves energy: eight jobs in two bursts, two nodes."""
    bursts = np.concatenate([np.arange(4) * 0.01, 18.04 + np.arange(4) * 0.01])
    nodes = (
        Node("fast", _example(3.4e9, 3.4e9, (5.59316, 6.14211), 32e9)),
        Node("slow", _example(1.5e9, 1.5e9, (1.59482, 2.31082), 32e9)),
    )
    return _jobs("save", bursts, 21e9 / 1.5e9, 500e6), Cluster("save", nodes)


def spread() -> tuple[Workload, Cluster]:
    """Return the example in which tasks contend unless they spread: eight jobs, eight nodes."""
    kind = _example(1e9, 4e9, (5.59316, 6.14211), 1e18)
    nodes = tuple(Node(f"n{i}", kind) for i in range(8))
    return _jobs("spread", np.arange(8) * 0.01, 21e9 / 4e9, 1e9), Cluster("spread", nodes)


#: The examples by name.
EXAMPLES = {"save": save, "spread": spread}


def unused_joules(name: str, core: str) -> float:
    """Return the joules of processors until their first task, which the authors' program does not count.

    Args:
        name: a key of EXAMPLES.
        core: the rule for cores of the whole run, one of the two that the example compares.
    """
    fast, slow = (0.05 * watts for watts in (6.14211, 2.31082))
    return {
        ("save", "peak_gflops"): 35.3424 * slow,
        ("save", "peak_power"): 18.04 * fast,
        ("spread", "high_core"): sum(0.01 * node for node in range(8)) * fast,
        ("spread", "peak_gflops"): 6 * 14.7483 * fast + 0.04 * fast,
    }[name, core]


def _example(hertz: float, speed: float, watts: tuple[float, float], memory: float) -> NodeType:
    """Return a node type of the examples.

    Args:
        hertz: frequency.
        speed: operations per second of a core.
        watts: of a core, and common to the processor.
        memory: bytes.
    """
    constants = PiecewiseLinear(b=-1.85e-5, c=32000.0, da=1.75, db=2000.0, dc=50000.0, dd=6000.0, d_weight=0.6)
    power = Power(0.0, *watts, idle_uncore=0.05)
    return NodeType(
        f"n{hertz / 1e9:g}", 4, memory, 32e9, 1, hertz, speed, Contention.PIECEWISE_LINEAR, power=power,
        piecewise=constants,
    )  # fmt: skip


def _jobs(name: str, submit: Array, run_s: float, memory: float) -> Workload:
    """Return eight equal jobs of one task that moves 1 TB."""
    count = len(submit)
    more = {"volume": np.full(count, 1e12), "memory": np.full(count, memory), "asked": np.full(count, 5.0)}
    run, unlimited = np.full(count, run_s), np.full(count, np.inf)
    return Workload(name, np.arange(count), submit, run, unlimited, np.ones(count, np.int64), more=more)
