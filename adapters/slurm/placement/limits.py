"""Limits of QOS and associations: what may run at once, and how large one job may be.

Rule: pure. Of a limit only its cap is taken from here, because it changes rarely; what counts against it is counted
anew from the queue (see `quota`), but for minutes used in the past, which Slurm alone knows.
Source: scontrol(1) of Slurm 22.05, `show assoc_mgr`: `NAME=CAP(USED)`, `N` for no cap; memory in MiB, times in minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from ..base import ParseError
from .records import SlurmJob

_CAP = re.compile(r"(N|\d+(?:\.\d+)?)(?:\((\d+(?:\.\d+)?)\))?")
_PARTS = re.compile(r" (Account|User) Limits=")
_MEMBER = re.compile(r"([^\s={}]+)=\{([^}]*)\}")
_ID = re.compile(r"\((\d+)\)$")
#: key of Slurm's -> what is counted; `{}` is the resource
_GROUP = {"GrpJobs": "jobs", "GrpWall": "minutes", "GrpTRES": "{}", "GrpTRESMins": "{} minutes",
          "GrpTRESRunMins": "{} minutes left"}  # fmt: skip
_EACH = {"MaxWallPJ": "minutes", "MaxTRESPJ": "{}", "MaxTRESMinsPJ": "{} minutes", "MaxTRESPN": "{} on a node"}
_MEMBERS = {"MaxJobsPU": "jobs", "MaxTRESPU": "{}", "MaxJobsPA": "jobs", "MaxTRESPA": "{}"}

Member = TypeVar("Member", int, str)


@dataclass(frozen=True, slots=True)
class Cap:
    """At most `most`; `used`: as Slurm counted when it was read."""

    most: float
    used: float = 0.0


Caps = Mapping[str, Cap]


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose jobs are counted together, in words, and the caps on them by what is counted."""

    name: str
    caps: Caps


@dataclass(frozen=True, slots=True)
class Qos:
    """A QOS: caps on all its jobs, on each, and on those of a user (by number) or account, alike for each."""

    group: Caps
    each: Caps
    users: Mapping[int, Caps]
    accounts: Mapping[str, Caps]


@dataclass(frozen=True, slots=True)
class Association:
    """An association: its number, that of the account above it, and its caps."""

    id: int
    above: int | None
    group: Caps
    each: Caps


@dataclass(frozen=True)
class Limits:
    """All that was read; associations by account, user number (None: the account's own) and partition ("": all)."""

    qos: Mapping[str, Qos] = field(default_factory=dict)
    associations: Mapping[tuple[str, int | None, str], Association] = field(default_factory=dict)

    def knows(self, job: SlurmJob) -> bool:
        """Whether what binds the job's user was read: Slurm tells it only of those who have jobs."""
        qos = self.qos.get(job.qos)
        return qos is None or job.uid in qos.users

    def scopes(self, job: SlurmJob, partition_qos: str = "") -> Iterator[Scope]:
        """Whom the job is counted with."""
        for name in filter(None, dict.fromkeys((job.qos, partition_qos))):
            if qos := self.qos.get(name):
                yield Scope(f"QOS {name}", qos.group)
                yield Scope(f"user {job.uid} in QOS {name}", _of(job.uid, qos.users))
                yield Scope(f"account {job.account} in QOS {name}", _of(job.account, qos.accounts))
        for association in self._above(job):
            yield Scope(f"association {association.id}", association.group)

    def of_one(self, job: SlurmJob, partition_qos: str = "") -> Iterator[Scope]:
        """Caps on the job by itself."""
        for name in filter(None, dict.fromkeys((job.qos, partition_qos))):
            if qos := self.qos.get(name):
                yield Scope(f"QOS {name}", qos.each)
        for association in self._above(job):
            yield Scope(f"association {association.id}", association.each)

    @cached_property
    def _by_id(self) -> dict[int, Association]:
        return {association.id: association for association in self.associations.values()}

    def _above(self, job: SlurmJob) -> Iterator[Association]:
        account = job.account
        keys = ((account, job.uid, partition) for partition in (*job.partition.split(","), ""))
        found = next((self.associations[key] for key in keys if key in self.associations), None)
        if found is not None:
            yield found
        seen = set[int]()
        above = self.associations.get((account, None, ""))
        while above is not None and above.id not in seen:
            seen.add(above.id)
            yield above
            above = self._by_id.get(above.above) if above.above is not None else None


def _of(member: Member, caps: Mapping[Member, Caps]) -> Caps:
    """The caps on one member; they are the same for all, so that anybody's serve where those are not told."""
    return caps.get(member) or next(iter(caps.values()), {})


def command() -> list[str]:
    """The argv that shows them."""
    return ["scontrol", "--oneliner", "show", "assoc_mgr", "flags=assoc,qos"]


def parse(text: str) -> Limits:
    """The limits. Raises ParseError."""
    if "Association Manager" not in text:
        raise ParseError("scontrol: these are no limits", argv=("scontrol",), stderr_tail=text[:200])
    qos, associations = dict[str, Qos](), dict[tuple[str, int | None, str], Association]()
    try:
        for line in text.splitlines():
            if line.startswith("QOS="):
                qos[_words(line)["QOS"].partition("(")[0]] = _qos(line)
            elif line.startswith("ClusterName="):
                words = _words(line)
                key = (words["Account"], _number(words["UserName"]), words.get("Partition", ""))
                associations[key] = _association(words)
    except (KeyError, ValueError) as problem:
        why = f"scontrol: a limit cannot be read: {problem}"
        raise ParseError(why, argv=("scontrol",), stderr_tail=line[:200]) from None
    return Limits(qos, associations)


def _qos(line: str) -> Qos:
    head, *rest = _PARTS.split(line)
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    members = {
        kind: {name: caps_in(_words(inner), _MEMBERS) for name, inner in _MEMBER.findall(parts.get(kind, ""))}
        for kind in ("User", "Account")
    }
    words = _words(head)
    users = {int(name): caps for name, caps in members["User"].items()}
    return Qos(caps_in(words, _GROUP), caps_in(words, _EACH), users, members["Account"])


def _association(words: dict[str, str]) -> Association:
    group = {**_GROUP, "MaxJobs": "jobs"} if words["UserName"] else _GROUP
    return Association(int(words["ID"]), _number(words["ParentAccount"]), caps_in(words, group), caps_in(words, _EACH))


def caps_in(words: Mapping[str, str], meaning: Mapping[str, str]) -> dict[str, Cap]:
    """The caps that are set, by what is counted; of two on the same thing the smaller. Raises ValueError."""
    found: dict[str, Cap] = {}
    for key, what in meaning.items():
        pairs = words.get(key, "").split(",") if "{}" in what else [words.get(key, "")]
        for pair in filter(None, pairs):
            resource, equals, value = pair.rpartition("=")
            cap = _CAP.fullmatch(value)
            if not cap or bool(equals) is not ("{}" in what):
                raise ValueError(f"{key}={pair}")
            name = what.format(resource)
            if cap[1] != "N" and (name not in found or float(cap[1]) < found[name].most):
                found[name] = Cap(float(cap[1]), float(cap[2] or 0))
    return found


def _words(line: str) -> dict[str, str]:
    return {key: value for key, _, value in (word.partition("=") for word in line.split())}


def _number(text: str) -> int | None:
    found = _ID.search(text)
    return int(found[1]) if found else None
