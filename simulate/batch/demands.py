"""What policies demand of a machine and of jobs, told before anything is replayed.

Rule: what is refused here is what a replay would refuse, in the same words.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..platform import Cluster
from ..workload import Workload
from .endless import refuse_endless, who_plans
from .machine import Machine
from .networked import network_for, takes_networks
from .pairs import Contending
from .powered import known_powers, refuse_countless
from .processors import processors_of
from .spec import Conservative, Saving
from .tasks import refuse_unpowered


def refuse_machine(policy: object, machine: Machine, cluster: Cluster | None) -> None:
    """Raises ConfigError: the policy cannot be replayed there.

    Args:
        cluster: of which the machine is made; policies whose tasks contend need one.
    """
    if isinstance(policy, Contending) and cluster is not None:
        refuse_unpowered(policy, processors_of(cluster))
    elif isinstance(policy, Saving):
        known_powers(policy, machine.powers)
    elif isinstance(policy, Conservative) and policy.local:
        tuple(machine.groups)


def refuse_jobs(policy: object, jobs: Workload, machine: Machine) -> None:
    """Raises ConfigError: the policy cannot take these jobs on this machine. O(jobs + places^2 of its network)."""
    refuse_endless(jobs, policy)
    network_for(jobs, machine.processors, policy, machine.network)
    if isinstance(policy, Saving):
        refuse_countless(jobs, policy)
        if policy.limit:
            policy.limit.window(jobs)


def demanded(policy: object) -> Hashable:
    """What a policy demands of jobs: who demands the same takes the same."""
    added = (policy.limit, policy.keeper) if isinstance(policy, Saving) else ()
    return who_plans(policy), takes_networks(policy), added
