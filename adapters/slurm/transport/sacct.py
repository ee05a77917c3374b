"""Ended jobs from accounting, by `sacct`: how they ended and what they used, its commands and the parsers.

Rule: pure. If a job has several records (it was requeued, or ids started again), the last submission counts, with the
steps after it. A record that has not ended is reported as it is; its usage is omitted, because it comes later.
Source: sacct(1) of Slurm 22.05. Without `--duplicates` it chooses among records by itself; `--name` ignores case; the
comment exists only at sites that store it; CPU time and memory are of steps, which `--allocations` omits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ....formats import sacct as form
from ....simulate.model.accounting_record import AccountingRecord
from ..records import SlurmJob
from .parsing import SEPARATOR, IncrementalTable, Record, count, job_state, moment, whole, word
from .rows import Unreadable, read_rows
from .squeue import nodes

FIELDS = (
    "JobIDRaw", "DBIndex", "State", "ExitCode", "UID", "Account", "QOS", "Partition", "NNodes", "Submit", "Start",
    "End", "NodeList", "JobName", "Comment",
)  # fmt: skip
USAGE_FIELDS = (
    "JobIDRaw", "DBIndex", "State", "UID", "JobName", "Submit", "Start", "End", "ElapsedRaw", "TotalCPU", "AllocCPUS",
    "NNodes", "NTasks", "MaxRSS", "AveRSS", "ConsumedEnergyRaw", "NodeList",
)  # fmt: skip
#: Error of a site without accounting, which is no fault.
DISABLED = "Slurm accounting storage is disabled"
_PLAIN_ENDS = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """The usage of a job, and what identifies the job."""

    id: int
    uid: int
    name: str
    submit: float | None
    record: AccountingRecord


def of_ids(ids: Iterable[int]) -> list[str]:
    """Return the options that select these jobs of any user."""
    return ["--allusers", f"--jobs={','.join(map(str, ids))}"]


def of_names(names: Iterable[str], uid: int, since: float) -> list[str]:
    """Return the options that select one user's jobs of these names, without commas, that existed at some time.

    The time is `since`, epoch seconds, or later.
    """
    start = datetime.fromtimestamp(max(0.0, since), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return [f"--uid={uid}", f"--name={','.join(names)}", f"--starttime={start}"]


def table() -> IncrementalTable[form.Row]:
    """Return the table of every record of jobs, without their steps."""
    return IncrementalTable(
        "sacct --noheader --parsable --duplicates --allocations", FIELDS, dict, "job", _delimited, _regrouped
    )


def usage_table() -> IncrementalTable[form.Row]:
    """Return the table of every record of jobs with their steps, sizes in bytes."""
    return IncrementalTable(
        "sacct --noheader --parsable --duplicates --noconvert", USAGE_FIELDS, dict, "job", _delimited, _regrouped
    )


def _delimited(fields: Sequence[str], mark: str) -> list[str]:
    return [f"--delimiter={mark}", f"--format={','.join(fields)}"]


def _regrouped(text: str, mark: str, width: int) -> list[str]:
    """Return the rows of a table whose only separator is the mark. Raises ValueError if it was cut off."""
    cells = text.replace(SEPARATOR, "?").split(mark)
    if cells.pop().strip() or len(cells) % width:
        raise ValueError("cut off")
    return [SEPARATOR.join(values) for values in zip(*[iter(cells)] * width, strict=True)]


def jobs(rows: Iterable[form.Row], unreadable: Unreadable | None = None) -> list[SlurmJob]:
    """Return the last record of each job; one that cannot be read is left out, and counted by `unreadable`."""
    return _last(([row] for row in rows), _job, unreadable)


def usage(rows: Iterable[form.Row], unreadable: Unreadable | None = None) -> list[UsageEntry]:
    """Return the last record of each ended job, as `jobs` does."""
    records: list[list[form.Row]] = []
    for row in rows:
        if "." not in row["JobIDRaw"]:
            records.append([row])
        elif records:  # otherwise a step of a job that was not selected
            records[-1].append(row)
    return [entry for entry in _last(records, _entry, unreadable) if entry is not None]


def _last(
    records: Iterable[Sequence[form.Row]],
    read: Callable[[Sequence[form.Row]], Record],
    unreadable: Unreadable | None,
) -> list[Record]:
    """Return what `read` makes of the last of each job's records: the row of the job, then those of its steps.

    A job with a record that cannot be read is left out: it may be the last one.
    """
    problems: dict[str, str] = {}

    def ordered(record: Sequence[form.Row]) -> tuple[int, tuple[float, int], Record]:
        row = record[0]
        return whole(row["JobIDRaw"]), (moment(row["Submit"]) or 0.0, whole(row["DBIndex"])), read(record)

    def name(record: Sequence[form.Row]) -> str:
        return record[0]["JobIDRaw"]

    last: dict[int, tuple[tuple[float, int], Record]] = {}
    for number, order, result in read_rows(records, ordered, lambda record: None, name, problems):
        if number not in last or order >= last[number][0]:
            last[number] = order, result
    (unreadable or Unreadable()).note("record", problems, whole=False)
    return [result for number, (_, result) in last.items() if str(number) not in problems]


def _job(record: Sequence[form.Row]) -> SlurmJob:
    row = record[0]
    code, _, number = row["ExitCode"].partition(":")
    state, state_word = job_state(row["State"]), row["State"].split(" ")[0]
    return SlurmJob(
        id=whole(row["JobIDRaw"]),
        state=state,
        reason=state_word if state.ended and state_word not in _PLAIN_ENDS else "",
        name=row["JobName"],
        uid=whole(row["UID"]),
        account=word(row["Account"]),
        qos=word(row["QOS"]),
        partition=word(row["Partition"]),
        nodes=count(row["NNodes"]) or 1,
        submit=moment(row["Submit"]),
        start=moment(row["Start"]),
        end=moment(row["End"]),
        placed=() if row["NodeList"] == "None assigned" else nodes(row["NodeList"]),
        exit_code=whole(code),
        signal=whole(number) or None,
        comment=word(row["Comment"]),
    )


def _entry(rows: Sequence[form.Row]) -> UsageEntry | None:
    job = rows[0]
    if not job_state(job["State"]).ended or moment(job["End"]) is None:
        return None
    record = form.accounting_record(rows)
    began = f"{record.began}Z" if record.began else ""  # the commands run in UTC
    identity = whole(job["JobIDRaw"]), whole(job["UID"]), job["JobName"], moment(job["Submit"])
    return UsageEntry(*identity, replace(record, began=began))
