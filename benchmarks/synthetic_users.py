"""Synthetic users, on which the constants of prediction are chosen: `SCENARIOS`, each a workload from a seed.

Rule: each scenario describes its users; no scenario was fitted to a trace. All share what the literature reports: few
users submit most jobs, in sessions of one program; estimates are round values and far too large; jobs fail early or are
killed at their limit; jobs submitted together are predicted without each other.
Source: Tsafrir, Etsion and Feitelson (JSSPP 2005; IEEE TPDS 18(6), 2007); Zilber, Amit and Talby (JSSPP 2005); Mu'alem
and Feitelson (IEEE TPDS 12(6), 2001).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pilotfish.simulate.generate.models import rounded
from pilotfish.simulate.model.workload import Workload

#: Limits of the queues, seconds; some users always request the maximum.
_QUEUES = 3600.0 * np.array([12, 24, 72, 168])


@dataclass(frozen=True, slots=True)
class Scenario:
    """Habits of the users of a workload.

    Args:
        name: name of the scenario.
        users: number of users; the n-th most active one has 1/n of the first one's sessions.
        programs: most programs of a user.
        spread: largest standard deviation of the logarithm of run times within a session.
        drift: standard deviation of the logarithm of run times between sessions, due to new inputs.
        changes: how often the run time of each program changes permanently (a new version).
        failures: share of jobs that end early, and of sessions that fail as a whole.
        together: share of sessions whose jobs are submitted at once.
        session: mean number of jobs of a session.
        days: duration of the workload.
        executables: the trace has the program of each job.
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


SCENARIOS = (
    Scenario("habits"),
    Scenario("known programs", executables=True),
    Scenario("steady users", spread=0.2, drift=0.2, failures=0.03),
    Scenario("changing inputs", spread=1.5, drift=1.5),
    Scenario("new versions", changes=5),
    Scenario("many programs", programs=12),
    Scenario("many failures", failures=0.25),
    Scenario("large campaigns", users=30, together=0.9, session=60.0),
    Scenario("many users", users=300, session=5.0),
    Scenario("first days", days=2.0),
)


@dataclass(frozen=True, slots=True)
class _Program:
    number: int
    typical: tuple[float, ...]
    spread: float
    size: float
    asked: float


def synthetic_users(scenario: Scenario, jobs: int, seed: int) -> Workload:
    """Return a workload in the order of submission. O(jobs).

    Args:
        scenario: the scenario.
        jobs: number of jobs.
        seed: seed of the random choices.
    """
    draw = np.random.default_rng(seed)
    user_of, programs = 1.0 / np.arange(1, scenario.users + 1), []
    for user in range(scenario.users):
        programs.append(list(_programs(scenario, user, draw)))
    rows: list[tuple[float, ...]] = []
    while len(rows) < jobs:
        user = int(draw.choice(scenario.users, p=user_of / user_of.sum()))
        user_programs = programs[user]
        rows += _session(scenario, user, user_programs[int(draw.integers(len(user_programs)))], draw)
    table = np.array(sorted(rows[:jobs]))
    submit, run, limit, size, user_ids, program, wait = table.T
    more = {"user": user_ids, "requested_time": limit, "wait_time": wait, "used_memory": np.ceil(1e3 * run**0.3)}
    more |= {"executable": program} if scenario.executables else {}
    return Workload(f"{scenario.name}-{seed}", np.arange(jobs), submit, run, limit, size, more=more)


def _programs(scenario: Scenario, user: int, draw: np.random.Generator) -> Iterator[_Program]:
    """Yield the programs of a user.

    A third of the users request the limit of the queue, a third an ample multiple of the run time; half use one size
    for all programs.
    """
    habit, queue, usual = draw.integers(3), draw.choice(_QUEUES), draw.integers(0, 8)
    one_size = draw.integers(2)
    for i in range(int(draw.integers(1, scenario.programs + 1))):
        typical = float(np.clip(np.exp(draw.normal(7.0, 1.8)), 5.0, 5e5))
        ample = typical * (draw.uniform(3.0, 15.0) if habit else draw.uniform(1.2, 2.5))
        requested = float(queue) if habit == 1 else float(rounded(np.array([ample]))[0])
        size = float(2 ** (usual if one_size else draw.integers(0, 8)))
        versions = tuple(float(typical * np.exp(draw.normal(0.0, 1.0))) for _ in range(scenario.changes))
        yield _Program(
            user * scenario.programs + i, (typical, *versions), scenario.spread * draw.uniform(), size, requested
        )


def _session(
    scenario: Scenario, user: int, program: _Program, draw: np.random.Generator
) -> Iterator[tuple[float, ...]]:
    """Yield (submission, run time, limit, size, user, program, wait) of each job of one session, in seconds."""
    at = draw.uniform()
    typical = program.typical[int(at * len(program.typical))] * np.exp(draw.normal(0.0, scenario.drift))
    size = program.size * draw.choice([1.0, 1.0, 1.0, 2.0])
    broken, together = draw.uniform() < scenario.failures, draw.uniform() < scenario.together
    now = at * scenario.days * 86400.0
    for _ in range(int(draw.geometric(1.0 / scenario.session))):
        run = typical * np.exp(draw.normal(0.0, program.spread))
        if broken or draw.uniform() < scenario.failures:
            run = min(run, np.exp(draw.normal(2.5, 1.5)))
        run, wait = float(np.ceil(min(run, program.asked))), float(np.floor(np.exp(draw.normal(5.0, 2.0))))
        yield np.floor(now), run, program.asked, size, float(user), float(program.number), wait
        now += draw.exponential(2.0) if together else wait + run + draw.exponential(600.0)
