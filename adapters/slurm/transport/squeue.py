"""The queue by `squeue` and the nodes by `sinfo`: their tables and the parsers of a job and of a node.

Rule: pure. One call shows all of every job. A job with an unreadable value is UNKNOWN and not left out, because an
omitted job would look like one that has gone. A node of several partitions is listed once for each, and is one node
here. A user's node list is expanded only up to the number of nodes that there are.
Source: squeue(1) and sinfo(1) of Slurm 22.05.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ....formats.hostlist import expand
from ....simulate.errors import ConfigError
from ....simulate.model.snapshot import JobState, NodeState
from ..records import SlurmJob, SlurmNode
from .parsing import (
    SEPARATOR,
    IncrementalTable,
    array_tasks,
    comment,
    count,
    job_state,
    moment,
    node_state,
    size,
    span,
    tres,
    whole,
    word,
)
from .rows import MOST_NODES, Unreadable, unknown_job

#: Requests of jobs that are left to Slurm: field -> in words; see `unusual_size`, too. `--spread-job` needs nothing:
#: Slurm shows the most nodes that the job can be spread over as their number.
SPECIAL = {
    "Licenses": "licenses", "tres-per-node": "generic resources", "tres-per-job": "generic resources",
    "tres-per-socket": "generic resources", "tres-per-task": "generic resources", "Contiguous": "contiguous nodes",
    "CoreSpec": "specialised cores", "reqswitch": "a number of switches", "MinTmpDisk": "temporary disk space",
    "ntpersocket": "tasks for each socket", "NTPerCore": "tasks for each core", "Sockets": "sockets",
    "Cores": "cores for each socket", "Threads": "threads for each core", "prefer": "preferred features",
    "ClusterFeature": "features of a cluster", "MinTime": "a minimum time limit", "BurstBuffer": "a burst buffer",
}  # fmt: skip
#: Requests that are understood if the value is 1: field -> `own_core`.
OWN_CORE = {"Threads": "cpu", "NTPerCore": "task"}
#: What a stand-in needs comes first, and what users write comes last.
FIELDS = (
    "JobID", "UserID", "State", "NodeList", "NumNodes", "NumCPUs", "tres-alloc", "MinMemory", "Partition", "JobArrayID",
    "HetJobID", "Reason", "Account", "QOS", "TimeLimit", "SubmitTime", "EligibleTime", "StartTime", "EndTime",
    "DeadLine", "ReqNodes", "Reservation", "OverSubscribe", "PriorityLong", "RestartCnt", "exit_code", "SchedNodes",
    "NumTasks", "cpus-per-task", "NTPerNode", "MinCpus", "MaxNodes", *SPECIAL, "Feature", "Dependency", "Name",
    "Comment",
)  # fmt: skip
#: Fields of a SlurmJob that are texts, times and lists of nodes -> fields of squeue.
_TEXTS = {
    "reason": "Reason", "name": "Name", "account": "Account", "qos": "QOS", "partition": "Partition",
    "dependency": "Dependency", "features": "Feature", "reservation": "Reservation", "shares": "OverSubscribe",
}  # fmt: skip
_TIMES = {
    "submit": "SubmitTime", "begin": "EligibleTime", "start": "StartTime", "end": "EndTime", "deadline": "DeadLine",
}  # fmt: skip
_NODES = {"placed": "NodeList", "wanted": "ReqNodes", "planned": "SchedNodes"}
#: What REST does not show of a waiting job, some of it only before Slurm 23.02.
_HIDDEN = ("JobID", "SchedNodes", "reqswitch", "prefer", "MinTime", "BurstBuffer")
NODE_FIELDS = (
    "NodeList", "StateComplete", "CPUs", "Memory", "Features_act", "PartitionName", "Reason", "CPUsState", "AllocMem",
    "Sockets", "Cores",
)  # fmt: skip
#: Most characters of a node list for each name that it may have; Slurm writes ranges shorter.
LONGEST_NAME = 64
_NOTHING = frozenset(("", "0", "0:00", "*", "no", "4294967294", "65534", "65535"))


def queue(unreadable: Unreadable | None = None) -> IncrementalTable[SlurmJob]:
    """Return the table of all jobs; `unreadable` counts the rows that cannot be read."""
    command = "squeue --noheader --all --states=all"
    report = unreadable or Unreadable()
    read, stand_in = partial(_job, report), partial(_unknown, report)
    return IncrementalTable(command, FIELDS, read, "job", stand_in=stand_in, unreadable=report, raw=("Comment",))


def excluded(unreadable: Unreadable | None = None) -> IncrementalTable[tuple[int, tuple[str, ...] | None]]:
    """Return the table of ids and excluded nodes of waiting jobs, None: unreadable.

    `--Format` has no field for them. `unreadable` counts the lists that cannot be read.
    """
    command, fields, report = "squeue --noheader --all --states=pending", ("%A", "%x"), unreadable or Unreadable()

    def read(row: Mapping[str, str]) -> tuple[int, tuple[str, ...] | None]:
        return whole(row["%A"]), nodes(row["%x"], report.most_names)

    def stand_in(row: Mapping[str, str]) -> tuple[int, tuple[str, ...] | None]:
        return whole(row["%A"]), None

    title = "exclusion list"
    return IncrementalTable(command, fields, read, title, _short_format, stand_in=stand_in, unreadable=report)


def _short_format(fields: Iterable[str], mark: str) -> list[str]:
    return [f"--format={SEPARATOR.join(fields)}{mark}"]


def hidden(unreadable: Unreadable | None = None) -> IncrementalTable[SlurmJob]:
    """Return the table of what REST does not show of waiting jobs, `planned` and `special`; UNKNOWN: unreadable."""
    command = "squeue --noheader --all --states=pending"
    report = unreadable or Unreadable()
    read, stand_in = partial(_hidden, report), partial(_unknown, report)
    return IncrementalTable(command, _HIDDEN, read, "hidden field", stand_in=stand_in, unreadable=report)


def _unknown(report: Unreadable, row: Mapping[str, str]) -> SlurmJob | None:
    return unknown_job(
        {
            "id": lambda: whole(row["JobID"]),
            "uid": lambda: whole(row["UserID"]),
            "state": lambda: job_state(row["State"]),
            "placed": lambda: nodes(row["NodeList"], report.most_names),
            "partition": lambda: word(row["Partition"]),
            "nodes": lambda: count(row["NumNodes"]),
            "cpus": lambda: count(row["NumCPUs"]),
            "memory": lambda: _memory(row),
        }
    )


def _memory(row: Mapping[str, str]) -> float:
    cpus, node_count = count(row["NumCPUs"]) or 1, count(row["NumNodes"]) or 1
    return memory(
        size(row["MinMemory"]) or 0.0, tres(row["tres-alloc"]), cpus, max(1, -(-cpus // node_count)), node_count
    )


def _hidden(report: Unreadable, row: Mapping[str, str]) -> SlurmJob:
    planned, special = nodes(row["SchedNodes"], report.most_names), _special(row, _HIDDEN)
    return SlurmJob(whole(row["JobID"]), JobState.PENDING, planned=planned, special=special)


def _special(row: Mapping[str, str], fields: Iterable[str]) -> str:
    requests = ((name, word(row[name])) for name in fields if name in SPECIAL)
    return next((SPECIAL[name] for name, value in requests if value not in _NOTHING and not own_core(name, value)), "")


def own_core(field: str, value: str) -> str:
    """Return `own_core` of a job with that value of a field of squeue, "" if this says nothing of it."""
    return OWN_CORE.get(field, "") if value == "1" else ""


def nodes(text: str, name_limit: int = MOST_NODES) -> tuple[str, ...]:
    """Return the names of a node list. O(names), and O(1) for a text that is too long.

    Args:
        text: The list as Slurm prints it.
        name_limit: Most names that it may have.

    Raises:
        ValueError: It is no node list, names a node twice, or has more names.
    """
    text = word(text)
    if not text:
        return ()
    if len(text) > LONGEST_NAME * name_limit:
        raise ValueError(f"a node list of {len(text)} characters")
    try:
        return expand(text, name_limit)
    except ConfigError as error:
        raise ValueError(str(error)[:200]) from None


def _job(report: Unreadable, row: dict[str, str]) -> SlurmJob:
    request, node_count = tres(row["tres-alloc"]), count(row["NumNodes"]) or 1
    state, cpus = job_state(row["State"]), count(row["NumCPUs"]) or 1
    exit_code, signal = exit_of(whole(row["exit_code"] or "0"))
    plain: dict[str, Any] = {
        **{name: word(row[field]) for name, field in _TEXTS.items()},
        "comment": comment(row["Comment"]),
        **{name: moment(row[field]) for name, field in _TIMES.items()},
        **{name: nodes(row[field], report.most_names) for name, field in _NODES.items()},
    }
    threads, special = max(1, -(-cpus // node_count)), _special(row, SPECIAL)
    per_task: int | None = None
    if state is not JobState.PENDING:
        plain["planned"] = ()  # Slurm goes on showing the plan of a job that was cancelled
    else:
        tasks, per_task, per_node, largest = (
            None if row[field] in _NOTHING else count(row[field])
            for field in ("NumTasks", "cpus-per-task", "NTPerNode", "MaxNodes")
        )
        threads = max(threads, threads_for(node_count, tasks, per_task, per_node, count(row["MinCpus"])))
        special = special or unusual_size(node_count, largest, request, cpus, tasks, per_task)
    array, _, listed = row["JobArrayID"].partition("_")
    of_several = "+" in row["JobArrayID"] or word(row["HetJobID"]) not in ("", "0")
    waiting, at_once = (0, None) if of_several else array_tasks(listed.strip("[]"))
    return SlurmJob(
        id=whole(row["JobID"]),
        state=state,
        part=bool(listed) or of_several,
        array=whole(array) if listed else 0,
        tasks=waiting,
        tasks_at_once=at_once,
        uid=whole(row["UserID"]),
        nodes=node_count,
        cpus=cpus,
        threads=threads,
        per_task=per_task or 1,
        own_core=next(filter(None, (own_core(name, word(row[name])) for name in OWN_CORE)), ""),
        memory=memory(size(row["MinMemory"]) or 0.0, request, cpus, threads, node_count),
        memory_per_cpu=memory_per_cpu(size(row["MinMemory"]) or 0.0, request, cpus),
        asks_memory=bool(size(row["MinMemory"])),
        tres=amounts(request),
        time_limit=span(row["TimeLimit"]),
        special=special,
        priority=whole(row["PriorityLong"] or "0"),
        restarts=count(row["RestartCnt"]) or 0,
        exit_code=exit_code,
        signal=signal,
        **plain,
    )


def exit_of(status: int) -> tuple[int | None, int | None]:
    """Return exit code and signal of a wait status."""
    return (
        os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
    )


def threads_for(
    node_count: int, tasks: int | None, per_task: int | None, per_node: int | None, least: int | None
) -> int:
    """Return the cores that each node of a waiting job needs for all its tasks.

    Args:
        node_count: Number of nodes.
        tasks: Number of tasks in all.
        per_task: Cores per task.
        per_node: Tasks per node.
        least: Fewest cores per node.
    """
    at_once = -(-(tasks or 1) // node_count)
    return max(max(at_once, per_node or 0) * (per_task or 1), least or 1)


def unusual_size(
    node_count: int, largest: int | None, request: Mapping[str, str], cpus: int, tasks: int | None, per_task: int | None
) -> str:
    """Return in words what a waiting job asks for if its size is no plain number of nodes and cores; "": it is.

    A job without `--nodes` that needs K nodes looks like one with `--nodes=1-K`, and is placed on K. One task needs no
    second node.

    Args:
        node_count: Number of nodes on which Slurm would start it now, were the cluster empty.
        largest: Largest number of nodes; 0 or None: not set.
        request: `tres` of the whole job, with the fewest nodes.
        cpus: CPUs of the job in all.
        tasks: Number of tasks in all.
        per_task: Cores per task.
    """
    least = count(request.get("node", "")) or node_count
    if (largest or 0) > node_count or (node_count > least and (least > 1 or min(cpus, tasks or cpus) < node_count)):
        return "a range of nodes"
    return "more tasks than cores" if cpus < (tasks or 1) * (per_task or 1) else ""


def memory(requested: float, request: Mapping[str, str], cpus: int, threads: int, job_nodes: int) -> float:
    """Return the bytes on each node of a job.

    Args:
        requested: Bytes per core or per node; `request` shows which.
        request: `tres` of the whole job, whose nodes may be fewer than the job's while it waits.
        cpus: CPUs of the job in all.
        threads: Cores on each node.
        job_nodes: Number of nodes.
    """
    total = size(request["mem"]) or 0.0 if "mem" in request else 0.0
    if not total:
        return requested
    if per_cpu := memory_per_cpu(requested, request, cpus):
        return per_cpu * threads
    return max(requested, total / (count(request.get("node", "")) or job_nodes))


def memory_per_cpu(requested: float, request: Mapping[str, str], cpus: int) -> float:
    """Return the bytes on each CPU of a job, 0 if it asks for memory on each node; arguments as of `memory`."""
    total = size(request["mem"]) or 0.0 if "mem" in request else 0.0
    return requested if abs(total - requested * (count(request.get("cpu", "")) or cpus)) < 2**20 else 0.0


def amounts(request: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    """Return `tres` as numbers in Slurm's units; memory in MiB."""
    return tuple(
        (name, (size(value) or 0.0) / 2**20 if name == "mem" else float(count(value) or 0))
        for name, value in request.items()
    )


