"""The present of a running site, from scontrol: its jobs as records of sacct, and the nodes that take no jobs.

Rule: what a job requests becomes options of a command, which are read as those of sbatch; so the one reader of jobs
makes them all. The expected start of a waiting job, and the latest end of a running one, are not times of it. Fields
after `Command` are its user's text, and are not read; by the name of a job a user can forge fields of that job alone.
Source: scontrol(1) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping

from ...simulate.slurm.site import NodeEvent
from .. import slurm_values
from . import scontrol_text
from .bar_table import BarTable

_COLUMNS = (
    "jobid", "jobidraw", "jobname", "user", "account", "qos", "partition", "state", "submit", "eligible", "start",
    "end", "elapsedraw", "timelimitraw", "reqnodes", "reqcpus", "alloccpus", "reqtres", "nodelist", "priority",
    "flags", "reservation", "constraints", "submitline",
)  # fmt: skip
_USERS_TEXT = re.compile(r" (?:Command|Comment|WorkDir)=")
#: States of jobs that have not ended; each has no end, and the first has no start, whatever is expected.
_WAITING, _OPEN = "PENDING", ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "RESIZING")
#: Options by the field that holds their value, if it is set.
_OPTIONS = {
    "ReqNodeList": "nodelist", "ExcNodeList": "exclude", "Features": "constraint", "Licenses": "licenses",
    "MinMemoryNode": "mem", "MinMemoryCPU": "mem-per-cpu", "TimeMin": "time-min", "Deadline": "deadline",
    "NumTasks": "ntasks", "CPUs/Task": "cpus-per-task", "MinCPUsNode": "mincpus", "Reservation": "reservation",
}  # fmt: skip
#: Reasons of jobs that do not start by themselves.
_HELD = ("JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied")
_TAKES_NO_JOBS = frozenset(("DOWN", "DRAIN", "FAIL", "FAILING", "ERROR", "MAINT", "FUTURE", "NOT_RESPONDING"))


def present_jobs(text: str, source: str, listed: Container[str] = ()) -> BarTable:
    """Return the jobs that `scontrol -o show job` prints as a table of sacct. O(characters).

    Args:
        text: what it printed.
        source: the file.
        listed: ids of jobs (JobIDRaw) that are left out.
    """
    table = BarTable(source, _COLUMNS, [])
    for number, words in scontrol_text.records(_without_users_text(text), "JobId"):
        if words["JobId"] in listed:
            continue
        try:
            table.rows.append((number, _fields(words)))
        except (ValueError, OverflowError):
            table.left_out["jobs of scontrol with a value that cannot be read"] += 1
    return table


def _without_users_text(text: str) -> str:
    return "\n".join(_USERS_TEXT.split(line, maxsplit=1)[0] for line in text.split("\n"))


def _fields(words: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a job."""
    state = words.get("JobState", "")
    is_open, tres = state in _OPEN, slurm_values.amounts(words.get("ReqTRES") or words.get("TRES", ""))
    cpus = words.get("NumCPUs", "").partition("-")[0]
    run_time, limit = slurm_values.span(words.get("RunTime", "")), words.get("TimeLimit", "")
    minutes = slurm_values.minutes(limit)
    nodes = words.get("NumNodes", "").partition("-")[0]
    by = {"Main": "SchedMain", "Backfill": "SchedBackfill"}.get(words.get("Scheduler", ""), "")
    return {
        "jobid": _id(words),
        "jobidraw": words["JobId"],
        "jobname": words.get("JobName", ""),
        "user": words.get("UserId", "").partition("(")[0],
        "account": _set(words, "Account"),
        "qos": _set(words, "QOS"),
        "partition": words.get("Partition", ""),
        "state": state,
        "submit": words.get("SubmitTime", ""),
        "eligible": words.get("EligibleTime", ""),
        "start": "Unknown" if state == _WAITING else words.get("StartTime", ""),
        "end": "Unknown" if is_open else words.get("EndTime", ""),
        "elapsedraw": "" if is_open or run_time is None else f"{run_time:.0f}",
        "timelimitraw": limit if minutes is None else str(minutes),
        "reqnodes": nodes if state != _WAITING else f"{tres.get('node', 0) or nodes or 1:.0f}".partition(".")[0],
        "reqcpus": cpus,
        "alloccpus": "0" if state == _WAITING else cpus,
        "reqtres": words.get("ReqTRES") or words.get("TRES", ""),
        "nodelist": _set(words, "NodeList"),
        "priority": words.get("Priority", ""),
        "flags": "" if state == _WAITING else by,
        "reservation": _set(words, "Reservation"),
        "constraints": _set(words, "Features"),
        "submitline": " ".join(("scontrol", *_options(words))),
    }


