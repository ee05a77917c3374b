"""Sweeps: the runs that a sweep consists of, their identity, and the best of their results.

Rule: runs are numbered in the order of the file, the workload varying slowest, so that what is read once serves the
next runs. Results are compared only if they replay the same jobs at the same load; unknown values take part in no
comparison. The identity of a run covers everything that can change its result and nothing else: the content of its
files (not their location), the selection of jobs, machine, policy, seed, and the version of pilotfish.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import count, product
from typing import Any

from .model.network import SOLVERS
from .queue_policies.loaded_policies import Own
from .queue_policies.policy_options import Amount, Sharing
from .queue_policies.policy_specs import Placing, Planned, Policy, text_of
from .replay.select import Select
from .slurm.site_policy import SlurmRules
from .world.known_run_times import WALLTIME

#: A machine of the size that the trace states.
AS_TRACED = "trace"
#: The machine of a policy that brings its own.
OF_POLICY = "site"
#: Policies that a sweep can vary.
Chosen = Policy | Placing | Planned | Own | SlurmRules


@dataclass(frozen=True, slots=True)
class Trace:
    """A workload of a sweep."""

    file: str  # as the sweep names it
    key: str  # its place in the sweep file, for messages: workloads[0]
    select: Select = field(default_factory=Select)  # which of its jobs; its own load is 1
    loads: tuple[float, ...] = (1.0,)  # factors on the arrival rate, one run each
    skip_invalid: bool = False  # leave out lines without a job


@dataclass(frozen=True, slots=True)
class ClusterMachine:
    """The machine of a cluster file: its resources are its cores, or its nodes."""

    file: str
    whole_nodes: bool = False
    solver: str = SOLVERS[0]  # how jobs share the links of its network, one of SOLVERS

    def __str__(self) -> str:
        return ":".join((self.file, *["node"] * self.whole_nodes, *[self.solver] * (self.solver != SOLVERS[0])))


@dataclass(frozen=True, slots=True)
class Sweep:
    """The values that are varied."""

    source: str  # the sweep file
    traces: tuple[Trace, ...]  # workloads
    policies: tuple[Chosen, ...]  # queue policies
    #: Numbers of processors, or cluster files; None = the size that the trace states.
    machines: tuple[int | ClusterMachine | None, ...] = (None,)
    seeds: tuple[int, ...] = (0,)  # seeds of random policies and models
    runtimes: tuple[str, ...] = (WALLTIME,)  # what the policies know of run times, of `known_run_times.RUNTIMES`
    contention: tuple[bool, ...] = (False,)  # whether jobs on one node slow each other down

    def __len__(self) -> int:
        """Return the number of runs."""
        number = len(self.machines) * len(self.policies) * len(self.seeds) * len(self.runtimes) * len(self.contention)
        return sum(len(trace.loads) for trace in self.traces) * number


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One replay of a sweep; `number` counts from 0 in the sweep's order."""

    number: int
    trace: Trace
    load: float
    machine: int | ClusterMachine | None
    policy: Chosen
    seed: int
    runtimes: str = WALLTIME
    contention: bool = False

    @property
    def select(self) -> Select:
        """Selection of the replayed jobs, and their load."""
        return replace(self.trace.select, load=self.load)


def runs(sweep: Sweep) -> Iterator[SweepRun]:
    """Yield all runs of a sweep in its order."""
    numbers = count()
    for trace in sweep.traces:
        settings = product(trace.loads, sweep.machines, sweep.policies, sweep.runtimes, sweep.contention, sweep.seeds)
        for load, machine, policy, runtimes, contention, seed in settings:
            yield SweepRun(next(numbers), trace, load, machine, policy, seed, runtimes, contention)


#: Column -> field of Select; present if some workload of the sweep sets it.
_SELECTING = {"from": "begin", "until": "end", "users": "users", "min_size": "least", "max_size": "most"}


def columns(sweep: Sweep) -> tuple[str, ...]:
    """Return the column names of `described`; each option of a policy has a column."""
    selections = [
        name for name, key in _SELECTING.items() if any(_limit_of(trace, key) is not None for trace in sweep.traces)
    ]
    options = dict.fromkeys(f"policy_{name}" for policy in sweep.policies for name in options_of(policy))
    varied_columns = ["runtimes"] * (sweep.runtimes != (WALLTIME,)) + ["contention"] * (sweep.contention != (False,))
    return ("run", "workload", *selections, "load", "machine", "policy", *options, *varied_columns, "seed")


