"""What ended jobs used, from accounting, by `sacct`: its command and the parser of its output.

Rule: pure. Of several records of one job the last submission counts, with the steps after it; a record that has not
ended is omitted, because it comes later.
Source: sacct(1) of Slurm 22.05. CPU time and memory are of steps, which `--allocations` omits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....formats import sacct as form
from ....simulate.errors import ConfigError
from ....simulate.model.accounting_record import AccountingRecord
from ...base import ParseError
from . import sacct
from .parsing import job_state, moment, rows

FIELDS = (
    "JobIDRaw", "DBIndex", "State", "UID", "JobName", "Submit", "Start", "End", "ElapsedRaw", "TotalCPU", "AllocCPUS",
    "NNodes", "NTasks", "MaxRSS", "AveRSS", "ConsumedEnergyRaw", "NodeList",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """The usage of a job, and what identifies the job."""

    id: int
    uid: int
    name: str
    submit: float | None
    booked: AccountingRecord


def command(mark: str, which: Sequence[str]) -> list[str]:
    """Return the argv that lists every record of jobs with their steps, sizes in bytes."""
    return [*sacct.table(mark, FIELDS), "--noconvert", *which]


def parse(text: str, mark: str) -> list[Entry]:
    """Return the last record of each ended job. O(length). Raises ParseError."""
    records: list[list[dict[str, str]]] = []
    for row in rows(text, FIELDS, mark, ("sacct",)):
        if "." not in row["JobIDRaw"]:
            records.append([row])
        elif records:  # otherwise a step of a job that was not selected
            records[-1].append(row)
    last: dict[int, tuple[tuple[float, int], Entry | None]] = {}
    for record in records:
        try:
            found = _read(record)
            order = moment(record[0]["Submit"]) or 0.0, int(record[0]["DBIndex"])
            number = int(record[0]["JobIDRaw"])
        except (ValueError, ConfigError) as problem:
            raise ParseError(f"sacct: job {record[0]['JobIDRaw']}: {problem}", argv=("sacct",)) from None
        if number not in last or order >= last[number][0]:
            last[number] = order, found
    return [found for _, found in last.values() if found is not None]


def _read(record: Sequence[form.Row]) -> Entry | None:
    job = record[0]
    if not job_state(job["State"]).ended or moment(job["End"]) is None:
        return None
    booked = form.booked(record)
    began = f"{booked.began}Z" if booked.began else ""  # the commands run in UTC
    whose = int(job["JobIDRaw"]), int(job["UID"]), job["JobName"], moment(job["Submit"])
    return Entry(*whose, replace(booked, began=began))
