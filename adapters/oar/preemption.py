"""Besteffort jobs, which OAR kills for any other job: they are an obstacle until nothing else is left.

Rule: pure. A besteffort job holds its nodes while the jobs that are handed over fit next to it. If one of these fits
nowhere, the besteffort jobs with the fewest cores that make room for it are shown without their nodes. They run on
until OAR starts a placed job on their cores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from ...simulate.model.capacity import Occupancy
from ...simulate.model.cluster import Cluster
from ...simulate.model.snapshot import JobView, holds_nodes

#: Most waiting jobs for which room is made at once.
MOST = 20
WHY = "a besteffort job: OAR kills it for a job that is placed on its cores"


def with_room(views: Sequence[JobView], cluster: Cluster, up: Collection[str]) -> tuple[JobView, ...]:
    """Return the views, some besteffort jobs without their nodes. O(jobs), and O(nodes) for each of MOST jobs.

    Args:
        views: All jobs, in their order.
        cluster: Its nodes.
        up: Names of those that take jobs.
    """
    killable = [view for view in views if view.preemptible and holds_nodes(view)]
    waiting = [view for view in views if view.offered and view.restartable and not view.waits] if killable else []
    if not waiting:
        return tuple(views)
    occupancy = Occupancy(cluster)
    for view in filter(holds_nodes, views):
        occupancy.place(view.job, view.nodes)
    on: dict[str, list[JobView]] = defaultdict(list)
    for view in killable:
        for node in view.nodes:
            on[node].append(view)
    yielded: set[str] = set()
    for view in waiting[:MOST]:
        yielded |= _make_room(view, occupancy, on, [node.name for node in cluster.nodes if node.name in up])
    return tuple(
        replace(view, nodes=(), yields=view.nodes, reason=WHY) if view.key in yielded else view for view in views
    )


def _make_room(view: JobView, occupancy: Occupancy, on: dict[str, list[JobView]], nodes: Iterable[str]) -> set[str]:
    """Let a job take nodes that are free, or else those where the fewest cores yield; return the keys that yield."""
    job, possible = view.job, [node for node in nodes if view.job.allowed is None or node in view.job.allowed]
    free = [node for node in possible if occupancy.obstacle(job, node) is None]
    if len(free) >= job.nodes:
        occupancy.place(job, free[: job.nodes])
        return set()
    after, yielding = occupancy.copy(), dict[str, JobView]()
    killed = {node: sum(killable.job.profile.threads for killable in on[node]) for node in possible if on[node]}
    for node in sorted(killed.keys() - set(free), key=lambda node: (killed[node], node)):
        for killable in on[node]:
            if killable.key not in yielding:
                yielding[killable.key] = killable
                after.remove(killable.job, killable.nodes)
        fits = [node for node in possible if after.obstacle(job, node) is None]
        if len(fits) >= job.nodes:
            break
    else:
        return set()
    chosen = fits[: job.nodes]
    yielding = {key: killable for key, killable in yielding.items() if not set(chosen).isdisjoint(killable.nodes)}
    for killable in yielding.values():
        occupancy.remove(killable.job, killable.nodes)
        for node in killable.nodes:
            on[node].remove(killable)
    occupancy.place(job, chosen)
    return set(yielding)
