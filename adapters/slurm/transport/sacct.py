"""What accounting knows of jobs that have left the queue, by `sacct`: the commands, and what it prints, read into jobs.

Rule: pure. Of several records of one job (it was requeued, or ids began anew) the last one submitted counts; a record
that has not ended is told as it is: the queue knows better, and if it shows nothing, nobody knows.
Source: sacct(1) of Slurm 22.05. Without `--duplicates` it chooses among records by itself; `--name` takes no notice of
upper and lower case; the comment is there only at sites that store it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from ..base import ParseError
from .records import SlurmJob
from .squeue import nodes
from .states import job_state
from .table import rows
from .values import count, moment, word

FIELDS = (
    "JobIDRaw", "DBIndex", "State", "ExitCode", "UID", "Account", "QOS", "Partition", "NNodes", "Submit", "Start",
    "End", "NodeList", "JobName", "Comment",
)  # fmt: skip
#: What accounting says where nothing is kept, and this is no fault.
DISABLED = "Slurm accounting storage is disabled"
_PLAIN_ENDS = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")


def of_ids(ids: Iterable[int]) -> list[str]:
    """The options that choose these jobs, whoever submitted them."""
    return ["--allusers", f"--jobs={','.join(map(str, ids))}"]


def of_names(names: Iterable[str], uid: int, since: float) -> list[str]:
    """The options that choose the jobs of one user that have these names (without commas) and were there at or after
    `since`, epoch seconds."""
    start = datetime.fromtimestamp(max(0.0, since), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return [f"--uid={uid}", f"--name={','.join(names)}", f"--starttime={start}"]


def command(mark: str, which: Sequence[str]) -> list[str]:
    """The argv that lists every record of jobs, without their steps."""
    return [*table(mark, FIELDS), "--allocations", *which]


def table(mark: str, fields: Sequence[str]) -> list[str]:
    """The argv of these fields of every record, each followed by the mark."""
    return ["sacct", "--noheader", "--parsable", f"--delimiter={mark}", "--duplicates", f"--format={','.join(fields)}"]


def parse(text: str, mark: str) -> list[SlurmJob]:
    """The last record of each job. O(length). Raises ParseError."""
    last: dict[int, tuple[tuple[float, int], SlurmJob]] = {}
    for row in rows(text, FIELDS, mark, ("sacct",)):
        try:
            job, index = _read(row), int(row["DBIndex"])
        except ValueError as problem:
            raise ParseError(f"sacct: job {row['JobIDRaw']}: {problem}", argv=("sacct",)) from None
        order = (job.submit or 0.0, index)
        if job.id not in last or order >= last[job.id][0]:
            last[job.id] = (order, job)
    return [job for _, job in last.values()]


def _read(row: dict[str, str]) -> SlurmJob:
    code, _, number = row["ExitCode"].partition(":")
    state, said = job_state(row["State"]), row["State"].split(" ")[0]
    return SlurmJob(
        id=int(row["JobIDRaw"]),
        state=state,
        reason=said if state.ended and said not in _PLAIN_ENDS else "",
        name=row["JobName"],
        uid=int(row["UID"]),
        account=word(row["Account"]),
        qos=word(row["QOS"]),
        partition=word(row["Partition"]),
        nodes=count(row["NNodes"]) or 1,
        submit=moment(row["Submit"]),
        start=moment(row["Start"]),
        end=moment(row["End"]),
        placed=() if row["NodeList"] == "None assigned" else nodes(row["NodeList"]),
        exit_code=int(code),
        signal=int(number) or None,
        comment=word(row["Comment"]),
    )
