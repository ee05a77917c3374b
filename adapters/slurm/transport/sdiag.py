"""The output of `sdiag`: the controller's clock, and how often each kind of request has reached it.

Rule: pure. A request counts as a change unless it is known to change nothing, so that a newer Slurm is read too often
rather than too rarely.
Source: sdiag(1) of Slurm 22.05 to 25.05. Not counted: a node that stops answering, a begin time that is reached, and
what follows from priorities alone.
"""

from __future__ import annotations

import re

from ...base import Activity, ParseError

_TIME = re.compile(r"sdiag output at .*\((\d+)\)")
_SINCE = re.compile(r"^Data since .*\((\d+)\)", re.MULTILINE)
_JOBS = re.compile(r"^Jobs (submitted|started|completed|canceled|failed): *(\d+)", re.MULTILINE)
_REQUEST = re.compile(r"^\s*([A-Z]\w+)\s*\( *\d+\)\s*count:(\d+)", re.MULTILINE)
#: Frequent requests that change nothing of jobs and nodes, besides those named `..._INFO...`. Steps stay in their job.
_READS = frozenset(
    f"REQUEST_{name}" for name in (
        "PING", "JOB_WILL_RUN", "JOB_READY", "JOB_END_TIME", "JOB_ID", "BATCH_SCRIPT", "PRIORITY_FACTORS", "AUTH_TOKEN",
        "PERSIST_INIT", "JOB_SBCAST_CRED", "JOB_NOTIFY", "CONFIG", "CONTROL_STATUS", "BURST_BUFFER_STATUS", "CRONTAB",
        "JOB_STEP_CREATE", "STEP_COMPLETE", "STEP_LAYOUT", "JOB_STEP_STAT", "JOB_STEP_PIDS", "UPDATE_JOB_STEP",
    )
)  # fmt: skip
#: Requests by which a job may be handed over. `Jobs submitted` counts its submission.
_ARRIVALS = frozenset(("REQUEST_UPDATE_JOB", "REQUEST_JOB_REQUEUE"))
_NODES = frozenset(("MESSAGE_NODE_REGISTRATION_STATUS",))


def time_of(text: str) -> float:
    """Return the controller's clock, epoch seconds. Raises ParseError."""
    if not (match := _TIME.search(text)):
        raise ParseError("sdiag: the answer has no time", argv=("sdiag",), stderr_tail=text[:200])
    return float(match[1])


def activity(text: str) -> Activity:
    """Return the counts. Raises ParseError if it has no counts."""
    jobs = dict(_JOBS.findall(text))
    requests = sorted(_REQUEST.findall(text.partition("by message type")[2].partition("by user")[0]))
    since = _SINCE.search(text)
    if not (jobs and requests and since):
        raise ParseError("sdiag: the answer has no counts", argv=("sdiag",), stderr_tail=text[-200:])
    submitted = ("submitted", jobs.pop("submitted", ""))
    changes = [(name, number) for name, number in requests if name not in _NODES | _READS and "_INFO" not in name]
    arrivals = [pair for pair in changes if pair[0] in _ARRIVALS]
    other_changes = [pair for pair in changes if pair[0] not in _ARRIVALS and "SUBMIT" not in pair[0]]
    return Activity(
        (since[1], submitted, *arrivals),
        (since[1], *sorted(jobs.items()), *other_changes),
        (since[1], *(pair for pair in requests if pair[0] in _NODES)),
    )
