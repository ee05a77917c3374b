"""Nodes by `sinfo`: its table and the parser of a node.

Rule: pure; a node of several partitions is listed once for each, and is one node here.
Source: sinfo(1) of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..records import SlurmNode
from .parsing import Table, count, node_state, size, word

FIELDS = ("NodeList", "StateComplete", "CPUs", "Memory", "Features_act", "PartitionName", "Reason",
          "CPUsState", "AllocMem")  # fmt: skip


def nodes() -> Table[SlurmNode]:
    """Return the table of every node, whose records are to be `merged`."""
    return Table("sinfo --noheader --all --Node", FIELDS, _node, "node")


def merged(rows: Iterable[SlurmNode]) -> list[SlurmNode]:
    """Return one node for each name, in all its partitions."""
    found: dict[str, SlurmNode] = {}
    for node in rows:
        known = found.get(node.name)
        found[node.name] = node if known is None else replace(known, partitions=known.partitions | node.partitions)
    return list(found.values())


def _node(row: dict[str, str]) -> SlurmNode:
    memory, taken = size(row["Memory"]) or 0.0, size(row["AllocMem"])
    cpus = row["CPUsState"].split("/")  # allocated, idle, other, total
    return SlurmNode(
        name=row["NodeList"],
        state=node_state(row["StateComplete"]),
        cpus=count(row["CPUs"]) or 0,
        memory=memory,
        idle=count(cpus[1]) if len(cpus) == 4 else None,
        free=None if taken is None else max(0.0, memory - taken),
        features=frozenset(filter(None, word(row["Features_act"]).split(","))),
        partitions=frozenset({row["PartitionName"]} - {""}),
        reason="" if word(row["Reason"]).lower() == "none" else word(row["Reason"]),
    )
