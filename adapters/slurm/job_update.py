"""What pilotfish may change in Slurm, and how it says it.

Rule: only the fields below, only of jobs that are ours on a fresh read, and each change is one command, so that there
is no half of it. A pin leaves its mark in AdminComment, which users cannot write, or, where we are an operator and no
administrator, in Comment, behind what is there: by it the reaper knows our pins, and what to put back. A mark speaks of
one job of one user, so that whoever copies it gains nothing.

Softer forms were tried on Slurm 22.05: ExcNodeList idles a job just as hard where its node goes away; Prefer lets Slurm
place it elsewhere at once, but takes features, so that every node would need its own name as one, and it overrides the
features that the user asked for.
Source: scontrol(1) UPDATE; Slurm 22.05: an empty ReqNodeList clears it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from ...simulate.errors import ConfigError, InvariantError
from ...simulate.formats.hostlist import expand, fold
from .records import SlurmJob

ALLOWED = frozenset(("ReqNodeList", "StartTime", "AdminComment", "Comment"))
_ANY_MARK = re.compile(r"(?:^|(?<=\s))pilotfish:(?:pin|unpinned|let-go)=\S*")
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


class Place(StrEnum):
    """Where a mark is written."""

    ADMIN_COMMENT = "AdminComment"
    COMMENT = "Comment"

    def text(self, job: SlurmJob) -> str:
        """What stands there."""
        return job.admin_comment if self is Place.ADMIN_COMMENT else job.comment


def pin_of(job: SlurmJob) -> Pin | None:
    """The pin of ours that a job speaks of, if it was meant for this very job."""
    found = _find(job)
    return found[1] if found else None


def pin(job: SlurmJob, nodes: Sequence[str], now: float, *, held: bool, place: Place) -> dict[str, str]:
    """The fields that place a job on these nodes, and let it start now if a begin time of ours holds it.

    Args:
        now: the controller's clock.
    """
    start = {"StartTime": "now"} if held else {}
    mark = Pin(int(now), job.id, job.uid, job.wanted)
    return {"ReqNodeList": fold(nodes), **start, place: _marked(place.text(job), str(mark))}


def unpin(job: SlurmJob) -> dict[str, str]:
    """The fields that undo a pin of ours, {} where there is none; the job is then Slurm's to place."""
    found = _find(job)
    if found is None:
        return {}
    place, mark = found
    return {"ReqNodeList": fold(mark.was), place: _marked(place.text(job), f"pilotfish:unpinned={mark.time}")}


def _find(job: SlurmJob) -> tuple[Place, Pin] | None:
    for place in Place:
        for found in _MARK.finditer(place.text(job)):
            if (int(found["job"]), int(found["uid"])) == (job.id, job.uid):
                with suppress(ConfigError):
                    return place, Pin(int(found["time"]), job.id, job.uid, expand(found["was"]) if found["was"] else ())
    return None


def _marked(text: str, mark: str) -> str:
    """The text with this mark at its end, in place of other marks of ours."""
    return f"{_ANY_MARK.sub('', text).rstrip()} {mark}".strip()


def allowed(fields: Mapping[str, str]) -> Mapping[str, str]:
    """The fields, if they are all of those that may be written."""
    if foreign := fields.keys() - ALLOWED:
        raise InvariantError(f"pilotfish does not write {', '.join(sorted(foreign))} of a job")
    return fields


def let_go(job: SlurmJob, now: float, *, place: Place) -> dict[str, str]:
    """The fields that give a job which waits for us to Slurm, for good."""
    mark = f"pilotfish:let-go={int(now)}:job={job.id}:uid={job.uid}"
    return {"StartTime": "now", place: _marked(place.text(job), mark)}


def was_let_go(job: SlurmJob) -> bool:
    """Whether a mark of ours says that this very job was let go of."""
    marks = (found for place in Place for found in _LET_GO.finditer(place.text(job)))
    return any((int(found["job"]), int(found["uid"])) == (job.id, job.uid) for found in marks)


def command(job: int, fields: Mapping[str, str]) -> list[str]:
    """The argv that changes these fields of a job."""
    allowed(fields)
    return ["scontrol", "update", f"JobId={job}", *(f"{name}={value}" for name, value in fields.items())]


def power_off_command(nodes: Sequence[str]) -> list[str]:
    """The argv that powers idle nodes down: the one thing that is ever written of a node."""
    return ["scontrol", "update", f"NodeName={fold(nodes)}", "State=POWER_DOWN"]
