"""Records of jobs from `sacct -a -X -D -P`, found by the names of the columns, and grouped by job.

Rule: one group for each job or array task: its runs in order, the record of the first submission first. Steps are not
jobs. A record that cannot be read is left out, and counted by reason. What a missing column costs is said.
Source: sacct(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import tzinfo

from ...simulate.errors import ConfigError
from ...simulate.slurm.site import JobRecord
from .. import slurm_values
from ..hostlist import expand
from ..text import count
from .bar_table import BarTable, Record

#: 77, 77_5, 77_[5-10%2], 77+1, 77.batch
_ID = re.compile(r"(\d{1,12})(?:_(?:(\d{1,9})|\[([^\]]*)\]?))?(\+\d{1,6})?(\.\w+)?", re.ASCII)
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
#: Most tasks of one array (MaxArraySize), and tasks that never started in all.
MOST_TASKS, MOST_WAITING_TASKS = 4_000_001, 1_000_000
#: Digits of an energy in joules that was not measured: those of 2**64 - 2.
MOST_ENERGY_DIGITS = 20
#: Seconds after which a record with the same id is another job.
_DAY_S = 86_400.0
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


@dataclass(frozen=True, slots=True)
class JobRow:
    """A record of a job or of an array task.

    Args:
        record: the fields.
        job: number of the job, or of its array.
        task: index in the array; -1: it is no array.
        array_limit: the `%` of a record of waiting tasks; None: not there.
        component: `+1` for a component of a heterogeneous job, else "".
        submit: epoch seconds.
        run: what happened.
        elapsed: seconds that it ran, suspension excluded; None: it did not end, or that is not known.
    """

    record: Record
    job: int
    task: int
    array_limit: int | None
    component: str
    submit: float
    run: JobRecord
    elapsed: float | None

    @property
    def id(self) -> str:
        """Return the JobID."""
        return f"{self.job}{'' if self.task < 0 else f'_{self.task}'}{self.component}"


def job_groups(table: BarTable, zone: tzinfo, unknown: list[str]) -> list[list[JobRow]]:
    """Return the records of each job in the order of their submission, jobs in no order. O(records log records).

    Args:
        table: what sacct printed.
        zone: the zone of its times.
        unknown: receives what missing columns cost.
    """
    unknown += [f"sacct without {name}: {loss}" for name, loss in _LOST.items() if not table.has(name)]
    groups: dict[tuple[str, str, str], list[JobRow]] = {}
    reader = _Reader(zone, table.left_out)
    for record in table.records():
        for row in reader.rows(record):
            groups.setdefault((row.id, record.text("user"), record.text("jobname")), []).append(row)
    if reader.repeated_hours:
        unknown.append(
            f"{count(reader.repeated_hours, 'job')} submitted in an hour that a change of the clock repeats: its"
            " first pass counts (SLURM_TIME_FORMAT=%s prints times without a zone)"
        )
    return [group for rows in groups.values() for group in _split(sorted(rows, key=lambda row: row.submit))]


def _split(rows: list[JobRow]) -> Iterator[list[JobRow]]:
    """Yield the runs of each job with this id, user and name, which begin again a day after a job ended, or later."""
    group = rows[:1]
    for row in rows[1:]:
        last = group[-1]
        if row.submit == last.submit:
            group[-1] = _merged(last, row)
        elif last.run.end is not None and row.submit > last.run.end + _DAY_S:
            yield group
            group = [row]
        else:
            group.append(row)
    yield group


def _merged(first: JobRow, second: JobRow) -> JobRow:
    """Return two records of one run: a job that was resized has one for each size, any other was written twice."""
    if first.run.state != "RESIZING" or first.run.start is None:
        return second
    elapsed = None if second.elapsed is None else second.elapsed + (first.elapsed or 0.0)
    run = replace(second.run, start=first.run.start, nodes=first.run.nodes, cpus=first.run.cpus)
    return replace(second, record=first.record, run=run, elapsed=elapsed)


class _Reader:
    """Reads records, and counts those that cannot be read."""

    def __init__(self, zone: tzinfo, left_out: Counter[str]) -> None:
        self.zone, self.left_out = zone, left_out
        self.waiting_tasks = 0
        self.repeated_hours = 0
        self.node_lists: dict[str, tuple[str, ...]] = {}

    def rows(self, record: Record) -> Iterator[JobRow]:
        """Yield a row for each task of a record; none if it cannot be read."""
        match = _ID.fullmatch(record.text("jobid") or record.text("jobidraw"))
        if not match:
            self.left_out["records without a JobID that can be read"] += 1
            return
        number, task, tasks, component, step = match.groups()
        if step:
            self.left_out["records of steps"] += 1
            return
        try:
            submit = self.time(record, "submit")
            self.repeated_hours += slurm_values.is_repeated(record.text("submit"), self.zone)
            if submit is None:
                self.left_out["records without a time of submission"] += 1
                return
            run, elapsed = self.run(record)
        except (ValueError, OverflowError, ConfigError):
            self.left_out["records with a value that cannot be read"] += 1
            return
        if component:
            self.left_out["components of heterogeneous jobs, which are treated as jobs of their own"] += 1
        limit: int | None = None
        if tasks is not None:
            listed, _, text = tasks.partition("%")
            limit = int(text) if text.isdigit() and len(text) < 9 and int(text) else None
            yield from (
                JobRow(record, int(number), index, limit, component or "", submit, run, elapsed)
                for index in self.tasks(listed)
            )
            return
        yield JobRow(
            record, int(number), -1 if task is None else int(task), None, component or "", submit, run, elapsed
        )

    def tasks(self, text: str) -> list[int]:
        """Return the indices that `1,3,5-9:2` lists; Slurm ends a list that it cut with `...`."""
        indices = list[int]()
        for part in text.split(","):
            match = _TASKS.fullmatch(part.strip())
            if not match:
                self.left_out["lists of waiting array tasks that Slurm cut off"] += 1
                continue
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            span = range(first, last + 1, step or 1)
            if last > MOST_TASKS or self.waiting_tasks + len(span) > MOST_WAITING_TASKS:
                self.left_out["lists of more waiting array tasks than can be read"] += 1
                continue
            self.waiting_tasks += len(span)
            indices += span
        return indices

    def time(self, record: Record, name: str) -> float | None:
        """Return a time; None if it is not known or never came."""
        return slurm_values.dump_moment(record.text(name), self.zone)

    def run(self, record: Record) -> tuple[JobRecord, float | None]:
        """Return what happened to a job, and how long it ran."""
        state = record.text("state").partition(" ")[0].upper().rstrip("+")
        start, end = self.time(record, "start"), self.time(record, "end")
        nodes = self.nodes(record.text("nodelist"))
        if state == "PENDING" or (not nodes and "0" in (record.text("allocnodes"), record.text("alloccpus"))):
            start = None  # Slurm before 21.08 prints the end of a job that was cancelled while it waited
        flags = record.text("flags")
        elapsed = None
        if start is not None and end is not None:
            text = record.text("elapsedraw")
            elapsed = float(slurm_values.whole(text)) if text.isdigit() else end - start
            if elapsed < 0 or end < start:
                raise ValueError("it ended before it started")
        run = JobRecord(
            state=state,
            eligible=self.time(record, "eligible"),
            start=start,
            end=end,
            partition=record.text("partition"),
            nodes=nodes,
            cpus=number_of(record, "alloccpus") or number_of(record, "ncpus"),
            priority=number_of(record, "priority") if record.text("priority").isdigit() else None,
            started_by=next((name for word, name in _STARTERS.items() if word in flags), ""),
            energy_j=energy_of(record.text("consumedenergyraw")),
        )
        return run, elapsed

    def nodes(self, text: str) -> tuple[str, ...]:
        """Return the nodes of a list; () for none."""
        if text in ("", "None assigned", "None", "(null)"):
            return ()
        if text not in self.node_lists:
            self.node_lists[text] = expand(text)
        return self.node_lists[text]


def energy_of(text: str) -> float | None:
    """Return ConsumedEnergyRaw, J; None where no plugin measured it: 0, empty, or the largest number (NO_VAL64)."""
    return float(text) if text.isdigit() and len(text) < MOST_ENERGY_DIGITS and int(text) else None


def number_of(record: Record, name: str) -> int:
    """Return a whole number, 0 for an empty or missing field. Raises ValueError."""
    number = slurm_values.count(record.text(name)) or 0
    if number >= 2**53:
        raise ValueError(f"{name} is too large")
    return number


def requested_tres(record: Record) -> Mapping[str, float]:
    """Return what a job requested, by name; memory in MiB. Raises ValueError."""
    return slurm_values.amounts(record.text("reqtres"))
