"""A decision component of Batsim as a queue policy: our engine in Batsim's place.

Rule: a component is called when Batsim would call it. The first submission of an instant comes alone if nothing else
happens then; all that happens while the component is busy comes in its next message, with the times at which it
happened. Submissions of one instant come in the order of their ids as text. What cannot be done is an error that quotes
the message. A time within a microsecond of now is now, because messages have six decimals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
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
from ...formats.batsim.runs import is_late
from ...formats.batsim.workload import parse_batsim
from ...formats.document_errors import bad
from ...simulate.errors import ConfigError
from ...simulate.model.intervals import Interval, common, count_of, without
from ...simulate.queue_policies.interface import (
    Decision,
    Job,
    Kill,
    Reject,
    Running,
    Snapshot,
    Start,
    Submit,
    Switch,
    Wake,
)
from .component_world import World
from .known_profiles import KnownProfiles

#: Times that differ by less are the same, seconds.
SAME_S = 1e-6
#: Messages in a row at one instant, or calls in a row without a job, after which a component is taken to be stuck.
MOST_IN_VAIN = 10_000
_SUBMITTER = (JobSubmitted, Notify)


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

    open_ended = True

    def __init__(
        self, name: str, ask: Callable[[bytes], bytes], world: World, described: Descriptions,
        returns: list[int] | None = None, protocol: ProtocolVersion = VERSION_4,
    ) -> None:  # fmt: skip
        self.name, self.ask, self.world, self.described, self.returns = name, ask, world, described, returns
        self.protocol = protocol
        self.powered = bool(world.states)
        self.metadata: dict[str, str] = {}
        self.said, self.messages, self.in_vain, self.unseen = b"", 0, 0, len(described.ids)
        self.profiles = KnownProfiles(described.profiles, world.speeds, across=protocol.number == 5)
        self.registered: dict[str, dict[str, Any]] = {}
        self._jobs: dict[str, Job] = {}  # submitted
        self._done: set[str] = set()  # ended or rejected
        self._killed: set[str] = set()
        self._kills: list[JobKilled] = []
        self._switches: list[tuple[list[Interval], str, str]] = []
        self._pending: list[tuple[float, Event]] = []
        self._about: Mapping[str, Any] | None = world.about  # until it is sent
        self._later: list[
            tuple[float, int, Event, bytes | None]
        ] = []  # decisions (with the message) and events to come
        self._number = count()
        self._periodic: dict[str, CallMeLater] = {}
        self._free_at = self._now = -1e300
        self._first = True
        self._decided: list[Decision] = []

    # --- as a queue policy ---
    def decide(self, now: Snapshot) -> Iterable[Decision]:
        """Show the component what happened, and return what it decides."""
        if now.time > self._now:
            self._now, self._first, self.in_vain = now.time, True, self.in_vain if self._is_idle(now) else 0
        self._decided = []
        if self._about is not None:
            self._pending.append((now.time, SimulationBegins(self._about)))
            self._about = None
        self._take_due(now)
        self._note(now)
        while self._pending and now.time >= self._free_at and not self._acts():
            self._exchange(now)
        if (self._pending and now.time >= self._free_at) or self._acts(Kill | Submit):
            self._decided.append(Wake(now.time))
        return self._decided

    def _acts(self, kinds: Any = Start | Reject | Kill | Submit) -> bool:
        """Return whether something was decided that must be carried out before the next message."""
        return any(isinstance(decision, kinds) for decision in self._decided)

    def end(self) -> None:
        """Say that the simulation has ended. Raises ConfigError."""
        self._send(self._now, [*self._pending, (self._now, SimulationEnds())])

    # --- what happened ---
    def _is_idle(self, now: Snapshot) -> bool:
        return not (self.unseen > 0 or now.waiting or now.running or now.ended)

    def _at(self, time: float, event: Event, said: bytes | None = None) -> None:
        """Note an event of the future, or a decision to carry out then."""
        heappush(self._later, (time, next(self._number), event, said))
        self._decided.append(Wake(time))

    def _happens(self, now: float, delay_s: float, event: Event) -> None:
        if delay_s > 0.0:
            self._at(now + delay_s, event)
        else:
            self._pending.append((now, event))

    def _take_due(self, now: Snapshot) -> None:
        calls = list[tuple[float, Event]]()
        while self._later and self._later[0][0] <= now.time:
            time, _, event, said = heappop(self._later)
            if said is not None:
                self._carry_out(event, now, said)
            elif isinstance(event, RequestedCall):
                calls.append((time, event))
            elif isinstance(event, CallMeLater):
                calls += self._call_again(event, now, time)
            else:
                self._pending.append((time, event))
        self._calls = calls

    def _note(self, now: Snapshot) -> None:
        """Note what is new: ends, kills, switches, submissions, calls; a notice follows the last submission."""
        latency, time = self.world.latency_s, now.time
        for ended in now.ended:
            self._happens(time, latency, self._completed(ended, time))
        while self._kills:
            self._happens(time, latency, self._kills.pop(0))
        for switched in now.states.switched if now.states is not None else ():
            place = next(i for i, each in enumerate(self._switches) if tuple(each[0]) == switched.resources)
            _, resources, state = self._switches.pop(place)
            delay_s = latency * count_of(switched.resources)
            self._happens(time, delay_s, ResourceStateChanged(resources, state))
        self._note_submissions(now)
        self._pending += self._calls
        self._calls = []
        if self.unseen == 0:
            self.unseen = -1
            self._pending.append((time, Notify({"type": "no_more_static_job_to_submit"})))

    def _note_submissions(self, now: Snapshot) -> None:
        static = [
            (self.described.ids[job.number], job) for job in now.submitted if job.number < len(self.described.ids)
        ]
        for job_id, job in static if self.world.natural else sorted(static, key=lambda each: each[0]):
            self._submitted(now.time, job_id, job, self.described.jobs[job.number])
        self.unseen -= len(static)
        for job in now.submitted:
            if job.number >= len(self.described.ids):
                self._submitted(now.time, str(job.id), job, self.registered[str(job.id)])

    def _submitted(self, time: float, job_id: str, job: Job, description: Mapping[str, Any]) -> None:
        self._jobs[job_id] = job
        profile = self.profiles.find(job_id, description["profile"]) if self.world.forwards else None
        self._pending.append((time, JobSubmitted(job_id, description, profile)))

    def _id(self, job: Job) -> str:
        return self.described.ids[job.number] if job.number < len(self.described.ids) else str(job.id)

    def _completed(self, ended: Running, now: float) -> JobCompleted:
        job_id, job = self._id(ended.job), ended.job
        self._done.add(job_id)
        returned = self.returns[job.number] if self.returns and job.number < len(self.returns) else 0
        if job_id in self._killed:
            state, returned = KILLED, -1
        elif now >= ended.until:
            state, returned = TIMED_OUT, -1
        else:
            state = FAILED if returned else SUCCEEDED
        return JobCompleted(job_id, state, returned, interval_text(ended.resources))

    # --- messages ---
    def _exchange(self, now: Snapshot) -> None:
        """Send the next message, and carry out the reply. Raises ConfigError."""
        events = self._pending
        starts = isinstance(events[0][1], SimulationBegins)
        alone = self._first and (starts or all(isinstance(event, _SUBMITTER) for _, event in events))
        self._first = False
        sent, self._pending = (events[:1], events[1:]) if alone else (events, [])
        self.in_vain += 1
        reply = self._send(now.time, sent)
        if self.in_vain > MOST_IN_VAIN:
            raise self._refusal("it is asked again and again, and nothing happens", "a reply without further calls")
        busy_until = self._time_of("now", reply.now, now.time)
        if busy_until > now.time:
            self._free_at = busy_until
            self._decided.append(Wake(busy_until))
        for i, (timestamp, decision) in enumerate(reply.events):
            time = self._time_of(f"events[{i}].timestamp", timestamp, now.time)
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

    def _refusal(self, problem: str, allowed: str = "", said: bytes | None = None) -> ConfigError:
        return refusal(
            self.name, "", problem, allowed, (self.said if said is None else said).decode("utf-8", "replace")
        )

    # --- decisions ---
    def _carry_out(self, decision: Event, now: Snapshot, said: bytes) -> None:
        self.said = said
        try:
            _CARRY_OUT[type(decision)](self, decision, now)
        except ConfigError as error:
            if error.source:
                raise
            kind = self.protocol.names.get(type(decision), decision.type)
            problem = f"{kind}: {error.key}: {error.problem}".replace(": : ", ": ")
            raise self._refusal(problem, error.allowed) from None

    def _job(self, job_id: str) -> Job:
        if job_id not in self._jobs:
            raise bad(f"job {job_id!r:.60} is not known", "jobs that were submitted")
        return self._jobs[job_id]

    def _execute(self, given: ExecuteJob, now: Snapshot) -> None:
        job = self._job(given.job_id)
        if given.additional_io_job is not None:
            raise bad("additional_io_job: it cannot be added to a job", "jobs without it")
        if any(rank != host for rank, host in (given.mapping or {}).items()):
            raise bad("mapping: ranks cannot be placed otherwise than in their order", "rank i on host i")
        for label, number in (given.storage_mapping or {}).items():
            if self.world.storages.get(label) != number:
                known = ", ".join(f"{name}: {place}" for name, place in self.world.storages.items())
                raise bad(f"storage_mapping: {label} is {number}", known or "no storages, as the machine has none")
        if now.states is not None and (asleep := common(given.alloc, now.states.off)):
            raise bad(f"resource {asleep[0][0]} is off", "resources that are on")
        self._decided.append(Start(job, given.alloc))

    def _reject(self, given: RejectJob, now: Snapshot) -> None:
        self._decided.append(Reject(self._job(given.job_id)))
        self._done.add(given.job_id)

    def _kill(self, given: KillJob, now: Snapshot) -> None:
        running = {self._id(it.job): it for it in now.running}
        progress = dict[str, Any]()
        for job_id in dict.fromkeys(given.job_ids):
            job = self._job(job_id)
            if job_id in running:
                self._killed.add(job_id)
                progress[job_id] = self._progress(job_id, job, running[job_id], now.time)
                self._decided.append(Kill(running[job_id]))
            elif job_id not in self._done:
                raise bad(f"job {job_id!r:.60} does not run", "jobs that run, or have run")
        done = JobKilled(list(given.job_ids), progress)
        if progress:
            self._kills.append(done)
        else:
            self._pending.append((now.time, done))

    def _progress(self, job_id: str, job: Job, running: Running, now: float) -> dict[str, Any]:
        profile = (self.registered.get(job_id) or self.described.jobs[job.number])["profile"]
        seconds = self.profiles.run(job_id, profile, job.size).seconds
        return {"profile": profile, "progress": (now - running.start_time) / seconds if seconds > 0 else 0.0}

    def _call_later(self, given: CallMeLater, now: Snapshot) -> None:
        if given.period_s is not None and given.call_id is not None:
            if given.call_id in self._periodic:
                raise bad(f"call {given.call_id!r:.60} is periodic already", "new ids, or StopCallMeLaterEvent first")
            self._call_at_next_multiple(given, now)
            return
        # Batsim 5 answers a time in the past at once.
        late = self.protocol.number == 5 and given.timestamp < now.time
        time = now.time if late else self._time_of("data.timestamp", given.timestamp, now.time)
        call = RequestedCall(given.call_id or "")
        if time > now.time:
            self._at(time, call)
        else:
            self._pending.append((now.time, call))

    def _call_at_next_multiple(self, given: CallMeLater, now: Snapshot) -> None:
        assert given.call_id is not None and given.period_s is not None, "it is periodic"
        periods = math.floor((now.time + SAME_S) / given.period_s) + 1
        self._periodic[given.call_id] = given
        self._at(periods * given.period_s, given)

    def _call_again(self, given: CallMeLater, now: Snapshot, time: float) -> list[tuple[float, Event]]:
        """Return a periodic call that is due, unless it was stopped, and note the next one."""
        assert given.call_id is not None, "it is periodic"
        if self._periodic.get(given.call_id) is not given:
            return []
        del self._periodic[given.call_id]
        if given.times != 1:
            again = given if given.times is None else replace(given, times=given.times - 1)
            self._call_at_next_multiple(again, now)
        return [(time, RequestedCall(given.call_id, last=given.times == 1))]

    def _stop_calls(self, given: StopCalls, now: Snapshot) -> None:
        if self._periodic.pop(given.call_id, None) is None:
            raise bad(f"call {given.call_id!r:.60} is not periodic, or has ended", "calls that come again")

    def _register_profile(self, given: RegisterProfile, now: Snapshot) -> None:
        self._check_registers()
        self.profiles.register(given.workload_name, given.profile_name, given.profile)

    def _register_job(self, given: RegisterJob, now: Snapshot) -> None:
        self._check_registers()
        workload, mark, _ = given.job_id.partition("!")
        if not mark:
            raise bad(f"job {given.job_id!r:.60} has no workload", "WORKLOAD!JOB")
        if given.job_id in self._jobs or given.job_id in self.registered or given.job_id in self.described.ids:
            raise bad(f"job {given.job_id!r:.60} is there already", "new ids")
        description = {**given.job, "id": given.job_id}
        description.setdefault("subtime", now.time)
        name = str(description.get("profile"))
        profile = self.profiles.find(given.job_id, name)
        (job,) = parse_batsim({"jobs": [description], "profiles": {} if profile is None else {name: profile}}, "").jobs
        run = self.profiles.run(given.job_id, job.profile, job.res)
        if run.program >= 0 or not job.res:
            raise bad(f"job {given.job_id!r:.60}: its run time depends on where it runs", "jobs that wait or compute")
        self.registered[given.job_id] = {key: value for key, value in description.items() if value is not None}
        wall = float("inf") if job.walltime is None else job.walltime
        columns = {
            "profile": job.profile, "workload": workload, "computes": run.computes, "returns": run.status,
            "work": run.work, "late": is_late(run, job.walltime), "full_id": given.job_id,
        }  # fmt: skip
        self._decided.append(Submit(given.job_id, job.res, wall, run.seconds, columns))

    def _check_registers(self) -> None:
        if not self.world.registers:
            how = "--edc-config dynamic-jobs-enabled=true"
            if self.protocol.number == 5:
                how = "dynamic_registration in its hello"
            raise bad("the component registers jobs", f"jobs of the workload; or {how}")

    def _set_state(self, given: SetResourceState, now: Snapshot) -> None:
        if now.states is None:
            raise bad("machines cannot be switched", "a machine whose power is known, the same for each resource")
        if given.state not in self.world.states:
            known = ", ".join(f"{state} ({'on' if on else 'off'})" for state, on in self.world.states.items())
            raise bad(f"state {given.state}", known)
        on, text = self.world.states[given.state], interval_text(given.resources)
        changed = common(given.resources, now.states.off) if on else without(given.resources, list(now.states.off))
        if changed:
            self._switches.append((changed, text, given.state))
            self._decided.append(Switch(changed, on))
        else:
            self._pending.append((now.time, ResourceStateChanged(text, given.state)))

    def _set_metadata(self, given: SetJobMetadata, now: Snapshot) -> None:
        if given.job_id not in self.registered:
            self._job(given.job_id)
        self.metadata[given.job_id] = given.metadata

    def _answer(self, given: Query, now: Snapshot) -> None:
        for question in given.requests:
            if question != "consumed_energy":
                raise bad(f"{question!r:.60} cannot be answered", "consumed_energy")
            if now.states is None:
                raise bad("the energy is not known", "a machine whose power is known, the same for each resource")
            self._pending.append((now.time, Answer({question: float(now.states.consumed)})))

    def _ignore(self, given: Event, now: Snapshot) -> None:
        """Do nothing: registration ends by itself when nothing is left to come."""


_CARRY_OUT: dict[type[Event], Callable[[DecisionComponent, Any, Snapshot], None]] = {
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
