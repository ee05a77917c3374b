"""Put a world together for a policy in Python, and run it: the general path, which replays what no fast path does.

Rule: which parts a world has follows from the policy and from what is known of the jobs, here and nowhere else. On
nodes that jobs share, the policy sees and decides what it would in a plan (`node_resources`); the fluid simulation of a
plan carries it out. So a job has cores of its own on each of its nodes, and shares the memory of these nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from ...model.machine import equal_powers
from ...model.network import Network
from ...queue_policies.interface import QueuePolicy
from ...queue_policies.numbered_resources import NumberedResources
from ...queue_policies.policy_calls import policy_name
from ...queue_policies.policy_facts import is_built_in, spec_of
from ...queue_policies.policy_specs import text_of
from ...world.drive import drive
from ...world.known_run_times import ACTUAL, PREDICTED, WALLTIME
from ...world.machine_power import MachinePower
from ...world.network_rates import NetworkRates
from ...world.predicted_run_times import PredictedRunTimes
from ...world.replay_result import Replayed, in_order_of_submission
from ...world.rigid_rates import RigidRates
from ...world.shared_rates import SharedRates
from ...world.simulated_world import SimulatedWorld
from ...world.world_parts import Part
from ..engines import Engine
from ..replay_case import ReplayCase
from ..requirements import checked_network, in_python, network_for, network_of_nodes


def run(case: ReplayCase, engine: Engine) -> Replayed:
    """Replay a case under a policy in Python, called at each instant.

    O(jobs x log running) on numbered resources, O(nodes + running jobs) per event on shared nodes, plus the time of the
    policy.

    Raises:
        ConfigError: a power, a run time or a walltime is not known, see `requirements`.
        PolicyError: see `drive`.
    """
    began, options = case.options.clock(), case.options
    policy = in_python(case)
    world = _on_nodes(case, policy) if case.shared else _on_numbered(case, policy)
    replayed = drive(world, began, decision_time=options.decision_time, clock=options.clock, progress=options.progress)
    return in_order_of_submission(replayed) if world.added else replayed


def _on_numbered(case: ReplayCase, policy: QueuePolicy) -> SimulatedWorld:
    workload, machine, network = case.jobs, replace(case.machine, network=None), case.machine.network
    net, at_need = network_for(workload, case.machine), None
    if net is not None:
        at_need = _the(net)
    elif network is not None and getattr(policy, "places_work", False):
        at_need = partial(checked_network, workload, machine.processors, network)
    rates: RigidRates = RigidRates(workload)
    if at_need is not None:
        rates = NetworkRates(workload, machine, at_need, log_power=case.options.log_power)
    return SimulatedWorld(
        workload, policy, policy_name(policy), NumberedResources(machine), rates, _parts(case, policy)
    )


def _the(network: Network) -> Callable[[], Network]:
    return lambda: network


def _on_nodes(case: ReplayCase, policy: QueuePolicy) -> SimulatedWorld:
    """Return the world of a workload whose `more` may have `volume` and `memory`.

    Both are bytes, that each processor of a job moves and needs. A run time is that on the slowest node type.
    """
    workload, cluster, knows = case.jobs, case.cluster, case.options.knows
    network, predicted = network_of_nodes(workload, cluster, case.machine.network), knows == PREDICTED
    rates = SharedRates(
        workload,
        cluster,
        WALLTIME if predicted else knows,
        network,
        log_power=case.options.log_power,
        predicted=predicted,
        oversubscribes=spec_of(case.policy).plain.family == "mapping",
    )
    nodes = rates.tables.classes["nodes"]
    return SimulatedWorld(
        workload, policy, text_of(case.policy) if is_built_in(case.policy) else policy_name(policy),
        rates.resources(case.machine.powers), rates, _parts(case, policy), sizes=nodes * rates.threads, nodes=nodes,
        walltimes=workload.run_time if knows == ACTUAL else workload.walltime, fits=rates.fits,
    )  # fmt: skip


def _parts(case: ReplayCase, policy: QueuePolicy) -> list[Part]:
    """Return the parts that a policy and its jobs need, and the further ones. Raises ConfigError."""
    parts, jobs, predictions = list[Part](), case.jobs, case.predictions()
    if getattr(policy, "powered", False):
        parts.append(MachinePower(equal_powers(case.machine.powers), float(jobs.submit_time[0]) if len(jobs) else 0.0))
    if predictions is not None:
        parts.append(PredictedRunTimes(predictions))
    return [*parts, *case.options.parts]
