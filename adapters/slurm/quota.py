"""Who may still start, by the limits of QOS and associations, counted from the queue.

Rule: jobs that run, or were placed, count; then those that could start, in Slurm's order: whoever comes first has the
room, and what does not fit behind them waits. A limit is never passed; it may be left unused for a moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from .lasting import Lasting
from .limits import Limits, Scope
from .records import SlurmJob

_SLACK = 1e-9


def charge(job: SlurmJob, span_s: float) -> dict[str, float]:
    """What a job counts for while it runs for `span_s` more seconds at most, by what is counted."""
    used = {**dict(job.tres), "node": float(job.nodes)}
    used["cpu"] = max(used.get("cpu", 0.0), float(job.cpus), float(job.threads * job.nodes))
    minutes = span_s / 60
    found = {"jobs": 1.0, "minutes": minutes, **used}
    for name, amount in used.items():
        if not amount:
            continue
        found |= {f"{name} minutes": amount * minutes, f"{name} minutes left": amount * minutes}
        found[f"{name} on a node"] = amount / max(1, job.nodes)
    return found


class Quota:
    """What is counted so far in each scope.

    Args:
        partition_qos: partition -> its own QOS.
    """

    def __init__(self, limits: Limits, partition_qos: Mapping[str, str]) -> None:
        self.limits, self.partition_qos = limits, partition_qos
        self._counted: dict[tuple[str, str], float] = defaultdict(float)
        self._known = Lasting[object, tuple[list[Scope], list[Scope]]]()

    def empty(self) -> Quota:
        """Another that has counted nothing; what was looked up for one serves both."""
        twin = Quota(self.limits, self.partition_qos)
        twin._known = self._known
        return twin

    def age(self) -> None:
        """Forget whom nobody asked for since the last time."""
        self._known.age()

    def copy(self) -> Quota:
        """Another that goes on counting from here."""
        twin = self.empty()
        twin._counted = self._counted.copy()
        return twin

    def obstacle(self, job: SlurmJob, span_s: float) -> str:
        """Why the job would pass a limit beside what is counted, or ""."""
        scopes, alone = self._scopes(job)
        amounts = charge(job, span_s) if scopes or alone else {}
        for scope in alone:
            for what, cap in scope.caps.items():
                if amounts.get(what, 0.0) > cap.most * (1 + _SLACK):
                    return f"{scope.name} allows a job {cap.most:g} {what}, it asks for {amounts[what]:g}"
        for scope in scopes:
            for what, cap in scope.caps.items():
                past = cap.used if what.endswith("minutes") else 0.0
                taken = self._counted[(scope.name, what)] + past
                if taken + amounts.get(what, 0.0) > cap.most * (1 + _SLACK) and amounts.get(what, 0.0) > 0:
                    return f"{scope.name} may have {cap.most:g} {what}, and {taken:g} are taken"
        return ""

    def count(self, job: SlurmJob, span_s: float) -> None:
        """Count a job that runs, or is about to."""
        scopes, _ = self._scopes(job)
        amounts = charge(job, span_s) if scopes else {}
        for scope in scopes:
            for what in scope.caps:
                self._counted[(scope.name, what)] += amounts.get(what, 0.0)

    def _scopes(self, job: SlurmJob) -> tuple[list[Scope], list[Scope]]:
        """Those in which it counts together with others, and those that cap a job by itself."""
        who = job.qos, job.partition, job.account, job.uid
        return self._known.get(who, lambda: self._look_up(job))

    def _look_up(self, job: SlurmJob) -> tuple[list[Scope], list[Scope]]:
        qos = self._qos(job)
        return _capped(self.limits.scopes(job, qos)), _capped(self.limits.of_one(job, qos))

    def _qos(self, job: SlurmJob) -> str:
        return next((qos for name in job.partition.split(",") if (qos := self.partition_qos.get(name))), "")


def _capped(scopes: Iterable[Scope]) -> list[Scope]:
    return [scope for scope in scopes if scope.caps]
