"""What policies demand of a machine, told before anything is replayed on it.

Rule: what is refused here is what a replay would refuse, in the same words.
"""

from __future__ import annotations

from ..platform import Cluster
from .machine import Machine
from .pairs import Contending
from .powered import known_powers
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
