"""Workflows of STREAM jobs, as in the experiments of DESiDE: something to contend for memory bandwidth.

Rule: everything is drawn from a seed, profiles from one of their own. 36 distinct STREAM jobs of 4 to 28 threads at 3.6
to 10.5 GB/s a thread are published; how long they run and how they depend on each other is not, and is drawn here.
Source: Chahal, Mathew and Nambiar, ICPE 2019, 5.1: DAG-1 has 50 jobs and DAG-2 100, on servers of 56 cores and 80 GB/s.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from ..job import Job, Profile, ThreadGroup, Workflow
from . import published

#: For each job the places of those that it waits for.
Parents = list[list[int]]
DISTINCT, THREADS, GB_PER_S = 36, (4, 28), (3.6, 10.5)
#: CPU seconds of a thread, and the share of a core that it wants.
DEMAND, UTILISATION = (10.0, 100.0), (0.9, 1.0)


def stream_profiles(seed: int = 0) -> tuple[Profile, ...]:
    """The distinct STREAM jobs; a thread alone takes 10 to 100 s or a little more."""
    draw = random.Random(seed)
    return tuple(
        Profile(
            (
                ThreadGroup(
                    count=draw.randint(*THREADS),
                    service_demand=draw.uniform(*DEMAND),
                    utilisation=draw.uniform(*UTILISATION),
                    utilisation_std=0.1,
                    bandwidth=draw.uniform(*GB_PER_S) * 1e9,
                ),
            ),
            name=f"stream-{i}",
        )
        for i in range(DISTINCT)
    )


def wide(jobs: int, _: random.Random) -> Parents:
    """One job, then all the others at once."""
    return [[], *([0] for _ in range(jobs - 1))]


def layered(jobs: int, draw: random.Random, levels: int = 8) -> Parents:
    """Levels of equal width; a job waits for one to three of the level before."""
    width = max(1, jobs // levels)
    parents: Parents = []
    for i in range(jobs):
        first = (i // width) * width
        above = range(max(0, first - width), first)
        parents.append(sorted(draw.sample(above, min(len(above), draw.randint(1, 3)))))
    return parents


def diamonds(jobs: int, _: random.Random, branches: int = 4) -> Parents:
    """A chain of diamonds: one job, then `branches` at once, then one that waits for them all."""
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
    """Each job waits for up to two of the ten before it."""
    return [sorted(draw.sample(range(max(0, i - 10), i), draw.randint(0, min(2, i)))) for i in range(jobs)]


def shallow(jobs: int, draw: random.Random) -> Parents:
    """Few levels of many jobs: a job waits for one of the first tenth, or for nothing."""
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
    """A workflow of that shape whose jobs are drawn from the STREAM jobs. O(jobs).

    Args:
        jobs: 1 or more; of the shapes of applications, about as many, and all tasks of a category are alike.
        shape: a key of SHAPES, or of the shapes of applications (`published.SHAPES`).
        seed: 0 or more.
    """
    draw, profiles = random.Random(seed), stream_profiles()
    if shape in published.SHAPES:
        tasks = published.SHAPES[shape](jobs)
        alike = dict[str, Profile]()
        for category, _ in tasks:
            alike.setdefault(category, draw.choice(profiles))
        names = [f"{category}_{i}" for i, (category, _) in enumerate(tasks)]
        made = [(names[i], alike[category], before) for i, (category, before) in enumerate(tasks)]
    else:
        parents = SHAPES[shape](jobs, draw)
        names = [f"j{i}" for i in range(jobs)]
        made = [(names[i], draw.choice(profiles), before) for i, before in enumerate(parents)]
    flow = tuple(Job(name, profile, tuple(names[p] for p in before)) for name, profile, before in made)
    return Workflow(f"{shape}-{len(flow)}-{seed}", flow)