def described(run: SweepRun, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the varied values of one run, keyed by `names`; None where they do not apply."""
    unnamed = AS_TRACED if run.policy.machine is None else OF_POLICY
    values: dict[str, Any] = {
        "run": run.number,
        "workload": run.trace.file,
        "load": run.load,
        "machine": unnamed if run.machine is None else str(run.machine),
        "policy": text_of(run.policy),
        "seed": run.seed,
        "runtimes": run.runtimes,
        "contention": run.contention,
    }
    values |= {name: _limit_of(run.trace, key) for name, key in _SELECTING.items()}
    values |= {f"policy_{name}": value for name, value in options_of(run.policy).items()}
    return {name: values.get(name) for name in names}


def _limit_of(trace: Trace, key: str) -> Any:
    """Return a limit of a selection, or None."""
    value = getattr(trace.select, key)
    return " ".join(map(str, value)) or None if key == "users" else value


def options_of(policy: Any) -> dict[str, Any]:
    """Return option -> value of a policy and its parts, defaults included."""
    options: dict[str, Any] = dict(policy.options) if policy.family == "python" else {}
    for part in policy.parts:
        for option in fields(part):
            value = getattr(part, option.name)
            options[option.name] = str(value) if isinstance(value, Amount | Sharing) else value
    return options


Row = Mapping[str, Any]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A result column, its name for people, and whether large values are good."""

    column: str
    name: str
    maximise: bool = False

    def cost(self, row: Row) -> float | None:
        """Return the value to minimise; None if unknown."""
        value = row.get(self.column)
        return None if value is None else -float(value) if self.maximise else float(value)


WAITING = ResultColumn("mean_waiting_time", "waiting")
UTILISATION = ResultColumn("utilisation", "utilisation", maximise=True)
ENERGY = ResultColumn("consumed_joules", "energy")
OBJECTIVES = (
    WAITING,
    ResultColumn("mean_bounded_slowdown", "slowdown"),
    ResultColumn("makespan", "makespan"),
    UTILISATION,
    ENERGY,
)


def cases(rows: Sequence[Row], same: Sequence[str]) -> list[list[Row]]:
    """Return groups of rows that agree in the columns `same` and may be compared, in their order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in same), []).append(row)
    return list(groups.values())


def best(rows: Sequence[Row], objective: ResultColumn, first: Collection[int] = ()) -> int | None:
    """Return the position of the best row, or None if no value is known.

    Args:
        rows: results that may be compared.
        objective: what to compare.
        first: positions that win ties; further ties go to the first row.
    """
    costs = ((objective.cost(row), place not in first, place) for place, row in enumerate(rows))
    return min((cost for cost in costs if cost[0] is not None), default=(None, None, None))[2]


def pareto(points: Sequence[Point | None]) -> list[int]:
    """Return the positions of the points that no other point dominates, ascending. O(points log points).

    Both coordinates are minimised. A point dominates another if it is at most as large in both and smaller in one;
    equal points all stay.
    """
    candidates = sorted((point, place) for place, point in enumerate(points) if point is not None)
    front: list[tuple[Point, int]] = []
    for point, place in candidates:
        if not front or point[1] < front[-1][0][1] or point == front[-1][0]:
            front.append((point, place))
    return sorted(place for _, place in front)


@dataclass(frozen=True, slots=True)
class BestRuns:
    """The best among comparable runs; runs are positions."""

    #: The objectives that are weighed against each other: waiting, and energy if all rows know it, else utilisation.
    two: tuple[ResultColumn, ResultColumn]
    front: tuple[int, ...]  # runs that no other run dominates in both
    best: Mapping[ResultColumn, int]  # objective -> its best run, where known; ties go to runs of the front


def worth(rows: Sequence[Row]) -> BestRuns:
    """Return the best of comparable runs. O(rows log rows)."""
    has_energy = bool(rows) and all(ENERGY.cost(row) is not None for row in rows)
    two = (ENERGY if has_energy else UTILISATION), WAITING
    pairs = [(two[0].cost(row), two[1].cost(row)) for row in rows]
    points = [None if first is None or second is None else (first, second) for first, second in pairs]
    front = tuple(pareto(points))
    best_places = {objective: best(rows, objective, frozenset(front)) for objective in OBJECTIVES}
    return BestRuns(two, front, {objective: place for objective, place in best_places.items() if place is not None})


def identity(run: SweepRun, policy: str, contents: dict[str, str], version: str, numbers: tuple[str, ...]) -> str:
    """Return the identity of a run: 32 hexadecimal digits, equal only if the results are equal.

    Args:
        run: the run.
        policy: its SPEC.
        contents: file -> hash of its content and of the files that it names, for the trace and the machine.
        version: version of pilotfish.
        numbers: names of the result columns.
    """
    select: dict[str, Any] = asdict(run.select) | {"users": sorted(set(run.select.users))}
    site = run.machine
    machine = [contents[site.file], site.whole_nodes, site.solver] if isinstance(site, ClusterMachine) else site
    trace = [contents[run.trace.file], run.trace.skip_invalid]
    parts = [version, numbers, *trace, select, machine, policy, run.seed, run.runtimes, run.contention]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
