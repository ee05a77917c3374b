"""Made-up users, on whom the constants of prediction are chosen: `WORLDS`, each a workload from a seed.

Rule: every world says what its users are like; nothing in it was fitted to a trace. What is known of users from the
literature is in all of them: few submit most jobs, in sessions of one program; estimates are round values and far too
large; jobs fail early or are killed at their limit; jobs submitted together are predicted without each other.
Source: Tsafrir, Etsion and Feitelson (JSSPP 2005; IEEE TPDS 18(6), 2007); Zilber, Amit and Talby (JSSPP 2005); Mu'alem
and Feitelson (IEEE TPDS 12(6), 2001).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pilotfish.simulate.generate.walltimes import rounded
from pilotfish.simulate.workload import Workload

#: What users type who look nothing up, seconds: the most that their queue allows.
_QUEUES = 3600.0 * np.array([12, 24, 72, 168])


@dataclass(frozen=True, slots=True)
class World:
    """What users are like.

    Args:
        users: how many; the n-th most active one has 1/n of the first one's sessions.
        programs: of each user, at most.
        spread: standard deviation of the logarithm of run times within a session, at the most.
        drift: of what a program's input adds from session to session.
        changes: how often in all that time each program comes to need something else for good (a new version of it).
        failures: share of jobs that end early; as many sessions fail as a whole.
        together: share of sessions whose jobs are submitted at once.
        session: jobs of a session in the mean.
        days: how long it all lasts.
        executables: whether the trace says which program a job ran.
    """

    name: str
    users: int = 60
    programs: int = 4
    spread: float = 1.0
    drift: float = 0.7
    changes: int = 0
    failures: float = 0.08
    together: float = 0.4
    session: float = 10.0
    days: float = 10.0
    executables: bool = False


WORLDS = (
    World("habits"),
    World("programs told", executables=True),
    World("steady users", spread=0.2, drift=0.2, failures=0.03),
    World("ever new inputs", spread=1.5, drift=1.5),
    World("new versions", changes=5),
    World("many programs", programs=12),
    World("many failures", failures=0.25),
    World("large campaigns", users=30, together=0.9, session=60.0),
    World("many users", users=300, session=5.0),
    World("first days", days=2.0),
)


@dataclass(frozen=True, slots=True)
class _Program:
    number: int
    typical: tuple[float, ...]
    spread: float
    size: float
    asked: float


def made_up(world: World, jobs: int, seed: int) -> Workload:
    """A workload of so many jobs of such users, in the order of submission. O(jobs)."""
    draw = np.random.default_rng(seed)
    user_of, programs = 1.0 / np.arange(1, world.users + 1), []
    for user in range(world.users):
        programs.append(list(_programs(world, user, draw)))
    rows: list[tuple[float, ...]] = []
    while len(rows) < jobs:
        user = int(draw.choice(world.users, p=user_of / user_of.sum()))
        own = programs[user]
        rows += _session(world, user, own[int(draw.integers(len(own)))], draw)
    table = np.array(sorted(rows[:jobs]))
    submit, run, limit, size, who, program, wait = table.T
    more = {"user": who, "requested_time": limit, "wait_time": wait, "used_memory": np.ceil(1e3 * run**0.3)}
    more |= {"executable": program} if world.executables else {}
    return Workload(f"{world.name}-{seed}", np.arange(jobs), submit, run, limit, size, more=more)


def _programs(world: World, user: int, draw: np.random.Generator) -> Iterator[_Program]:
    """A user's programs. A third of the users ask for all that the queue allows, a third for what is ample; every
    second one uses one size for all of them."""
    habit, queue, usual = draw.integers(3), draw.choice(_QUEUES), draw.integers(0, 8)
    one_size = draw.integers(2)
    for i in range(int(draw.integers(1, world.programs + 1))):
        typical = float(np.clip(np.exp(draw.normal(7.0, 1.8)), 5.0, 5e5))
        ample = typical * (draw.uniform(3.0, 15.0) if habit else draw.uniform(1.2, 2.5))
        asked = float(queue) if habit == 1 else float(rounded(np.array([ample]))[0])
        size = float(2 ** (usual if one_size else draw.integers(0, 8)))
        versions = tuple(float(typical * np.exp(draw.normal(0.0, 1.0))) for _ in range(world.changes))
        yield _Program(user * world.programs + i, (typical, *versions), world.spread * draw.uniform(), size, asked)


def _session(world: World, user: int, program: _Program, draw: np.random.Generator) -> Iterator[tuple[float, ...]]:
    """(submission, run time, limit, size, user, program, wait) of each job of one session, seconds."""
    at = draw.uniform()
    typical = program.typical[int(at * len(program.typical))] * np.exp(draw.normal(0.0, world.drift))
    size = program.size * draw.choice([1.0, 1.0, 1.0, 2.0])
    broken, together = draw.uniform() < world.failures, draw.uniform() < world.together
    now = at * world.days * 86400.0
    for _ in range(int(draw.geometric(1.0 / world.session))):
        run = typical * np.exp(draw.normal(0.0, program.spread))
        if broken or draw.uniform() < world.failures:
            run = min(run, np.exp(draw.normal(2.5, 1.5)))
        run, wait = float(np.ceil(min(run, program.asked))), float(np.floor(np.exp(draw.normal(5.0, 2.0))))
        yield np.floor(now), run, program.asked, size, float(user), float(program.number), wait
        now += draw.exponential(2.0) if together else wait + run + draw.exponential(600.0)
