"""Slurm's words for the states of jobs and nodes, and ours.

Rule: a word that is not in the tables is UNKNOWN, and whoever reads counts it; a base state with flags is judged by
the worst flag. Source: squeue(1) JOB STATE CODES, sinfo(1) NODE STATE CODES, slurm.h of 22.05 to 25.05.
"""

from __future__ import annotations

import re

from ...simulate.snapshot import JobState, NodeState

JOB_STATES = {
    "PENDING": JobState.PENDING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_FED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "SPECIAL_EXIT": JobState.PENDING,
    "RESV_DEL_HOLD": JobState.PENDING,
    "EXPEDITING": JobState.PENDING,
    "RUNNING": JobState.RUNNING,
    "CONFIGURING": JobState.RUNNING,
    "POWER_UP_NODE": JobState.RUNNING,
    "COMPLETING": JobState.RUNNING,
    "STAGE_OUT": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "RESIZING": JobState.RUNNING,
    "SUSPENDED": JobState.RUNNING,
    "STOPPED": JobState.RUNNING,
    "COMPLETED": JobState.COMPLETED,
    "CANCELLED": JobState.CANCELLED,
    "FAILED": JobState.FAILED,
    "BOOT_FAIL": JobState.FAILED,
    "LAUNCH_FAILED": JobState.FAILED,
    "NODE_FAIL": JobState.FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "PREEMPTED": JobState.FAILED,
    "RECONFIG_FAIL": JobState.FAILED,
    "REVOKED": JobState.FAILED,
    "TIMEOUT": JobState.TIMEOUT,
    "DEADLINE": JobState.TIMEOUT,
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DOWN = _words(
    "DOWN FAIL FAILING ERROR REBOOT REBOOT_ISSUED REBOOT_REQUESTED FUTURE"
)
#: on the way down a node takes no job; once it is down it wakes for one
_LEAVING, _ASLEEP = _words("POWERING_DOWN POWER_DOWN"), _words("POWERED_DOWN")
_DRAINED = _words("DRAIN DRAINED DRAINING MAINT RESERVED PLANNED_DRAIN BLOCKED PERFCTRS NPC")
_SILENT = _words("NOT_RESPONDING NO_RESPOND")
_UNSURE = _SILENT | _words("UNKNOWN UNK INVALID INVALID_REG")
_UP = _words(
    "IDLE MIXED MIX ALLOCATED ALLOC COMPLETING COMP PLANNED CLOUD DYNAMIC_NORM DYNAMIC_FUTURE POWERING_UP POWER_UP "
    "RESUME UNDRAIN CLEARED CLEARING"
)
_SUFFIXES = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN", "%": "POWERING_DOWN",
             "$": "MAINT", "@": "REBOOT", "^": "REBOOT", "-": "PLANNED"}  # fmt: skip


def job_state(words: str) -> JobState:
    """The state of `RUNNING`, `CANCELLED by 1000`, or of a base state with flags joined by `,` or `+`."""
    found = {JOB_STATES.get(word.split(" ")[0], JobState.UNKNOWN) for word in re.split(r"[,+|]", words.upper().strip())}
    # COMPLETED+COMPLETING still holds its nodes; PENDING+REQUEUED waits.
    order: tuple[JobState, ...] = (JobState.UNKNOWN, JobState.RUNNING, *JobState)
    return next(state for state in order if state in found)


def node_state(words: str) -> NodeState:
    """The state of `idle`, `mixed*`, `idle+drain`, `IDLE+DRAIN+NOT_RESPONDING`."""
    flags: set[str] = set()
    for word in re.split(r"[,+|]", words.upper().strip()):
        bare = word.rstrip("".join(_SUFFIXES))
        flags |= {bare, *(_SUFFIXES[mark] for mark in word[len(bare) :])}
    if flags & _ASLEEP:
        flags -= _SILENT  # as it should be
    kinds = (
        (_UNSURE, NodeState.UNKNOWN),
        (_DOWN | _LEAVING, NodeState.DOWN),
        (_DRAINED, NodeState.DRAINED),
        (_ASLEEP, NodeState.ASLEEP),
    )
    for known, state in kinds:
        if flags & known:
            return state
    return NodeState.UP if flags <= _UP else NodeState.UNKNOWN
