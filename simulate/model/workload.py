"""A workload of rigid jobs: columns with one row a job, in the order of submission; and dependencies between rows.

Rule: every job in it can be replayed, and no sum of its times loses precision. Readers leave out, and count, jobs that
cannot be replayed. Dependencies are pairs of rows without a cycle; a pair is dropped with either of its jobs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from .programs import Programs, concatenate


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Job `after[k]` is submitted `delay[k]` seconds after job `before[k]` has ended by itself and with success.

    Args:
        before: rows, int64.
        after: rows, int64.
        delay: seconds, 0 or more; None = 0 for all.
        any_end: whether it does not matter how the first job ends, bool; None = it matters for all.
    """

    before: Array
    after: Array
    delay: Array | None = None
    any_end: Array | None = None

    def __len__(self) -> int:
        return len(self.before)

    @property
    def delays(self) -> Array:
        """Seconds of each pair."""
        return np.zeros(len(self)) if self.delay is None else self.delay

    @property
    def at_any_end(self) -> Array:
        """Mask of the pairs for which it does not matter how the first job ends."""
        return np.zeros(len(self), bool) if self.any_end is None else self.any_end

    def pairs(self, chosen: Array | slice, shift: int = 0) -> Dependencies:
        """Return some pairs.

        Args:
            chosen: a mask, or numbers of pairs in the wanted order.
            shift: added to the rows.
        """
        more = (None if column is None else column[chosen] for column in (self.delay, self.any_end))
        return Dependencies(self.before[chosen] + shift, self.after[chosen] + shift, *more)

    def take(self, rows: Array, jobs: int) -> tuple[Dependencies, int]:
        """Return the pairs among some rows, renumbered, and the number of pairs whose first job is dropped.

        O(jobs + dependencies).

        Args:
            rows: a mask, or row numbers.
            jobs: number of jobs before.
        """
        kept_rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        place = np.full(jobs, -1, np.int64)
        place[kept_rows] = np.arange(len(kept_rows))
        before, after = place[self.before], place[self.after]
        both = (before >= 0) & (after >= 0)
        pairs = replace(self, before=before, after=after).pairs(both)
        return pairs, int(((after >= 0) & (before < 0)).sum())


def concatenate_dependencies(parts: Sequence[tuple[Dependencies | None, int]]) -> Dependencies | None:
    """Concatenate the dependencies of workloads, given as (dependencies, number of jobs); None if all are None."""
    first = np.cumsum([0, *(jobs for _, jobs in parts)]).tolist()
    shifted = [
        dependencies.pairs(slice(None), shift)
        for (dependencies, _), shift in zip(parts, first, strict=False)
        if dependencies is not None
    ]
    if not shifted:
        return None
    columns = (
        [getattr(dependencies, name) for dependencies in shifted]
        for name in ("before", "after", "delays", "at_any_end")
    )
    return Dependencies(*map(np.concatenate, columns))


#: Largest time, seconds (30 million years): up to here, times are exact to a fraction of a second.
LONGEST = 1e15


