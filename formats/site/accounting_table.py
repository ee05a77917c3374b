"""Jobs of an accounting: the records of each job or array task, in the order of their submission.

Rule: one group for each job or array task: its runs in order, the record of the first submission first. An id, user and
name that come again a day after a job ended are another job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from ...simulate.arrays import Array
from ...simulate.slurm.job_columns import Coded, RunColumns, constant, offsets, spans, taken
from .. import slurm_values
from .accounting_records import TEXTS, AccountingRecords, whole_number
from .bar_table import Record

#: Seconds after which a record with the same id is another job.
_DAY_S = 86_400.0
#: Job ids that are written at once.
_IDS = 4096
#: Columns of records that rows have for themselves.
_OF_ROWS = (
    "job", "task", "component", "table", "submit", "eligible", "start", "end", "elapsed", "state", "nodelist",
    "partition", "cpus", "priority", "started_by", "energy_j",
)  # fmt: skip
#: Those of them that two records of one job share.
_MERGED = ("start", "nodelist", "cpus", "elapsed")


@dataclass(frozen=True, slots=True)
class JobRow:
    """A record of a job or of an array task.

    Args:
        record: the fields that requests are read from.
        array_limit: the `%` of a record of waiting tasks; None: not there.
        partition: that it ran in.
        cpus: that it got.
        node_list: its place in `lists`.
        lists: nodes, each list expanded when it is asked for.
    """

    record: Record
    array_limit: int | None
    partition: str
    cpus: int
    node_list: int
    lists: Sequence[tuple[str, ...]]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes that it got. O(names)."""
        return self.lists[self.node_list]


@dataclass(frozen=True, slots=True)
class JobGroups:
    """The runs of each job: rows `runs[begin[i] : begin[i + 1]]` of an accounting; jobs by submission, then id."""

    runs: Array
    begin: Array

    def select(self, jobs: Array) -> JobGroups:
        """Return the groups of some jobs, by their numbers or a mask."""
        begin, counts = self.begin[:-1][jobs], np.diff(self.begin)[jobs]
        return JobGroups(self.runs[spans(begin, counts)], offsets(counts))


class JobIds(Sequence[str]):
    """The JobIDs of jobs, which are written when they are looked at.

    Args:
        jobs: numbers of the jobs, or of their arrays.
        tasks: indices in the array, -1 for none.
        components: `+1` for a component of a heterogeneous job, else "".
    """

    def __init__(self, jobs: Array, tasks: Array, components: Coded[str]) -> None:
        self._jobs, self._tasks, self._components = jobs, tasks, components

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        places = range(len(self))[row]
        if isinstance(places, int):
            return self[places : places + 1][0]
        names, codes = self._components.values, self._components.codes[row].tolist()
        return [
            f"{job}{'' if task < 0 else f'_{task}'}{names[code]}"
            for job, task, code in zip(self._jobs[row].tolist(), self._tasks[row].tolist(), codes, strict=True)
        ]

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _IDS):
            yield from self[first : first + _IDS]


