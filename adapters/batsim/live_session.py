"""A session with a decision component that decides about real jobs: the jobs that it has seen, and its decisions.

Rule: a job is submitted once, and ends once. A job that already runs is submitted, too, with the rest of its walltime;
the hosts on which the component places it are only noted, so that it counts on fewer free hosts. A job that has left
the queue before the component starts it ends as killed at once. A job that came back (a requeue) is submitted again
under a new id. Decisions that a component must not make here (kill, register, switch machines, place ranks, add
transfers), and all invalid ones, are errors. An error quotes the message, and ends the session.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

from ...formats.batsim.hello_5 import init_message, read_hello
from ...formats.batsim.messages import (
    FAILED,
    KILLED,
    SUCCEEDED,
    TIMED_OUT,
    Answer,
    CallMeLater,
    Event,
    ExecuteJob,
    JobCompleted,
    JobSubmitted,
    Message,
    Notify,
    RejectJob,
    RequestedCall,
    SetJobMetadata,
    SimulationBegins,
    SimulationEnds,
    StopCalls,
    interval_text,
    refusal,
)
from ...formats.batsim.messages_5_write import simulation_begins_5
from ...formats.batsim.protocol_versions import VERSION_4, ProtocolVersion
from ...formats.documents.document_errors import bad
from ...simulate.errors import ConfigError
from ...simulate.model.intervals import FreeResources, Interval, count_of
from ...simulate.model.snapshot import JobState
from ...simulate.queue_policies.queued_job import QueuedJob, Running
from .periodic_calls import SAME_S, PeriodicCalls

#: Messages in a row after which a component is taken to be stuck.
MOST_IN_VAIN = 1000
#: The profile of all jobs: what they will do is not known.
PROFILE = "unknown"
PROFILES = {PROFILE: {"type": "delay", "delay": 1}}
#: State and return code of a job that ended, by how it ended in the resource manager.
_ENDED = {
    JobState.COMPLETED: SUCCEEDED, JobState.FAILED: FAILED, JobState.TIMEOUT: TIMED_OUT, JobState.CANCELLED: KILLED,
}  # fmt: skip
End = tuple[str, int]
_LOST: End = KILLED, -1


def end_of(state: JobState, exit_code: int | None) -> End:
    """Return the state of a job that ended and its return code, as Batsim names them."""
    return _ENDED[state], -1 if exit_code is None else exit_code


@dataclass(slots=True)
class _Shown:
    """A job that was submitted to the component; `hosts`: where it placed it; `ran`: it was seen running."""

    job_id: str
    key: str
    size: int
    hosts: list[Interval] | None = None
    ran: bool = False
    rejected: bool = False


class LiveSession:
    """The messages between a component and pilotfish since SIMULATION_BEGINS.

    Args:
        name: of the component, for messages.
        workload: of all jobs, new for each session: a component that still has jobs of another one is found out.
        about: the `data` of SIMULATION_BEGINS.
        protocol: the version that the component speaks.
        speeds: of the hosts, flop/s; () = unknown.
    """

    def __init__(
        self, name: str, workload: str, about: Mapping[str, Any], protocol: ProtocolVersion = VERSION_4,
        speeds: Sequence[float] = (),
    ) -> None:  # fmt: skip
        self.name, self.workload, self.protocol, self._speeds = name, workload, protocol, speeds
        self.hosts: int = about["nb_compute_resources"]
        self._about: Mapping[str, Any] | None = about  # until it is sent
        self._free = FreeResources(self.hosts)
        self._by_key: dict[str, _Shown] = {}
        self._by_id: dict[str, _Shown] = {}
        self._departed: dict[
            str, tuple[int, End]
        ] = {}  # size and end of jobs that ended before the component started them
        self._ids = count(1)
        self._later: list[tuple[float, int, Event, bytes]] = []  # calls, and decisions of the future with the message
        self._number, self._periodic = count(), PeriodicCalls()
        self._forwards = False  # submissions carry the profile
        self._reply, self._busy_until = b"", 0.0

    @property
    def placed(self) -> Iterator[tuple[str, list[Interval]]]:
        """The jobs that the component has started and that do not run yet, with their hosts, as they were started."""
        return ((job.key, job.hosts) for job in self._by_key.values() if job.hosts is not None and not job.ran)

    @property
    def rejected(self) -> set[str]:
        """The jobs that the component has rejected."""
        return {job.key for job in self._by_key.values() if job.rejected}

    @property
    def call_at(self) -> float:
        """Time of the component's next call, or of what it has decided for later, seconds of the session; inf: none."""
        return self._later[0][0] if self._later else math.inf

    def knows(self, key: str) -> bool:
        """Return whether a job was submitted to the component and has not ended."""
        return key in self._by_key

    def update(
        self, now: float, waiting: Sequence[QueuedJob], running: Sequence[Running], ended: Mapping[str, End],
        ask: Callable[[bytes], bytes],
    ) -> None:  # fmt: skip
        """Show the component what happened since the last call, if anything did, and note what it decides.

        Args:
            now: seconds since the session began, ascending.
            waiting: the jobs that may start now.
            running: the jobs that run.
            ended: how jobs ended that the component knows; others that are gone count as killed.
            ask: sends a message and returns the reply. Raises ConfigError: no reply.

        Raises:
            ConfigError: no reply, or one that makes no sense.
        """
        now = max(now, self._busy_until)
        if self._about is not None:
            about, self._about = self._about, None
            if self.protocol.number == 5:
                about = self._after_hello(about, ask)
            self._exchange(now, [SimulationBegins(about)], ask)
        events = [*self._note_ends({str(job.id) for job in waiting}, {str(entry.job.id) for entry in running}, ended)]
        for entry in running:
            events += self._submit(entry.job, now, max(entry.until, 1.0), ran=True)
        for job in waiting:
            events += self._submit(job, now, job.walltime)
        while self._later and self._later[0][0] <= now + SAME_S:
            _, _, event, reply = heappop(self._later)
            if isinstance(event, CallMeLater) and not reply:
                events += self._come_again(event, now)
            else:
                events += [event] if isinstance(event, RequestedCall) else self._carry_out(event, now, reply)
        in_vain = 0
        while events:
            events = self._exchange(now, events, ask)
            in_vain += 1
            if in_vain > MOST_IN_VAIN:
                raise self._refusal("it is asked again and again", "a reply without further calls")

    def last_message(self, now: float) -> bytes:
        """Return the message that ends the session."""
        now = max(now, self._busy_until)
        return self.protocol.from_batsim(Message(now, [(now, SimulationEnds())]))

    def _after_hello(self, about: Mapping[str, Any], ask: Callable[[bytes], bytes]) -> Mapping[str, Any]:
        """Return what a component of protocol 5 learns of the machine, after its hello. Raises ConfigError."""
        wishes = read_hello(ask(init_message("")), self.name)
        self._forwards = wishes.get("forward_profiles_on_job_submission", False)
        profiles = wishes.get("forward_profiles_on_simulation_begins", False)
        return simulation_begins_5(about, self._speeds, profiles=profiles)

    # --- what happened ---
    def _note_ends(self, waiting: set[str], running: set[str], ended: Mapping[str, End]) -> Iterator[Event]:
        for job in [*self._by_key.values()]:
            if job.key in running:
                job.ran = True
            elif job.ran or job.key not in waiting:
                del self._by_key[job.key], self._by_id[job.job_id]
                end = ended.get(job.key, _LOST)
                if job.hosts is not None:
                    yield self._completed(job.job_id, job.hosts, end)
                elif not job.rejected:
                    self._departed[job.job_id] = job.size, end

    def _completed(self, job_id: str, hosts: list[Interval], end: End) -> JobCompleted:
        self._free.release(hosts)
        return JobCompleted(job_id, *end, interval_text(hosts))

    def _submit(self, job: QueuedJob, now: float, walltime: float, *, ran: bool = False) -> Iterator[Event]:
        key = str(job.id)
        if key in self._by_key:
            return
        job_id = f"{self.workload}!{next(self._ids)}"  # pybatsim wants numbers
        self._by_key[key] = self._by_id[job_id] = _Shown(job_id, key, job.size, ran=ran)
        details: dict[str, Any] = {"name": key, "nodes": job.nodes}
        if job.user is not None:
            details["user"] = str(job.user)
        about: dict[str, Any] = {"id": job_id, "subtime": now, "res": job.size, "profile": PROFILE}
        about |= {"extra_data": details} if self.protocol.number == 5 else details
        if walltime < math.inf:
            about["walltime"] = walltime
        yield JobSubmitted(job_id, about, PROFILES[PROFILE] if self._forwards else None)

    # --- messages ---
    def _exchange(self, now: float, events: Sequence[Event], ask: Callable[[bytes], bytes]) -> list[Event]:
        """Send a message, and carry out the reply; return the events that follow at once. Raises ConfigError."""
        self._reply = ask(self.protocol.from_batsim(Message(now, [(now, event) for event in events])))
        reply = self.protocol.read_decisions(self._reply, self.name)
        self._busy_until = max(self._busy_until, self._time_of("now", reply.now, now))
        follow_ups = list[Event]()
        for i, (timestamp, decision) in enumerate(reply.events):
            time = self._time_of(f"events[{i}].timestamp", timestamp, now)
            if time > now:
                heappush(self._later, (time, next(self._number), decision, self._reply))
            else:
                follow_ups += self._carry_out(decision, now, self._reply)
        return follow_ups

    def _time_of(self, key: str, time: float, now: float) -> float:
        if time < now - SAME_S:
            raise self._refusal(f"{key} is {time} s, in the past", f"{now:.6f} s, which is now, or later")
        return now if time <= now + SAME_S else time

    def _refusal(self, problem: str, allowed: str = "") -> ConfigError:
        return refusal(self.name, "", problem, allowed, self._reply.decode("utf-8", "replace"))

    # --- decisions ---
    def _carry_out(self, decision: Event, now: float, reply: bytes) -> list[Event]:
        self._reply = reply
        try:
            if isinstance(decision, ExecuteJob):
                return self._execute(decision)
            if isinstance(decision, RejectJob):
                if decision.job_id not in self._departed:
                    job = self._waiting(decision.job_id)
                    job.rejected = not job.ran
                return []
            if isinstance(decision, CallMeLater):
                return self._call_later(decision, now)
            if isinstance(decision, StopCalls):
                self._periodic.stop(decision)
                return []
        except ConfigError as error:
            if error.source:
                raise
            raise self._refusal(f"{self._name_of(type(decision))}: {error.problem}", error.allowed) from None
        if isinstance(decision, SetJobMetadata | Notify | Answer):
            return []
        allowed = ", ".join(map(self._name_of, (ExecuteJob, RejectJob, CallMeLater)))
        raise self._refusal(
            f"{self._name_of(type(decision))} cannot be carried out on real jobs and machines",
            f"{allowed}, and notices",
        )

    def _name_of(self, kind: type[Event]) -> str:
        return self.protocol.names.get(kind, kind.type)

    def _call_later(self, decision: CallMeLater, now: float) -> list[Event]:
        """Note a call; return it if it is due. Raises ConfigError."""
        call: Event = RequestedCall(decision.call_id or "")
        if decision.period_s is not None:
            time, call = self._periodic.begin(decision, now), decision
        elif self.protocol.number == 5 and decision.timestamp < now:  # which Batsim 5 answers at once
            time = now
        else:
            time = self._time_of("timestamp", decision.timestamp, now)
        if time <= now:
            return [call]
        heappush(self._later, (time, next(self._number), call, b""))
        return []

    def _come_again(self, decision: CallMeLater, now: float) -> list[Event]:
        """Return a periodic call that is due, unless it was stopped, and note the next one."""
        if (come := self._periodic.come(decision, now)) is None:
            return []
        if come[1] is not None:
            heappush(self._later, (come[1][0], next(self._number), come[1][1], b""))
        return [come[0]]

    def _waiting(self, job_id: str) -> _Shown:
        job = self._by_id.get(job_id)
        if job is None:
            raise bad(f"job {job_id!r:.60} is not known", f"jobs that were submitted to it, as {self.workload}!...")
        if job.hosts is not None or job.rejected:
            fate = "rejected" if job.rejected else "started"
            raise bad(f"job {job_id!r:.60} was {fate} before", "jobs that wait")
        return job

    def _execute(self, decision: ExecuteJob) -> list[Event]:
        """Note where the component places a job; one that has left the queue ends at once. Raises ConfigError."""
        departed = self._departed.get(decision.job_id)
        size = departed[0] if departed else self._waiting(decision.job_id).size
        label = f"job {decision.job_id!r:.60}"
        if decision.additional_io_job is not None or decision.storage_mapping:
            raise bad(f"{label}: jobs have no transfers and no storages here", "alloc alone")
        if any(rank != host for rank, host in (decision.mapping or {}).items()):
            raise bad(f"{label}: mapping: ranks cannot be placed otherwise than in their order", "rank i on host i")
        if count_of(decision.alloc) != size:
            raise bad(f"{label}: it is given {count_of(decision.alloc)} hosts", f"{size}, which it requests")
        if decision.alloc[-1][1] >= self.hosts:
            raise bad(f"{label}: there is no host {decision.alloc[-1][1]}", f"0 to {self.hosts - 1}")
        if (busy := self._free.allocate_these(decision.alloc)) is not None:
            raise bad(f"{label}: host {busy} is taken", "hosts that are free")
        if departed:
            del self._departed[decision.job_id]
            return [self._completed(decision.job_id, decision.alloc, departed[1])]
        job = self._by_id[decision.job_id]
        job.hosts = decision.alloc
        self._by_key[job.key] = self._by_key.pop(job.key)  # in the order of their starts
        return []
