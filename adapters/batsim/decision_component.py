"""A decision component of Batsim as a queue policy: our engine in Batsim's place.

Rule: a component is called when Batsim would call it. The first submission of an instant comes alone if nothing else
happens then. All events while the component is busy come in its next message, with the times at which they happened.
Submissions of one instant come in the order of their ids as text. A decision that cannot be carried out is an error
that quotes the message. A time within a microsecond of now is now, because messages have six decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from ...formats.batsim.descriptions import Descriptions
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
    JobKilled,
    JobSubmitted,
    KillJob,
    Message,
    Notify,
    Query,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    RequestedCall,
    ResourceStateChanged,
    SetJobMetadata,
    SetResourceState,
    SimulationBegins,
    SimulationEnds,
    StopCalls,
    interval_text,
    refusal,
)
from ...formats.batsim.protocol_versions import VERSION_4, ProtocolVersion
from ...formats.batsim.runs import MappedLater, is_late
from ...formats.batsim.workload import parse_batsim
from ...formats.documents.document_errors import bad
from ...simulate.errors import ConfigError
from ...simulate.model.intervals import Interval, common, count_of, without
from ...simulate.model.programs import Part
from ...simulate.queue_policies.interface import Decision, Kill, QueueView, Reject, Start, Submit, Switch, Wake
from ...simulate.queue_policies.queued_job import QueuedJob, Running
from .component_world import ComponentWorld
from .known_profiles import KnownProfiles
from .periodic_calls import SAME_S, PeriodicCalls
from .placed_work import placed_work

#: Messages in a row at one instant, or calls in a row without a job, after which a component is taken to be stuck.
MOST_IN_VAIN = 10_000
_SUBMITTER = {JobSubmitted, Notify}
#: Decisions after which the component is called again at once, and those that are carried out before the next message.
_FOLLOWED = {Kill, Submit}
_ACTS = {Start, Reject, *_FOLLOWED}


class DecisionComponent:
    """A queue policy that asks a decision component.

    Args:
        name: of the component, for messages.
        ask: sends a message and returns the reply. Raises ConfigError: no reply.
        world: what it learns of the machine.
        described: the jobs.
        returns: exit status of each job, by row; None = all succeed.
        protocol: the version that it speaks.

    `metadata`: what the component attached to jobs, by id. `messages`: how many it was sent.
    """

    open_ended = places_work = True

    def __init__(
        self, name: str, ask: Callable[[bytes], bytes], world: ComponentWorld, described: Descriptions,
        returns: list[int] | None = None, protocol: ProtocolVersion = VERSION_4,
    ) -> None:  # fmt: skip
        self.name, self.ask, self.world, self.described, self.returns = name, ask, world, described, returns
        self.protocol = protocol
        self.powered = bool(world.states)
        self.metadata: dict[str, str] = {}
        self.said, self.messages, self.in_vain, self.unseen = b"", 0, 0, len(described.ids)
        storages = MappedLater(world.storages) if world.storages else world.storages
        self.profiles = KnownProfiles(
            described.profiles, described.files, world.speeds, storages, across=protocol.number == 5
        )
        self.registered: dict[str, dict[str, Any]] = {}
        self._jobs: dict[str, QueuedJob] = {}  # submitted
        self._finished: set[str] = set()  # ended or rejected
        self._killed: set[str] = set()
        self._kills: list[tuple[Sequence[str], list[tuple[str, Running]]]] = []
        self._switches: list[tuple[list[Interval], str, str]] = []
        self._pending: list[tuple[float, Event]] = []
        self._about: Mapping[str, Any] | None = world.about  # until it is sent
        self._later: list[
            tuple[float, int, Event, bytes | None]
        ] = []  # decisions (with the message) and events to come
        self._number = count()
        self._periodic = PeriodicCalls()
        self._free_at = self._now = -1e300
        self._first = True
        self._decided: list[Decision] = []

    # --- as a queue policy ---
    def decide(self, now: QueueView) -> Iterable[Decision]:
        """Show the component what happened, and return what it decides."""
        if now.time > self._now:
            self._now, self._first, self.in_vain = now.time, True, self.in_vain if self._is_idle(now) else 0
        self._decided = []
        if self._about is not None:
            self._pending.append((now.time, SimulationBegins(self._about)))
            self._about = None
        calls = self._take_due(now) if self._later and self._later[0][0] <= now.time else []
        self._note(now)
        self._pending += calls
        if self.unseen == 0:
            self.unseen = -1
            self._pending.append((now.time, Notify({"type": "no_more_static_job_to_submit"})))
        decided = set(map(type, self._decided))
        while self._pending and now.time >= self._free_at and _ACTS.isdisjoint(decided):
            self._exchange(now)
            decided.update(map(type, self._decided))
        if (self._pending and now.time >= self._free_at) or not _FOLLOWED.isdisjoint(decided):
            self._decided.append(Wake(now.time))
        return self._decided

    def end(self) -> None:
        """Say that the simulation has ended. Raises ConfigError."""
        self._send(self._now, [*self._pending, (self._now, SimulationEnds())])

    # --- what happened ---
    def _is_idle(self, now: QueueView) -> bool:
        return not (self.unseen > 0 or now.waiting or now.running or now.ended)

    def _at(self, time: float, event: Event, reply: bytes | None = None) -> None:
        """Note an event of the future, or a decision to carry out then."""
        heappush(self._later, (time, next(self._number), event, reply))
        self._decided.append(Wake(time))

    def _happens(self, now: float, delay_s: float, event: Event) -> None:
        if delay_s > 0.0:
            self._at(now + delay_s, event)
        else:
            self._pending.append((now, event))

    def _take_due(self, now: QueueView) -> list[tuple[float, Event]]:
        """Carry out the decisions that are due, and note the events; return the calls, which come last."""
        calls = list[tuple[float, Event]]()
        while self._later and self._later[0][0] <= now.time:
            time, _, event, reply = heappop(self._later)
            if reply is not None:
                self._carry_out(event, now, reply)
            elif isinstance(event, RequestedCall):
                calls.append((time, event))
            elif isinstance(event, CallMeLater):
                if (come := self._periodic.come(event, now.time)) is not None:
                    calls.append((time, come[0]))
                    if come[1] is not None:
                        self._at(*come[1])
            else:
                self._pending.append((time, event))
        return calls

    def _note(self, now: QueueView) -> None:
        """Note what is new: ends, kills, switches, submissions."""
        latency, time = self.world.latency_s, now.time
        for ended in now.ended:
            self._happens(time, latency, self._completed(ended, time))
        while self._kills:
            self._happens(time, latency, self._were_killed(*self._kills.pop(0), now))
        for switched in now.states.switched if now.states is not None else ():
            place = next(i for i, switch in enumerate(self._switches) if tuple(switch[0]) == switched.resources)
            _, resources, state = self._switches.pop(place)
            delay_s = latency * count_of(switched.resources)
            self._happens(time, delay_s, ResourceStateChanged(resources, state))
        if now.submitted:
            self._note_submissions(now)

    def _note_submissions(self, now: QueueView) -> None:
        static = [job for job in now.submitted if job.number < len(self.described.ids)]
        dynamic = [job for job in now.submitted if job.number >= len(self.described.ids)]
        self.unseen -= len(static)
        for job in (static if self.world.natural else sorted(static, key=self._id)) + dynamic:
            job_id = self._id(job)
            description, profile = self._description(job_id, job), None
            if self.world.forwards:
                profile = self.profiles.find(job_id, description["profile"])
            self._jobs[job_id] = job
            self._pending.append((now.time, JobSubmitted(job_id, description, profile)))

    def _id(self, job: QueuedJob) -> str:
        return self.described.ids[job.number] if job.number < len(self.described.ids) else str(job.id)

    def _description(self, job_id: str, job: QueuedJob) -> Mapping[str, Any]:
        return self.registered.get(job_id) or self.described.jobs[job.number]

    def _completed(self, ended: Running, now: float) -> JobCompleted:
        job_id, job = self._id(ended.job), ended.job
        self._finished.add(job_id)
        returned = self.returns[job.number] if self.returns and job.number < len(self.returns) else 0
        if job_id in self._killed:
            state, returned = KILLED, -1
        elif now >= ended.until:
            state, returned = TIMED_OUT, -1
        else:
            state = FAILED if returned else SUCCEEDED
        return JobCompleted(job_id, state, returned, interval_text(ended.resources))

    # --- messages ---
    def _exchange(self, now: QueueView) -> None:
        """Send the next message, and carry out the reply. Raises ConfigError."""
        events = self._pending
        starts = isinstance(events[0][1], SimulationBegins)
        only_first = self._first and (starts or all(type(event) in _SUBMITTER for _, event in events))
        self._first = False
        sent, self._pending = (events[:1], events[1:]) if only_first else (events, [])
        self.in_vain += 1
        reply = self._send(now.time, sent)
        if self.in_vain > MOST_IN_VAIN:
            raise self._refusal("it is asked again and again, and nothing happens", "a reply without further calls")
        busy_until = self._time_of("now", reply.now, now.time)
        if busy_until > now.time:
            self._free_at = busy_until
            self._decided.append(Wake(busy_until))
        for i, (timestamp, decision) in enumerate(reply.events):
            time = now.time
            if timestamp != time:
                time = self._time_of(f"events[{i}].timestamp", timestamp, time)
            if time > now.time:
                self._at(time, decision, self.said)
            else:
                self._carry_out(decision, now, self.said)

    def _send(self, now: float, events: list[tuple[float, Event]]) -> Message:
        self.messages += 1
        self.said = b""
        self.said = self.ask(self.protocol.from_batsim(Message(now, events)))
        return self.protocol.read_decisions(self.said, self.name)

    def _time_of(self, key: str, time: float, now: float) -> float:
        if abs(time - now) <= SAME_S:
            return now
        if time < now:
            raise self._refusal(f"{key} is {time} s, in the past", f"{now:.6f} s, which is now, or later")
        return time

    def _refusal(self, problem: str, allowed: str = "", reply: bytes | None = None) -> ConfigError:
        return refusal(
            self.name, "", problem, allowed, (self.said if reply is None else reply).decode("utf-8", "replace")
        )

    # --- decisions ---
    def _carry_out(self, decision: Event, now: QueueView, reply: bytes) -> None:
        self.said = reply
        try:
            _CARRY_OUT[type(decision)](self, decision, now)
        except ConfigError as error:
            if error.source:
                raise
            kind = self.protocol.names.get(type(decision), decision.type)
            problem = f"{kind}: {error.key}: {error.problem}".replace(": : ", ": ")
            raise self._refusal(problem, error.allowed) from None

    def _job(self, job_id: str) -> QueuedJob:
        if job_id not in self._jobs:
            raise bad(f"job {job_id!r:.60} is not known", "jobs that were submitted")
        return self._jobs[job_id]

    def _execute(self, decision: ExecuteJob, now: QueueView) -> None:
        job, work = self._job(decision.job_id), None
        registered = job.number >= len(self.described.ids)
        if (
            registered
            or self.world.storages
            or decision.mapping
            or decision.storage_mapping
            or decision.additional_io_job
        ):
            run, part = self.profiles.work(decision.job_id, self._profile_of(decision.job_id, job), job.size)
            find = partial(self._additional_work, decision.job_id)
            work = placed_work(part, job.size, decision, self.world.storages or {}, find)
            if registered and run.program >= 0:
                work = work or part
        if now.states is not None and (asleep := common(decision.alloc, now.states.off)):
            raise bad(f"resource {asleep[0][0]} is off", "resources that are on")
        self._decided.append(Start(job, decision.alloc, None, work))

    def _additional_work(self, job_id: str, name: str, new: Mapping[str, Any] | None, size: int) -> Part:
        if new is not None:
            self.profiles.register(job_id.partition("!")[0], name, new)
        if self.profiles.find(job_id, name) is None:
            raise bad(f"profile {name!r:.60} is not known", "one of the workload, or `profile`", "profile_name")
        return self.profiles.work(job_id, name, size)[1]

    def _reject(self, decision: RejectJob, now: QueueView) -> None:
        self._decided.append(Reject(self._job(decision.job_id)))
        self._finished.add(decision.job_id)

    def _kill(self, decision: KillJob, now: QueueView) -> None:
        running = {self._id(entry.job): entry for entry in now.running}
        killed = list[tuple[str, Running]]()
        for job_id in dict.fromkeys(decision.job_ids):
            self._job(job_id)
            if job_id in running:
                self._killed.add(job_id)
                killed.append((job_id, running[job_id]))
                self._decided.append(Kill(running[job_id]))
            elif job_id not in self._finished:
                raise bad(f"job {job_id!r:.60} does not run", "jobs that run, or have run")
        if killed:
            self._kills.append((decision.job_ids, killed))
        else:
            self._pending.append((now.time, JobKilled(list(decision.job_ids))))

    def _were_killed(self, job_ids: Sequence[str], killed: list[tuple[str, Running]], now: QueueView) -> JobKilled:
        progress = {
            job_id: self.profiles.progress(
                job_id, self._profile_of(job_id, entry.job), entry.job.size, now.time - entry.start_time,
                now.killed.get(entry.job.number),
            ) for job_id, entry in killed
        }  # fmt: skip
        return JobKilled(list(job_ids), progress)

    def _profile_of(self, job_id: str, job: QueuedJob) -> str:
        return str(self._description(job_id, job)["profile"])

    def _call_later(self, decision: CallMeLater, now: QueueView) -> None:
        if decision.period_s is not None:
            self._at(self._periodic.begin(decision, now.time), decision)
            return
        # Batsim 5 answers a time in the past at once.
        late = self.protocol.number == 5 and decision.timestamp < now.time
        time = now.time if late else self._time_of("data.timestamp", decision.timestamp, now.time)
        call = RequestedCall(decision.call_id or "")
        if time > now.time:
            self._at(time, call)
        else:
            self._pending.append((now.time, call))

    def _stop_calls(self, decision: StopCalls, now: QueueView) -> None:
        self._periodic.stop(decision)

    def _register_profile(self, decision: RegisterProfile, now: QueueView) -> None:
        self._check_registers()
        self.profiles.register(decision.workload_name, decision.profile_name, decision.profile)

    def _register_job(self, decision: RegisterJob, now: QueueView) -> None:
        self._check_registers()
        workload, mark, _ = decision.job_id.partition("!")
        if not mark:
            raise bad(f"job {decision.job_id!r:.60} has no workload", "WORKLOAD!JOB")
        if decision.job_id in self._jobs or decision.job_id in self.registered or decision.job_id in self.described.ids:
            raise bad(f"job {decision.job_id!r:.60} is there already", "new ids")
        description = {**decision.job, "id": decision.job_id}
        description.setdefault("subtime", now.time)
        name = str(description.get("profile"))
        profile = self.profiles.find(decision.job_id, name)
        (job,) = parse_batsim({"jobs": [description], "profiles": {} if profile is None else {name: profile}}, "").jobs
        run = self.profiles.run(decision.job_id, job.profile, job.res)
        if not job.res:
            raise bad(f"job {decision.job_id!r:.60} requests no resources", "1 or more", "job.res")
        self.registered[decision.job_id] = {key: value for key, value in description.items() if value is not None}
        wall = float("inf") if job.walltime is None else job.walltime
        columns = {
            "profile": job.profile, "workload": workload, "computes": run.computes, "returns": run.status,
            "work": run.work, "late": is_late(run, job.walltime), "full_id": decision.job_id,
        }  # fmt: skip
        self._decided.append(Submit(decision.job_id, job.res, wall, run.seconds, columns))

    def _check_registers(self) -> None:
        if not self.world.registers:
            how = "--set dynamic-jobs-enabled=true"
            if self.protocol.number == 5:
                how = "dynamic_registration in its hello"
            raise bad("the component registers jobs", f"jobs of the workload; or {how}")

    def _set_state(self, decision: SetResourceState, now: QueueView) -> None:
        if now.states is None:
            raise bad("machines cannot be switched", "a machine whose power is known, the same for each resource")
        if decision.state not in self.world.states:
            states = ", ".join(f"{state} ({'on' if on else 'off'})" for state, on in self.world.states.items())
            raise bad(f"state {decision.state}", states)
        on, text = self.world.states[decision.state], interval_text(decision.resources)
        changed = (
            common(decision.resources, now.states.off) if on else without(decision.resources, list(now.states.off))
        )
        if changed:
            self._switches.append((changed, text, decision.state))
            self._decided.append(Switch(changed, on))
        else:
            self._pending.append((now.time, ResourceStateChanged(text, decision.state)))

    def _set_metadata(self, decision: SetJobMetadata, now: QueueView) -> None:
        if decision.job_id not in self.registered:
            self._job(decision.job_id)
        self.metadata[decision.job_id] = decision.metadata

    def _answer(self, query: Query, now: QueueView) -> None:
        for question in query.requests:
            if question != "consumed_energy":
                raise bad(f"{question!r:.60} cannot be answered", "consumed_energy")
            if now.states is None:
                raise bad("the energy is not known", "a machine whose power is known, the same for each resource")
            self._pending.append((now.time, Answer({question: now.states.energy()})))

    def _ignore(self, decision: Event, now: QueueView) -> None:
        """Do nothing: registration ends by itself when nothing is left to come."""


_CARRY_OUT: dict[type[Event], Callable[[DecisionComponent, Any, QueueView], None]] = {
    ExecuteJob: DecisionComponent._execute,
    RejectJob: DecisionComponent._reject,
    KillJob: DecisionComponent._kill,
    CallMeLater: DecisionComponent._call_later,
    StopCalls: DecisionComponent._stop_calls,
    RegisterProfile: DecisionComponent._register_profile,
    RegisterJob: DecisionComponent._register_job,
    SetResourceState: DecisionComponent._set_state,
    SetJobMetadata: DecisionComponent._set_metadata,
    Query: DecisionComponent._answer,
    Notify: DecisionComponent._ignore,
    Answer: DecisionComponent._ignore,
}
