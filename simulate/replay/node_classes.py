"""A queue of jobs that may run on some of the nodes only, replayed under EASY by classes of nodes.

Rule: nodes on which the same jobs may run are one class; only its number of cores counts. A job takes cores of
the classes that it may use, first of those that the fewest waiting jobs may use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..model.workload import Dependencies, Workload, in_order

KERNEL = "queue.classed"
#: Instants that are replayed in one step.
INSTANTS = 200


@dataclass(frozen=True, slots=True)
class NodeClasses:
    """Classes of nodes, and which jobs may use them.

    Args:
        kind: of each job [jobs]: those of one kind may use the same nodes.
        may: whether jobs of a kind may use a class, 0 or 1 [kinds, classes].
        cores: of each class [classes].
        held: cores of each class that the running jobs have, which are the first ones [running, classes].
    """

    kind: Array
    may: Array
    cores: Array
    held: Array

    def __len__(self) -> int:
        return len(self.cores)

    def room(self, job: int) -> int:
        """Return the number of cores that a job may use."""
        return int(self.may[self.kind[job]] @ self.cores)

    def start_times(
        self,
        size: Sequence[int],
        begin: Array,
        run: Array,
        wall: Array,
        dependencies: Dependencies,
        breathe: Callable[[], None] = lambda: None,
    ) -> Array:
        """Return when each job starts under EASY, seconds; 0 if it runs, nan if it never starts. O(jobs^2 x classes).

        Args:
            size: cores that each job needs [jobs].
            begin: before which no job starts, seconds [jobs]; rows are in the order of the queue.
            run: run times, from now on of jobs that run, seconds [jobs].
            wall: the latest ends, in the same way [jobs].
            dependencies: jobs that start after the end of others.
            breathe: called between two steps.
        """
        from ..kernels.object_cache import load  # a daemon whose adapter has no such queue never needs them
        from ..kernels.queue.tables import DONE, Classed
        from ..world.job_dependencies import dependency_tables

        jobs, running = len(size), len(self.held)
        queue = in_order(
            Workload("queue", np.arange(jobs), begin, run, wall, np.asarray(size), dependencies=dependencies)
        )
        world = Classed(
            {"may": self.may, **dependency_tables(queue)},
            {
                **dict.fromkeys(("jobs", "heap_time", "heap_job", "queue"), (jobs,)),
                "ends": (2 * jobs + 2,),
                "held": (jobs, len(self)),
                **dict.fromkeys(("free", "later"), (len(self),)),
            },
        )
        rows, count, now = world.jobs, world.count, slice(running)
        for name, column in (("submit", queue.submit_time), ("run", queue.run_time), ("wall", queue.walltime)):
            rows[name] = column
        rows["size"], rows["rank"], rows["kind"] = queue.size, queue.id, self.kind[queue.id]
        rows["start"][running:] = math.nan
        world.held[now] = self.held
        world.free[:] = self.cores - self.held.sum(axis=0)
        for time, job, column in (
            (world.heap_time, world.heap_job, rows["run"][now]),
            (world.ends["time"], world.ends["job"], rows["wall"][now]),
        ):
            job[now] = np.argsort(column, kind="stable")
            time[now] = column[job[now]]
        count["total"], count["next"], count["running"] = jobs, running, running
        while load(KERNEL)(world.address, INSTANTS) != DONE:
            breathe()
        start = np.empty(jobs)
        start[queue.id] = rows["start"]
        return start


def node_classes(
    nodes: Mapping[str, int], running: Sequence[tuple[frozenset[str], int]], waiting: Sequence[frozenset[str]]
) -> NodeClasses:
    """Return the classes of nodes on which the same jobs may run. O(jobs + nodes x kinds).

    Args:
        nodes: cores of each node that takes jobs, by name.
        running: the nodes of each running job, and its cores on each.
        waiting: the nodes that each waiting job may use.
    """
    usable = {where: frozenset(where & nodes.keys()) for where in dict.fromkeys(waiting)}
    kinds = Counter(usable[where] for where in waiting)
    number = {where: i for i, where in enumerate(kinds)}
    signs = {name: tuple(name in where for where in kinds) for name in nodes}
    distinct = set(signs.values())
    users = {sign: sum(jobs for has, jobs in zip(sign, kinds.values(), strict=True) if has) for sign in distinct}
    classes = sorted(users, key=lambda sign: (users[sign], sign))
    place = {sign: i for i, sign in enumerate(classes)}
    cores, held = np.zeros(len(classes), np.int64), np.zeros((len(running), len(classes)), np.int64)
    for name, count in nodes.items():
        cores[place[signs[name]]] += count
    for row, (where, job_cores) in zip(held, running, strict=True):
        for name in where & nodes.keys():
            row[place[signs[name]]] += job_cores
    kind = [0] * len(running) + [number[usable[where]] for where in waiting]
    may = np.array(classes, np.int64).T.reshape(len(kinds), len(classes))
    return NodeClasses(np.array(kind), np.ascontiguousarray(may), np.maximum(cores, held.sum(axis=0)), held)
