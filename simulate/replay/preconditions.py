"""Check that a policy, a machine and jobs go together before anything is replayed.

Rule: these checks reject exactly what a replay would reject, with the same messages.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..model.cluster import Cluster
from ..model.workload import Workload
from .contended import check_power_known, processors_of
from .machine import Machine
from .network_tables import network_for
from .policies import Conservative, Contending, Policy, Saving
from .power_tables import check_decision_count, require_powers
from .queue_tables import check_walltimes, kind_needing_walltimes


def refuse_machine(policy: object, machine: Machine, cluster: Cluster | None) -> None:
    """Check that a policy can be replayed on a machine.

    Args:
        policy: the queue policy.
        machine: the machine.
        cluster: the cluster that the machine was made from; required for policies whose tasks contend.

    Raises:
        ConfigError: the policy cannot be replayed on this machine.
    """
    if isinstance(policy, Contending) and cluster is not None:
        check_power_known(policy, processors_of(cluster))
    elif isinstance(policy, Saving):
        require_powers(policy, machine.powers)
    elif isinstance(policy, Conservative) and policy.local:
        tuple(machine.groups)


def refuse_jobs(policy: object, jobs: Workload, machine: Machine) -> None:
    """Check that a policy can schedule these jobs on this machine. O(jobs + places^2 of its network).

    Raises:
        ConfigError: it cannot.
    """
    check_walltimes(jobs, policy)
    network_for(jobs, machine.processors, policy, machine.network)
    if isinstance(policy, Saving):
        check_decision_count(jobs, policy)
        if policy.limit:
            policy.limit.window(jobs)


def demanded(policy: object) -> Hashable:
    """Return a key of the policy's requirements on jobs. Policies with equal keys accept the same jobs."""
    added = (policy.limit, policy.keeper) if isinstance(policy, Saving) else ()
    return kind_needing_walltimes(policy), isinstance(policy, Policy), added
