"""Records of jobs from `sacct -a -X -D -P` as columns, found by the names of the columns.

Rule: steps are not jobs. A record that cannot be read is left out, and counted by reason. What a missing column costs
is said.
Source: sacct(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from datetime import tzinfo

import numpy as np

from ...simulate.arrays import Array
from ...simulate.slurm.job_columns import constant, is_constant, taken
from .. import slurm_values
from ..text import count
from .bar_columns import BarColumns
from .bar_fields import BarFields
from .bar_table import BarTable
from .text_columns import (
    NO_NAMES,
    UNREAD_NAMES,
    ListedNodes,
    NumberColumn,
    TextCodes,
    TimeColumn,
    ValueCodes,
    job_ids,
)  # fmt: skip

#: 77, 77_5, 77_[5-10%2], 77+1, 77.batch
_ID = re.compile(r"(\d{1,12})(?:_(?:(\d{1,9})|\[([^\]]*)\]?))?(\+\d{1,6})?(\.\w+)?", re.ASCII)
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
#: Most tasks of one array (MaxArraySize), and tasks that never started in all.
MOST_TASKS, MOST_WAITING_TASKS = 4_000_001, 1_000_000
#: Digits of an energy in joules that was not measured: those of 2**64 - 2.
MOST_ENERGY_DIGITS = 20
#: Who started a job, by a word in Flags.
_STARTERS = {"SchedMain": "main", "SchedBackfill": "backfill", "SchedSubmit": "submit"}
#: Columns, and what is lost without them.
_LOST = {
    "submitline": "options such as --exclusive, -d, -w, --begin, -H, -L and partition lists are not known",
    "eligible": "held jobs count from their submission",
    "flags": "which scheduler started a job is not known",
    "priority": "priorities cannot be compared",
    "timelimitraw": "time limits come from SubmitLine or the partition",
    "reqcpus": "CPUs come from SubmitLine, else 1",
    "nodelist": "nodes cannot be compared",
    "elapsedraw": "run times are End - Start, suspension included",
    "end": "jobs run until their time limit",
    "qos": "every job has the first QOS",
    "account": "jobs belong to no association",
    "user": "jobs belong to no association",
}


#: Columns whose texts the jobs are read from.
TEXTS = (
    "submitline", "jobname", "user", "account", "qos", "partition", "timelimitraw", "constraints", "reservation",
    "licenses", "reqnodes", "reqcpus", "reqtres", "reqmem", "nodelist", "jobidraw",
)  # fmt: skip


class AccountingRecords:
    """The records of jobs as columns, in the order of the files.

    `columns[name]` has the codes of a text of each record, or a number, or a time in epoch seconds; NaN: it is not
    known. `texts[name]` has the texts; `tasks[record]`: the waiting tasks of an array and its limit, 0 for none.

    Args:
        zone: the zone of the times.
        unknown: receives what missing columns cost.
        has_raw_ids: whether `raw_ids` and the column jobidraw are wanted.
    """

    def __init__(self, zone: tzinfo, unknown: list[str], *, has_raw_ids: bool = False) -> None:
        self.columns = dict[str, Array]()
        self.texts = {name: TextCodes() for name in TEXTS}
        self.states, self.starters, self.components = (ValueCodes(of) for of in (_state, _starter, str))
        self.components.code("")
        self.nodes = ListedNodes(self.texts["nodelist"].values_by_code)
        self.tasks = dict[int, tuple[list[int], int]]()
        self._unknown, self._has_raw_ids, self._left_out = unknown, has_raw_ids, Counter[str]()
        self._waiting_tasks = self._repeated_hours = self._tables = self._records = 0
        self._times = TimeColumn(zone)
        self._numbers = {name: NumberColumn(of) for name, of in _NUMBERS.items()}
        self._zero_nodes, self._zero_cpus = (NumberColumn(lambda text: 0 if text == "0" else None) for _ in range(2))

    @property
    def raw_ids(self) -> Container[str]:
        """Return JobIDRaw of all records, also of those that were left out; JobID where that column is not there."""
        return frozenset(self.texts["jobidraw"].values_by_code)

    def add(self, table: BarTable | BarColumns) -> None:
        """Read the records of a table, which counts what is left out of it. O(characters)."""
        self._unknown += [f"sacct without {name}: {loss}" for name, loss in _LOST.items() if not table.has(name)]
        self._left_out, self._repeated_hours = table.left_out, 0
        self._tables += 1
        lists = dict[int, tuple[str, int]]()
        pieces = [self._piece(fields, lists) for fields in table.pieces()]
        pieces = [self.columns, *pieces] if self.columns else pieces
        self.columns = {name: _joined([piece.pop(name) for piece in pieces]) for name in [*pieces[0]]}
        self.tasks |= {record: (self._indices(text), limit) for record, (text, limit) in lists.items()}
        if self._repeated_hours:
            self._unknown.append(
                f"{count(self._repeated_hours, 'job')} submitted in an hour that a change of the clock repeats: its"
                " first pass counts (SLURM_TIME_FORMAT=%s prints times without a zone)"
            )

    def _piece(self, fields: BarFields, lists: dict[int, tuple[str, int]]) -> dict[str, Array]:
        """Return the columns of those of some records that can be read; add their lists of waiting tasks."""
        ids, columns, listed = self._ids(fields)
        columns |= {name: self._codes(name, fields) for name in TEXTS}
        submit = self._times.column(fields, "submit")
        runs, is_read = self._runs(fields, columns["nodelist"])
        columns |= runs | {"submit": submit, "table": constant(self._tables, np.int32, len(fields))}
        has_time = ids & ~np.isneginf(submit)
        self._repeated_hours += self._times.repeated(fields, "submit", has_time)
        reasons = {
            "records with a value that cannot be read": ids & ~(has_time & (np.isnan(submit) | is_read)),
            "records without a time of submission": ids & np.isnan(submit),
        }
        is_kept = ids & ~np.logical_or(*reasons.values())
        reasons["components of heterogeneous jobs, which are treated as jobs of their own"] = is_kept & (
            columns["component"] > 0
        )
        self._left_out.update({reason: number for reason, rows in reasons.items() if (number := int(rows.sum()))})
        places = self._records - 1 + np.cumsum(is_kept)
        lists |= {int(places[row]): entry for row, entry in listed.items() if is_kept[row]}
        self._records += int(is_kept.sum())
        return {name: _compact(taken(column, is_kept)) for name, column in columns.items()}

    def _ids(self, fields: BarFields) -> tuple[Array, dict[str, Array], dict[int, tuple[str, int]]]:
        """Return which records are of jobs, their ids as columns, and the lists of tasks with their limits."""
        records = len(fields)
        job, task = job_ids(fields, "jobid" if fields.has("jobid") else "jobidraw")
        columns = {"job": job, "task": task, "component": np.zeros(records, np.int32)}
        are_jobs, lists = np.ones(records, bool), dict[int, tuple[str, int]]()
        others = np.flatnonzero(job < 0).tolist()
        ids, raw_ids = (fields.texts(name, others) for name in ("jobid", "jobidraw"))
        for row, text, raw_id in zip(others, ids, raw_ids, strict=True):
            columns["job"][row] = 0
            match = _ID.fullmatch(text.strip() or raw_id.strip())
            if not match or match[5]:
                self._left_out["records of steps" if match else "records without a JobID that can be read"] += 1
                are_jobs[row] = False
                continue
            number, index, tasks, component, _ = match.groups()
            columns["job"][row] = int(number)
            if index:
                columns["task"][row] = int(index)
            if component:
                columns["component"][row] = self.components.code(component)
            if tasks is not None:
                listed, _, limit = tasks.partition("%")
                lists[row] = (listed, int(limit) if re.fullmatch(r"\d{1,8}", limit, re.ASCII) else 0)
        return are_jobs, columns, lists

    def _runs(self, fields: BarFields, nodes: Array) -> tuple[dict[str, Array], Array]:
        """Return what happened to jobs as columns, and which records of it can be read."""
        times = {name: self._times.column(fields, name) for name in ("eligible", "start", "end")}
        numbers = {name: column.column(fields, name) for name, column in self._numbers.items()}
        state = self.states.column(fields, "state")
        has_nothing = ~np.isnan(self._zero_nodes.column(fields, "allocnodes"))
        has_nothing |= ~np.isnan(self._zero_cpus.column(fields, "alloccpus"))
        kinds, start, end = self.nodes.kinds(nodes), times["start"].copy(), times["end"]
        # Slurm before 21.08 prints the end of a job that was cancelled while it waited
        start[(state == self.states.code("PENDING")) | ((kinds == NO_NAMES) & has_nothing)] = np.nan
        elapsed, cpus = numbers["elapsedraw"], numbers["alloccpus"]
        has_ended = ~(np.isnan(start) | np.isnan(end))
        with np.errstate(invalid="ignore"):
            elapsed = np.where(has_ended, np.where(np.isnan(elapsed), end - start, elapsed), np.nan)
        cpus = np.where(cpus == 0, numbers["ncpus"], cpus)
        is_unread = (kinds == UNREAD_NAMES) | (elapsed < 0) | (end < start) & has_ended
        for column in (*times.values(), cpus, numbers["priority"], numbers["consumedenergyraw"]):
            is_unread |= np.isneginf(column)
        columns = {
            **times, "energy_j": numbers["consumedenergyraw"], "start": start, "elapsed": elapsed, "state": state,
            "cpus": np.where(is_unread, 0, cpus).astype(np.int64),
            "priority": np.where(is_unread, 0, np.nan_to_num(numbers["priority"], nan=-1.0)).astype(np.int64),
            "started_by": self.starters.column(fields, "flags"),
        }  # fmt: skip
        return columns, ~is_unread

    def _codes(self, name: str, fields: BarFields) -> Array:
        """Return the codes of a column of texts."""
        column = self.texts[name]
        if name == "jobidraw":
            name = name if fields.has(name) else "jobid"
            return column.column(fields, name if self._has_raw_ids else "")
        return column.column(fields, name)

    def _indices(self, text: str) -> list[int]:
        """Return the indices that `1,3,5-9:2` lists; Slurm ends a list that it cut with `...`."""
        indices = list[int]()
        for part in text.split(","):
            match = _TASKS.fullmatch(part.strip())
            if not match:
                self._left_out["lists of waiting array tasks that Slurm cut off"] += 1
                continue
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            span = range(first, last + 1, step or 1)
            if last > MOST_TASKS or self._waiting_tasks + len(span) > MOST_WAITING_TASKS:
                self._left_out["lists of more waiting array tasks than can be read"] += 1
                continue
            self._waiting_tasks += len(span)
            indices += span
        return indices


def _compact(column: Array) -> Array:
    """Return a column, with the memory of one row if it has one value."""
    return constant(column[0], column.dtype, len(column)) if _has_one_value(column) else column


def _joined(columns: Sequence[Array]) -> Array:
    """Return columns one after another; constant columns with one value stay constant."""
    if all(is_constant(column) for column in columns if len(column)):
        values = np.concatenate([column[:1] for column in columns])
        if _has_one_value(values):
            return constant(values[0], values.dtype, sum(map(len, columns)))
    return np.concatenate(columns)


def _has_one_value(column: Array) -> bool:
    """Return whether all values are the same, or all of them NaN."""
    return len(column) > 0 and bool((column == column[0]).all() or np.isnan(column).all())


def _state(text: str) -> str:
    return text.partition(" ")[0].upper().rstrip("+")


def _starter(text: str) -> str:
    return next((name for word, name in _STARTERS.items() if word in text), "")


def whole_number(text: str) -> int:
    """Return a whole number, 0 for an empty text. Raises ValueError."""
    number = slurm_values.count(text) or 0
    if number >= 2**53:
        raise ValueError(f"{text} is too large")
    return number


def energy_of(text: str) -> float | None:
    """Return ConsumedEnergyRaw, J; None where no plugin measured it: 0, empty, or the largest number (NO_VAL64)."""
    return float(text) if text.isdigit() and len(text) < MOST_ENERGY_DIGITS and int(text) else None


#: Columns of numbers that are not read from texts later.
_NUMBERS = {
    "elapsedraw": lambda text: slurm_values.whole(text) if text.isdigit() else None,
    "alloccpus": whole_number,
    "ncpus": whole_number,
    "consumedenergyraw": energy_of,
    "priority": lambda text: whole_number(text) if text.isdigit() else None,
}
