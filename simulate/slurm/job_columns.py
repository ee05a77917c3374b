"""The jobs of a site as columns.

Rule: jobs that request the same share one pattern, which is a job without the fields that jobs have for themselves.
`SiteJobs` is a sequence of the `SiteJob` values that a tuple would hold; tables are made of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from .site import JobRecord, SiteJob

T = TypeVar("T")
#: Fields that are no part of a pattern, and what a pattern has instead.
_OWN: dict[str, Any] = {
    "id": "", "name": "", "user": "", "account": "", "submit": 0.0, "runs": (), "begin": None, "released": None,
    "deadline": None, "array": "", "task": -1, "dependency": "", "run_s": 0.0,
}  # fmt: skip
_SHARED = tuple(one.name for one in fields(SiteJob) if one.name not in _OWN)
_hashable = attrgetter(*(name for name in _SHARED if name != "licences"))
_RUN_FIELDS = tuple(one.name for one in fields(JobRecord))


@dataclass(frozen=True, slots=True)
class Coded(Generic[T]):
    """A column whose values are kept once: `values[codes[row]]` is that of a row."""

    values: Sequence[T]
    codes: Array  # int

    @classmethod
    def of(cls, items: Iterable[T]) -> Coded[T]:
        """Return the column of these values, which are hashable."""
        places: dict[T, int] = {}
        codes = [places.setdefault(item, len(places)) for item in items]
        return cls(tuple(places), np.array(codes, np.int32))

    def __getitem__(self, row: int) -> T:
        return self.values[int(self.codes[row])]

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[T]:
        return map(self.values.__getitem__, self.codes.tolist())

    def compact(self) -> Coded[T]:
        """Return the column with the values that it has, in the order of their first row."""
        first, codes = distinct(self.codes)
        return Coded([self.values[code] for code in self.codes[first].tolist()], codes)


def distinct(*columns: Array) -> tuple[Array, Array]:
    """Return the first row of each combination of whole numbers, ascending, and which combination each row has.

    O(rows log rows).

    Args:
        columns: one or more, of the same length.
    """
    rows = len(columns[0])
    keys, size = np.zeros(rows, np.int64), 1
    for column in columns:
        least = int(column.min(initial=0))
        width = int(column.max(initial=0)) - least + 1
        if size * width >= 2**62:
            keys, column = (np.unique(one, return_inverse=True)[1] for one in (keys, column))
            least, size, width = 0, int(keys.max(initial=0)) + 1, int(column.max(initial=0)) + 1
        keys, size = keys * width + np.subtract(column, least, dtype=np.int64), size * width
    if size > 4 * rows:
        keys = np.unique(keys, return_inverse=True)[1]
        size = int(keys.max(initial=-1)) + 1
    first = np.full(size, -1, np.int64)
    first[keys[::-1]] = np.arange(rows - 1, -1, -1)
    first_rows = np.sort(first[first >= 0])
    place = np.empty(size, np.int32)
    place[keys[first_rows]] = np.arange(len(first_rows))
    return first_rows, place[keys]


def constant(value: float, kind: npt.DTypeLike, rows: int) -> Array:
    """Return a column with one value, which needs the memory of one row."""
    return np.broadcast_to(np.array(value, kind), rows)


def is_constant(column: Array) -> bool:
    """Return whether a column is one value, as `constant` makes it."""
    return len(column) == 1 or (len(column) > 1 and column.strides == (0,))


def taken(column: Array, rows: Array) -> Array:
    """Return some rows of a column, by their numbers or a mask; a constant one stays constant."""
    if not is_constant(column):
        return column[rows]
    return constant(column[0], column.dtype, int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows))


def offsets(counts: Array) -> Array:
    """Return where each of some spans begins if they stand one after another, and where the last one ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def spans(starts: Array, counts: Array) -> Array:
    """Return the numbers from `starts[i]` on, `counts[i]` of them, for each i one after another."""
    ends = np.cumsum(counts)
    return np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0)


@dataclass(frozen=True, slots=True, eq=False)
class RunColumns:
    """Runs as columns; NaN, or -1 for a priority, is None."""

    state: Coded[str]
    eligible: Array
    start: Array
    end: Array
    partition: Coded[str]
    nodes: Coded[tuple[str, ...]]
    cpus: Array
    priority: Array
    started_by: Coded[str]
    energy_j: Array

    @classmethod
    def of(cls, runs: Sequence[JobRecord]) -> RunColumns:
        """Return the columns of runs."""
        return cls(
            state=Coded.of(run.state for run in runs),
            eligible=times_of(run.eligible for run in runs),
            start=times_of(run.start for run in runs),
            end=times_of(run.end for run in runs),
            partition=Coded.of(run.partition for run in runs),
            nodes=Coded.of(run.nodes for run in runs),
            cpus=np.array([run.cpus for run in runs], np.int64),
            priority=np.array([-1 if run.priority is None else run.priority for run in runs], np.int64),
            started_by=Coded.of(run.started_by for run in runs),
            energy_j=times_of(run.energy_j for run in runs),
        )

    def rows(self, first: int, last: int) -> Iterator[JobRecord]:
        """Yield the runs from row `first` to the one before `last`."""
        part = slice(first, last)
        columns = (
            _values(self.state, part), _optional(self.eligible[part]), _optional(self.start[part]),
            _optional(self.end[part]), _values(self.partition, part), _values(self.nodes, part),
            self.cpus[part].tolist(), (None if one < 0 else one for one in self.priority[part].tolist()),
            _values(self.started_by, part), _optional(self.energy_j[part]),
        )  # fmt: skip
        return map(JobRecord, *columns)


