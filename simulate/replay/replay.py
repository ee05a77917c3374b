"""Replay a workload on a machine of numbered resources under a queue policy.

Rule: replays are exact, so schedules can be compared bit for bit.
The queue is ordered by submit time, then by position in the workload. At each instant all ends are processed, then all
submissions, then one scheduling pass. A job runs for the smaller of its run time and its walltime. A job that requests
more than the machine has is rejected. A job of zero run time ends at the instant at which it starts, and another pass
follows at that instant. Resources are allocated lowest numbers first. A job with dependencies is submitted when the
last of them has succeeded, or at its own submit time if that is later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from ..errors import ConfigError
from ..kernels.object_cache import load
from ..kernels.queue import tables
from ..kernels.queue.network.tables import Networked, NetworkedPowered, NetworkedReserving
from ..kernels.queue.power.tables import Powered
from ..model.cluster import Cluster
from ..model.machine import TAURUS_POWERS, Machine, MixedPowers, Powers
from ..model.network import Network
from ..model.workload import LONGEST, Workload
from ..queue_policies.interface import QueuePolicy
from ..queue_policies.policy_specs import (
    Conservative,
    Contending,
    Easy,
    OnNodes,
    Policy,
    Saving,
    Strict,
    base_of,
    needs_nodes,
)
from ..queue_policies.uncompiled import uncompiled
from ..wording import count
from ..world import network_rates, slices
from ..world.job_dependencies import stranded
from ..world.known_run_times import ACTUAL, Predictions, RunTimePredictor, with_actual_walltimes
from ..world.node_allocation import refuse_any_threads
from ..world.power_log import PowerLog
from ..world.replay_result import Replayed as Replayed
from ..world.replay_result import merge_pieces, pieces_by_job, switches_of, without_switches
from ..world.world_parts import Part
from . import requirements
from .tables import Setting, grow, tables_for
from .worlds import stepwise_jobs
from .worlds.contended import check_power_known, processors_of
from .worlds.python_policies import is_powered, replay_with_python_policy

#: Largest number of resources of a machine.
LARGEST = 2**31 - 64
ALLOWED = f"0; for easy, strict and conservative also seconds above 0, at most {LONGEST:g}"


def replay(
    workload: Workload,
    machine: int,
    policy: Policy | QueuePolicy = Easy(),
    *,
    seed: int = 0,
    groups: Sequence[tuple[int, int]] = (),
    powers: Powers | MixedPowers | None = TAURUS_POWERS,
    network: Callable[[], Network] | None = None,
    decision_time: float | None = 0.0,
    run_times: str | RunTimePredictor = "walltime",
    log_power: bool = False,
    parts: Sequence[Part] = (),
    progress: Callable[[float], None] = lambda now: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Replayed:
    """Replay a workload and return the times and resources of each job.

    O(jobs x (log running + log queue)) with informative walltimes; orders that change with time cost O(queue) per pass.

    Args:
        workload: the jobs.
        machine: number of resources, 1 to LARGEST.
        policy: the queue policy.
        seed: seed of random choices.
        groups: first and last resource of each cluster of the machine, for allocations within a cluster; empty means
            one cluster.
        powers: power of the resources, for policies that need it.
        network: makes the network between the resources, for jobs whose run times depend on it.
        decision_time: simulated seconds that each decision takes, see `world.drive`. None, for Python policies only: as
            long as the call took by `clock`.
        run_times: what the policy may know of them: `walltime`, `actual`, or a predictor. See also `is_asked`.
        log_power: keep the power over time of jobs with programs, for `energy.track`; without, they draw their mean.
        parts: further parts of the world, see `world_parts`; with them, a built-in policy decides in Python.
        progress: called now and then with the simulated time.
        clock: returns seconds, for `simulation_time`.

    Raises:
        ConfigError: `machine` is out of range, or the policy does not allow `decision_time` or `run_times`; see also
            `requirements.network_for`.
        PolicyError: see `world.make.replay_with_python_policy`.
    """
    if not 1 <= machine <= LARGEST:
        raise ConfigError("machine", "", f"{count(machine, 'resource')}", f"1 to {LARGEST}")
    if run_times == ACTUAL:
        done = replay(
            with_actual_walltimes(workload), machine, policy, seed=seed, groups=groups, powers=powers, network=network,
            decision_time=decision_time, log_power=log_power, parts=parts, progress=progress, clock=clock,
        )  # fmt: skip
        return replace(done, workload=workload)
    net = requirements.network_for(workload, machine, network)
    predictions = None if isinstance(run_times, str) else Predictions(run_times, workload)
    asked = is_asked(policy, decision_time, predicted=predictions is not None, networked=net is not None)
    asked |= bool(parts) and isinstance(policy, Policy)
    if isinstance(policy, Saving) and requirements.has_endless_limit(policy, workload):
        asked |= not isinstance(policy.base, Conservative)  # its kernel alone knows such limits
    if asked and takes_time(policy, decision_time):
        requirements.check_walltimes(workload, policy)
        window = requirements.refuse_saving(policy, workload, powers) if isinstance(policy, Saving) else None
        policy = uncompiled(cast("Easy | Strict | Conservative | Saving", policy), seed, window=window)
    if not isinstance(policy, Policy):
        whole, at_need = Machine(machine, groups, powers), None if net is None else lambda: net
        if at_need is None and network is not None and getattr(policy, "places_work", False):
            at_need = partial(requirements.checked_network, workload, machine, network)
        return replay_with_python_policy(
            workload, whole, policy, decision_time=decision_time, predictions=predictions, network=at_need,
            log_power=log_power, parts=parts, clock=clock, progress=progress,
        )  # fmt: skip
    if not takes_time(policy, decision_time):
        what = "as measured" if decision_time is None else f"{decision_time:g}"
        raise ConfigError("decision_time", "", f"{what}, for a compiled policy", ALLOWED)
    decision_s = decision_time or 0.0
    rich = decision_s > 0.0 or workload.dependencies is not None or predictions is not None
    kernel = load(str(kernel_of(policy, networked=net is not None, rich=rich)))
    setting = Setting(workload, machine, seed, net, groups, powers, decision_s, predictions is not None, log_power)
    world, log = tables_for(setting, policy), PowerLog(kept=log_power and net is not None)
    began = slice_began = clock()
    size = slices.FIRST
    while (answer := kernel(world.address, size)) != tables.DONE:
        if answer == tables.GROW:
            world = grow(world)
        else:
            log.empty(world)
            if predictions is not None:
                predictions.feed(world)
            size, slice_began = slices.next_slice(size, clock() - slice_began), clock()
            progress(float(world.clock["now"]))
    spent = clock() - began
    jobs, counts = world.jobs[: len(workload)], world.count
    left = stranded(world.unmet, len(workload))
    rejected = (jobs["state"] == tables.REJECTED) | left
    start, finish = (np.where(rejected, math.nan, jobs[name]) for name in ("start", "finish"))
    pieces = world.pieces[: counts["pieces"]].copy(), jobs["piece0"].copy(), jobs["pieces"].copy()
    switches = without_switches(start)
    if isinstance(world, Powered | NetworkedPowered):
        owner, rows = pieces_by_job(*pieces)
        pieces = merge_pieces(owner, rows["first"], rows["last"], len(jobs))
        switches = switches_of(world, rejected)
    overran = workload.overruns & ~rejected
    above_idle = None
    if isinstance(world, Networked | NetworkedReserving | NetworkedPowered):
        courses = world.courses[: len(workload)]
        overran |= (courses["killed"] == 1) & ~rejected
        above_idle = np.where(courses["program"] >= 0, courses["joules"], math.nan)
    log.empty(world)
    return Replayed(
        workload, machine, jobs["submit"].copy(), start, finish, rejected, left, overran, *pieces,
        simulation_time=spent, instants=int(counts["instants"]), above_idle=above_idle,
        power_log=log.rows(), **switches,
    )  # fmt: skip


def is_asked(policy: object, decision_time: float | None, *, predicted: bool, networked: bool) -> bool:
    """Return whether a built-in policy is replayed by its Python form, which is called at each instant.

    Args:
        policy: the queue policy.
        decision_time: seconds; None means measured.
        predicted: run times are predicted.
        networked: run times depend on where jobs run.
    """
    if isinstance(policy, Conservative | Saving):
        return predicted or bool(decision_time)
    return isinstance(policy, Easy | Strict) and predicted and (networked or bool(decision_time))


def takes_time(policy: object, decision_time: float | None) -> bool:
    """Return whether a built-in policy supports this decision time.

    Args:
        policy: a built-in policy.
        decision_time: seconds; None means measured.
    """
    known = decision_time is not None and 0.0 <= decision_time <= LONGEST
    return decision_time == 0.0 or (known and isinstance(policy, Easy | Strict | Conservative | Saving))


def kernel_of(policy: object, *, networked: bool = False, rich: bool = False) -> str | None:
    """Return the name of the compiled kernel for a policy; None if it needs none.

    Args:
        policy: the queue policy.
        networked: run times depend on where jobs run.
        rich: jobs have dependencies, run times are predicted, or decisions take time.
    """
    if not isinstance(policy, Policy) or is_asked(policy, 0.0, predicted=False, networked=networked):
        if networked:
            return network_rates.KERNEL
        return stepwise_jobs.KERNEL if stepwise_jobs.is_stepwise(policy) else None
    kind = "conservative" if isinstance(base_of(policy), Conservative) else "easy"
    if isinstance(policy, Saving) and kind == "easy":
        return "queue.power_networked" if networked else "queue.power.easy_power"
    if networked:
        return f"queue.{kind}_networked"
    return "queue.easy_rich" if rich and kind == "easy" else f"queue.{kind}"


def assumed_powers(policy: object) -> Powers | None:
    """Return the power of a machine that is only a number of processors.

    That power is not known. Only if `policy` decides by power, it is that of Grid'5000 Taurus nodes.
    """
    return TAURUS_POWERS if isinstance(policy, Saving) or is_powered(policy) else None


def refuse_machine(policy: object, machine: Machine, cluster: Cluster | None, *, contention: bool = False) -> None:
    """Check that a policy can be replayed on a machine, before anything is replayed; with the messages of a replay.

    Args:
        policy: the queue policy.
        machine: the machine.
        cluster: the cluster that the machine was made from; required for policies whose tasks contend.
        contention: jobs share its nodes under any policy.

    Raises:
        ConfigError: the policy cannot be replayed on this machine.
    """
    base = base_of(policy)
    if cluster is not None and (contention or isinstance(base, OnNodes)):
        refuse_any_threads(cluster)
    if isinstance(base, Contending) and cluster is not None:
        check_power_known(base, processors_of(cluster))
    if isinstance(policy, Saving):
        requirements.require_powers(policy, machine.powers, of_nodes=contention or needs_nodes(policy))
    if isinstance(base, Conservative) and base.local:
        tuple(machine.groups)


def refuse_jobs(policy: object, jobs: Workload, machine: Machine, cluster: Cluster | None = None) -> None:
    """Check that a policy can schedule these jobs on this machine.

    Args:
        policy: the queue policy.
        jobs: the jobs.
        machine: the machine.
        cluster: the nodes of the machine, if jobs share them; None: they do not.

    Raises:
        ConfigError: it cannot.
    """
    requirements.check_walltimes(jobs, policy)
    if cluster is None:
        requirements.network_for(jobs, machine.processors, machine.network)
    else:
        requirements.network_of_nodes(jobs, cluster, machine.network)
    if isinstance(policy, Saving):
        requirements.check_decision_count(jobs, policy)
        if policy.limit:
            policy.limit.window(jobs)


def demanded(policy: object) -> Hashable:
    """Return a key of the policy's requirements on jobs. Policies with equal keys accept the same jobs."""
    added = (policy.limit, policy.keeper) if isinstance(policy, Saving) else ()
    return requirements.kind_needing_walltimes(policy), isinstance(policy, Policy), added
