"""A cluster's processors: the cores that share a memory channel, and what they draw.

Rule: in the order of the file; a node's bandwidth is shared out evenly between its sockets, and its cores as evenly as
they can be, the first sockets have one more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..kernels import layout
from ..kernels.batch.contended.tables import CORE, FREE_CORE, NODE, PROCESSOR
from ..platform import Cluster, Contention, NodeType

Array = npt.NDArray[Any]
_CONTENTION = {
    Contention.NONE: layout.NONE,
    Contention.EQUAL_SHARE: layout.EQUAL_SHARE,
    Contention.MAX_MIN: layout.MAX_MIN,
    Contention.PIECEWISE_LINEAR: layout.PIECEWISE,
}


@dataclass(frozen=True, slots=True)
class Processors:
    """A machine as the kernel has it; tables of `kernels.batch.contended`.

    Args:
        nodes, processors, core_table: one row each.
        speeds: of the cores of each node, as the file says it.
        powered: what it draws is known.
    """

    nodes: Array
    processors: Array
    core_table: Array
    speeds: Array
    powered: bool

    @property
    def cores(self) -> int:
        """How many it has."""
        return len(self.core_table)

    def joules(self, busy: Array, awake: Array, span: float) -> float:
        """What it takes in `span` seconds, given how long each processor's cores, and it itself, had tasks."""
        own = self.processors
        idle = own["idle_share"] * (span - awake)
        return float((own["per_core"] * busy + own["common"] * (awake + idle)).sum() + self.nodes["watts"].sum() * span)


def processors_of(cluster: Cluster) -> Processors:
    """The processors of a cluster's nodes. Raises ConfigError: nodes that share a memory."""
    shared = [node.memory_domain for node in cluster.nodes if node.memory_domain is not None]
    twice = next((domain for domain in shared if shared.count(domain) > 1), None)
    if twice is not None:
        why = f"nodes share the memory {twice!r}: with these policies only tasks of one processor contend"
        raise ConfigError(cluster.source, "nodes", why, "nodes of their own memory")
    kinds = [node.type for node in cluster.nodes]
    slowest = min(kind.relative_speed for kind in kinds)
    rows = {kind: _processor(kind, slowest) for kind in cluster.types}
    sockets = np.array([kind.sockets for kind in kinds])
    nodes, processors = np.zeros(len(kinds), NODE), np.zeros(int(sockets.sum()), PROCESSOR)
    nodes["last"] = np.cumsum(sockets)
    nodes["first"] = nodes["last"] - sockets
    nodes["cores"] = nodes["free"] = [kind.cores for kind in kinds]
    nodes["memory"] = [int(kind.memory) for kind in kinds]
    nodes["watts"] = [kind.power.idle if kind.power else 0.0 for kind in kinds]
    for n, kind in enumerate(kinds):
        mine = slice(nodes["first"][n], nodes["last"][n])
        processors[mine] = rows[kind]
        processors["node"][mine] = n
        processors["free"][mine] = kind.cores // kind.sockets + (np.arange(kind.sockets) < kind.cores % kind.sockets)
    processors["last"] = np.cumsum(processors["free"])
    processors["first"] = processors["last"] - processors["free"]
    cores = np.zeros(int(nodes["cores"].sum()), CORE)
    cores["job"], cores["processor"] = FREE_CORE, np.repeat(np.arange(len(processors)), processors["free"])
    speeds = np.array([kind.relative_speed for kind in kinds])
    return Processors(nodes, processors, cores, speeds, all(kind.power is not None for kind in kinds))


def _processor(kind: NodeType, slowest: float) -> Array:
    row = np.zeros(1, PROCESSOR)
    row["speed"] = row["flops"] = kind.relative_speed / slowest
    row["bandwidth"], row["contention"] = kind.memory_bandwidth / kind.sockets, _CONTENTION[kind.contention]
    row["remote"] = 0.75 + 0.25 * kind.remote_access_penalty
    if kind.piecewise is not None:
        for name in ("b", "c", "da", "db", "dc", "dd", "n_max", "d_weight"):
            row[name] = getattr(kind.piecewise, name)
    if (power := kind.power) is not None:
        by_state = power.computing is not None
        row["per_core"] = (power.computing - power.idle) / kind.cores if power.computing is not None else power.per_core
        row["common"], row["idle_share"] = 0.0 if by_state else power.per_socket, power.idle_uncore
    return row
