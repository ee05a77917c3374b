"""Put a world together for a policy in Python, and run it.

Rule: which parts a world has follows from the policy and from what is known of the jobs, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...model.cluster import Cluster
from ...model.machine import Machine, MixedPowers, Powers, equal_powers
from ...model.network import Network
from ...model.workload import Workload
from ...queue_policies.interface import QueuePolicy
from ...queue_policies.numbered_resources import NumberedResources
from ...world.drive import drive
from ...world.known_run_times import ACTUAL, WALLTIME, Predictions
from ...world.machine_power import MachinePower
from ...world.network_rates import NetworkRates
from ...world.predicted_run_times import PredictedRunTimes
from ...world.replay_result import Replayed, in_order_of_submission
from ...world.rigid_rates import RigidRates
from ...world.shared_rates import SharedRates
from ...world.simulated_world import SimulatedWorld
from ...world.world_parts import Part
from .stepwise_jobs import StepwiseJobs, is_stepwise


def is_powered(policy: object) -> bool:
    """Return whether a Python policy sees the states of machines."""
    return bool(getattr(policy, "powered", False))


def parts_for(
    policy: QueuePolicy, workload: Workload, powers: Powers | MixedPowers | None, predictions: Predictions | None
) -> list[Part]:
    """Return the parts that a policy and its jobs ask for.

    Args:
        policy: the policy.
        workload: the jobs.
        powers: power of the resources.
        predictions: of the run times; None: the policy sees walltimes.

    Raises:
        ConfigError: the policy needs powers that are not known or differ.
    """
    parts = list[Part]()
    if is_powered(policy):
        began = float(workload.submit_time[0]) if len(workload) else 0.0
        parts.append(MachinePower(equal_powers(powers), began))
    if predictions is not None:
        parts.append(PredictedRunTimes(predictions))
    return parts


def replay_with_python_policy(
    workload: Workload, machine: Machine, policy: QueuePolicy, *, decision_time: float | None,
    predictions: Predictions | None, network: Callable[[], Network] | None, log_power: bool = False,
    parts: Sequence[Part] = (), clock: Callable[[], float], progress: Callable[[float], None],
) -> Replayed:  # fmt: skip
    """Replay a workload on numbered resources. O(jobs x log running), plus the time of the policy.

    Args:
        workload: the jobs.
        machine: the machine.
        policy: the policy to call.
        decision_time: see `drive`.
        predictions: of the run times; None: the policy sees walltimes.
        network: makes the network between the resources; None if run times do not depend on it.
        log_power: see `replay`.
        parts: further parts of the world.
        clock: returns seconds.
        progress: called now and then with the simulated time.

    Raises:
        ConfigError, PolicyError: see `drive` and `parts_for`.
    """
    began = clock()
    if predictions is None and network is None and not parts and is_stepwise(policy):
        loop = StepwiseJobs(workload, machine, policy)
        if decision_time == 0.0 and getattr(policy, "only_starts", False):
            loop.call_rarely()
        return drive(loop, began, decision_time=decision_time, clock=clock, progress=progress)
    rates: RigidRates = RigidRates(workload)
    if network is not None:
        rates = NetworkRates(workload, machine, network, log_power=log_power)
    name = f"{type(policy).__module__}:{type(policy).__qualname__}"
    asked_for = parts_for(policy, workload, machine.powers, predictions)
    world = SimulatedWorld(workload, policy, name, NumberedResources(machine), rates, [*asked_for, *parts])
    replayed = drive(world, began, decision_time=decision_time, clock=clock, progress=progress)
    return in_order_of_submission(replayed) if world.added else replayed


def replay_on_shared_nodes(
    workload: Workload, cluster: Cluster, policy: QueuePolicy, name: str, powers: Powers | MixedPowers | None, *,
    decision_time: float | None, run_times: str = WALLTIME, predictions: Predictions | None = None,
    network: Network | None = None, log_power: bool = False, parts: Sequence[Part] = (),
    clock: Callable[[], float], progress: Callable[[float], None],
) -> Replayed:  # fmt: skip
    """Replay a workload on nodes whose jobs slow each other down. O(nodes + running jobs) per event.

    Args:
        workload: the jobs; `more` may have `volume` and `memory`, bytes that each of its processors moves and needs.
        cluster: the nodes. A run time is that on the slowest node type.
        policy: the policy to call.
        name: its name, for messages.
        powers: power of the cores.
        decision_time: see `drive`.
        run_times: what the policy may know, WALLTIME or ACTUAL.
        predictions: of the run times; None: the policy sees `run_times`.
        network: between the nodes, for jobs whose run times depend on it.
        log_power: see `replay`.
        parts: further parts of the world.
        clock: returns seconds.
        progress: called now and then with the simulated time.

    Raises:
        ConfigError, PolicyError: see `drive` and `parts_for`.
    """
    began = clock()
    rates = SharedRates(workload, cluster, run_times, network, log_power=log_power, predicted=predictions is not None)
    nodes = rates.tables.classes["nodes"]
    asked_for = parts_for(policy, workload, powers, predictions)
    world = SimulatedWorld(
        workload, policy, name, rates.resources(powers), rates, [*asked_for, *parts], sizes=nodes * rates.threads,
        nodes=nodes, walltimes=workload.run_time if run_times == ACTUAL else workload.walltime, fits=rates.fits,
    )  # fmt: skip
    return drive(world, began, decision_time=decision_time, clock=clock, progress=progress)
