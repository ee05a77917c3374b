"""A run in the JSON of `jobstats --json`, or packed (JS1:...) as in Slurm's AdminComment.

Rule: a job is described by the mean of its nodes; memory is that of the node that used most.
Source: Princeton University's jobstats: nodes -> {total_time: CPU seconds, cpus, used_memory: bytes}; total_time:
seconds.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ...formats.documents.document_errors import bad, inside, shown
from ...formats.documents.quantities import above_zero, number, whole
from ...formats.documents.schema import mapping
from ...formats.documents.unpack import unpacked
from ..measurement import Measurement
from .imported import Imported, group_by_cpu_time

NOTE = "from jobstats: as many threads as its CPU time filled; bandwidth unknown"
PACKED = "JS1:"
#: Largest unpacked summary of a job, bytes.
_LARGEST = 64 * 2**20
_ALLOWED = "the JSON of jobstats --json, or JS1:..."


def parse(text: str, name: str) -> Sequence[Imported]:
    """Return the one job of a file. Raises ConfigError."""
    data = mapping(_document(text.strip()))
    for key in ("nodes", "total_time"):
        if key not in data:
            raise bad(f"no key {key!r}", _ALLOWED)
    wall_s = inside("total_time", above_zero(number()), data["total_time"])
    nodes = inside("nodes", mapping, data["nodes"])
    if not nodes:
        raise bad("no nodes", "one at least", key="nodes")
    used = [inside(f"nodes.{shown(key)}", _node, value) for key, value in nodes.items()]
    cpu_s = fmean(cpu for cpu, _, _ in used)
    if not cpu_s:
        raise bad("it used no CPU time", "a job that computed")
    memory = max(size for _, _, size in used)
    group = group_by_cpu_time(cpu_s, wall_s, max(cpus for _, cpus, _ in used))
    run = Measurement((group,), wall_s, wall_s, cpu_s, exit_code=None, memory_bytes=memory or None, method="jobstats")
    return [Imported(name, run, NOTE)]


def _node(value: Any) -> tuple[float, int, float]:
    """Return CPU seconds, CPUs and bytes of a node."""
    data = mapping(value)
    for key in ("total_time", "cpus"):
        if key not in data:
            raise bad(f"no key {key!r}", "total_time, cpus, used_memory")
    cpu_s = inside("total_time", number(), data["total_time"])
    return cpu_s, inside("cpus", whole(1), data["cpus"]), inside("used_memory", number(), data.get("used_memory", 0))


def _document(text: str) -> Any:
    if text.startswith(PACKED):
        try:
            packed = base64.b64decode(text.removeprefix(PACKED), validate=True)
        except (binascii.Error, ValueError):
            raise bad("no base64 after JS1:", _ALLOWED) from None
        text = unpacked(packed, "", _LARGEST).decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad(f"not JSON: {str(error)[:80]}", _ALLOWED) from None
