"""The facts about a policy.

Rule: who chooses by the kind of a policy reads a fact, so that a new kind of policy states its facts and changes no
other file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .energy.power_policies import Inertial, Opportunistic, Proportional
from .policy_options import Sharing

if TYPE_CHECKING:
    from ..model.machine import Machine


class PolicySpec:
    """The facts about a policy by which engines, checks and the command line choose; here those of one in Python."""

    __slots__ = ()
    #: Which engines replay it, see `replay.engines`; of a policy with energy-saving parts, see `plain`.
    family: ClassVar[str] = "python"
    #: It decides by the queue alone, without looking at nodes or machines.
    queueing: ClassVar[bool] = False
    #: Its choices need the run times of jobs.
    looks_ahead: ClassVar[bool] = False

    @property
    def is_model(self) -> bool:
        """Return whether it is a learned order, which the file of a model describes."""
        return False

    @property
    def plain(self) -> Any:
        """Return the policy without its energy-saving parts."""
        return self

    @property
    def saves(self) -> bool:
        """Return whether it has energy-saving parts."""
        return self.plain is not self

    @property
    def parts(self) -> tuple[Any, ...]:
        """Return the parts that its SPEC names; their fields are their options. Empty: its SPEC is its name."""
        return () if self.family == "python" else (self,)

    @property
    def shutdown(self) -> Opportunistic | None:
        """Return the part that switches idle machines off."""
        return None

    @property
    def limit(self) -> Any:
        """Return the limit of power or energy, a `PowerCap` or an `EnergyBudget`."""
        return None

    @property
    def keeper(self) -> Proportional | Inertial | None:
        """Return the part that keeps a number of machines off."""
        return None

    @property
    def switches(self) -> bool:
        """Return whether it switches nodes off and on."""
        return bool(self.shutdown or self.keeper)

    @property
    def sees_states(self) -> bool:
        """Return whether it needs the states of machines when it is called in Python."""
        return self.switches or bool(self.limit and self.limit.is_budget)

    @property
    def share(self) -> Sharing:
        """Return by how much jobs on one node may slow each other down, if it bounds that."""
        return Sharing()

    @property
    def needs_nodes(self) -> bool:
        """Return whether it places jobs on the nodes of a cluster, so that it needs one."""
        return self.share != Sharing()

    @property
    def compares_nodes(self) -> bool:
        """Return whether it depends on all nodes where it places jobs, not only on those with the most room."""
        return False

    @property
    def needs_power(self) -> bool:
        """Return whether it compares nodes by their power, without a limit."""
        return False

    @property
    def machine(self) -> Machine | None:
        """Return the machine that it brings, if it does: the nodes of the site whose rules it is."""
        return None

    @property
    def has_soft_limits(self) -> bool:
        """Return whether it is Slurm's rules at a site that takes predicted run times for soft limits."""
        return False

    @property
    def local(self) -> bool:
        """Return whether its allocations depend on the clusters of the machine."""
        return False

    @property
    def needing_walltimes(self) -> str:
        """Return a description of the policy if it needs finite walltimes, else ""."""
        return ""


def spec_of(policy: object) -> PolicySpec:
    """Return the facts about a policy; those of any policy in Python for an object that is called."""
    return policy if isinstance(policy, PolicySpec) else PolicySpec()


def is_built_in(policy: object) -> bool:
    """Return whether a policy is one of pilotfish that has its facts, not an object that is called."""
    return spec_of(policy) is policy
