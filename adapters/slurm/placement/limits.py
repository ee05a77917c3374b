"""Limits of QOS and associations, and the quota that is left within them.

Rule: pure. Only the caps are read from Slurm, because they change rarely; usage is counted from the queue, except for
minutes used in the past, which only Slurm knows. Running and placed jobs count first, then jobs that could start, in
Slurm's order; a job that does not fit behind them waits. A limit is never exceeded; it may be left unused for a moment.
Source: scontrol(1) of Slurm 22.05, `show assoc_mgr`: `NAME=CAP(USED)`, `N` for no cap; memory in MiB, times in minutes.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...base import ParseError
from ..cache import TwoGenerationCache
from ..records import SlurmJob
from ..transport.rows import Unreadable, read_rows

_CAP = re.compile(r"(N|\d+(?:\.\d+)?)(?:\((\d+(?:\.\d+)?)\))?")
_PARTS = re.compile(r" (Account|User) Limits=")
_MEMBER = re.compile(r"([^\s={}]+)=\{([^}]*)\}")
_LIMIT = re.compile(r"QOS=|ClusterName=")
_ID = re.compile(r"\((\d+)\)$")
#: Slurm's key -> what is counted; `{}` is the resource.
_GROUP = {"GrpJobs": "jobs", "GrpWall": "minutes", "GrpTRES": "{}", "GrpTRESMins": "{} minutes",
          "GrpTRESRunMins": "{} minutes left"}  # fmt: skip
_PER_JOB = {"MaxWallPJ": "minutes", "MaxTRESPJ": "{}", "MaxTRESMinsPJ": "{} minutes", "MaxTRESPN": "{} on a node"}
_MEMBERS = {"MaxJobsPU": "jobs", "MaxTRESPU": "{}", "MaxJobsPA": "jobs", "MaxTRESPA": "{}"}


@dataclass(frozen=True, slots=True)
class UsageCap:
    """A cap: at most `most`; `used`: as Slurm counted when it was read."""

    most: float
    used: float = 0.0


Caps = Mapping[str, UsageCap]


@dataclass(frozen=True, slots=True)
class Scope:
    """A group of jobs that are counted together, in words, the caps on them and those on each of them alone."""

    name: str
    caps: Caps
    each: Caps = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Qos:
    """A QOS: caps on all its jobs, on each job, and on the jobs of each user (by uid) or account."""

    group: Caps
    each: Caps
    users: Mapping[int, Caps]
    accounts: Mapping[str, Caps]


@dataclass(frozen=True, slots=True)
class Association:
    """An association: its id, the id of the account above it, and its caps."""

    id: int
    above: int | None
    group: Caps
    each: Caps


@dataclass(frozen=True)
class Limits:
    """All limits; associations by account, user id (None: the account's own) and partition ("": all)."""

    qos: Mapping[str, Qos] = field(default_factory=dict)
    associations: Mapping[tuple[str, int | None, str], Association] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()  #: names of the QOS and accounts with a limit that cannot be read

    def knows(self, job: SlurmJob) -> bool:
        """Return whether the limits of the job's user were read: Slurm shows them only for users with jobs."""
        if self.unreadable & {job.qos, job.account}:
            return False
        qos = self.qos.get(job.qos)
        return qos is None or job.uid in qos.users

    def scopes(self, job: SlurmJob, partition_qos: str = "") -> Iterator[Scope]:
        """Yield the groups in which the job is counted."""
        for name in filter(None, dict.fromkeys((job.qos, partition_qos))):
            if qos := self.qos.get(name):
                yield Scope(f"QOS {name}", qos.group, qos.each)
                yield Scope(f"user {job.uid} in QOS {name}", _of(job.uid, qos.users))
                yield Scope(f"account {job.account} in QOS {name}", _of(job.account, qos.accounts))
        for association in self._above(job):
            yield Scope(f"association {association.id}", association.group, association.each)

    @cached_property
    def _by_id(self) -> dict[int, Association]:
        return {association.id: association for association in self.associations.values()}

    def _above(self, job: SlurmJob) -> Iterator[Association]:
        account = job.account
        keys = ((account, job.uid, partition) for partition in (*job.partition.split(","), ""))
        association = next((self.associations[key] for key in keys if key in self.associations), None)
        if association is not None:
            yield association
        visited = set[int]()
        above = self.associations.get((account, None, ""))
        while above is not None and above.id not in visited:
            visited.add(above.id)
            yield above
            above = self._by_id.get(above.above) if above.above is not None else None


def _of(member: int | str, caps: Mapping[Any, Caps]) -> Caps:
    """Return the caps on one member; they are equal for all, so another member's serve if this one's are missing."""
    return caps.get(member) or next(iter(caps.values()), {})


def parse(text: str, unreadable: Unreadable | None = None) -> Limits:
    """Return the limits that `scontrol --oneliner show assoc_mgr` prints. Raises ParseError.

    Args:
        text: What `scontrol` prints.
        unreadable: Counts and reports lines that cannot be read; see `Limits.unreadable`.
    """
    if "Association Manager" not in text:
        raise ParseError("scontrol: the answer shows no limits", argv=("scontrol",), stderr_tail=text[:200])
    qos, associations = dict[str, Qos](), dict[tuple[str, int | None, str], Association]()
    problems: dict[str, str] = {}

    def read(line: str) -> None:
        words = _words(line)
        if "QOS" in words:
            qos[words["QOS"].partition("(")[0]] = _qos(line)
        else:
            key = (words["Account"], _number(words["UserName"]), words.get("Partition", ""))
            associations[key] = _association(words)

    def name(line: str) -> str:
        words = _words(line)
        return words["QOS"].partition("(")[0] if "QOS" in words else words.get("Account", "")

    read_rows(filter(_LIMIT.match, text.splitlines()), read, lambda line: None, name, problems)
    (unreadable or Unreadable()).note("limit", problems, whole=True)
    return Limits(qos, associations, frozenset(problems))


def _qos(line: str) -> Qos:
    head, *sections = _PARTS.split(line)
    parts = dict(zip(sections[::2], sections[1::2], strict=True))
    members = {
        kind: {name: caps_in(_words(inner), _MEMBERS) for name, inner in _MEMBER.findall(parts.get(kind, ""))}
        for kind in ("User", "Account")
    }
    words = _words(head)
    users = {int(name): caps for name, caps in members["User"].items()}
    return Qos(caps_in(words, _GROUP), caps_in(words, _PER_JOB), users, members["Account"])


def _association(words: dict[str, str]) -> Association:
    group = {**_GROUP, "MaxJobs": "jobs"} if words["UserName"] else _GROUP
    return Association(
        int(words["ID"]), _number(words["ParentAccount"]), caps_in(words, group), caps_in(words, _PER_JOB)
    )


def caps_in(words: Mapping[str, str], meaning: Mapping[str, str]) -> dict[str, UsageCap]:
    """Return the caps that are set, by what is counted; the smaller of two on the same. Raises ValueError."""
    caps: dict[str, UsageCap] = {}
    for key, unit in meaning.items():
        pairs = words.get(key, "").split(",") if "{}" in unit else [words.get(key, "")]
        for pair in filter(None, pairs):
            resource, equals, value = pair.rpartition("=")
            cap = _CAP.fullmatch(value)
            if not cap or bool(equals) is not ("{}" in unit):
                raise ValueError(f"{key}={pair}")
            name = unit.format(resource)
            if cap[1] != "N" and (name not in caps or float(cap[1]) < caps[name].most):
                caps[name] = UsageCap(float(cap[1]), float(cap[2] or 0))
    return caps


def _words(line: str) -> dict[str, str]:
    return {key: value for key, _, value in (word.partition("=") for word in line.split())}


def _number(text: str) -> int | None:
    match = _ID.search(text)
    return int(match[1]) if match else None


_SLACK = 1e-9


def usage(job: SlurmJob) -> dict[str, float]:
    """Return what a job counts for as long as it runs, by what is counted."""
    used = {"jobs": 1.0, **dict(job.tres), "node": float(job.nodes)}
    used["cpu"] = max(used.get("cpu", 0.0), float(job.cpus), float(job.threads * job.nodes))
    return used


def _charge(job: SlurmJob, span_s: float) -> dict[str, float]:
    """Return what a job counts for if it runs for `span_s` more seconds, by what is counted."""
    charge = usage(job)
    used, minutes = {name: amount for name, amount in charge.items() if name != "jobs"}, span_s / 60
    charge["minutes"] = minutes
    for name, amount in used.items():
        if not amount:
            continue
        charge |= {f"{name} minutes": amount * minutes, f"{name} minutes left": amount * minutes}
        charge[f"{name} on a node"] = amount / max(1, job.nodes)
    return charge


@dataclass(frozen=True, slots=True)
class _Scopes:
    """The scopes that count a job; names of those with a cap on all their jobs, and whether one counts minutes."""

    all: list[Scope]
    capped: frozenset[str]
    timed: bool


class Quota:
    """Counts jobs in each scope of the limits; `partition_qos`: partition -> its own QOS."""

    def __init__(self, limits: Limits, partition_qos: Mapping[str, str]) -> None:
        self.limits, self.partition_qos = limits, partition_qos
        self._amounts: dict[tuple[str, str], float] = defaultdict(float)
        self._scopes_of = TwoGenerationCache[object, _Scopes]()

    def empty(self) -> Quota:
        """Return a new, empty quota that shares the caps that were looked up."""
        twin = Quota(self.limits, self.partition_qos)
        twin._scopes_of = self._scopes_of
        return twin

    def age(self) -> None:
        """Drop look-ups that were not used since the last call."""
        self._scopes_of.age()

    def copy(self) -> Quota:
        """Return a copy that goes on counting from here."""
        twin = self.empty()
        twin._amounts = self._amounts.copy()
        return twin

    def obstacle(self, job: SlurmJob, span_s: float) -> str:
        """Return why the job would exceed a limit, or ""; `span_s`: seconds that it may run."""
        scopes = self._scopes(job).all
        amounts = _charge(job, span_s) if scopes else {}
        for scope in scopes:
            for unit, cap in scope.each.items():
                if amounts.get(unit, 0.0) > cap.most * (1 + _SLACK):
                    return f"{scope.name} allows a job {cap.most:g} {unit}, it asks for {amounts[unit]:g}"
        for scope in scopes:
            for unit, cap in scope.caps.items():
                past = cap.used if unit.endswith("minutes") else 0.0
                amount = self._amounts[(scope.name, unit)] + past
                if amount + amounts.get(unit, 0.0) > cap.most * (1 + _SLACK) and amounts.get(unit, 0.0) > 0:
                    return f"{scope.name} may have {cap.most:g} {unit}, and {amount:g} are taken"
        return ""

    def count(self, job: SlurmJob, span_s: float) -> None:
        """Count a job that runs, or is about to; `span_s`: seconds that it may still run."""
        scopes = self._scopes(job).all
        amounts = _charge(job, span_s) if scopes else {}
        for scope in scopes:
            for unit in scope.caps:
                self._amounts[(scope.name, unit)] += amounts.get(unit, 0.0)

    def count_like(self, job: SlurmJob, used: Mapping[str, float]) -> None:
        """Count jobs that use the same limits as a job; `used`: the sums of their `usage`."""
        for scope in self._scopes(job).all:
            for unit in scope.caps:
                self._amounts[(scope.name, unit)] += used.get(unit, 0.0)

    def timed(self, job: SlurmJob) -> bool:
        """Return whether a cap on all jobs of a scope of the job counts minutes."""
        return self._scopes(job).timed

    def capped(self, job: SlurmJob) -> frozenset[str]:
        """Return the names of the scopes with a cap on all their jobs in which the job is counted."""
        return self._scopes(job).capped

    def _scopes(self, job: SlurmJob) -> _Scopes:
        who = job.qos, job.partition, job.account, job.uid
        return self._scopes_of.get(who, lambda: self._look_up(job))

    def _look_up(self, job: SlurmJob) -> _Scopes:
        qos = next((qos for name in job.partition.split(",") if (qos := self.partition_qos.get(name))), "")
        scopes = [scope for scope in self.limits.scopes(job, qos) if scope.caps or scope.each]
        timed = any(unit.endswith(("minutes", "minutes left")) for scope in scopes for unit in scope.caps)
        return _Scopes(scopes, frozenset(scope.name for scope in scopes if scope.caps), timed)
