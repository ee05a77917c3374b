"""The queue by `squeue`: the command, and what it prints, read into jobs.

Rule: pure. One call tells all of every job; what cannot be read of one job makes an error that names it, because a job
that is left out would look like one that has gone.
Source: squeue(1) of Slurm 22.05.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ...simulate.errors import ConfigError
from ...simulate.formats.hostlist import expand
from ..base import ParseError
from .records import SlurmJob
from .states import job_state
from .table import format_of, rows
from .values import count, moment, size, span, tres, word

FIELDS = (
    "JobID", "JobArrayID", "HetJobID", "State", "Reason", "UserID", "Account", "QOS", "Partition", "NumNodes",
    "NumCPUs", "tres-alloc", "MinMemory", "TimeLimit", "SubmitTime", "EligibleTime", "StartTime", "EndTime",
    "DeadLine", "NodeList", "ReqNodes", "Dependency", "Feature", "Reservation", "OverSubscribe", "PriorityLong",
    "RestartCnt", "exit_code", "Name", "Comment", "admin_comment",
)  # fmt: skip


def command(mark: str, ids: Iterable[int] = ()) -> list[str]:
    """The argv that lists all jobs, or only these."""
    argv = ["squeue", "--noheader", "--all", "--states=all", f"--Format={format_of(FIELDS, mark)}"]
    some = ",".join(map(str, ids))
    return [*argv, f"--jobs={some}"] if some else argv


def command_of(mark: str, uid: int) -> list[str]:
    """The argv that lists the jobs of one user."""
    return [*command(mark), f"--user={uid}"]


def parse(text: str, mark: str) -> list[SlurmJob]:
    """The jobs of a queue. O(length). Raises ParseError."""
    return [_job(row) for row in rows(text, FIELDS, mark, ("squeue",))]


def excluded_command(mark: str) -> list[str]:
    """The argv that lists the nodes that waiting jobs must not run on; `--Format` has no field for them."""
    return ["squeue", "--noheader", "--all", "--states=pending", f"--format=%A{mark}%x{mark}"]


def parse_excluded(text: str, mark: str) -> dict[int, tuple[str, ...]]:
    """Job id -> nodes excluded, where there are any. Raises ParseError."""
    found = rows(text, ("job", "nodes"), mark, ("squeue",))
    return {int(row["job"]): nodes(row["nodes"]) for row in found if word(row["nodes"])}


def nodes(text: str) -> tuple[str, ...]:
    """The names of a node list. Raises ValueError."""
    try:
        return expand(text) if word(text) else ()
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _job(row: dict[str, str]) -> SlurmJob:
    try:
        return _read(row)
    except ValueError as problem:
        raise ParseError(f"squeue: job {row['JobID']}: {problem}", argv=("squeue",)) from None


def _read(row: dict[str, str]) -> SlurmJob:
    asked, many = tres(row["tres-alloc"]), count(row["NumNodes"]) or 1
    memory = (size(asked["mem"]) or 0.0) / many if "mem" in asked else size(row["MinMemory"]) or 0.0
    status = int(row["exit_code"] or 0)
    return SlurmJob(
        id=int(row["JobID"]),
        state=job_state(row["State"]),
        reason=word(row["Reason"]),
        part="_" in row["JobArrayID"] or "+" in row["JobArrayID"] or word(row["HetJobID"]) not in ("", "0"),
        name=word(row["Name"]),
        uid=int(row["UserID"]),
        account=word(row["Account"]),
        qos=word(row["QOS"]),
        partition=word(row["Partition"]),
        nodes=many,
        cpus=count(row["NumCPUs"]) or 1,
        memory=memory,
        time_limit=span(row["TimeLimit"]),
        submit=moment(row["SubmitTime"]),
        begin=moment(row["EligibleTime"]),
        start=moment(row["StartTime"]),
        end=moment(row["EndTime"]),
        deadline=moment(row["DeadLine"]),
        placed=nodes(row["NodeList"]),
        wanted=nodes(row["ReqNodes"]),
        dependency=word(row["Dependency"]),
        features=word(row["Feature"]),
        reservation=word(row["Reservation"]),
        shares=word(row["OverSubscribe"]),
        priority=int(row["PriorityLong"] or 0),
        restarts=count(row["RestartCnt"]) or 0,
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        comment=word(row["Comment"]),
        admin_comment=word(row["admin_comment"]),
    )
