"""The fields that pilotfish writes in Slurm, and the marks by which it recognises its own changes.

Rule: only the fields in ALLOWED, only of jobs that are handed over on a fresh read, and each change in one command, so
that it is never half done. A pin leaves a mark in AdminComment, which users cannot write, or, for an operator who is no
administrator, at the end of Comment. By the mark the reaper finds our pins and what to restore. A mark names one job of
one user, so copying it has no effect.

Softer forms were tried on Slurm 22.05. ExcNodeList idles a job just as hard if its node fails. Prefer lets Slurm place
the job elsewhere at once, but it takes features, so every node would need its own name as a feature, and it overrides
the features that the user asked for.
Source: scontrol(1) UPDATE; Slurm 22.05: an empty ReqNodeList clears it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from ...formats.hostlist import expand, fold
from ...simulate.errors import ConfigError, InvariantError
from .records import SlurmJob

ALLOWED = frozenset(("ReqNodeList", "StartTime", "AdminComment", "Comment"))
_ANY_MARK = re.compile(r"(?:^|(?<=\s))pilotfish:(?:pin|unpinned|let-go)=\S*")
_MARK = re.compile(r"pilotfish:pin=(?P<time>\d+):job=(?P<job>\d+):uid=(?P<uid>\d+):was=(?P<was>\S*)")
_LET_GO = re.compile(r"pilotfish:let-go=\d+:job=(?P<job>\d+):uid=(?P<uid>\d+)")


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin of ours: when it was set (controller's clock), for which job of which user, and the user's node list."""

    time: int
    job: int
    uid: int
    was: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"pilotfish:pin={self.time}:job={self.job}:uid={self.uid}:was={fold(self.was)}"


class MarkField(StrEnum):
    """The field that holds a mark."""

    ADMIN_COMMENT = "AdminComment"
    COMMENT = "Comment"

    def text(self, job: SlurmJob) -> str:
        """Return the content of the field."""
        return job.admin_comment if self is MarkField.ADMIN_COMMENT else job.comment


def pin_of(job: SlurmJob) -> Pin | None:
    """Return our pin on a job if its mark names this very job."""
    found = _find(job)
    return found[1] if found else None


def pin(job: SlurmJob, nodes: Sequence[str], now: float, *, held: bool, place: MarkField) -> dict[str, str]:
    """Return the fields that place a job on these nodes and, if our begin time holds it, let it start now.

    Args:
        job: The job, freshly read.
        nodes: Node names.
        now: Controller's clock, epoch seconds.
        held: Whether our begin time holds the job.
        place: Field for the mark.
    """
    start = {"StartTime": "now"} if held else {}
    mark = Pin(int(now), job.id, job.uid, job.wanted)
    return {"ReqNodeList": fold(nodes), **start, place: _marked(place.text(job), str(mark))}


def unpin(job: SlurmJob) -> dict[str, str]:
    """Return the fields that undo our pin, {} if there is none; Slurm then places the job."""
    found = _find(job)
    if found is None:
        return {}
    place, mark = found
    return {"ReqNodeList": fold(mark.was), place: _marked(place.text(job), f"pilotfish:unpinned={mark.time}")}


def _find(job: SlurmJob) -> tuple[MarkField, Pin] | None:
    for place in MarkField:
        for found in _MARK.finditer(place.text(job)):
            if (int(found["job"]), int(found["uid"])) == (job.id, job.uid):
                with suppress(ConfigError):
                    return place, Pin(int(found["time"]), job.id, job.uid, expand(found["was"]) if found["was"] else ())
    return None


def _marked(text: str, mark: str) -> str:
    """Return the text with this mark at its end, without earlier marks of ours."""
    return f"{_ANY_MARK.sub('', text).rstrip()} {mark}".strip()


def allowed(fields: Mapping[str, str]) -> Mapping[str, str]:
    """Return the fields if all of them may be written. Raises InvariantError."""
    if foreign := fields.keys() - ALLOWED:
        raise InvariantError(f"pilotfish does not write {', '.join(sorted(foreign))} of a job")
    return fields


def let_go(job: SlurmJob, now: float, *, place: MarkField) -> dict[str, str]:
    """Return the fields that give a held job to Slurm for good."""
    mark = f"pilotfish:let-go={int(now)}:job={job.id}:uid={job.uid}"
    return {"StartTime": "now", place: _marked(place.text(job), mark)}


def was_let_go(job: SlurmJob) -> bool:
    """Return whether a mark says that this very job was given to Slurm for good."""
    marks = (found for place in MarkField for found in _LET_GO.finditer(place.text(job)))
    return any((int(found["job"]), int(found["uid"])) == (job.id, job.uid) for found in marks)


def command(job: int, fields: Mapping[str, str]) -> list[str]:
    """Return the argv that changes these fields of a job."""
    allowed(fields)
    return ["scontrol", "update", f"JobId={job}", *(f"{name}={value}" for name, value in fields.items())]
