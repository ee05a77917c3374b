"""Jobs of others that hold nodes, as they are planned with.

Rule: what is made of a view serves as long as the view: adapters keep the views of jobs that have not changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from ..simulate.job import Job
from ..simulate.platform import Cluster
from ..simulate.snapshot import JobView
from .check import holds_nodes


@dataclasses.dataclass(frozen=True, slots=True)
class Neighbour:
    """A job that runs beside ours: as it was seen, and under its key on those of its nodes that the cluster has."""

    view: JobView
    job: Job
    nodes: tuple[str, ...]


class Neighbours:
    """Those of one snapshot after another."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._known: dict[str, Neighbour] = {}

    def of(self, views: Iterable[JobView], cluster: Cluster) -> Iterator[Neighbour]:
        """Those of these views that hold nodes of the cluster. O(views)."""
        before = self._known if cluster is self._cluster else {}
        self._cluster, self._known = cluster, {}
        for view in views:
            if not holds_nodes(view):
                continue
            found = before.get(view.key)
            if found is None or found.view is not view:
                nodes = tuple(name for name in view.nodes if name in cluster.index)
                job = dataclasses.replace(view.job, id=view.key, after=(), nodes=max(1, len(nodes)))
                found = Neighbour(view, job, nodes)
            self._known[view.key] = found
            if found.nodes:
                yield found
