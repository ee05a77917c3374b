"""Environment A on a site's own nodes, and what a net needs to know of the jobs there.

Rule: the first half of a trace trains, so that the second can judge. Jobs that fit on no single node are left out, and
run times are those on the slowest node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.arrays import Array
from ...simulate.errors import ConfigError
from ...simulate.learned.packed_pairs import PackedPairs
from ...simulate.learned.pair_heads import PairChooser
from ...simulate.learned.pair_queue import NetworkPairQueue
from ...simulate.model.cluster import Cluster, Contention, Node, NodeType
from ...simulate.model.machine import machine_of
from ...simulate.model.workload import Workload
from ...simulate.queue_policies.interface import QueuePolicy
from ...simulate.queue_policies.policy_facts import PolicySpec
from ...simulate.queue_policies.policy_specs import parse
from ...simulate.replay.replay import Replayed, replay
from ...simulate.wording import count
from .pairs import PairEnvironment, PairNode, PairOptions

#: Jobs of an episode at most and at least, and episodes that an epoch plays and that judge a training.
MOST_JOBS, LEAST_JOBS, COPIES, JUDGED = 1024, 100, 5, 20
#: Rivals that may decide in place of a model.
BASELINES = ("easy", "easy:order=sjf", "easy:order=smallest")
#: A job that has waited for so many longest waits under the baseline goes first.
WAIT_FACTOR = 1.25
#: Jobs of the training, at most, on which a model is compared with its baseline: half a millisecond each.
COMPARED = 10_000
#: Run times below count as this much, seconds; decisions between two at which pairs are looked at; quantiles of jobs.
_TAU_S, _EACH, _QUANTILES = 10.0, 16, 33


def usable_jobs(trace: Workload, nodes: Sequence[PairNode]) -> Workload:
    """Return the jobs that fit on one node and have a run time and a requested time."""
    is_usable = (trace.size <= max(node.processors for node in nodes)) & np.isfinite(trace.walltime)
    return trace.take(is_usable & (trace.walltime > 0.0) & np.isfinite(trace.run_time) & (trace.run_time > 0.0))


def episode_of(jobs: Workload) -> int:
    """Return the jobs of an episode. Raises ConfigError: there are too few."""
    episode = min(MOST_JOBS, len(jobs) // 4)
    if episode < LEAST_JOBS:
        problem = f"{count(len(jobs), 'job')} that fit on one node"
        raise ConfigError(jobs.name, "", problem, f"at least {4 * LEAST_JOBS} of them")
    return episode


def training_worlds(
    jobs: Workload, nodes: Sequence[PairNode], objective: str
) -> tuple[PairEnvironment, PairEnvironment]:  # fmt: skip
    """Return the environment that a training plays, and the one that judges it, both in the first half of the jobs.

    Args:
        jobs: of `usable_jobs`.
        nodes: of the site.
        objective: as of PairOptions.

    Raises:
        ConfigError: there are too few jobs.
    """
    options = PairOptions(objective, episode=episode_of(jobs))
    starts = np.arange(len(jobs) // 2 - options.episode + 1)
    world, judging = (
        PairEnvironment([jobs], nodes, options, copies=copies, starts=starts) for copies in (COPIES, JUDGED)
    )
    return world, judging


@dataclass(frozen=True, slots=True)
class Net:
    """The parts of a net that follow from a training.

    Args:
        seen: as of `PairModel`.
        max_wait: seconds.
        baseline: SPEC of the best of BASELINES on the jobs.
        value: mean cost of the first jobs, at most COMPARED of them, under the model without a net.
        baseline_value: the same under the baseline.
    """

    seen: dict[str, tuple[float, ...]]
    max_wait: float
    baseline: str
    value: float
    baseline_value: float


def net_of(
    jobs: Workload, nodes: Sequence[PairNode], policy: NetworkPairQueue, chooser: PairChooser, judging: PairEnvironment
) -> Net:
    """Return the net of a model.

    Args:
        jobs: that it was trained on.
        nodes: of the machine.
        policy: the model without a net.
        chooser: its networks.
        judging: plays what judged the training.
    """
    objective = judging.options.objective
    costs = dict[str, tuple[float, float]]()
    for spec in BASELINES:
        replayed = replayed_by(jobs, nodes, parse(spec))
        waits = replayed.start_time - replayed.workload.submit_time
        costs[spec] = float(cost_of(replayed, objective).mean()), float(waits.max())
    baseline = min(costs, key=lambda spec: costs[spec][0])
    shares = np.linspace(0.0, 1.0, _QUANTILES)
    quantiles = {name: np.quantile(column, shares) for name, column in (("limit", jobs.walltime), ("size", jobs.size))}
    quantiles["usual"] = _usual(chooser, judging)
    longest = max(WAIT_FACTOR * costs[baseline][1], float(jobs.walltime.max()))
    first = jobs.take(np.arange(min(len(jobs), COMPARED)))
    value, baseline_value = (
        float(cost_of(replayed_by(first, nodes, one), objective).mean()) for one in (policy, parse(baseline))
    )
    seen = {name: tuple(values.tolist()) for name, values in quantiles.items()}
    return Net(seen, longest, baseline, value, baseline_value)


def replayed_by(jobs: Workload, nodes: Sequence[PairNode], policy: PolicySpec | QueuePolicy) -> Replayed:
    """Replay jobs on nodes that nothing contends for, under a policy."""
    return replay(jobs, machine_of(cluster_of(nodes)), policy, contention=True)


def cluster_of(nodes: Sequence[PairNode]) -> Cluster:
    """Return nodes that nothing contends for, the slowest at 1 GHz."""
    slowest = min(node.speed for node in nodes)
    kinds = {
        node: NodeType(
            f"{node.processors}x{node.speed:g}", node.processors, 1e15, 1e15, frequency=1e9 * node.speed / slowest,
            contention=Contention.NONE,
        )
        for node in nodes
    }  # fmt: skip
    return Cluster("nodes", tuple(Node(f"n{number}", kinds[node]) for number, node in enumerate(nodes)))


def cost_of(replayed: Replayed, objective: str) -> Array:
    """Return what each job cost, in the measure of environment A [jobs]."""
    jobs = replayed.workload
    wait = replayed.start_time - jobs.submit_time
    if objective == "wait":
        return wait
    turnaround = replayed.finish_time - jobs.submit_time
    if objective == "sld":
        return turnaround / jobs.walltime
    bounded: Array = np.maximum(turnaround / np.maximum(jobs.walltime, _TAU_S), 1.0)
    return bounded


def _usual(chooser: PairChooser, judging: PairEnvironment) -> Array:
    """Return the medians of the columns of pairs that were allowed while a model played [columns]."""
    judging.seed(0)
    rows = list[Array]()
    for step in range(judging.options.episode):
        if step % _EACH == 0:
            rows.append(PackedPairs.of(judging.mask, judging.jobs, judging.nodes).rows)
        judging.step(chooser.actions(judging.mask, judging.jobs, judging.nodes))
    medians: Array = np.median(np.concatenate(rows), axis=0)
    return medians
