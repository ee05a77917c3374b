"""The policies that a learned choice of jobs and nodes is compared with, on the nodes that it was trained on.

Rule: all sides replay the same jobs on the same nodes, in the replay by which a service finds out that a model makes
jobs wait longer. A model is judged with its net, as a service would use it. A rule has the same mask, the same view of
the queue and the same moments of decision as the model. Costs are those that the model was trained to lower: slowdowns
are relative to the requested time, because a run time depends on the chosen node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from ..simulate.learned.pair_network import PairSight
from ..simulate.learned.pair_queue import PairQueue
from ..simulate.model.machine import machine_of
from ..simulate.queue_policies.interface import QueuePolicy
from ..simulate.queue_policies.order_ranks import ORDERS
from ..simulate.queue_policies.policy_facts import PolicySpec
from ..simulate.queue_policies.policy_specs import Easy
from ..simulate.replay.replay import replay
from .environments.pair_rules import PairRule, RuleChooser, masked_rules
from .environments.pairs import OBJECTIVES, PairNode
from .environments.site_pairs import cluster_of, cost_of
from .traces import Trace

#: Makes a policy for one replay.
MakePolicy = Callable[[], PolicySpec | QueuePolicy]


def easy_orders() -> dict[str, MakePolicy]:
    """Return EASY backfilling in each order but the random one, by name."""
    return {f"easy:order={name}": partial(Easy, order=name) for name in ORDERS if name != "random"}


def rules_with_mask(sight: PairSight, nodes: Sequence[PairNode]) -> dict[str, MakePolicy]:
    """Return the rules that choose among all pairs that are allowed, by name; those that draw jobs are left out.

    Args:
        sight: what the model sees of jobs, and when it decides.
        nodes: of the machine.
    """
    kinds = [(node.processors, node.speed) for node in nodes]

    def make(rule: PairRule) -> PairQueue:
        return PairQueue(rule.name, RuleChooser(rule), sight, kinds)

    return {rule.name: partial(make, rule) for rule in masked_rules() if rule.job != "random"}


def numbers_on_nodes(trace: Trace, make: MakePolicy, nodes: Sequence[PairNode]) -> dict[str, float]:
    """Return what the jobs that count cost on average, by objective, and their longest wait in seconds.

    Args:
        trace: jobs that fit on one node each.
        make: returns the policy.
        nodes: of the machine.
    """
    replayed = replay(trace.jobs, machine_of(cluster_of(nodes)), make(), contention=True)
    counts = np.ones(len(trace.jobs), bool) if trace.counts is None else trace.counts
    costs = {name: cost_of(replayed, name)[counts] for name in OBJECTIVES}
    return {name: float(cost.mean()) for name, cost in costs.items()} | {"longest_wait": float(costs["wait"].max())}
