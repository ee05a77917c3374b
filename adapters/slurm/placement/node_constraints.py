"""Node constraints: on which nodes Slurm would let a job run.

Rule: pure, and conservative: a request that is not understood (a feature expression with brackets, say) allows no node,
and the job is left to Slurm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from ....formats.text import count
from ..cache import TwoGenerationCache
from ..records import SlurmJob, SlurmNode

_PLAIN = re.compile(r"[\w.-]+(?:[&|][\w.-]+)*")


class NodeLists:
    """Node lists by what decides them; equal lists are one object, so that comparing them is fast."""

    def __init__(self) -> None:
        self._by_shape = TwoGenerationCache[object, frozenset[str]]()
        self._canonical = TwoGenerationCache[frozenset[str], frozenset[str]]()

    def of(self, shape: object, make: Callable[[], frozenset[str]]) -> frozenset[str]:
        """Return the list for this shape; create it with `make` if it is missing."""
        return self.canonical(self._by_shape.get(shape, lambda: self.canonical(make())))

    def canonical(self, names: frozenset[str]) -> frozenset[str]:
        """Return the one object that equals this list."""
        return self._canonical.get(names, lambda: names)

    def age(self) -> None:
        """Drop what was not requested since the last call."""
        self._by_shape.age()
        self._canonical.age()

    def clear(self) -> None:
        """Drop all shapes, because the nodes changed; lists that come out equal are the same objects as before."""
        self._by_shape = TwoGenerationCache()


def allowed(job: SlurmJob, nodes: Iterable[SlurmNode], unwanted: Iterable[str] = ()) -> frozenset[str]:
    """Return the nodes that may take the job: in its partition, with its features, not excluded by its user.

    A user's node list is kept: with as many names as nodes asked for, it is the only allowed set.
    """
    fitting = eligible(job, nodes, unwanted)
    if len(job.wanted) == job.nodes:
        return fitting & frozenset(job.wanted)
    return frozenset() if job.wanted else fitting


def eligible(job: SlurmJob, nodes: Iterable[SlurmNode], unwanted: Iterable[str] = ()) -> frozenset[str]:
    """Return what `allowed` returns, regardless of a node list of the user's."""
    partitions, forbidden = set(job.partition.split(",")), set(unwanted)
    return frozenset(
        node.name
        for node in nodes
        if node.name not in forbidden
        and partitions & node.partitions
        and node.memory >= job.least_memory
        and has_features(node, job.features)
    )


def possible(job: SlurmJob, nodes: Iterable[SlurmNode], unwanted: Iterable[str] = ()) -> frozenset[str]:
    """Return all nodes that Slurm might give the job; features that are not understood exclude none."""
    if job.wanted and len(job.wanted) >= job.nodes:
        return frozenset(job.wanted)
    plain = replace(job, features="") if not understood(job.features) else job
    return eligible(plain, nodes, unwanted)


def has_features(node: SlurmNode, expression: str) -> bool:
    """Return whether a node has the features of `a`, `a&b` or `a|b`; False for any other form."""
    if not expression:
        return True
    if not understood(expression):
        return False
    if "|" in expression:
        return any(word in node.features for word in expression.split("|"))
    return all(word in node.features for word in expression.split("&"))


def understood(expression: str) -> bool:
    """Return whether an expression of features is one that `has_features` evaluates."""
    mixed = "&" in expression and "|" in expression
    return not expression or (_PLAIN.fullmatch(expression) is not None and not mixed)


def obstacle(job: SlurmJob, places: frozenset[str], nodes: tuple[str, ...]) -> str:
    """Return why the job must not be pinned to `nodes`, or ""."""
    if len(set(nodes)) != job.nodes or len(nodes) != job.nodes:
        return f"it asks for {count(job.nodes, 'node')}, not {len(nodes)}"
    outside = sorted(set(nodes) - places)
    return f"Slurm would not run it on {', '.join(outside)}" if outside else ""
