"""A queue policy as the decision component of a Batsim.

Rule: the policy sees what it sees in a replay: each message is one call, after all its events. A job that requests more
than the machine has is rejected. A job without a walltime is rejected by a policy that needs walltimes, in protocol 4
with the reason in its metadata. The first message says which version of the protocol Batsim speaks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from heapq import heappop
from typing import Any

from ... import __version__
from ...formats.batsim.hello_5 import hello_message, is_init_message
from ...formats.batsim.messages import (
    Answer,
    CallMeLater,
    Event,
    ExecuteJob,
    JobCompleted,
    JobSubmitted,
    Message,
    Query,
    RejectJob,
    RequestedCall,
    SetJobMetadata,
    SimulationBegins,
    SimulationEnds,
    refusal,
)
from ...formats.batsim.protocol_versions import VERSION_4, VERSION_5, ProtocolVersion
from ...formats.documents.document_errors import inside
from ...formats.documents.quantities import checked_number, whole
from ...simulate.errors import ConfigError
from ...simulate.model.machine import Machine
from ...simulate.model.workload import LONGEST
from ...simulate.queue_policies.interface import QueuePolicy
from ...simulate.queue_policies.numbered_resources import NumberedResources
from ...simulate.queue_policies.policy_calls import PolicyCalls
from ...simulate.queue_policies.queued_job import QueuedJob, Running

_resources, _machine = whole(1, 2**31 - 64), whole(1, 2**31 - 64)


class PolicyComponent:
    """Answers the messages of a Batsim as a policy decides.

    Args:
        policy: the policy.
        name: its name, for messages.
        needs_walltimes: it cannot decide about jobs without walltimes.
    """

    def __init__(self, policy: QueuePolicy, name: str, *, needs_walltimes: bool = False) -> None:
        self._policy, self._name, self._needs_walltimes = policy, name, needs_walltimes
        self._jobs: _JobsOfBatsim | None = None
        self._protocol: ProtocolVersion | None = None
        self._raw = b""

    def answer(self, raw: bytes) -> tuple[bytes, bool]:
        """Return the reply to a message, and whether the simulation has ended.

        Raises:
            ConfigError: the message cannot be read, or does not follow from those before.
            PolicyError: the policy raised an exception, or decided what cannot be done.
        """
        if self._protocol is None and is_init_message(raw):
            self._protocol = VERSION_5
            return hello_message("pilotfish", __version__), False
        self._protocol = protocol = self._protocol or VERSION_4
        self._raw, message = raw, protocol.read_events(raw, "Batsim")
        decisions, last = list[Event](), False
        for i, (time, event) in enumerate(message.events):
            try:
                decisions += self._happened(event, time)
            except ConfigError as error:
                if error.source:
                    raise
                key = f"events[{i}].{'data' if protocol is VERSION_4 else 'event'}.{error.key}"
                raise refusal("Batsim", key, error.problem, error.allowed, self._said()) from None
            last |= isinstance(event, SimulationEnds)
        if self._jobs is not None and not last:
            decisions += self._jobs.decide_at(message.now)
        return protocol.from_component(Message(message.now, [(message.now, event) for event in decisions])), last

    def _said(self) -> str:
        return self._raw.decode("utf-8", "replace")

    def _happened(self, event: Event, time: float) -> list[Event]:
        """Note an event; return what is decided at once."""
        if isinstance(event, SimulationBegins):
            resources = inside("nb_compute_resources", _machine, event.about.get("nb_compute_resources"))
            self._jobs = _JobsOfBatsim(self._policy, self._name, Machine(resources, powers=None))
            return []
        if isinstance(event, SimulationEnds):
            return []
        if self._jobs is None:
            raise refusal("Batsim", "", f"{event.type} comes first", "SIMULATION_BEGINS first", self._said())
        if isinstance(event, JobSubmitted):
            return self._submitted(event, time)
        if isinstance(event, JobCompleted):
            if event.job_id not in self._jobs.here:
                raise refusal("Batsim", "", f"job {event.job_id!r:.60} ended", "jobs that run", self._said())
            self._jobs.end(self._jobs.here.pop(event.job_id))
        elif isinstance(event, RequestedCall):
            self._jobs.woken = True
        elif isinstance(event, Query):
            return [Answer({"estimate_waiting_time": self._waiting_time(dict(request), time)})
                    for question, request in event.requests.items() if question == "estimate_waiting_time"]  # fmt: skip
        return []

    def _submitted(self, event: JobSubmitted, time: float) -> list[Event]:
        jobs = self._jobs
        assert jobs is not None, "the simulation has begun"
        if event.job_id in jobs.known:
            raise refusal("Batsim", "", f"job {event.job_id!r:.60} is submitted again", "new jobs", self._said())
        size = inside("job.res", _resources, event.job.get("res"))
        walltime = _walltime(event.job)
        jobs.known.add(event.job_id)
        if size > jobs.processors:
            return [RejectJob(event.job_id)]
        if walltime == math.inf and self._needs_walltimes:
            why = f"{self._name} needs walltimes, and this job has none"
            return [SetJobMetadata(event.job_id, why), RejectJob(event.job_id)]
        jobs.submit(QueuedJob(len(jobs.known) - 1, event.job_id, size, walltime, time, event.job.get("user")))
        return []

    def _waiting_time(self, request: Mapping[str, Any], now: float) -> dict[str, Any]:
        """Return the seconds until enough resources are free for a job by the walltimes of others; -1: not known."""
        jobs, free = self._jobs, 0
        assert jobs is not None, "the simulation has begun"
        size = inside("requests.estimate_waiting_time.job.res", _resources, dict(request.get("job") or {}).get("res"))
        times = [(now, jobs.free.count), *((entry.until, entry.job.size) for entry in jobs.running)]
        for time, freed in times:
            free += freed
            if free >= size and time < math.inf:
                return {"job_id": request.get("job_id", ""), "estimated_waiting_time": max(0.0, time - now)}
        return {"job_id": request.get("job_id", ""), "estimated_waiting_time": -1}


def _walltime(job: Mapping[str, Any]) -> float:
    """Return the walltime of a description, seconds; an absent one, or -1, is infinite."""
    value = job.get("walltime", -1)
    if value == -1:
        return math.inf
    return inside("job.walltime", lambda it: checked_number(it, f"seconds from 0 to {LONGEST:g}", 0.0, LONGEST), value)


class _JobsOfBatsim(PolicyCalls):
    """The jobs as the policy sees them, and what it decides as events."""

    def __init__(self, policy: QueuePolicy, name: str, machine: Machine) -> None:
        super().__init__(policy, name, NumberedResources(machine))
        self.known, self.here, self.decided = set[str](), dict[str, Running](), list[Event]()

    def decide_at(self, now: float) -> list[Event]:
        """Return what the policy decides at a time, seconds. Raises PolicyError."""
        self.decided = []
        self.now = self.snapshot.time = now
        while self.wakes and self.wakes[0] <= now:
            heappop(self.wakes)
        if not (self.snapshot.submitted or self.snapshot.ended or self.woken):
            return []
        earlier_wakes = set(self.wakes)
        self.apply(self.call_policy(), now)
        while self.again:
            self.apply(self.call_policy(), now)
        return self.decided + [CallMeLater(time) for time in sorted(set(self.wakes) - earlier_wakes)]

    def begin(self, running: Running) -> None:
        """Let Batsim execute a job."""
        self.here[str(running.job.id)] = running
        self.decided.append(ExecuteJob(str(running.job.id), list(running.resources)))

    def reject(self, job: QueuedJob) -> None:
        """Let Batsim reject a job."""
        self.decided.append(RejectJob(str(job.id)))

    def why_not_waiting(self, number: int) -> str:
        """Return why a job does not wait."""
        return "it was started or rejected" if 0 <= number < len(self.known) else "no such job was shown"