def node_table(unreadable: Unreadable | None = None) -> IncrementalTable[SlurmNode]:
    """Return the table of every node, whose records are to be `merged`; `unreadable` counts unreadable rows."""
    command = "sinfo --noheader --all --Node"
    return IncrementalTable(command, NODE_FIELDS, _node, "node", stand_in=_unknown_node, unreadable=unreadable)


def _unknown_node(row: Mapping[str, str]) -> SlurmNode:
    return SlurmNode(word(row["NodeList"]), NodeState.UNKNOWN, 0, 0.0)


def merged(rows: Iterable[SlurmNode]) -> list[SlurmNode]:
    """Return one node for each name, in all its partitions."""
    by_name: dict[str, SlurmNode] = {}
    for node in rows:
        earlier = by_name.get(node.name)
        if earlier is not None:
            worst = min(earlier, node, key=lambda each: each.cpus)  # an unreadable row has none
            node = replace(worst, partitions=earlier.partitions | node.partitions)
        by_name[node.name] = node
    return list(by_name.values())


def _node(row: dict[str, str]) -> SlurmNode:
    memory, allocated = size(row["Memory"]) or 0.0, size(row["AllocMem"])
    cpus = row["CPUsState"].split("/")  # allocated, idle, other, total
    return SlurmNode(
        name=word(row["NodeList"]),
        state=node_state(row["StateComplete"]),
        cpus=count(row["CPUs"]) or 0,
        memory=memory,
        idle=count(cpus[1]) if len(cpus) == 4 else None,
        free=None if allocated is None else max(0.0, memory - allocated),
        features=frozenset(filter(None, word(row["Features_act"]).split(","))),
        partitions=frozenset({word(row["PartitionName"])} - {""}),
        reason="" if word(row["Reason"]).lower() == "none" else word(row["Reason"]),
        **units(count(row["CPUs"]) or 0, count(row["Sockets"]) or 0, count(row["Cores"]) or 0),
    )


def units(cpus: int, sockets: int, cores: int) -> dict[str, int]:
    """Return the CPUs of each core and of each socket of a node, at least 1.

    Args:
        cpus: of the node.
        sockets: of the node; 0: not known.
        cores: of each socket; 0: not known.
    """
    socket = max(1, cpus // max(1, sockets))
    return {"core": max(1, socket // max(1, cores or socket)), "socket": socket}
