"""Ended jobs from accounting, by `sacct`: its commands and the parser of its output.

Rule: pure. Of several records of one job (it was requeued, or ids started again) the last submission counts. A record
that has not ended is reported as it is.
Source: sacct(1) of Slurm 22.05. Without `--duplicates` it chooses among records by itself; `--name` ignores case; the
comment exists only at sites that store it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from ...base import ParseError
from ..records import SlurmJob
from .parsing import count, job_state, moment, rows, word
from .squeue import nodes

FIELDS = (
    "JobIDRaw", "DBIndex", "State", "ExitCode", "UID", "Account", "QOS", "Partition", "NNodes", "Submit", "Start",
    "End", "NodeList", "JobName", "Comment",
)  # fmt: skip
#: Error of a site without accounting, which is no fault.
DISABLED = "Slurm accounting storage is disabled"
_PLAIN_ENDS = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")


def of_ids(ids: Iterable[int]) -> list[str]:
    """Return the options that select these jobs of any user."""
    return ["--allusers", f"--jobs={','.join(map(str, ids))}"]


def of_names(names: Iterable[str], uid: int, since: float) -> list[str]:
    """Return the options that select one user's jobs of these names (without commas) that existed at or after `since`.

    Args:
        names: Job names.
        uid: User id.
        since: Epoch seconds.
    """
    start = datetime.fromtimestamp(max(0.0, since), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return [f"--uid={uid}", f"--name={','.join(names)}", f"--starttime={start}"]


def command(mark: str, which: Sequence[str]) -> list[str]:
    """Return the argv that lists every record of jobs, without their steps."""
    return [*table(mark, FIELDS), "--allocations", *which]


def table(mark: str, fields: Sequence[str]) -> list[str]:
    """Return the argv that lists these fields of every record, each followed by the mark."""
    return ["sacct", "--noheader", "--parsable", f"--delimiter={mark}", "--duplicates", f"--format={','.join(fields)}"]


def parse(text: str, mark: str) -> list[SlurmJob]:
    """Return the last record of each job. O(length). Raises ParseError."""
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