def _id(words: Mapping[str, str]) -> str:
    """Return the id as sacct prints it: 77, 77_5, 77_[5-10%2], 77+1."""
    if "HetJobId" in words:
        return f"{words['HetJobId']}+{words.get('HetJobOffset', '0')}"
    if "ArrayJobId" not in words:
        return words["JobId"]
    task = words.get("ArrayTaskId", "")
    return f"{words['ArrayJobId']}_{task if task.isdigit() else f'[{task}]'}"


def _set(words: Mapping[str, str], key: str) -> str:
    """Return the value of a field, "" if Slurm prints that it is not set."""
    text = words.get(key, "").strip()
    return "" if text.lower() in slurm_values.UNKNOWN else text


def _options(words: Mapping[str, str]) -> Iterator[str]:
    """Yield the options that would request what a job requests."""
    if "-" in words.get("NumNodes", ""):
        yield f"--nodes={words['NumNodes']}"
    for key, option in _OPTIONS.items():
        if text := "".join(_set(words, key).split()):
            yield f"--{option}={text}"
    per_node = words.get("NtasksPerN:B:S:C", "").partition(":")[0]
    if per_node.isdigit() and int(per_node):
        yield f"--ntasks-per-node={per_node}"
    for key, option in (("TresPerNode", "gpus-per-node"), ("TresPerJob", "gpus"), ("TresPerTask", "gpus-per-task")):
        if number := slurm_values.gpus(filter(None, _set(words, key).split(","))):
            yield f"--{option}={number}"
    shared = words.get("OverSubscribe", "")
    if shared in ("NO", "USER", "MCS"):
        yield "--exclusive" if shared == "NO" else f"--exclusive={shared.lower()}"
    if words.get("Contiguous") == "1":
        yield "--contiguous"
    if words.get("Requeue") == "0":
        yield "--no-requeue"
    if words.get("Nice", "0") != "0":
        yield f"--nice={words['Nice']}"
    if dependency := re.sub(r"\(\w*\)", "", _set(words, "Dependency")):
        yield f"--dependency={''.join(dependency.split())}"
    if words.get("ArrayTaskThrottle", "").isdigit():
        yield f"--array={words.get('ArrayTaskId', '0').partition('%')[0]}%{words['ArrayTaskThrottle']}"
    if words.get("Reason") == "BeginTime" and (begin := _set(words, "EligibleTime")):
        yield f"--begin={begin}"
    if words.get("Reason") in _HELD:
        yield "--hold"


def present_node_events(text: str, nodes: Container[str]) -> tuple[NodeEvent, ...]:
    """Return an event without an end for each node that takes no jobs now, by `scontrol -o show node`."""
    events = list[NodeEvent]()
    for _, words in scontrol_text.records(text, "NodeName"):
        states = set(re.split(r"[^A-Z_]+", words.get("State", "").upper()))
        if words["NodeName"] in nodes and states & _TAKES_NO_JOBS:
            events.append(NodeEvent(words["NodeName"], 0.0, None, kills="DOWN" in states))
    return tuple(events)
