"""On which nodes Slurm would let a job run, as far as can be told.

Rule: pure, and on the safe side: what is not understood (a feature expression with brackets, say) leaves no node, and
the job is left to Slurm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from .lasting import Lasting
from .records import SlurmJob, SlurmNode

_PLAIN = re.compile(r"[\w.-]+(?:[&|][\w.-]+)*")


class Lists:
    """Lists of nodes by what decides them, made once; of equal lists there is one, so that comparing them is quick."""

    def __init__(self) -> None:
        self._made, self._one = Lasting[object, frozenset[str]](), Lasting[frozenset[str], frozenset[str]]()

    def of(self, shape: object, make: Callable[[], frozenset[str]]) -> frozenset[str]:
        """The list that `make` gives for this shape."""
        return self.one(self._made.get(shape, lambda: self.one(make())))

    def one(self, names: frozenset[str]) -> frozenset[str]:
        """The one list that equals this."""
        return self._one.get(names, lambda: names)

    def age(self) -> None:
        """Forget what was not asked for since the last time."""
        self._made.age()
        self._one.age()

    def drop(self) -> None:
        """Lists are made anew, from other nodes; those that come out as they were are the ones that were there."""
        self._made = Lasting()


def allowed(job: SlurmJob, nodes: Iterable[SlurmNode], unwanted: Iterable[str] = ()) -> frozenset[str]:
    """Names of the nodes that may take the job: of its partition, with its features, and none that its user excludes.

    A node list of the user's is kept: with as many names as nodes asked for it is the only place.
    """
    fitting = eligible(job, nodes, unwanted)
    if len(job.wanted) == job.nodes:
        return fitting & frozenset(job.wanted)
    return frozenset() if job.wanted else fitting


def eligible(job: SlurmJob, nodes: Iterable[SlurmNode], unwanted: Iterable[str] = ()) -> frozenset[str]:
    """As `allowed`, whatever node list the user gives."""
    partitions, forbidden = set(job.partition.split(",")), set(unwanted)
    return frozenset(
        node.name
        for node in nodes
        if node.name not in forbidden and partitions & node.partitions and has_features(node, job.features)
    )


def possible(job: SlurmJob, nodes: Iterable[SlurmNode], unwanted: Iterable[str] = ()) -> frozenset[str]:
    """Names of all nodes that Slurm might give the job: what is not understood leaves all of its partition."""
    if job.wanted and len(job.wanted) >= job.nodes:
        return frozenset(job.wanted)
    plain = replace(job, features="") if not _understood(job.features) else job
    return eligible(plain, nodes, unwanted)


def has_features(node: SlurmNode, expression: str) -> bool:
    """Whether a node has what `a`, `a&b` or `a|b` asks for; False for what is not of this form."""
    if not expression:
        return True
    if not _understood(expression):
        return False
    if "|" in expression:
        return any(word in node.features for word in expression.split("|"))
    return all(word in node.features for word in expression.split("&"))


def _understood(expression: str) -> bool:
    mixed = "&" in expression and "|" in expression
    return not expression or (_PLAIN.fullmatch(expression) is not None and not mixed)


def obstacle(job: SlurmJob, places: frozenset[str], nodes: tuple[str, ...]) -> str:
    """Why the job must not be pinned to `nodes`, or ""."""
    if len(set(nodes)) != job.nodes or len(nodes) != job.nodes:
        return f"it asks for {job.nodes} nodes, not {len(nodes)}"
    outside = sorted(set(nodes) - places)
    return f"Slurm would not run it on {', '.join(outside)}" if outside else ""
