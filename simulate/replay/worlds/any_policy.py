"""Replay a workload under any policy: the world follows from the policy, and from whether jobs contend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ...model.cluster import Cluster
from ...model.machine import Machine
from ...model.workload import Workload
from ...queue_policies.interface import QueuePolicy
from ...queue_policies.policy_specs import Contending, Easy, OnNodes, Placing, Policy, Strict, base_of, needs_nodes
from ...world.known_run_times import ACTUAL, PREDICTED, WALLTIME, RunTimePredictor, with_actual_walltimes
from ...world.node_allocation import refuse_unknown_times
from ..replay import Replayed, replay
from ..requirements import limit_for, network_of_nodes
from .contended import replay_contended
from .shared_node_queue import replay_queue_on_nodes
from .shared_nodes import is_compiled, replay_on_nodes


def replay_under(
    policy: Policy | Placing | QueuePolicy,
    jobs: Workload,
    machine: Machine,
    cluster: Cluster | None = None,
    *,
    seed: int = 0,
    decision_time: float | None = 0.0,
    contention: bool = False,
    run_times: str | RunTimePredictor = WALLTIME,
    log_power: bool = False,
    progress: Callable[[float], None] = lambda now: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Replayed:
    """Replay a workload.

    Args:
        policy: what decides.
        jobs: the workload.
        machine: its resources, and the network that joins them, or the nodes of the cluster.
        cluster: the nodes that the machine was made from; required if the policy `needs_nodes`, and with `contention`.
        seed: of random choices.
        decision_time: see `replay`.
        contention: jobs on one node slow each other down, also under a queue policy.
        run_times: what the policy knows, see `replay`.
        log_power: see `replay`.
        progress: called now and then with the simulated time.
        clock: returns seconds, for `simulation_time`.

    Raises:
        ConfigError, PolicyError: see the functions that this one chooses among.
    """
    show: dict[str, Any] = {"progress": progress, "clock": clock}
    base, communicate = base_of(policy), jobs.programs is not None
    if isinstance(base, OnNodes) or (isinstance(base, Contending) and not communicate):
        policy, show["limit"] = base, limit_for(policy, jobs, machine)
    if isinstance(policy, Contending) and not communicate:
        assert cluster is not None
        return replay_contended(
            jobs, cluster, policy, seed=seed, run_times=run_times, decision_time=decision_time, **show
        )
    known = run_times if isinstance(run_times, str) else PREDICTED
    show["log_power"] = log_power
    if contention or needs_nodes(policy):
        assert cluster is not None
        show["network"] = network_of_nodes(jobs, cluster, machine.network)
        refuse_times(policy, jobs, known, decision_time, contention=contention)
        if _is_compiled(policy, jobs, known, decision_time):
            return replay_on_nodes(
                jobs, cluster, cast("OnNodes | Easy | Strict", policy), run_times=run_times, seed=seed,
                decision_time=decision_time, **show,
            )  # fmt: skip
        assert not isinstance(policy, OnNodes), "it is compiled"
        return replay_queue_on_nodes(
            jobs, cluster, policy, run_times=run_times, seed=seed, decision_time=decision_time, **show
        )
    refuse_times(policy, jobs, known, decision_time, contention=contention)
    assert not isinstance(policy, Placing), "it needs nodes"
    return replay(
        jobs, machine.processors, policy, seed=seed, groups=machine.groups,
        powers=machine.powers, network=machine.network, decision_time=decision_time, run_times=run_times,
        **show,
    )  # fmt: skip


def refuse_times(
    policy: object, jobs: Workload, run_times: str, decision_time: float | None, *, contention: bool = False
) -> None:
    """Refuse jobs without the times that the world of this policy needs.

    Args:
        policy: what decides.
        jobs: the workload.
        run_times: what the policy knows, one of `known_run_times.RUNTIMES`.
        decision_time: see `replay`.
        contention: jobs on one node slow each other down, also under a queue policy.

    Raises:
        ConfigError: a run time or a walltime is not known.
    """
    communicate, base = jobs.programs is not None, base_of(policy)
    if run_times == ACTUAL:
        with_actual_walltimes(jobs)  # raises
    if not (contention or needs_nodes(policy)) or (isinstance(base, Contending) and not communicate):
        return
    compiled = _is_compiled(base if isinstance(base, OnNodes) else policy, jobs, run_times, decision_time)
    blind = compiled and not (isinstance(base, OnNodes) and base.looks_ahead)
    refuse_unknown_times(jobs, walltimes=run_times != ACTUAL and not blind, networked=communicate)


def _is_compiled(policy: object, jobs: Workload, run_times: str, decision_time: float | None) -> bool:
    """Return whether a policy on shared nodes is replayed by `replay_on_nodes`."""
    at_once = run_times != PREDICTED and decision_time == 0.0 and is_compiled(policy, jobs)
    return at_once or isinstance(policy, OnNodes)