@dataclass(frozen=True, slots=True, eq=False)
class SiteJobs(Sequence[SiteJob]):
    """Jobs as columns, a row a job; NaN is None. The runs of job `i` are rows `first_run[i]` to `first_run[i + 1]`."""

    patterns: Sequence[SiteJob]
    pattern: Array
    ids: Sequence[str]
    names: Coded[str]
    users: Coded[str]
    accounts: Coded[str]
    arrays: Coded[str]
    dependencies: Coded[str]
    submit: Array
    begin: Array
    released: Array
    deadline: Array
    run_s: Array
    task: Array
    first_run: Array
    runs: RunColumns

    @classmethod
    def of(cls, jobs: Iterable[SiteJob]) -> SiteJobs:
        """Return the columns of jobs, which are themselves if they are columns. O(jobs + runs)."""
        if isinstance(jobs, SiteJobs):
            return jobs
        jobs = tuple(jobs)
        places: dict[Any, int] = {}
        patterns, pattern = list[SiteJob](), list[int]()
        for job in jobs:
            place = places.setdefault((_hashable(job), *job.licences.items()), len(patterns))
            if place == len(patterns):
                patterns.append(replace(job, **_OWN))
            pattern.append(place)
        return cls(
            patterns=patterns,
            pattern=np.array(pattern, np.int32),
            ids=[job.id for job in jobs],
            names=Coded.of(job.name for job in jobs),
            users=Coded.of(job.user for job in jobs),
            accounts=Coded.of(job.account for job in jobs),
            arrays=Coded.of(job.array for job in jobs),
            dependencies=Coded.of(job.dependency for job in jobs),
            submit=np.array([job.submit for job in jobs], np.float64),
            begin=times_of(job.begin for job in jobs),
            released=times_of(job.released for job in jobs),
            deadline=times_of(job.deadline for job in jobs),
            run_s=np.array([job.run_s for job in jobs], np.float64),
            task=np.array([job.task for job in jobs], np.int64),
            first_run=np.cumsum([0, *(len(job.runs) for job in jobs)]),
            runs=RunColumns.of([run for job in jobs for run in job.runs]),
        )

    @property
    def last_run(self) -> Array:
        """Return the row of the last run of each job; -1 for a job without runs."""
        return np.where(self.first_run[1:] > self.first_run[:-1], self.first_run[1:] - 1, -1)

    def __len__(self) -> int:
        return len(self.pattern)

    @overload
    def __getitem__(self, row: int) -> SiteJob: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[SiteJob, ...]: ...
    def __getitem__(self, row: int | slice) -> SiteJob | tuple[SiteJob, ...]:
        places = range(len(self))[row]
        return next(self._rows(places, places + 1)) if isinstance(places, int) else tuple(map(self.__getitem__, places))

    def __iter__(self) -> Iterator[SiteJob]:
        for first in range(0, len(self), _ROWS):
            yield from self._rows(first, min(first + _ROWS, len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (SiteJobs, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash((len(self), *self.ids[:100]))

    def _rows(self, first: int, last: int) -> Iterator[SiteJob]:
        """Yield the jobs from row `first` to the one before `last`."""
        part = slice(first, last)
        run0 = int(self.first_run[first])
        runs = tuple(self.runs.rows(run0, int(self.first_run[last])))
        places = (self.first_run[first : last + 1] - run0).tolist()
        shared = {
            code: {name: getattr(self.patterns[code], name) for name in _SHARED}
            for code in set(self.pattern[part].tolist())
        }
        columns = (
            self.pattern[part].tolist(), self.ids[part], _values(self.names, part), _values(self.users, part),
            _values(self.accounts, part), self.submit[part].tolist(), places, places[1:],
            _optional(self.begin[part]), _optional(self.released[part]), _optional(self.deadline[part]),
            _values(self.arrays, part), self.task[part].tolist(), _values(self.dependencies, part),
            self.run_s[part].tolist(),
        )  # fmt: skip
        for (
            code, name_id, name, user, account, submit, run, next_run, begin, released, deadline, array, task,
            dependency, run_s,
        ) in zip(*columns, strict=False):  # fmt: skip
            yield SiteJob(
                id=name_id, name=name, user=user, account=account, submit=submit, runs=runs[run:next_run], begin=begin,
                released=released, deadline=deadline, array=array, task=task, dependency=dependency, run_s=run_s,
                **shared[code],
            )  # fmt: skip


#: Rows that are made at once.
_ROWS = 4096


def times_of(times: Iterable[float | None]) -> Array:
    """Return times as a column; NaN for None."""
    return np.array([np.nan if time is None else time for time in times], np.float64)


def _optional(column: Array) -> list[float | None]:
    return [None if value != value else value for value in column.tolist()]


def _values(column: Coded[T], part: slice) -> Iterator[T]:
    return map(column.values.__getitem__, column.codes[part].tolist())
