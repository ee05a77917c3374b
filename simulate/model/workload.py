"""A workload of rigid jobs: columns, one row a job, in the order of submission.

Rule: what is in it can be replayed: its times are such that no sum of them is beyond what a number can say. What could
not be replayed is left out where it is read, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .dependencies import Dependencies, side_by_side
from .errors import ConfigError
from .phases import Programs, together

Array = npt.NDArray[Any]
#: Most seconds of a time, 30 million years: to here, times are exact to a fraction of a second.
LONGEST = 1e15


@dataclass(frozen=True, slots=True)
class Workload:
    """Rigid jobs; all columns have one row a job.

    Args:
        name: of the file, say.
        id: numbers of the jobs, int64.
        submit_time, run_time, walltime: seconds, LONGEST at most; submit times ascend, run times are not below 0, and
            nan where they depend on where a job runs; a walltime may be infinite.
        size: resources that each job asks for, int64, 1 or more.
        more: other columns that a format knows, by name.
        machine: resources of the machine that the workload was made for; None = not said.
        left_out: what is in the file and not in here: why -> how many.
        programs: what jobs do whose run time is nan; the column `program` has their numbers, -1 for the others.
        dependencies: whose end jobs wait for; they are submitted then, at their submit time at the earliest; None:
            nobody's.

    Raises:
        ConfigError: a time is beyond LONGEST, or none.
    """

    name: str
    id: Array
    submit_time: Array
    run_time: Array
    walltime: Array
    size: Array
    more: Mapping[str, Array] = field(default_factory=dict)
    machine: int | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    programs: Programs | None = None
    dependencies: Dependencies | None = None

    def __post_init__(self) -> None:
        for name in TIMES:
            if (row := _beyond(self, name)) is not None:
                job, found = self.more.get("name", self.id)[row], float(getattr(self, name)[row])
                raise ConfigError(self.name, f"job {job}, {name}", f"{found!r} seconds", f"at most {LONGEST:g}")

    def __len__(self) -> int:
        return len(self.id)

    def take(self, rows: Array, why: str = "") -> Workload:
        """These rows only (a mask, or their numbers in the order wanted); what is left out is counted under `why`."""
        if rows.dtype == bool and rows.all():
            return self
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        more = {name: column[rows] for name, column in self.more.items()}
        gone = len(self) - len(columns["id"])
        left_out = dict(self.left_out)
        if gone and why:
            left_out[why] = left_out.get(why, 0) + gone
        dependencies = None
        if self.dependencies is not None:
            dependencies, lost = self.dependencies.take(rows, len(self))
            if lost:
                left_out[LOST] = left_out.get(LOST, 0) + lost
        return replace(self, **columns, more=more, left_out=left_out, dependencies=dependencies)


def joined(workloads: Sequence[Workload]) -> Workload:
    """One workload of several, in the order of submission; of those submitted at one time the first workload's first.

    Whose each job is stands in the column `workload`; of other columns those stay that all have, and what tasks move,
    need and asked for, where one has it. O(jobs log jobs).
    """
    if len(workloads) == 1:
        return workloads[0]
    columns = {name: np.concatenate([getattr(each, name) for each in workloads]) for name in COLUMNS}
    known = set[str]().union(*(each.more for each in workloads))
    every = [_said(each, known) for each in workloads]
    more = {name: np.concatenate([each[name] for each in every]) for name in set.intersection(*map(set, every))}
    left_out: dict[str, int] = {}
    for each in workloads:
        for why, count in each.left_out.items():
            left_out[why] = left_out.get(why, 0) + count
    machine = max((each.machine for each in workloads if each.machine is not None), default=None)
    name, programs = "+".join(each.name for each in workloads), None
    if any(each.programs for each in workloads):
        programs, more["program"] = _programs(workloads)
    dependencies = side_by_side([(each.dependencies, len(each)) for each in workloads])
    return in_order(Workload(
        name, **columns, more=more, machine=machine, left_out=left_out, programs=programs, dependencies=dependencies
    ))  # fmt: skip


def _programs(workloads: Sequence[Workload]) -> tuple[Programs, Array]:
    """What their jobs do, and which of it each does."""
    programs, before = together([each.programs for each in workloads if each.programs])
    added, columns = iter(before), []
    for each in workloads:
        if each.programs:
            mine = each.more["program"]
            columns.append(np.where(mine < 0, mine, mine + next(added)))
        else:
            columns.append(np.full(len(each), -1))
    return programs, np.concatenate(columns)


def _said(workload: Workload, known: set[str]) -> dict[str, Array]:
    """Its further columns, with what each job is called, of what profile and in which workload it is, said; and what
    its tasks do, of the columns that are known."""
    nothing = np.zeros(len(workload))
    tasks = {"volume": nothing, "memory": nothing, "asked": workload.walltime}
    names = workload.id.astype(str).astype(object)
    whose = np.full(len(workload), workload.name, object)
    said = {"name": names, "profile": workload.more.get("name", names), "workload": whose}
    return {**said, **{name: tasks[name] for name in tasks if name in known}, **workload.more}


TIMES = ("submit_time", "run_time", "walltime")
COLUMNS = ("id", *TIMES, "size")
#: What is counted where a job stays that waited for one that does not.
LOST = "dependencies on jobs that are left out"


def in_order(workload: Workload) -> Workload:
    """Sorted by submit time; of those submitted at one time the order stays."""
    times = workload.submit_time
    if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
        return workload
    return workload.take(np.argsort(times, kind="stable"))


def _beyond(workload: Workload, name: str) -> int | None:
    """The first row whose time is none, or beyond LONGEST; None: all are as they may be. O(jobs)."""
    times = getattr(workload, name)
    if times.min(initial=0.0) >= -LONGEST and times.max(initial=0.0) <= LONGEST:
        return None
    known = np.abs(times) <= LONGEST
    if name == "run_time":
        known |= np.isnan(times)
    elif name == "walltime":
        known |= times == math.inf
    return None if known.all() else int(known.argmin())
