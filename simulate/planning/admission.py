"""Admission: whether the jobs of a workflow can ever run on a cluster, and the reason if not.

Rule: a job that fits no empty node is an error before the start; a job that fits later waits.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..arrays import Array
from ..errors import InvalidJobError, InvalidJobErrors
from ..kernels.mapping.layout import World
from ..model.cluster import Cluster
from ..model.job import Workflow
from ..wording import count

#: Jobs that an error names; the others are counted.
MOST_NAMED = 5


def fitting(world: World, shape: Any) -> Array:
    """Return whether a job of that shape (a row of `classes`) fits each node when it is empty, bool [nodes]."""
    fits: Array = (world.nodes["limit"] >= shape["threads"]) & (world.nodes["memory"] >= shape["memory"])
    return fits if shape["places"] < 0 else fits & (world.allowed[shape["places"]] == 1)


def check_fit(workflow: Workflow, cluster: Cluster, world: World, class_of: Array, settled: Collection[str]) -> None:
    """Raise InvalidJobError for the jobs that can never start, InvalidJobErrors for several. O(jobs + classes * nodes).

    Args:
        workflow: the jobs.
        cluster: the nodes.
        world: the tables of the simulation.
        class_of: class of each job, int [jobs].
        settled: ids of jobs that are not checked: running or done.
    """
    classes, nodes = world.classes, world.nodes
    if len(classes) == 0 or (
        classes["threads"].max() <= nodes["limit"].min()
        and classes["memory"].max() <= nodes["memory"].min()
        and classes["nodes"].max() <= len(nodes)
        and classes["places"].max() < 0
    ):
        return
    misfits: dict[int, str] = {}
    for c, shape in enumerate(classes):
        enough = int(fitting(world, shape).sum())
        if enough < shape["nodes"]:
            misfits[c] = _why_not(shape, nodes, enough, cluster.oversubscription)
    job_classes = zip(workflow.jobs, class_of.tolist(), strict=True)
    unfit_jobs = (
        [(job.id, misfits[c]) for job, c in job_classes if c in misfits and job.id not in settled] if misfits else []
    )
    where, never = workflow.source or workflow.name, f"can never start on {cluster.name!r}"
    errors = [InvalidJobError(f"{where}: job {name!r} {never}: {why}") for name, why in unfit_jobs[:MOST_NAMED]]
    if others := len(unfit_jobs) - len(errors):
        errors.append(InvalidJobError(f"{where}: and {others:,} more job{'s' * (others > 1)} {never}"))
    if errors:
        raise errors[0] if len(errors) == 1 else InvalidJobErrors(errors, len(unfit_jobs))


def _why_not(shape: Any, nodes: Array, enough: int, oversubscription: float) -> str:
    threads, memory, node_count = int(shape["threads"]), float(shape["memory"]), int(shape["nodes"])
    if threads > nodes["limit"].max():
        most = max(float(nodes["limit"].max()), 0.0)
        return (
            f"it needs {count(threads, 'thread')} on a node and the largest takes {most:g} "
            f"(oversubscription {oversubscription:g} threads per core)"
        )
    if memory > nodes["memory"].max():
        largest = float(nodes["memory"].max())
        needed, has = (f"{size / 2**30:.3g}GiB" if size >= 2**20 else f"{size:g} bytes" for size in (memory, largest))
        return f"it needs {needed} on a node and the largest has {has}"
    where = "of its size" if shape["places"] < 0 else "of its size among those that may run it"
    return f"it needs {count(node_count, 'node')} {where} at once and there are {enough}"
