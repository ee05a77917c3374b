"""Workflows of STREAM jobs, which contend for memory bandwidth, as in the experiments of DESiDE.

Rule: everything is drawn from a seed; the profiles have a seed of their own. The paper publishes 36 distinct STREAM
jobs of 4 to 28 threads at 3.6 to 10.5 GB/s a thread; their run times and dependencies are not published and are drawn
here.
Source: Chahal, Mathew and Nambiar, "DESiDE", ICPE 2019, 5.1: DAG-1 has 50 jobs and DAG-2 100, on servers of 56 cores
and 80 GB/s.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ..model.job import Job, Profile, ThreadGroup, Workflow
from . import published_workflows

#: For each job the indices of its predecessors.
Parents = list[list[int]]
DISTINCT, THREADS, GB_PER_S = 36, (4, 28), (3.6, 10.5)
#: CPU seconds of a thread, and its utilisation of a core.
DEMAND, UTILISATION = (10.0, 100.0), (0.9, 1.0)


def stream_profiles() -> tuple[Profile, ...]:
    """Return the distinct STREAM jobs; a thread alone takes 10 to a little over 100 s."""
    draw = random.Random(0)

    def group() -> ThreadGroup:
        count, demand, utilisation = draw.randint(*THREADS), draw.uniform(*DEMAND), draw.uniform(*UTILISATION)
        return ThreadGroup(count, demand, utilisation, 0.1, draw.uniform(*GB_PER_S) * 1e9)

    return tuple(Profile((group(),), name=f"stream-{i}") for i in range(DISTINCT))


def wide(jobs: int, _: random.Random) -> Parents:
    """Return one job, then all the others at once."""
    return [[], *([0] for _ in range(jobs - 1))]


def layered(jobs: int, draw: random.Random, levels: int = 8) -> Parents:
    """Return levels of equal width; each job waits for one to three of the level before."""
    width = max(1, jobs // levels)
    parents: Parents = []
    for i in range(jobs):
        first = (i // width) * width
        above = range(max(0, first - width), first)
        parents.append(sorted(draw.sample(above, min(len(above), draw.randint(1, 3)))))
    return parents


def diamonds(jobs: int, _: random.Random, branches: int = 4) -> Parents:
    """Return a chain of diamonds: one job, then `branches` jobs at once, then one that waits for them all."""
    parents: Parents = [[]]
    tip, members = 0, list[int]()
    while len(parents) < jobs:
        if len(members) < branches and len(parents) < jobs - 1:
            members.append(len(parents))
            parents.append([tip])
        else:
            tip = len(parents)
            parents.append(members or [tip - 1])
            members = []
    return parents


def tangled(jobs: int, draw: random.Random) -> Parents:
    """Return jobs that each wait for up to two of the ten before."""
    return [sorted(draw.sample(range(max(0, i - 10), i), draw.randint(0, min(2, i)))) for i in range(jobs)]


def shallow(jobs: int, draw: random.Random) -> Parents:
    """Return few levels of many jobs: a job waits for one of the first tenth, or for nothing."""
    first = max(1, jobs // 10)
    return [[draw.randrange(min(i, first))] if i >= first or (draw.random() < 0.3 and i) else [] for i in range(jobs)]


SHAPES: dict[str, Callable[[int, random.Random], Parents]] = {
    "layered": layered,
    "wide": wide,
    "diamonds": diamonds,
    "random": tangled,
    "shallow": shallow,
}


def stream(jobs: int, *, shape: str = "layered", seed: int = 0) -> Workflow:
    """Return a workflow of that shape whose jobs are drawn from the STREAM jobs. O(jobs).

    Args:
        jobs: 1 or more; shapes of applications have about as many, and all tasks of a category are equal.
        shape: a key of SHAPES, or of `published_workflows.SHAPES`.
        seed: 0 or more.
    """
    draw, profiles = random.Random(seed), stream_profiles()
    if shape in published_workflows.SHAPES:
        tasks, by_category = published_workflows.SHAPES[shape](jobs), dict[str, Profile]()
        chosen = [by_category.setdefault(category, draw.choice(profiles)) for category, _ in tasks]
        names, parents = [f"{category}_{i}" for i, (category, _) in enumerate(tasks)], [before for _, before in tasks]
    else:
        names, parents = [f"j{i}" for i in range(jobs)], SHAPES[shape](jobs, draw)
        chosen = [draw.choice(profiles) for _ in names]
    before = [tuple(names[p] for p in indices) for indices in parents]
    return Workflow(f"{shape}-{len(names)}-{seed}", tuple(map(Job, names, chosen, before)))