@dataclass(frozen=True, slots=True)
class Workload:
    """Rigid jobs; all columns have one row a job.

    Args:
        name: of the file, for example.
        id: numbers of the jobs, int64.
        submit_time: seconds, ascending, at most LONGEST.
        run_time: seconds, 0 or more, at most LONGEST; nan if it depends on where the job runs.
        walltime: seconds, at most LONGEST, or infinite.
        size: requested resources, int64, 1 or more.
        more: further columns of the format, by name.
        machine: resources of the machine that the workload was made for; None = not stated.
        left_out: why jobs of the file are missing here -> how many.
        programs: work of the jobs whose run time is nan; the column `program` has its numbers, -1 for other jobs.
        dependencies: a waiting job is submitted at the end of its predecessors, at its submit time at the earliest;
            None = no job waits.
        epoch: Unix time of second 0; None = unknown.
        doubts: a sentence for each kind of implausible quantity in the file.

    Raises:
        ConfigError: a time is beyond LONGEST or invalid.
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
    epoch: float | None = None
    doubts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in TIMES:
            if (row := _first_invalid(self, name)) is not None:
                job, value = self.more.get("name", self.id)[row], float(getattr(self, name)[row])
                raise ConfigError(self.name, f"job {job}, {name}", f"{value!r} seconds", f"at most {LONGEST:g}")

    def __len__(self) -> int:
        return len(self.id)

    @property
    def overruns(self) -> Array:
        """Mask of the jobs that are killed at their walltimes, as far as their run times are known, bool [jobs]."""
        late = self.more.get("late", np.zeros(len(self), bool))
        return np.asarray((self.run_time > self.walltime) | late)

    def take(self, rows: Array, why: str = "") -> Workload:
        """Return some rows.

        Args:
            rows: a mask, bool [jobs], or numbers of rows in the wanted order.
            why: what the other rows are counted under in `left_out`; empty = they are not counted.
        """
        if rows.dtype == bool and rows.all():
            return self
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        more = {name: column[rows] for name, column in self.more.items()}
        dropped_count = len(self) - len(columns["id"])
        left_out = dict(self.left_out)
        if dropped_count and why:
            left_out[why] = left_out.get(why, 0) + dropped_count
        dependencies = None
        if self.dependencies is not None:
            dependencies, lost = self.dependencies.take(rows, len(self))
            if lost:
                left_out[LOST] = left_out.get(LOST, 0) + lost
        return replace(self, **columns, more=more, left_out=left_out, dependencies=dependencies)

    def with_rows(self, rows: Sequence[tuple[Any, float, float, float, int, Mapping[str, Any]]]) -> Workload:
        """Return the workload with further jobs at its end, which depend on no other.

        Args:
            rows: name, submit time, run time, walltime, size and further columns of each; a column that is not given is
                -1, true or empty.
        """
        names, submits, runs, walls, sizes, mores = zip(*rows, strict=True)
        ids = np.arange(len(rows)) + (int(self.id.max(initial=0)) + 1)
        values = dict(zip(COLUMNS, (ids, submits, runs, walls, sizes), strict=True))
        columns: dict[str, Any] = {
            name: np.append(getattr(self, name), np.asarray(one)) for name, one in values.items()
        }
        more = {"name": self.id.astype(str).astype(object), **self.more}
        named_rows = [{"name": name, **fields} for name, fields in zip(names, mores, strict=True)]
        longer = {name: _longer(column, [fields.get(name) for fields in named_rows]) for name, column in more.items()}
        return replace(self, **columns, more=longer)


def _longer(column: Array, values: Sequence[Any]) -> Array:
    """Return a column with further values, None for those that are not known."""
    unknown = {"b": True, "O": ""}.get(column.dtype.kind, -1)
    added = np.empty(len(values), column.dtype)
    added[:] = [unknown if value is None else value for value in values]
    return np.concatenate([column, added])


def joined(workloads: Sequence[Workload]) -> Workload:
    """Return several workloads as one, in the order of submission. O(jobs log jobs).

    Jobs submitted at the same time keep the order of the workloads. The column `workload` names the origin of each job.
    Other columns stay if all workloads have them; `volume`, `memory` and `asked` stay if one has them.
    """
    if len(workloads) == 1:
        return workloads[0]
    columns = {name: np.concatenate([getattr(workload, name) for workload in workloads]) for name in COLUMNS}
    names = set[str]().union(*(workload.more for workload in workloads))
    every = [_filled_in(workload, names) for workload in workloads]
    shared = [name for name in every[0] if all(name in workload for workload in every)]
    more = {name: np.concatenate([workload[name] for workload in every]) for name in shared}
    left_out = dict(sum((Counter(workload.left_out) for workload in workloads), Counter[str]()))
    epochs = {workload.epoch for workload in workloads}
    machine = max((workload.machine for workload in workloads if workload.machine is not None), default=None)
    name, programs = "+".join(workload.name for workload in workloads), None
    if any(workload.programs for workload in workloads):
        programs, more["program"] = _programs(workloads)
    dependencies = concatenate_dependencies([(workload.dependencies, len(workload)) for workload in workloads])
    return in_order(Workload(
        name, **columns, more=more, machine=machine, left_out=left_out, programs=programs, dependencies=dependencies,
        epoch=epochs.pop() if len(epochs) == 1 else None,
        doubts=tuple(doubt for workload in workloads for doubt in workload.doubts),
    ))  # fmt: skip


def _programs(workloads: Sequence[Workload]) -> tuple[Programs, Array]:
    """Return the programs of all workloads, and the program number of each job."""
    programs, before = concatenate([workload.programs for workload in workloads if workload.programs])
    added = iter(before)
    numbers = [
        (workload.more["program"], next(added)) if workload.programs else (np.full(len(workload), -1), 0)
        for workload in workloads
    ]
    return programs, np.concatenate([np.where(column < 0, column, column + shift) for column, shift in numbers])


def _filled_in(workload: Workload, task_columns: set[str]) -> dict[str, Array]:
    """Return the further columns of a workload, with name, profile, workload and `task_columns` filled in."""
    nothing = np.zeros(len(workload))
    tasks = {"volume": nothing, "memory": nothing, "asked": workload.walltime}
    names = workload.id.astype(str).astype(object)
    workload_names = np.full(len(workload), workload.name, object)
    columns = {"name": names, "profile": workload.more.get("name", names), "workload": workload_names}
    return {**columns, **{name: tasks[name] for name in tasks if name in task_columns}, **workload.more}


TIMES = ("submit_time", "run_time", "walltime")
COLUMNS = ("id", *TIMES, "size")
#: Counted when a job stays whose predecessor is left out.
LOST = "dependencies on jobs that are left out"


def in_order(workload: Workload) -> Workload:
    """Return the workload sorted by submit time; ties keep their order."""
    times = workload.submit_time
    if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
        return workload
    return workload.take(np.argsort(times, kind="stable"))


def _first_invalid(workload: Workload, name: str) -> int | None:
    """Return the index of the first invalid time, or None. O(jobs)."""
    times = getattr(workload, name)
    if times.min(initial=0.0) >= -LONGEST and times.max(initial=0.0) <= LONGEST:
        return None
    valid = np.abs(times) <= LONGEST
    if name == "run_time":
        valid |= np.isnan(times)
    elif name == "walltime":
        valid |= times == math.inf
    return None if valid.all() else int(valid.argmin())
