"""Replay a workload under a queue policy, on nodes whose jobs slow each other down.

Rule: the policy sees and decides what it would in a plan (`node_resources`); the fluid simulation of a plan carries it
out. So a job has cores of its own on each of its nodes, and shares the memory of these nodes with other jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...model.cluster import Cluster
from ...model.machine import machine_of
from ...model.network import Network
from ...model.workload import Workload
from ...queue_policies.interface import QueuePolicy
from ...queue_policies.policy_specs import Conservative, Contending, Easy, Saving, Strict, text_of
from ...queue_policies.uncompiled import uncompiled
from ...world.known_run_times import WALLTIME, Predictions, RunTimePredictor
from ...world.replay_result import Replayed
from ...world.world_parts import Part
from ..requirements import refuse_saving
from .python_policies import replay_on_shared_nodes


def replay_queue_on_nodes(
    workload: Workload,
    cluster: Cluster,
    policy: Easy | Strict | Conservative | Saving | Contending | QueuePolicy,
    *,
    run_times: str | RunTimePredictor = WALLTIME,
    seed: int = 0,
    decision_time: float | None = 0.0,
    network: Network | None = None,
    log_power: bool = False,
    parts: Sequence[Part] = (),
    progress: Callable[[float], None] = lambda now: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Replayed:
    """Replay a workload on nodes with contention. O(nodes + running jobs) per event, plus the time of the policy.

    Args:
        workload: the jobs; `more` may have `volume` and `memory`, bytes that each of its processors moves and needs.
        cluster: the nodes. A run time is that on the slowest node type.
        policy: the queue policy.
        run_times: what the policy may know, WALLTIME, ACTUAL, or a predictor.
        seed: of a random order.
        decision_time: see `world.drive`.
        network: between the nodes, for jobs whose run times depend on it.
        log_power: see `replay.replay`.
        parts: further parts of the world, see `world_parts`.
        progress: called now and then with the simulated time.
        clock: returns seconds, for `simulation_time`.

    Raises:
        ConfigError: a run time, a walltime or a power is not known, or the nodes take any number of threads.
        PolicyError: the policy raised an exception, made an invalid decision, or left jobs waiting forever.
    """
    powers = machine_of(cluster).powers
    if isinstance(policy, Easy | Strict | Conservative | Saving | Contending):
        window = refuse_saving(policy, workload, powers, of_nodes=True) if isinstance(policy, Saving) else None
        name, decides = text_of(policy), uncompiled(policy, seed, window=window)
    else:
        name, decides = f"{type(policy).__module__}:{type(policy).__qualname__}", policy
    known = run_times if isinstance(run_times, str) else WALLTIME
    predictions = None if isinstance(run_times, str) else Predictions(run_times, workload)
    return replay_on_shared_nodes(
        workload, cluster, decides, name, powers, decision_time=decision_time, run_times=known, predictions=predictions,
        network=network, log_power=log_power, parts=parts, clock=clock, progress=progress,
    )  # fmt: skip
