"""The classes of the jobs of a plan, on the nodes that it gives them.

Rule: what shows a job for programs has its class beside it, under `class` and `class_why`; None = unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..profiles.classes import classify_on, told
from ..simulate.job import Job
from ..simulate.plan import Plan
from ..simulate.platform import Cluster, NodeType

Told = Mapping[str, str | None]


def classes_of(plan: Plan, jobs: Iterable[Job], cluster: Cluster) -> dict[str, Told]:
    """Job -> its class, as `classes.told` has it. O(jobs); jobs of one profile on one type of node are classed once.

    Args:
        jobs: those of the plan, by their ids there.
    """
    profiles = {job.id: job.profile for job in jobs}
    known: dict[tuple[int, NodeType | None], Told] = {}
    found: dict[str, Told] = {}
    for job in plan.jobs:
        profile = profiles.get(job.id)
        if profile is not None:
            where = next((cluster.nodes[cluster.index[name]].type for name in job.nodes if name in cluster.index), None)
            key = id(profile), where
            if key not in known:
                known[key] = told(classify_on(profile, cluster, job.nodes))
            found[job.id] = known[key]
    return found


def with_classes(document: dict[str, Any], classes: Mapping[str, Told]) -> dict[str, Any]:
    """A document that has `jobs` with ids, such as a plan's or a run's, with the classes of these jobs."""
    return document | {"jobs": [job | classes.get(job["id"], {}) for job in document["jobs"]]}
