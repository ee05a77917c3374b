"""What accounting has of what ended jobs used, by `sacct`: the command, and what it prints, read into entries.

Rule: pure. Of several records of one job the last one submitted counts, with the steps behind it; one
that has not ended is left out: it comes later.
Source: sacct(1) of Slurm 22.05. CPU time and memory are of steps, which `--allocations` leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...simulate.booked import Booked
from ...simulate.errors import ConfigError
from ...simulate.formats import sacct as form
from ..base import ParseError
from . import sacct
from .states import job_state
from .table import rows
from .values import moment

FIELDS = (
    "JobIDRaw", "DBIndex", "State", "UID", "JobName", "Submit", "Start", "End", "ElapsedRaw", "TotalCPU", "AllocCPUS",
    "NNodes", "NTasks", "MaxRSS", "AveRSS", "ConsumedEnergyRaw", "NodeList",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A job's entry, and by what it is found."""

    id: int
    uid: int
    name: str
    submit: float | None
    booked: Booked


def command(mark: str, which: Sequence[str]) -> list[str]:
    """The argv that lists every record of jobs with their steps, sizes in bytes."""
    return [*sacct.table(mark, FIELDS), "--noconvert", *which]


def parse(text: str, mark: str) -> list[Entry]:
    """The last record of each job, of those that have ended. O(length). Raises ParseError."""
    records: list[list[dict[str, str]]] = []
    for row in rows(text, FIELDS, mark, ("sacct",)):
        if "." not in row["JobIDRaw"]:
            records.append([row])
        elif records:  # else a step whose job was not chosen
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
