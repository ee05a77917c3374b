"""Jobs without a walltime: who cannot plan with them says so.

Rule: their walltime is infinite. EASY and strict order take them as their definitions say; who promises places behind
them, or energy, or counts how long they may take, cannot.
"""

from __future__ import annotations

import numpy as np

from ..errors import ConfigError
from ..workload import Workload
from .spec import Conservative, Saving


def who_plans(policy: object) -> str:
    """What a policy is called that plans with walltimes; "": it can do without."""
    if isinstance(policy, Conservative):
        return "conservative backfilling"
    if isinstance(policy, Saving) and (policy.limit or policy.keeper):
        return "a policy that limits or keeps machines"
    return ""


def refuse_endless(workload: Workload, policy: object) -> None:
    """Raises ConfigError: a job has no walltime, and the policy plans with them. O(jobs)."""
    who, endless = who_plans(policy), np.flatnonzero(np.isinf(workload.walltime))
    if who and len(endless):
        which = workload.more.get("name", workload.id)[endless[0]]
        problem = f"it has no walltime ({len(endless):,} of {len(workload):,} jobs), and {who} plans with them"
        raise ConfigError(workload.name, f"job {which}", problem, "walltimes, or another policy")
