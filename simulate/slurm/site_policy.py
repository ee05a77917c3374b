"""Slurm's own rules at a site as a policy of replays: `slurm:SITE`.

Rule: the policy is the site's configuration, nodes, partitions, QOS and associations. Its jobs, its reservations, the
events of its nodes and its usage belong to the site's own period: jobs of another trace do not meet them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..model.machine import Machine
from ..queue_policies.policy_facts import PolicySpec
from .site import Site
from .version_rules import version_rules


@dataclass(frozen=True, slots=True, eq=False)
class SlurmRules(PolicySpec):
    """The rules of a site.

    Args:
        name: the SPEC.
        site: the site, see `without_period`.
    """

    family: ClassVar[str] = "slurm"
    name: str
    site: Site

    def __str__(self) -> str:
        return self.name

    @property
    def parts(self) -> tuple[()]:
        """Return no parts: the SPEC is the name."""
        return ()

    @property
    def has_soft_limits(self) -> bool:
        """Return whether predicted run times cut no time limits."""
        return version_rules(self.site.rules)["soft_time_min"] == 1

    @property
    def machine(self) -> Machine:
        """Return the CPUs of the site's nodes as the machine of a replay."""
        return Machine(sum(node.cpus for node in self.site.nodes), powers=None)


def without_period(site: Site) -> Site:
    """Return a site without its jobs and what belongs to their period."""
    return replace(site, jobs=(), reservations=(), events=(), usage=())
