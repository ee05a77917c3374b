"""Jobs without a walltime: who cannot plan with them says so.

Rule: their walltime is infinite. EASY and strict order take them as their definitions say; who promises places behind
them, or energy, or counts how long they may take, cannot.
"""

from __future__ import annotations

import numpy as np

from ..errors import ConfigError
from ..workload import Workload


def refuse_endless(workload: Workload, who: str) -> None:
    """Raises ConfigError: a job has no walltime, and `who` plans with them."""
    endless = np.flatnonzero(np.isinf(workload.walltime))
    if len(endless):
        which = workload.more.get("name", workload.id)[endless[0]]
        problem = f"it has no walltime ({len(endless):,} of {len(workload):,} jobs), and {who} plans with them"
        raise ConfigError(workload.name, f"job {which}", problem, "walltimes, or another policy")
