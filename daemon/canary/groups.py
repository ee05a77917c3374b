"""The groups of jobs: a random share is handed over (the canary), the others stay the resource manager's (control).

Rule: the group of a job is drawn once, by a keyed hash of its unit, and kept in the journal for its life, so that a
restart or another share moves no job. A unit is a job, with all jobs that follow it in a chain of dependencies: the
parts of one workflow share a fate, and more units than users give evidence sooner. The key is a secret of the journal,
so that no user can choose the group of a job. A job that is held for us until its group is drawn is given back at once
if it is left to the resource manager, which is the only write; how long it was held is kept.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from ...simulate.model.snapshot import JobState, JobView
from ..config_sections import HandoverConfig
from ..state.damage import REAL, TEXT, WHOLE, checked, optional
from ..state.members import Member

#: Under which the journal keeps what is here.
KEPT = "handover"
#: Why a job is in its group without a draw.
BEFORE = "it was handed over before there was a canary: not compared"


class Group(StrEnum):
    """The group of a job. CANARY: handed over. CONTROL: the resource manager's alone."""

    CANARY = "canary"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class CanaryState:
    """The part of the canary that a restart needs.

    Args:
        key: of the hash, hexadecimal.
        since: jobs submitted before are not compared, epoch seconds.
        stepped_back: when it stepped back to shadow, epoch seconds; None: it did not.
        why: it stepped back.
        trip_accepted: a person has stepped up while the guard overruled the policy, so that this is no reason again.
    """

    key: str
    since: float = 0.0
    stepped_back: float | None = None
    why: str = ""
    trip_accepted: int = 0

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> CanaryState:
        """Return the state that the journal kept; a new one from nothing. One that cannot be read stays in shadow."""
        if not kept:
            return cls(secrets.token_hex(16))
        try:
            state = cls(**kept)
            values = state.key, state.since, state.stepped_back, state.why, state.trip_accepted
            checked(values, (TEXT, REAL, optional(REAL), TEXT, WHOLE))
            bytes.fromhex(state.key)
        except (TypeError, ValueError):
            return cls(secrets.token_hex(16), 0.0, 0.0, "the record of the canary cannot be read")
        return state

    def kept(self) -> dict[str, Any]:
        """Return what the journal keeps."""
        return asdict(self)


def place_of(key: str, unit: str) -> float:
    """Return where a unit stands among all, uniform in [0, 1): the canary has the places below its share.

    Args:
        key: of the hash, hexadecimal.
        unit: its name.
    """
    digest = blake2b(unit.encode("utf-8", "surrogateescape"), digest_size=8, key=bytes.fromhex(key)).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


class Groups:
    """The groups of the jobs that have not ended.

    Args:
        settings: of the configuration; None: all jobs are handed over, but those in the control group stay there.
        key: of the hash, hexadecimal.
        members: the jobs that have a group.
        note: keeps a new or changed member.
    """

    def __init__(
        self, settings: HandoverConfig | None, key: str, members: Iterable[Member], note: Callable[[Member], None]
    ) -> None:
        self.settings, self._key, self._note = settings, key, note
        self.members = {member.key: member for member in members}
        #: Keys of jobs that were handed over before there was a canary.
        self.before: Set[str] = frozenset()

    def __bool__(self) -> bool:
        return self.settings is not None or bool(self.members)

    def outside(self, view: JobView) -> str:
        """Return why a job without a group is not handed over, or ""."""
        if self.settings is None or not self.settings.partitions or view.key in self.before:
            return ""
        queues = dict(view.job.traits).get("queue", "").split(",")
        return "" if set(queues) & set(self.settings.partitions) else "its partition is not in handover.partitions"

    def why_left(self, view: JobView, now: float) -> str:
        """Return why an offered job is left to the resource manager, "" if it is handed over; draw its group.

        Args:
            view: of the job.
            now: the time of the snapshot, epoch seconds.
        """
        member = self.members.get(view.key)
        if member is None:
            if self.settings is None:
                return ""
            if why := self.outside(view):
                return why
            member = self._drawn(view, self.settings, now)
            self.keep(member)
        return f"control group: {member.why}" if member.side == Group.CONTROL else ""

    def is_control(self, key: str) -> bool:
        """Return whether a job is in the control group."""
        member = self.members.get(key)
        return member is not None and member.side == Group.CONTROL

    def keep(self, member: Member) -> None:
        """Keep a new or changed member; one that has ended is forgotten here."""
        self.members[member.key] = member
        if member.finish_time is not None:
            del self.members[member.key]
        self._note(member)

    def _drawn(self, view: JobView, settings: HandoverConfig, now: float) -> Member:
        workflow = view.key.rpartition("/")[0]
        before = next((one for name in view.job.after if (one := self.members.get(f"{workflow}/{name}"))), None)
        submit_time = now if view.submit_time is None else view.submit_time
        member = Member(
            view.key, before.unit if before else view.key, Group.CANARY, settings.share, 0, "", view.job.owner,
            dict(view.job.traits).get("queue", ""), cores_of(view), view.job.walltime,
            submit_time, held_s=None if view.due is None else max(0.0, now - submit_time),
        )  # fmt: skip
        if view.key in self.before:
            return replace(member, why=BEFORE)
        if before:
            return replace(member, side=before.side, compared=before.compared, why=f"as {before.key}, which it follows")
        place = place_of(self._key, member.unit)
        is_canary = place < settings.share
        relation = "below" if is_canary else "not below"
        why = f"drawn {place:.4f}, {relation} the share {settings.share:.4g}"
        side = Group.CANARY if is_canary else Group.CONTROL
        return replace(member, side=side, compared=int(settings.control), why=why)


def cores_of(view: JobView) -> int:
    """Return the cores that a job asks for on all its nodes."""
    return view.job.nodes * max(1, sum(group.count for group in view.job.profile.groups))


def ended_member(member: Member, state: JobState, start: float | None, finish: float) -> Member:
    """Return a member whose job has ended; times in epoch seconds."""
    return replace(member, state=str(state), start_time=start, finish_time=finish)
