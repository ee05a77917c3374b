"""A run in the JSON of `jobstats --json`, or packed (JS1:...) as in Slurm's AdminComment.

Rule: a job is described by the mean of its nodes; memory is that of the node that used most. More CPU time or memory
than a node has is an error.
Source: Princeton University's jobstats: nodes -> {total_time: CPU seconds, cpus, used_memory: bytes}; total_time:
seconds.
"""

from __future__ import annotations

import base64
import binascii
import json
from statistics import fmean
from typing import Any

from ...formats.documents.document_errors import bad, found, inside, shown
from ...formats.documents.quantities import LARGEST, above_zero, number, whole
from ...formats.documents.schema import mapping
from ...formats.documents.unpack import unpacked
from ...simulate.model.accounting_record import is_possible
from ..measurement import Measurement
from .imported import Imported, Imports, group_by_cpu_time

NOTE = "from jobstats: as many threads as its CPU time filled; bandwidth unknown"
PACKED = "JS1:"
#: Largest unpacked summary of a job, bytes.
_LARGEST = 64 * 2**20
_SIZE = "total_memory"
_ALLOWED = "the JSON of jobstats --json, or JS1:..."


def parse(text: str, name: str) -> Imports:
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
    if any(not is_possible(cpu, wall_s, cpus) for cpu, cpus, _ in used):
        raise bad("more CPU time than cpus x total_time", "CPU seconds that a node can give", key="nodes")
    group = group_by_cpu_time(cpu_s, wall_s, max(cpus for _, cpus, _ in used))
    run = Measurement((group,), wall_s, wall_s, cpu_s, exit_code=None, memory_bytes=memory or None, method="jobstats")
    return Imports([Imported(name, run, NOTE)])


def _node(value: Any) -> tuple[float, int, float]:
    """Return CPU seconds, CPUs and bytes of a node."""
    data = mapping(value)
    for key in ("total_time", "cpus"):
        if key not in data:
            raise bad(f"no key {key!r}", "total_time, cpus, used_memory")
    cpu_s = inside("total_time", number(), data["total_time"])
    memory, most = (
        inside(key, number(), data.get(key, other)) for key, other in (("used_memory", 0), (_SIZE, LARGEST))
    )
    if memory > most:
        raise bad(found(memory), f"at most the {_SIZE} of {most:g}", key="used_memory")
    return cpu_s, inside("cpus", whole(1), data["cpus"]), memory


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
