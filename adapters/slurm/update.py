"""What pilotfish may change in Slurm, and how it says it.

Rule: only the fields below, only of jobs that are ours on a fresh read, and each change is one command, so that there
is no half of it. A pin leaves its mark in AdminComment, which users cannot write: by it the reaper knows our pins, and
what to put back.
Source: scontrol(1) UPDATE; Slurm 22.05: an empty ReqNodeList clears it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...simulate.errors import ConfigError, InvariantError
from ...simulate.formats.hostlist import expand, fold

ALLOWED = frozenset(("ReqNodeList", "StartTime", "AdminComment"))
_MARK = re.compile(r"pilotfish:pin=(?P<time>\d+):job=(?P<job>\d+):uid=(?P<uid>\d+):was=(?P<was>\S*)")
_LET_GO = re.compile(r"pilotfish:let-go=\d+:job=(?P<job>\d+):uid=(?P<uid>\d+)")


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin of ours: when it was set (the controller's clock), for which job of whom, and what the user's own node
    list was."""

    time: int
    job: int
    uid: int
    was: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"pilotfish:pin={self.time}:job={self.job}:uid={self.uid}:was={fold(self.was)}"


def pin_in(admin_comment: str, job: int, uid: int) -> Pin | None:
    """The pin that a job's AdminComment speaks of, if it is one of ours and was meant for this very job."""
    found = _MARK.search(admin_comment)
    if not found or (int(found["job"]), int(found["uid"])) != (job, uid):
        return None
    try:
        return Pin(int(found["time"]), job, uid, expand(found["was"]) if found["was"] else ())
    except ConfigError:
        return None


def pin(nodes: Sequence[str], mark: Pin, *, held: bool) -> dict[str, str]:
    """The fields that place a job on these nodes, and let it start now if a begin time of ours holds it."""
    start = {"StartTime": "now"} if held else {}
    return {"ReqNodeList": fold(nodes), **start, "AdminComment": str(mark)}


def unpin(mark: Pin) -> dict[str, str]:
    """The fields that undo a pin; the job is then Slurm's to place."""
    return {"ReqNodeList": fold(mark.was), "AdminComment": f"pilotfish:unpinned={mark.time}"}


def let_go(time: float, job: int, uid: int) -> dict[str, str]:
    """The fields that give a job which waits for us to Slurm, for good."""
    return {"StartTime": "now", "AdminComment": f"pilotfish:let-go={int(time)}:job={job}:uid={uid}"}


def was_let_go(admin_comment: str, job: int, uid: int) -> bool:
    """Whether a job's AdminComment says that this very job was let go of."""
    found = _LET_GO.search(admin_comment)
    return found is not None and (int(found["job"]), int(found["uid"])) == (job, uid)


def command(job: int, fields: Mapping[str, str]) -> list[str]:
    """The argv that changes these fields of a job."""
    if foreign := fields.keys() - ALLOWED:
        raise InvariantError(f"pilotfish does not write {', '.join(sorted(foreign))} of a job")
    return ["scontrol", "update", f"JobId={job}", *(f"{name}={value}" for name, value in fields.items())]
