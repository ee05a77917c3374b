"""Batsim's JSON workloads, written: jobs that compute and communicate, each with a profile of its own.

Rule: numbers keep their full precision; a job and a profile a line.
Source: Batsim's documentation, "Workload": `parallel` has a row of amounts and a matrix, row by row;
`parallel_homogeneous` one amount for each processor and one for each pair of two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ConfigError
from ..workload import Workload

#: Numbers that the matrices of a file may have.
MOST_NUMBERS = 10_000_000


def dump_batsim(workload: Workload, about: Mapping[str, str], matrices: bool = False) -> str:
    """The text of a JSON workload. O(jobs), with matrices O(sum of sizes^2).

    Args:
        workload: with the columns `computation` and `communication` (see `generate.communication`).
        about: what else the file says.
        matrices: `parallel` profiles instead of `parallel_homogeneous`.

    Raises:
        ConfigError: two jobs have one number, or the matrices would be too large.
    """
    ids, size = workload.id.tolist(), workload.size.tolist()
    if len(set(ids)) < len(ids):
        twice = next(number for number, count in zip(*np.unique(ids, return_counts=True), strict=True) if count > 1)
        raise ConfigError(workload.name, f"job {twice}", "given twice", "each number once")
    numbers = sum(q * q for q in size)
    if matrices and numbers > MOST_NUMBERS:
        raise ConfigError(workload.name, "", f"matrices of {numbers:,} numbers", f"at most {MOST_NUMBERS:,}")
    times = zip(workload.submit_time.tolist(), workload.walltime.tolist(), strict=True)
    jobs = [
        {"id": number, "subtime": submit, "res": q, "profile": str(number), "walltime": wall}
        for number, q, (submit, wall) in zip(ids, size, times, strict=True)
    ]
    amounts = (workload.more["computation"].tolist(), workload.more["communication"].tolist())
    make = _parallel if matrices else _homogeneous
    profiles = [f"{json.dumps(str(number))}: {json.dumps(make(q, *amount))}"
                for number, q, *amount in zip(ids, size, *amounts, strict=True)]  # fmt: skip
    head = {**about} if workload.machine is None else {**about, "nb_res": workload.machine}
    said = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    rows, kinds = ",\n".join(map(json.dumps, jobs)), ",\n".join(profiles)
    return f'{{\n{said}"jobs": [\n{rows}\n],\n"profiles": {{\n{kinds}\n}}\n}}\n'


def _homogeneous(_: int, computation: float, communication: float) -> dict[str, Any]:
    return {"type": "parallel_homogeneous", "cpu": computation, "com": communication}


def _parallel(size: int, computation: float, communication: float) -> dict[str, Any]:
    return {"type": "parallel", "cpu": [computation] * size, "com": [communication] * (size * size)}
