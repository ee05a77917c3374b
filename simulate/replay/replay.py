"""Replay a workload on a machine under a policy.

Rule: replays are exact, so schedules can be compared bit for bit.
The queue is ordered by submit time, then by position in the workload. At each instant all ends are processed, then all
submissions, then one scheduling pass. A job runs for the smaller of its run time and its walltime. A job that requests
more than the machine has is rejected. A job of zero run time ends at the instant at which it starts, and another pass
follows at that instant. Resources are allocated lowest numbers first. A job with dependencies is submitted when the
last of them has succeeded, or at its own submit time if that is later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

from ..errors import ConfigError
from ..model.machine import TAURUS_POWERS, Machine, Powers
from ..model.workload import LONGEST, Workload
from ..queue_policies.model_use import Guarded
from ..queue_policies.policy_facts import PolicySpec, is_built_in, spec_of
from ..queue_policies.policy_specs import Easy
from ..wording import count
from ..world.known_run_times import ACTUAL, with_actual_walltimes
from ..world.node_allocation import refuse_any_threads
from ..world.replay_result import Replayed as Replayed
from .engines import Engine, engine_for, features_of
from .replay_case import ReplayCase, ReplayOptions, ReplaySettings
from .requirements import check_times, refuse_machine, require_powers

if TYPE_CHECKING:
    from ..queue_policies.interface import QueuePolicy

#: Largest number of resources of a machine.
LARGEST = 2**31 - 64
ALLOWED = f"0; for easy, strict and conservative also seconds above 0, at most {LONGEST:g}"


def replay(
    workload: Workload,
    machine: int | Machine,
    policy: PolicySpec | QueuePolicy = Easy(),
    options: ReplayOptions = ReplayOptions(),
    **settings: Unpack[ReplaySettings],
) -> Replayed:
    """Replay a workload and return the times and resources of each job.

    Args:
        workload: the jobs.
        machine: number of resources, 1 to LARGEST, or the machine; one with nodes if the policy needs them, or with
            `contention`.
        policy: the policy.
        options: the options.
        settings: what differs from `options`, by the names of its fields, such as `seed=1`. Where the machine is a
            number, also its `groups`, `powers` and `network`, see `Machine`.

    Raises:
        ConfigError: the machine, the jobs, or the options do not go with the policy; see `requirements`.
        PolicyError: a policy in Python raised an exception, made an invalid decision, or left jobs waiting forever.
    """
    named: dict[str, Any] = {**settings}
    of_machine = {name: named.pop(name) for name in ("groups", "powers", "network") if name in named}
    described = machine if isinstance(machine, Machine) else Machine(machine)
    case = ReplayCase(workload, replace(described, **of_machine), policy, replace(options, **named))
    if not 1 <= case.machine.processors <= LARGEST:
        raise ConfigError("machine", "", f"{count(case.machine.processors, 'resource')}", f"1 to {LARGEST}")
    if case.shared:
        check_times(case)
    elif case.options.run_times == ACTUAL:
        case = replace(case, jobs=with_actual_walltimes(workload))
    seconds = case.options.decision_time
    if is_built_in(policy) and not case.shared and (seconds is None or not 0.0 <= seconds <= LONGEST):
        problem = "as measured" if seconds is None else f"{seconds:g}"
        raise ConfigError("decision_time", "", f"{problem}, for a compiled policy", ALLOWED)
    engine = engine_for(case.policy, features_of(case))
    run: Callable[[ReplayCase, Engine], Replayed] = import_module(f".{engine.module}", __package__).run
    replayed = run(case, engine)
    if isinstance(policy, Guarded):
        replayed = replace(replayed, model_use=policy.model_use)
    return replayed if case.jobs is workload else replace(replayed, workload=workload)


def assumed_powers(policy: object) -> Powers | None:
    """Return the power of a machine that is only a number of processors.

    That power is not known. Only if `policy` decides by power, it is that of Grid'5000 Taurus nodes.
    """
    spec = spec_of(policy)
    return TAURUS_POWERS if spec.saves or getattr(policy, "powered", False) else None


def check_machine(policy: object, machine: Machine, *, contention: bool = False) -> None:
    """Check that a policy can be replayed on a machine, before anything is replayed; with the messages of a replay.

    Args:
        policy: the policy.
        machine: the machine.
        contention: jobs share its nodes under any policy.

    Raises:
        ConfigError: the policy cannot be replayed on this machine.
    """
    spec, cluster = spec_of(policy), machine.cluster
    refuse_machine(spec, machine)
    if cluster is not None and (contention or spec.plain.family == "mapping"):
        refuse_any_threads(cluster)
    if spec.plain.family == "contending" and cluster is not None:
        from ..world.task_tables import check_power_known, processors_of

        check_power_known(spec.plain, processors_of(cluster))
    if spec.saves:
        require_powers(spec, machine.powers, of_nodes=contention or spec.needs_nodes)
    if spec.plain.local:
        tuple(machine.groups)
