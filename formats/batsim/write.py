"""Write jobs that compute and communicate as a Batsim workload, each with its own profile.

Rule: numbers keep their full precision.
Source: Batsim's documentation, "Workload": `parallel` has a row of amounts and a matrix, row by row;
`parallel_homogeneous` one amount for each processor and one for each pair of processors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...simulate.errors import ConfigError
from ...simulate.model.workload import Workload
from .profiles import parse_profile
from .workload import BatsimWorkload, Job

#: Largest total size of the matrices of a file, numbers.
MOST_NUMBERS = 10_000_000


def batsim_communicating(workload: Workload, about: Mapping[str, str], matrices: bool = False) -> BatsimWorkload:
    """Return the workload for `batsim_text`. O(jobs), with matrices O(sum of sizes^2).

    Args:
        workload: with the columns `computation` and `communication` (see `generate.communication`).
        about: further keys of the file.
        matrices: write `parallel` profiles instead of `parallel_homogeneous`.

    Raises:
        ConfigError: two jobs share a name, or the matrices are too large.
    """
    ids, sizes = workload.more.get("name", workload.id).tolist(), workload.size.tolist()
    twice = next((name for name, times in Counter(ids).items() if times > 1), None)
    if twice is not None:
        raise ConfigError(workload.name, f"job {twice}", "given twice", "each once")
    numbers = sum(size * size for size in sizes)
    if matrices and numbers > MOST_NUMBERS:
        raise ConfigError(workload.name, "", f"its matrices have {numbers:,} numbers", f"at most {MOST_NUMBERS:,}")
    make = _parallel if matrices else _homogeneous
    amounts = zip(workload.more["computation"].tolist(), workload.more["communication"].tolist(), strict=True)
    profiles = {
        str(name): parse_profile(make(size, *amount)) for name, size, amount in zip(ids, sizes, amounts, strict=True)
    }
    times = zip(workload.submit_time.tolist(), workload.walltime.tolist(), strict=True)
    jobs = tuple(
        Job(name, submit, size, str(name), None if wall == math.inf else wall)
        for name, size, (submit, wall) in zip(ids, sizes, times, strict=True)
    )
    return BatsimWorkload(jobs, profiles, workload.machine, about)


def _homogeneous(_: int, computation: float, communication: float) -> dict[str, Any]:
    return {"type": "parallel_homogeneous", "cpu": computation, "com": communication}


def _parallel(size: int, computation: float, communication: float) -> dict[str, Any]:
    return {"type": "parallel", "cpu": [computation] * size, "com": [communication] * (size * size)}
