"""The power states of nodes as a planner knows them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodePower:
    """The power states of nodes at a moment; times are epoch seconds, nodes are names.

    Args:
        time: the moment.
        off: nodes that are powered down and wake for a job.
        switching: nodes that are being switched at our request: whether on, and when that should have ended.
        waking: nodes that boot for a job; they take no other job yet.
        idle_since: since when each idle node that is on has been idle.
    """

    time: float
    off: Sequence[str]
    switching: Mapping[str, tuple[bool, float]]
    waking: Collection[str]
    idle_since: Mapping[str, float]
