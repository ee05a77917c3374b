"""Requirements of policies on jobs and machines, checked before a replay.

Rule: a combination that cannot be replayed is an error that names what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ConfigError
from ..model.cluster import Cluster, Contention
from ..model.machine import Machine, MixedPowers, Powers, equal_powers
from ..model.network import Link, Network, unlimited
from ..model.workload import Workload
from ..queue_policies.policy_facts import PolicySpec, is_built_in, spec_of
from ..wording import count
from ..world.known_run_times import ACTUAL, with_actual_walltimes
from ..world.node_allocation import refuse_unknown_times
from .engines import engine_for, features_of
from .replay_case import ReplayCase

if TYPE_CHECKING:
    from ..queue_policies.energy.power_limits import NoLimit
    from ..queue_policies.interface import QueuePolicy

#: Largest number of periods or stages in a replay; it takes minutes.
MOST_OFTEN = 1e10
#: Least bandwidth, bytes/s: below it, a message might never arrive.
SLOWEST = 1e-6


def check_walltimes(workload: Workload, policy: object) -> None:
    """Check that all jobs have finite walltimes if the policy needs them, for reservations. Raises ConfigError."""
    kind, endless = spec_of(policy).needing_walltimes, np.flatnonzero(np.isinf(workload.walltime))
    if kind and len(endless):
        job_name = workload.more.get("name", workload.id)[endless[0]]
        problem = f"it has no walltime ({len(endless):,} of {count(len(workload), 'job')}), and {kind} needs walltimes"
        raise ConfigError(workload.name, f"job {job_name}", problem, "walltimes, or another policy")


def check_decision_count(workload: Workload, policy: PolicySpec) -> None:
    """Check that there are at most MOST_OFTEN periods and stages of a policy. Raises ConfigError. O(jobs)."""
    if policy.keeper and len(workload):
        longest = np.fmax.reduce(np.minimum(workload.run_time, workload.walltime), initial=0.0)
        lasts = float(workload.submit_time[-1] - workload.submit_time[0] + longest)
        _check_interval(workload, "period", policy.keeper.period, lasts)
    if policy.limit and policy.limit.is_budget and (window := policy.limit.window(workload)):
        _check_interval(workload, "stage", policy.limit.stage, window[1] - window[0])


def _check_interval(workload: Workload, key: str, every: float, lasts: float) -> None:
    if lasts > every * MOST_OFTEN:
        problem = f"{every:g} seconds, and {workload.name} lasts {lasts:.3g}"
        raise ConfigError("policy", key, problem, f"{lasts / MOST_OFTEN:.3g} or more")


def require_powers(policy: PolicySpec, powers: Powers | MixedPowers | None, *, of_nodes: bool = False) -> Powers:
    """Return the power of each resource.

    Args:
        policy: the policy.
        powers: power of the resources.
        of_nodes: they are the cores of nodes, which are switched as a whole.

    Raises:
        ConfigError: they lack what the policy needs.
    """
    resource_powers = equal_powers(powers)
    if policy.switches and resource_powers.together > 1 and not of_nodes:
        problem = "it switches nodes, and the resources of this machine are cores"
        raise ConfigError("policy", "", problem, "nodes as resources, or cores of nodes that jobs share")
    if policy.switches and resource_powers.off is None:
        problem = "the power of this machine when it is off or being switched is not known"
        raise ConfigError("policy", "", problem, "nodes with power off, switch_on and switch_off, or --procs")
    return resource_powers


def refuse_machine(policy: PolicySpec, machine: Machine) -> None:
    """Raise ConfigError if a policy brings a machine of nodes, and the machine is another number of processors."""
    site_machine = policy.machine
    if site_machine is not None and machine.cluster is None and machine.processors != site_machine.processors:
        number = count(machine.processors, "processor has", "processors have")
        problem = f"{policy} places jobs on nodes, and {number} none"
        allowed = f"--cluster, or without --procs the {count(site_machine.processors, 'CPU')} of the site"
        raise ConfigError("policy", "", problem, allowed)


def refuse_saving(
    policy: PolicySpec, workload: Workload, powers: Powers | MixedPowers | None, *, of_nodes: bool = False
) -> tuple[float, float] | None:
    """Check a policy with energy-saving parts. Return begin and end of its limit, seconds; None if it has none.

    Args:
        policy: the policy.
        workload: the jobs.
        powers: power of the resources.
        of_nodes: see `require_powers`.

    Raises:
        ConfigError: the policy cannot schedule these jobs, or not with this power.
    """
    check_walltimes(workload, policy)
    check_decision_count(workload, policy)
    require_powers(policy, powers, of_nodes=of_nodes)
    return policy.limit.window(workload) if policy.limit else None


def limit_for(policy: PolicySpec, workload: Workload, machine: Machine, *, of_nodes: bool = False) -> NoLimit:
    """Return the limit of a policy on a machine. Raises ConfigError, see `refuse_saving`; the arguments are its."""
    from ..queue_policies.energy.power_limits import limit_on

    window = refuse_saving(policy, workload, machine.powers, of_nodes=of_nodes) if policy.saves else None
    return limit_on(machine, policy.limit, window)


def in_python(case: ReplayCase) -> QueuePolicy:
    """Return what is called at each instant: the policy, or the form in Python of a built-in one.

    Raises:
        ConfigError: the policy cannot schedule these jobs, or not on this machine.
    """
    policy: Any = case.policy
    if not is_built_in(policy):
        called: QueuePolicy = policy
        return called
    from ..queue_policies.uncompiled import uncompiled

    if not case.shared:
        check_walltimes(case.jobs, policy)
    window = refuse_saving(policy, case.jobs, case.machine.powers, of_nodes=case.shared) if policy.saves else None
    began, limit = float(case.jobs.submit_time[0]) if len(case.jobs) else math.inf, None
    if policy.plain.family == "mapping":  # its nodes may take more threads than the machine has cores
        limit = limit_for(policy, case.jobs, case.machine, of_nodes=True)
    return uncompiled(policy, case.options.seed, window=window, given=limit, began=began)


def check_times(case: ReplayCase) -> None:
    """Check that the times of the jobs are known that an engine on shared nodes needs. Raises ConfigError."""
    engine, jobs, knows = engine_for(case.policy, features_of(case)), case.jobs, case.options.knows
    plain = spec_of(case.policy).plain
    if knows == ACTUAL:
        with_actual_walltimes(jobs)  # raises
    if case.shared and not (engine.compiled and plain.family in ("contending", "rule-choice")):
        blind = engine.compiled and not plain.looks_ahead
        refuse_unknown_times(jobs, walltimes=knows != ACTUAL and not blind, networked=jobs.programs is not None)


def check_jobs(case: ReplayCase) -> None:
    """Check that a policy can schedule these jobs on this machine. Raises ConfigError."""
    policy, jobs = spec_of(case.policy), case.jobs
    if case.options.knows == ACTUAL:
        jobs = with_actual_walltimes(jobs)
    check_walltimes(jobs, policy)
    if case.shared:
        network_of_nodes(jobs, case.cluster, case.machine.network)
    else:
        network_for(jobs, case.machine)
    if policy.saves:
        check_decision_count(jobs, policy)
        if policy.limit:
            policy.limit.window(jobs)


def demands_on_jobs(policy: object) -> Hashable:
    """Return a key of the policy's requirements on jobs. Policies with equal keys accept the same jobs."""
    spec = spec_of(policy)
    return spec.needing_walltimes, not spec.parts, spec.limit, spec.keeper


