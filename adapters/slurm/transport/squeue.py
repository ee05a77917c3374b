"""The queue by `squeue`: the command, and what it prints, read into jobs.

Rule: pure. One call tells all of every job; what cannot be read of one job makes an error that names it, because a job
that is left out would look like one that has gone.
Source: squeue(1) of Slurm 22.05.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...simulate.errors import ConfigError
from ...simulate.formats.hostlist import expand
from ...simulate.snapshot import JobState
from ..base import ParseError
from .records import SlurmJob
from .states import job_state
from .table import Reader, format_of, rows
from .values import count, moment, size, span, tres, word

FIELDS = (
    "JobID", "JobArrayID", "HetJobID", "State", "Reason", "UserID", "Account", "QOS", "Partition", "NumNodes",
    "NumCPUs", "tres-alloc", "MinMemory", "TimeLimit", "SubmitTime", "EligibleTime", "StartTime", "EndTime",
    "DeadLine", "NodeList", "ReqNodes", "Dependency", "Feature", "Reservation", "OverSubscribe", "PriorityLong",
    "RestartCnt", "exit_code", "Name", "Comment", "admin_comment", "SchedNodes", "NumTasks", "cpus-per-task",
    "MinCpus", "Licenses", "tres-per-node", "tres-per-job", "tres-per-socket", "tres-per-task", "Contiguous",
    "CoreSpec", "reqswitch", "MinTmpDisk", "NTPerNode", "ntpersocket", "NTPerCore", "Sockets", "Cores", "Threads",
    "prefer", "ClusterFeature",
)  # fmt: skip
#: What jobs may ask for that is left to Slurm: field -> in words. Whether a job asks for `--spread-job` is in no field.
SPECIAL = {
    "Licenses": "licenses", "tres-per-node": "generic resources", "tres-per-job": "generic resources",
    "tres-per-socket": "generic resources", "tres-per-task": "generic resources", "Contiguous": "contiguous nodes",
    "CoreSpec": "specialised cores", "reqswitch": "a number of switches", "MinTmpDisk": "temporary disk space",
    "ntpersocket": "tasks for each socket", "NTPerCore": "tasks for each core", "Sockets": "sockets",
    "Cores": "cores for each socket", "Threads": "threads for each core", "prefer": "preferred features",
    "ClusterFeature": "features of a cluster",
}  # fmt: skip
_UNSHOWN = ("JobID", "SchedNodes", "reqswitch", "prefer")
_NOTHING = frozenset(("", "0", "*", "no", "4294967294", "65534", "65535"))


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
    return reader()(text, mark)


def reader() -> Reader[SlurmJob]:
    """Parses one queue after another."""
    return Reader(FIELDS, _job, ("squeue",))


def excluded_command(mark: str) -> list[str]:
    """The argv that lists the nodes that waiting jobs must not run on; `--Format` has no field for them."""
    return ["squeue", "--noheader", "--all", "--states=pending", f"--format=%A{mark}%x{mark}"]


def parse_excluded(text: str, mark: str) -> dict[int, tuple[str, ...]]:
    """Job id -> nodes excluded, where there are any. Raises ParseError."""
    found = rows(text, ("job", "nodes"), mark, ("squeue",))
    return {int(row["job"]): nodes(row["nodes"]) for row in found if word(row["nodes"])}


@dataclass(frozen=True, slots=True)
class Unshown:
    """What REST does not show of a waiting job before Slurm 23.02; fields as those of a SlurmJob."""

    planned: tuple[str, ...]
    special: str


def unshown_command(mark: str) -> list[str]:
    """The argv that tells what REST does not show of waiting jobs."""
    return ["squeue", "--noheader", "--all", "--states=pending", f"--Format={format_of(_UNSHOWN, mark)}"]


def parse_unshown(text: str, mark: str) -> dict[int, Unshown]:
    """Job id -> what REST does not show. Raises ParseError."""
    found = rows(text, _UNSHOWN, mark, ("squeue",))
    try:
        return {int(row["JobID"]): Unshown(nodes(row["SchedNodes"]), _special(row, _UNSHOWN)) for row in found}
    except ValueError as problem:
        raise ParseError(f"squeue: {problem}", argv=("squeue",)) from None


def _special(row: Mapping[str, str], fields: Iterable[str]) -> str:
    return next((SPECIAL[name] for name in fields if name in SPECIAL and word(row[name]) not in _NOTHING), "")


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
    state, status, cpus = job_state(row["State"]), int(row["exit_code"] or 0), count(row["NumCPUs"]) or 1
    threads = max(1, -(-cpus // many))
    if state is JobState.PENDING:
        tasks, each, per_node = (_known(row[field]) for field in ("NumTasks", "cpus-per-task", "NTPerNode"))
        threads = max(threads, threads_for(many, tasks, each, per_node, count(row["MinCpus"])))
    return SlurmJob(
        id=int(row["JobID"]),
        state=state,
        reason=word(row["Reason"]),
        part="_" in row["JobArrayID"] or "+" in row["JobArrayID"] or word(row["HetJobID"]) not in ("", "0"),
        name=word(row["Name"]),
        uid=int(row["UserID"]),
        account=word(row["Account"]),
        qos=word(row["QOS"]),
        partition=word(row["Partition"]),
        nodes=many,
        cpus=cpus,
        threads=threads,
        memory=memory(size(row["MinMemory"]) or 0.0, asked, cpus, threads, many),
        tres=amounts(asked),
        time_limit=span(row["TimeLimit"]),
        submit=moment(row["SubmitTime"]),
        begin=moment(row["EligibleTime"]),
        start=moment(row["StartTime"]),
        end=moment(row["EndTime"]),
        deadline=moment(row["DeadLine"]),
        placed=nodes(row["NodeList"]),
        wanted=nodes(row["ReqNodes"]),
        planned=nodes(row["SchedNodes"]),
        special=_special(row, SPECIAL),
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


def _known(text: str) -> int | None:
    return None if text in _NOTHING else count(text)


def threads_for(many: int, tasks: int | None, each: int | None, per_node: int | None, least: int | None) -> int:
    """Cores that each of `many` nodes needs so that all tasks of a waiting job find their place.

    Args:
        tasks: in all; `each`: cores of a task; `per_node`: tasks of a node; `least`: cores of a node.
    """
    at_once = -(-(tasks or 1) // many)
    return max(max(at_once, per_node or 0) * (each or 1), least or 1)


def memory(one: float, asked: Mapping[str, str], cpus: int, threads: int, many: int) -> float:
    """Bytes on each node of a job.

    Args:
        one: bytes for a core or for a node: which of them, `asked` tells.
        asked: `tres` of the whole job, whose nodes may be fewer than the job's while it waits.
    """
    total = size(asked["mem"]) or 0.0 if "mem" in asked else 0.0
    if not total:
        return one
    counted = count(asked.get("node", "")) or many
    if one and abs(total - one * (count(asked.get("cpu", "")) or cpus)) < 2**20:
        return one * threads
    return max(one, total / counted)


def amounts(asked: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    """`tres` in Slurm's units; memory in MiB."""
    return tuple(
        (name, (size(value) or 0.0) / 2**20 if name == "mem" else float(count(value) or 0))
        for name, value in asked.items()
    )