class SiteAccounting:
    """The records of jobs as rows, one a run of a job or of an array task; O(records log records).

    `rows["record"]` is the record of a row. Times are epoch seconds, NaN where they are not known.

    Args:
        records: all of them, whose texts, and columns that rows have for themselves, pass over.
    """

    def __init__(self, records: AccountingRecords) -> None:
        self._records, self.rows = records, self._with_tasks(records)
        self._texts = {name: records.texts.pop(name).values_by_code.kept() for name in TEXTS}

    def _with_tasks(self, records: AccountingRecords) -> dict[str, Array]:
        """Return the rows of records: one for each waiting task of a list."""
        number = len(records.columns["submit"])
        if not records.tasks:
            rows = {name: records.columns[name] if name in TEXTS else records.columns.pop(name) for name in _OF_ROWS}
            return {
                **rows, **{name: np.array(rows[name]) for name in _MERGED},
                "record": np.arange(number), "array_limit": constant(0, np.int64, number),
            }  # fmt: skip
        counts, limits = np.ones(number, np.int64), np.zeros(number, np.int64)
        for record, (tasks, limit) in records.tasks.items():
            counts[record], limits[record] = len(tasks), limit
        record_of = np.repeat(np.arange(number), counts)
        rows = {
            name: (records.columns[name] if name in TEXTS else records.columns.pop(name))[record_of]
            for name in _OF_ROWS
        }
        first = np.cumsum(counts) - counts
        for record, (tasks, _) in records.tasks.items():
            rows["task"][first[record] : first[record] + len(tasks)] = tasks
        return {**rows, "record": record_of, "array_limit": limits[record_of]}

    def groups(self) -> JobGroups:
        """Return the runs of each job. Records of one run become one row."""
        rows = self.rows
        owners = (self._records.columns[name][rows["record"]] for name in ("jobname", "user"))
        keys = (*owners, rows["component"], rows["task"], rows["job"], rows["table"])
        order = np.lexsort((rows["submit"], *keys))
        is_new = np.ones(len(order), bool)
        if len(order):
            is_new[1:] = np.logical_or.reduce([np.diff(key[order]) != 0 for key in keys])
        begin = np.flatnonzero(is_new)
        sizes = np.diff(begin, append=len(order))
        single = order[begin[sizes == 1]]
        runs, counts, appearances = list[int](), list[int](), list[int]()
        for start, size in zip(begin[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
            members = order[start : start + size].tolist()
            for group in self._split(members):
                runs += group
                counts.append(len(group))
                appearances.append(min(members))
        counts_of_all = np.concatenate([np.ones(len(single), np.int64), np.array(counts, np.int64)])
        jobs = JobGroups(np.concatenate([single, np.array(runs, np.int64)]), offsets(counts_of_all))
        places, first = np.concatenate([single, np.array(appearances, np.int64)]), jobs.runs[jobs.begin[:-1]]
        return jobs.select(np.lexsort((places, *(rows[name][first] for name in ("task", "job", "submit")))))

    def _split(self, members: list[int]) -> Iterator[list[int]]:
        """Yield the runs of each job with this id, user and name, which begin again a day after a job ended."""
        submit, end = self.rows["submit"], self.rows["end"]
        group = members[:1]
        for row in members[1:]:
            last = group[-1]
            if submit[row] == submit[last]:
                self._merge(last, row)
                group[-1] = row
            elif submit[row] > end[last] + _DAY_S:
                yield group
                group = [row]
            else:
                group.append(row)
        yield group

    def _merge(self, first: int, second: int) -> None:
        """Make a record that of both: a job that was resized has one for each size, any other was written twice."""
        rows = self.rows
        if rows["state"][first] == self._records.states.code("RESIZING") and not np.isnan(rows["start"][first]):
            for name in ("record", *_MERGED[:-1]):
                rows[name][second] = rows[name][first]
            rows["elapsed"][second] += np.nan_to_num(rows["elapsed"][first])

    def runs(self, rows: Array) -> RunColumns:
        """Return the runs of rows."""
        columns = {
            name: taken(self.rows[name], rows) for name in ("eligible", "start", "end", "cpus", "priority", "energy_j")
        }
        records = self._records
        return RunColumns(
            **columns,
            state=Coded(records.states.values_by_code, self.rows["state"][rows]),
            partition=Coded(self._texts["partition"], self.rows["partition"][rows]),
            nodes=Coded(records.nodes, self.rows["nodelist"][rows]),
            started_by=Coded(records.starters.values_by_code, self.rows["started_by"][rows]),
        )

    def row(self, row: int) -> JobRow:
        """Return a row as a value."""
        rows = self.rows
        return JobRow(
            self.record(row, *self._texts),
            array_limit=int(rows["array_limit"][row]) or None,
            partition=self._texts["partition"][int(rows["partition"][row])],
            cpus=int(rows["cpus"][row]),
            node_list=int(rows["nodelist"][row]),
            lists=self._records.nodes,
        )

    def record(self, row: int, *names: str) -> Record:
        """Return the texts with these names of a row."""
        columns, record = self._records.columns, int(self.rows["record"][row])
        return Record("", 0, {name: self._texts[name][int(columns[name][record])] for name in names})

    def ids(self, rows: Array) -> JobIds:
        """Return the JobIDs of rows."""
        jobs, tasks, components = (self.rows[name][rows] for name in ("job", "task", "component"))
        return JobIds(jobs, tasks, Coded(self._records.components.values_by_code, components))

    def codes(self, name: str, rows: Array) -> Array:
        """Return the codes of a column of texts of rows."""
        return taken(self._records.columns[name], self.rows["record"][rows])

    def texts(self, name: str, rows: Array) -> Coded[str]:
        """Return a column of texts of rows."""
        return Coded(self._texts[name], self.codes(name, rows))

    def has_blanks(self, name: str, rows: Array) -> Array:
        """Return in which rows a text has a blank."""
        return self._texts[name].have_blanks()[self.codes(name, rows)]

    def states(self) -> list[str]:
        """Return the states by the codes of `rows["state"]`."""
        return self._records.states.values_by_code

    def components(self) -> list[str]:
        """Return the components, `+1` or "", by the codes of `rows["component"]`."""
        return self._records.components.values_by_code


def number_of(record: Record, name: str) -> int:
    """Return a whole number, 0 for an empty or missing field. Raises ValueError."""
    return whole_number(record.text(name))


def requested_tres(record: Record) -> Mapping[str, float]:
    """Return what a job requested, by name; memory in MiB. Raises ValueError."""
    return slurm_values.amounts(record.text("reqtres"))