def network_for(workload: Workload, machine: Machine) -> Network | None:
    """Return the network for these jobs; None if their run times do not depend on it.

    Args:
        workload: the jobs.
        machine: the machine.

    Raises:
        ConfigError: the jobs need a network that is not known or cannot be simulated.
    """
    if workload.programs is None:
        return None
    if machine.network is None:
        raise ConfigError(workload.name, "", "the network of the machine is not known", "--cluster")
    return checked_network(workload, machine.processors, machine.network)


def checked_network(workload: Workload, machine: int, network: Callable[[], Network]) -> Network:
    """Return the network that is made, if it can be simulated.

    Args:
        workload: the jobs, for messages.
        machine: number of resources.
        network: makes the network.

    Raises:
        ConfigError: it cannot.
    """
    result = network()
    if len(result.speeds) != machine:
        problem = (
            f"the network joins {count(len(result.speeds), 'host')}, and the machine has {count(machine, 'resource')}"
        )
        raise ConfigError(workload.name, "", problem, "one resource per host: --resource node; or --contention")
    for kind, rates in (("link", result.links), ("port", result.places)):
        for entry in rates:
            rate = entry.bandwidth if isinstance(entry, Link) else min(entry.port, entry.limit)
            if not rate >= SLOWEST:
                raise ConfigError(workload.name, "", f"{kind} {entry.name}: {rate:g} bytes/s", f"{SLOWEST:g} or more")
    if not (slowest := min((way.flow for way in (*result.ways, *result.own)), default=math.inf)) >= SLOWEST:
        raise ConfigError(workload.name, "", f"a flow gets at most {slowest:g} bytes/s", f"{SLOWEST:g} or more")
    return result


def network_of_nodes(workload: Workload, cluster: Cluster, network: Callable[[], Network] | None) -> Network | None:
    """Return the network between the nodes that these jobs share; None if no run time depends on it.

    Args:
        workload: the jobs.
        cluster: the nodes.
        network: makes the network of the cluster; ignored if the cluster has no wiring.

    Raises:
        ConfigError: the network cannot be simulated.
    """
    if workload.programs is None:
        return None
    for kind in cluster.types:
        if kind.contention is Contention.PIECEWISE_LINEAR and kind.sockets > 1:
            problem = (
                "jobs communicate, and the processors of a node progress on their own: contention piecewise-linear"
            )
            raise ConfigError(cluster.source, f"node_types.{kind.name}", problem, "another contention model")
    if cluster.wiring is None or network is None:
        return unlimited([node.type.relative_speed for node in cluster.nodes])
    return checked_network(workload, len(cluster.nodes), network)
