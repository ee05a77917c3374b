"""Components that speak protocol 5 over our engine: what each of their decisions does, and what they are told."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilotfish.adapters.batsim import decision_component
from pilotfish.adapters.batsim.replay_under_component import replay_under_component
from pilotfish.formats.batsim.workload import load_batsim, workload_of
from pilotfish.simulate.errors import PolicyError
from pilotfish.simulate.model.machine import TAURUS_POWERS, Machine
from pilotfish.simulate.world.replay_result import Replayed

Decisions = list[tuple[str, dict[str, Any]]]
DELAYS: dict[str, Any] = {
    "jobs": [
        {"id": 1, "subtime": 0, "res": 2, "walltime": 100, "profile": "d"},
        {"id": 2, "subtime": 10, "res": 1, "profile": "d"},
    ],
    "profiles": {"d": {"type": "delay", "delay": 40}},
    "nb_res": 4,
}


class Component:
    """Answers as `decide(kind, event, now)` says, and keeps what it was told: time, kind and event."""

    def __init__(self, decide: Callable[[str, dict[str, Any], float], Decisions], **features: bool) -> None:
        self.decide, self.features, self.init = decide, features, b""
        self.heard: list[tuple[float, str, dict[str, Any]]] = []

    def ask(self, raw: bytes) -> bytes:
        if not self.init:
            self.init = raw
            hello = {"batprotocol_version": "1.0.0", "decision_component_name": "it", "decision_component_version": "1",
                     "requested_simulation_features": self.features}  # fmt: skip
            return struct.pack("=I", 2) + self.message(0.0, [("EDCHelloEvent", hello)])
        message = json.loads(raw[:-1])
        decided: Decisions = []
        for event in message["events"]:
            self.heard.append((event["timestamp"], event["event_type"], event["event"]))
            decided += self.decide(event["event_type"], event["event"], message["now"])
        return self.message(message["now"], decided)

    @staticmethod
    def message(now: float, decided: Decisions) -> bytes:
        events = [{"timestamp": now, "event_type": kind, "event": data} for kind, data in decided]
        return json.dumps({"now": now, "events": events}).encode()

    def times(self, kind: str) -> list[float]:
        return [time for time, heard, _ in self.heard if heard == kind]


def start(job_id: str, hosts: str) -> tuple[str, dict[str, Any]]:
    allocation = {
        "host_allocation": hosts, "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
        "executor_placement": {"strategy": "SpreadOverHostsFirst"},
    }  # fmt: skip
    return "ExecuteJobEvent", {"job_id": job_id, "allocation": allocation}


def at_once(kind: str, event: dict[str, Any], now: float) -> Decisions:
    """Start each job on hosts of its own, in the order of their numbers."""
    if kind != "JobSubmittedEvent":
        return []
    hosts = {"w0!1": "0-1", "w0!2": "2"}.get(event["job_id"], "3")
    return [start(event["job_id"], hosts)]


def run(component: Component, tmp_path: Path, given: dict[str, Any] = DELAYS, **how: Any) -> Replayed:
    path = tmp_path / "w.json"
    path.write_text(json.dumps(given))
    jobs = workload_of(load_batsim(path), path)
    machine = Machine(4, powers=TAURUS_POWERS)
    return replay_under_component(component.ask, "it", jobs, machine, [path], protocol=5, **how)[0]


def test_what_a_component_learns(tmp_path: Path) -> None:
    component = Component(at_once, forward_profiles_on_job_submission=True, forward_profiles_on_simulation_begins=True)
    run(component, tmp_path, config={"sched-config": '{"a": 1}'})
    assert component.init == struct.pack("=I", 8) + b'{"a": 1}'
    (_, kind, begins), *later_events = component.heard
    profile = {"id": "w0!d", "profile_type": "DelayProfile", "profile": {"delay": 40}}
    assert kind == "SimulationBeginsEvent" and begins["profiles"] == [profile]
    assert begins["computation_host_number"] == begins["host_number"] == len(begins["computation_hosts"]) == 4
    assert begins["workloads"] == [{"name": "w0", "filename": str(tmp_path / "w.json")}]
    assert [(time, kind) for time, kind, _ in later_events] == [
        (0.0, "JobSubmittedEvent"), (10.0, "JobSubmittedEvent"), (10.0, "AllStaticJobsHaveBeenSubmittedEvent"),
        (40.0, "JobCompletedEvent"), (50.0, "JobCompletedEvent"), (50.0, "SimulationEndsEvent"),
    ]  # fmt: skip
    first, second = (event for _, kind, event in later_events if kind == "JobSubmittedEvent")
    assert first == {
        "job_id": "w0!1", "submission_time": 0.0, "profile": profile,
        "job": {"resource_request": 2, "walltime": 100.0, "extra_data": "", "rigid": True, "profile_id": "w0!d"},
    }  # fmt: skip
    assert second["job"]["walltime"] == -1.0
    ended = {"job_id": "w0!1", "state": "COMPLETED_SUCCESSFULLY", "return_code": 0}
    assert ended in [event for _, _, event in later_events]


def test_a_killed_job_has_ended_before_the_kill_is_done(tmp_path: Path) -> None:
    def decide(kind: str, event: dict[str, Any], now: float) -> Decisions:
        if kind == "AllStaticJobsHaveBeenSubmittedEvent":
            return [("KillJobsEvent", {"job_ids": ["w0!1"]})]
        return at_once(kind, event, now)

    component = Component(decide)
    run(component, tmp_path)
    at_kill = [(kind, event) for time, kind, event in component.heard if time == 10.0 and "Submitted" not in kind]
    (ended, job), (killed, jobs) = at_kill
    assert (ended, killed) == ("JobCompletedEvent", "JobsKilledEvent")
    assert job["state"] == "COMPLETED_KILLED" and job["return_code"] == 2**32 - 1
    assert jobs["progresses"] == [{"job_id": "w0!1", "wrapper": {
        "kill_progress_type": "KillProgressAtomicProfile",
        "kill_progress": {"profile_id": "w0!d", "progress": 0.25},
    }}]  # fmt: skip


def test_calls_come_once_or_at_the_multiples_of_their_period(tmp_path: Path) -> None:
    def call(name: str, when_type: str, **when: Any) -> tuple[str, dict[str, Any]]:
        return "CallMeLaterEvent", {"call_me_later_id": name, "when_type": when_type, "when": when}

    def decide(kind: str, event: dict[str, Any], now: float) -> Decisions:
        if kind == "SimulationBeginsEvent":
            return [
                call("once", "OneShot", time=2500, time_unit="Millisecond"),
                call("some", "Periodic", period=7, mode_type="FinitePeriodNumber", mode={"nb_periods": 3}),
            ]
        if kind == "AllStaticJobsHaveBeenSubmittedEvent":
            return [call("past", "OneShot", time=4), call("often", "Periodic", period=6, mode_type="Infinite", mode={})]
        if kind == "RequestedCallEvent" and event["call_me_later_id"] == "often" and now > 70:
            return [("StopCallMeLaterEvent", {"call_me_later_id": "often"})]
        return at_once(kind, event, now)

    component = Component(decide)
    run(component, tmp_path)
    calls = [(time, event["call_me_later_id"], event["last_periodic_call"]) for time, kind, event in component.heard
             if kind == "RequestedCallEvent"]  # fmt: skip
    assert [requested for requested in calls if requested[1] != "often"] == [
        (2.5, "once", False), (7.0, "some", False), (10.0, "past", False), (14.0, "some", False), (21.0, "some", True),
    ]  # fmt: skip
    assert [requested for requested in calls if requested[1] == "often"] == [
        (6.0 * i, "often", False) for i in range(2, 13)
    ]


def test_jobs_of_the_component_may_have_profiles_of_another_workload(tmp_path: Path) -> None:
    def decide(kind: str, event: dict[str, Any], now: float) -> Decisions:
        if kind == "SimulationBeginsEvent":
            profile = {"id": "dyn!wait", "profile_type": "DelayProfile", "profile": {"delay": 5.0}}
            job = {"resource_request": 1, "walltime": 100.0, "profile_id": "dyn!wait"}
            foreign_job = {"resource_request": 1, "walltime": -1.0, "profile_id": "w0!d"}
            return [
                ("RegisterProfileEvent", {"profile": profile}),
                ("RegisterJobEvent", {"job_id": "dyn!1", "job": job}),
                ("RegisterJobEvent", {"job_id": "dyn!2", "job": foreign_job}),
                ("FinishRegistrationEvent", {}),
            ]
        if kind == "JobSubmittedEvent" and event["job_id"] == "dyn!2":
            return [start("dyn!2", "2")] if now >= 0 else []
        if kind == "JobSubmittedEvent" and event["job_id"] == "w0!2":
            return [start("w0!2", "3")]
        return at_once(kind, event, now)

    component = Component(
        decide, dynamic_registration=True, acknowledge_dynamic_jobs=True, forward_profiles_on_job_submission=True
    )
    run(component, tmp_path)
    ends = {event["job_id"]: time for time, kind, event in component.heard if kind == "JobCompletedEvent"}
    assert ends == {"dyn!1": 5.0, "w0!1": 40.0, "dyn!2": 40.0, "w0!2": 50.0}
    profiles = {event["job_id"]: event["profile"]["id"] for _, kind, event in component.heard
                if kind == "JobSubmittedEvent"}  # fmt: skip
    assert profiles["dyn!1"] == "dyn!wait" and profiles["dyn!2"] == "w0!d"


def test_hosts_are_turned_off_and_on(tmp_path: Path) -> None:
    def decide(kind: str, event: dict[str, Any], now: float) -> Decisions:
        if kind == "SimulationBeginsEvent":
            return [("TurnOnOffHostsEvent", {"host_ids": "2-3", "state": 1})]
        if kind == "HostsTurnedOnOffEvent" and event["state"] == 1:
            return [("TurnOnOffHostsEvent", {"host_ids": "2-3", "state": 0})]
        if kind == "HostsTurnedOnOffEvent":
            return [start("w0!2", "2")]
        return at_once(kind, event, now) if event.get("job_id") == "w0!1" else []

    component = Component(decide)
    run(component, tmp_path)
    states = [(event["host_ids"], event["state"]) for _, kind, event in component.heard
              if kind == "HostsTurnedOnOffEvent"]  # fmt: skip
    assert states == [("2-3", 1), ("2-3", 0)]


@pytest.mark.parametrize(
    "decision, says",
    [
        (start("w0!9", "0"), "ExecuteJobEvent: job 'w0!9' is not known"),
        (("KillJobsEvent", {"job_ids": ["w0!2"]}), "KillJobsEvent: job 'w0!2' does not run"),
        (("StopCallMeLaterEvent", {"call_me_later_id": "x"}), "call 'x' is not periodic"),
        (("TurnOnOffHostsEvent", {"host_ids": "0", "state": 2}), "TurnOnOffHostsEvent: state 2"),
        (("RegisterJobEvent", {"job_id": "d!1", "job": {"resource_request": 1}}), "dynamic_registration in its hello"),
        (("CreateProbeEvent", {}), "probes are not answered"),
        (("FlyAwayEvent", {}), "events[0].event_type: found 'FlyAwayEvent'"),
    ],
    ids=range(7),
)
def test_what_cannot_be_done_is_one_error(decision: tuple[str, dict[str, Any]], says: str, tmp_path: Path) -> None:
    def decide(kind: str, event: dict[str, Any], now: float) -> Decisions:
        return [decision] if event.get("job_id") == "w0!2" else []

    with pytest.raises(PolicyError) as error:
        run(Component(decide), tmp_path)
    assert says in str(error.value) and decision[0] in str(error.value) and "the message: " in str(error.value)


def test_a_profile_that_protocol_5_cannot_say_is_an_error_where_profiles_are_forwarded(tmp_path: Path) -> None:
    def decide(kind: str, event: dict[str, Any], now: float) -> Decisions:
        return [start(event["job_id"], event["job_id"][-1])] if kind == "JobSubmittedEvent" else []

    total = {
        "jobs": [{**job, "res": 1} for job in DELAYS["jobs"]],
        "nb_res": 4,
        "profiles": {"d": {"type": "parallel_homogeneous_total", "cpu": 0, "com": 0}},
    }
    run(Component(decide, forward_profiles_on_job_submission=True), tmp_path, total)
    total["profiles"] = {"d": {"type": "parallel_homogeneous_total", "cpu": 0, "com": 8}}
    run(Component(decide), tmp_path, total)
    with pytest.raises(PolicyError, match="protocol 5 cannot say how it divides its bytes"):
        run(Component(decide, forward_profiles_on_job_submission=True), tmp_path, total)


def test_endless_calls_without_jobs_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_component, "MOST_IN_VAIN", 100)

    def decide(kind: str, event: dict[str, Any], now: float) -> Decisions:
        when = {"period": 1, "time_unit": "Second", "mode_type": "Infinite", "mode": {}}
        call = {"call_me_later_id": "c", "when_type": "Periodic", "when": when}
        return [("CallMeLaterEvent", call)] if kind == "SimulationBeginsEvent" else at_once(kind, event, now)

    with pytest.raises(PolicyError, match="again and again"):
        run(Component(decide), tmp_path)
