"""A session about real jobs: each job is submitted once, is never started twice, and ends once, whatever is answered."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.batsim.live_session import PROFILES, LiveSession, end_of
from pilotfish.formats.batsim.protocol_versions import VERSION_5
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.queue_policies.queued_job import NodeJob, Running

HOSTS = 8
Reply = Callable[[dict[str, Any]], list[dict[str, Any]]]


def session() -> LiveSession:
    return LiveSession("the component", "s", {"nb_compute_resources": HOSTS})


def job(name: str, size: int = 1) -> NodeJob:
    return NodeJob(0, name, size, 100.0, 0.0)


class Component:
    """Answers with what `reply` returns, and keeps all messages."""

    def __init__(self, reply: Reply = lambda message: []) -> None:
        self.reply, self.messages = reply, list[dict[str, Any]]()

    def __call__(self, raw: bytes) -> bytes:
        self.messages.append(message := json.loads(raw))
        events = [{"timestamp": message["now"], **event} for event in self.reply(message)]
        return json.dumps({"now": message["now"], "events": events}).encode()

    @property
    def events(self) -> list[tuple[str, Any]]:
        return [
            (event["type"], event["data"].get("job_id")) for message in self.messages for event in message["events"]
        ]


def execute(job_id: str, alloc: str) -> dict[str, Any]:
    return {"type": "EXECUTE_JOB", "data": {"job_id": job_id, "alloc": alloc}}


def first_fit() -> Reply:
    """Return a component that starts each job on the first hosts that are free, if there are enough."""
    free, hosts_of, queue = set(range(HOSTS)), dict[str, list[int]](), list[tuple[str, int]]()

    def reply(message: dict[str, Any]) -> list[dict[str, Any]]:
        for event in message["events"]:
            if event["type"] == "JOB_SUBMITTED":
                queue.append((event["data"]["job_id"], event["data"]["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                free.update(hosts_of.pop(event["data"]["job_id"]))
        started = []
        for job in [job for job in queue if job[1] <= len(free)]:
            if job[1] <= len(free):
                queue.remove(job)
                hosts_of[job[0]] = sorted(free)[: job[1]]
                free.difference_update(hosts_of[job[0]])
                started.append(execute(job[0], " ".join(map(str, hosts_of[job[0]]))))
        return started

    return reply


def test_a_job_is_submitted_once_and_offered_until_it_runs() -> None:
    component, live = Component(first_fit()), session()
    for now in (0.0, 1.0, 2.0):
        live.update(now, [job("a", 2)], [], {}, component)
        assert [*live.placed] == [("a", [(0, 1)])]
    live.update(3.0, [], [Running(job("a", 2), 2.0, 90.0, ())], {}, component)
    assert [*live.placed] == []
    live.update(4.0, [], [], {"a": ("COMPLETED_FAILED", 7)}, component)
    assert component.events == [("SIMULATION_BEGINS", None), ("JOB_SUBMITTED", "s!1"), ("JOB_COMPLETED", "s!1")]
    (ended,) = component.messages[-1]["events"]
    assert ended["data"] == {"job_id": "s!1", "job_state": "COMPLETED_FAILED", "return_code": 7, "alloc": "0-1"}


def test_a_job_that_comes_back_has_a_new_id() -> None:
    component, live = Component(first_fit()), session()
    live.update(0.0, [job("a")], [], {}, component)
    live.update(1.0, [], [Running(job("a"), 0.0, 90.0, ())], {}, component)
    live.update(2.0, [job("a")], [], {}, component)
    assert component.events[1:] == [("JOB_SUBMITTED", "s!1"), ("JOB_COMPLETED", "s!1"), ("JOB_SUBMITTED", "s!2")]
    assert [*live.placed] == [("a", [(0, 0)])]


def test_a_job_that_left_before_it_was_started_ends_at_once() -> None:
    later = list[dict[str, Any]]()
    component, live = Component(lambda message: [later.pop()] if later else []), session()
    live.update(0.0, [job("a"), job("b")], [], {}, component)
    later.append(execute("s!1", "3"))
    live.update(1.0, [job("b"), job("c")], [], {}, component)
    assert component.events[-2:] == [("JOB_SUBMITTED", "s!3"), ("JOB_COMPLETED", "s!1")]
    assert component.messages[-1]["events"][0]["data"]["job_state"] == "COMPLETED_KILLED" and not [*live.placed]


def test_calls_and_decisions_of_the_future_come_in_time() -> None:
    replies = [
        [],
        [{"type": "CALL_ME_LATER", "data": {"timestamp": 5.0}}],
        [{**execute("s!1", "7"), "timestamp": 6.5}],
    ]
    component = Component(lambda message: replies.pop(0) if replies else [])

    def ask(raw: bytes) -> bytes:
        message = json.loads(component(raw))
        return json.dumps(
            {**message, "now": max([message["now"], *(event["timestamp"] for event in message["events"])])}
        ).encode()

    live = session()
    live.update(0.0, [job("a")], [], {}, ask)
    assert live.call_at == 5.0
    live.update(4.0, [job("a")], [], {}, ask)
    assert len(component.messages) == 2  # nothing happened
    live.update(5.5, [job("a")], [], {}, ask)
    assert component.events[-1] == ("REQUESTED_CALL", None) and live.call_at == 6.5 and not [*live.placed]
    live.update(6.5, [job("a")], [], {}, ask)
    assert [*live.placed] == [("a", [(7, 7)])] and len(component.messages) == 3


def test_a_component_that_calls_itself_for_ever_is_stuck() -> None:
    component = Component(lambda message: [{"type": "CALL_ME_LATER", "data": {"timestamp": message["now"]}}])
    with pytest.raises(ConfigError, match="it is asked again and again; the message: "):
        session().update(0.0, [job("a")], [], {}, component)


def test_what_runs_already_is_submitted_and_never_offered() -> None:
    component, live = Component(first_fit()), session()
    live.update(0.0, [job("a", 5)], [Running(job("runs", 4), -10.0, 42.0, ())], {}, component)
    (_, runs), (_, waits) = [(e["data"]["job"]["name"], e["data"]["job"]) for e in component.messages[1]["events"]]
    assert (runs["name"], runs["walltime"], waits["name"], waits["walltime"]) == ("runs", 42.0, "a", 100.0)
    assert not [*live.placed]  # it counts on four hosts only
    live.update(1.0, [job("a", 5)], [], {}, component)
    assert [*live.placed] == [("a", [(0, 4)])]


STEPS = st.lists(
    st.tuples(st.sampled_from(("submit", "begin", "end", "leave", "requeue", "by itself")), st.integers(0, 7)),
    max_size=40,
)


@given(STEPS, st.lists(st.integers(1, HOSTS), min_size=8, max_size=8))
def test_whatever_happens_each_id_is_submitted_and_ends_once(steps: list[tuple[str, int]], sizes: list[int]) -> None:
    """A component that keeps its own books never sees an id twice, nor an end of what it has not started."""
    component, live = Component(first_fit()), session()
    waiting, running, began = dict[str, NodeJob](), dict[str, NodeJob](), list[str]()
    for now, (step, number) in enumerate(steps):
        name, place = f"j{number}", dict(live.placed)
        if step == "submit" and name not in running:
            waiting.setdefault(name, job(name, sizes[number]))
        elif (step == "begin" and name in place) or (step == "by itself" and name in waiting):
            running[name] = waiting.pop(name)
            began.append(name)
        elif step == "end":
            running.pop(name, None)
        elif step == "leave":
            waiting.pop(name, None)
        elif step == "requeue" and name in running:
            waiting[name] = running.pop(name)
        running_now = [Running(node_job, float(now), now + 100.0, ()) for node_job in running.values()]
        live.update(float(now), [*waiting.values()], running_now, {}, component)
        assert {*dict(live.placed)} <= {*waiting}
        used_hosts = [host for _, hosts in live.placed for first, last in hosts for host in range(first, last + 1)]
        assert len(used_hosts) == len({*used_hosts})
    submitted = Counter(job_id for kind, job_id in component.events if kind == "JOB_SUBMITTED")
    ended = Counter(job_id for kind, job_id in component.events if kind == "JOB_COMPLETED")
    assert {*submitted.values(), *ended.values()} <= {1} and ended.keys() <= submitted.keys()


MUTATIONS = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats() | st.sampled_from(["s!1", "s!2", "0-1", "EXECUTE_JOB"])
    | st.text(max_size=4),
    lambda part: st.lists(part, max_size=3)
    | st.dictionaries(
        st.sampled_from(["now", "events", "timestamp", "type", "data", "job_id", "alloc", "job_ids", "requests"]), part, max_size=4
    ),
    max_leaves=12,
)  # fmt: skip
KINDS = st.sampled_from(
    ["EXECUTE_JOB", "REJECT_JOB", "KILL_JOB", "CALL_ME_LATER", "REGISTER_JOB", "SET_RESOURCE_STATE", "QUERY", "NOTIFY", "?"]
)  # fmt: skip
DECISIONS = st.fixed_dictionaries({
    "timestamp": st.sampled_from([0.0, 0.0, 1.0, -1.0]) | MUTATIONS, "type": KINDS,
    "data": st.fixed_dictionaries({"job_id": st.sampled_from(["s!1", "s!2", "t!1"]) | MUTATIONS, "alloc": st.sampled_from(["0", "1", "0-1", "9"]) | MUTATIONS}) | MUTATIONS,
})  # fmt: skip
ANSWERS = st.fixed_dictionaries(
    {"now": st.just(0.0) | MUTATIONS, "events": st.lists(DECISIONS, max_size=3) | MUTATIONS}
)


@settings(max_examples=50)
@given(st.lists(ANSWERS | MUTATIONS, min_size=2, max_size=4))
def test_any_answer_is_carried_out_or_an_error_that_quotes_it(answers: list[Any]) -> None:
    replies = [json.dumps(answer).encode() for answer in answers]
    live = session()
    try:
        for now in (0.0, 1.0):
            live.update(
                now,
                [job("a"), job("b", 2)],
                [],
                {},
                lambda raw: replies.pop(0) if replies else b'{"now": 9, "events": []}',
            )
            assert len(names := [name for name, _ in live.placed]) == len({*names})
    except ConfigError as error:
        assert error.source == "the component" and "; the message: " in error.problem


def hello(**features: bool) -> bytes:
    content = {
        "batprotocol_version": "1", "decision_component_name": "c", "decision_component_version": "1",
        "requested_simulation_features": features,
    }  # fmt: skip
    events = [{"timestamp": 0.0, "event_type": "EDCHelloEvent", "event": content}]
    return struct.pack("=I", 2) + json.dumps({"now": 0.0, "events": events}).encode()


class Component5:
    """Answers the first message with a hello, and all others with the next of the given events."""

    def __init__(self, *replies: list[tuple[str, dict[str, Any]]], **features: bool) -> None:
        self.replies, self.features, self.messages = iter(replies), features, list[Any]()

    def __call__(self, raw: bytes) -> bytes:
        if not self.messages:
            self.messages.append(raw)
            return hello(**self.features)
        self.messages.append(message := json.loads(raw.removesuffix(b"\0")))
        events = [
            {"timestamp": message["now"], "event_type": kind, "event": data} for kind, data in next(self.replies, [])
        ]
        return json.dumps({"now": message["now"], "events": events}).encode()

    def seen(self, at: int) -> list[tuple[str, Any]]:
        """The events of a message."""
        return [(event["event_type"], event["event"]) for event in self.messages[at]["events"]]


def session_5() -> LiveSession:
    hosts = [{"id": i, "name": f"h{i}", "properties": {}, "zone_properties": {}} for i in range(HOSTS)]
    about = {
        "nb_resources": HOSTS, "nb_compute_resources": HOSTS, "nb_storage_resources": 0, "compute_resources": hosts,
        "storage_resources": [], "workloads": {"s": "live"}, "profiles": {"s": PROFILES},
    }  # fmt: skip
    return LiveSession("the component", "s", about, VERSION_5, [1e9] * HOSTS)


def test_a_session_of_protocol_5_begins_with_a_hello_and_calls_again() -> None:
    period = {"period": 10, "time_unit": "Second", "mode_type": "FinitePeriodNumber", "mode": {"nb_periods": 2}}
    calls = [("CallMeLaterEvent", {"call_me_later_id": "p", "when_type": "Periodic", "when": period}),
             ("CallMeLaterEvent", {"call_me_later_id": "once", "when_type": "OneShot", "when": {"time": 15}})]  # fmt: skip
    hosts = {"host_allocation": "2-3", "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper"}
    start = [("ExecuteJobEvent", {"job_id": "s!1", "allocation": hosts})]
    component, live = Component5(calls, start, forward_profiles_on_job_submission=True), session_5()
    live.update(0.0, [job("a", 2)], [], {}, component)
    assert component.messages[0] == struct.pack("=I", 0)
    assert component.seen(1)[0][1]["computation_hosts"][0]["computation_speed"] == [1e9]
    (kind, content) = component.seen(2)[0]
    assert (kind, content["job_id"], content["profile"]["profile_type"]) == ("JobSubmittedEvent", "s!1", "DelayProfile")
    assert json.loads(content["job"]["extra_data"]) == {"name": "a", "nodes": 1}
    assert [*live.placed] == [("a", [(2, 3)])]
    events = list[Any]()
    while live.call_at < 100.0:
        live.update(live.call_at, [job("a", 2)], [], {}, component)
        events.append(component.seen(-1))
    due = [("RequestedCallEvent", {"call_me_later_id": name, "last_periodic_call": last})
           for name, last in (("p", False), ("once", False), ("p", True))]  # fmt: skip
    assert events == [[call] for call in due]
    live.update(30.0, [], [], {"a": end_of(JobState.COMPLETED, 0)}, component)
    assert component.seen(-1)[0] == (
        "JobCompletedEvent", {"job_id": "s!1", "state": "COMPLETED_SUCCESSFULLY", "return_code": 0},
    )  # fmt: skip
    assert b'"SimulationEndsEvent"' in live.last_message(31.0)


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        (("KillJobsEvent", {"job_ids": ["s!1"]}), "KillJobsEvent cannot be carried out on real jobs"),
        (("StopCallMeLaterEvent", {"call_me_later_id": "x"}), "StopCallMeLaterEvent: call 'x' is not periodic"),
        (("ExecuteJobEvent", {"job_id": "s!9", "allocation": {
            "host_allocation": "0", "executor_placement_type": "CustomExecutorToHostMapping",
            "executor_placement": {"mapping": [0, 0]}}}), "ExecuteJobEvent: job 's!9' is not known"),
        (("ExecuteJobEvent", {"job_id": "s!1", "allocation": {
            "host_allocation": "0-1", "executor_placement_type": "CustomExecutorToHostMapping",
            "executor_placement": {"mapping": [1, 0]}}}), "mapping: ranks cannot be placed"),
    ],
)  # fmt: skip
def test_in_protocol_5_an_error_names_its_events(decision: tuple[str, dict[str, Any]], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        session_5().update(0.0, [job("a", 2)], [], {}, Component5([], [decision]))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"mapping": {"0": 1, "1": 0}}, "mapping: ranks cannot be placed"),
        ({"additional_io_job": {"alloc": "0-1", "profile_name": "x"}}, "jobs have no transfers"),
        ({"storage_mapping": {"pfs": 8}}, "no storages here"),
    ],
)
def test_what_a_real_cluster_cannot_do_is_refused(data: dict[str, Any], says: str) -> None:
    answer = {"type": "EXECUTE_JOB", "data": {"job_id": "s!1", "alloc": "0-1", **data}}
    component = Component(lambda message: [answer] if message["events"][0]["type"] == "JOB_SUBMITTED" else [])
    with pytest.raises(ConfigError, match=says):
        session().update(0.0, [job("a", 2)], [], {}, component)
