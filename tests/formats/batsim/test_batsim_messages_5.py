"""Messages of Batsim 5: those of its documentation are read, what is written is read again, no mutation is a traceback."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest

from pilotfish.formats.batsim.hello_5 import hello_message, init_message, is_init_message, read_hello
from pilotfish.formats.batsim.kill_progress import JobProgress, progress_5
from pilotfish.formats.batsim.messages import (
    CallMeLater,
    Event,
    ExecuteJob,
    JobCompleted,
    JobKilled,
    JobSubmitted,
    KillJob,
    Message,
    Notify,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    RequestedCall,
    ResourceStateChanged,
    SetJobMetadata,
    SetResourceState,
    SimulationEnds,
    StopCalls,
)
from pilotfish.formats.batsim.profiles import parse_profile
from pilotfish.formats.batsim.profiles_5 import profile_message, read_profile
from pilotfish.formats.batsim.protocol_versions import VERSION_5
from pilotfish.simulate.errors import ConfigError

SPREAD = {
    "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
    "executor_placement": {"strategy": "SpreadOverHostsFirst"},
}
CUSTOM = {"executor_placement_type": "CustomExecutorToHostMapping", "executor_placement": {"mapping": [0, 1, 1]}}
#: Decisions in the form of the expected outputs of batprotocol.
DECIDED: list[tuple[str, dict[str, Any], Event]] = [
    (
        "ExecuteJobEvent",
        {
            "job_id": "w0!5",
            "allocation": {"host_allocation": "0-3 19", **SPREAD},
            "profile_allocation_override": [],
            "storage_placement": [{"storage_name": "pfs", "host_id": 19}],
        },
        ExecuteJob("w0!5", [(0, 3), (19, 19)], None, {"pfs": 19}),
    ),
    (
        "ExecuteJobEvent",
        {"job_id": "w0!6", "allocation": {"host_allocation": "7 9", **CUSTOM}},
        ExecuteJob("w0!6", [(7, 7), (9, 9)], {0: 0, 1: 1, 2: 1}),
    ),
    ("RejectJobEvent", {"job_id": "w0!1"}, RejectJob("w0!1")),
    ("KillJobsEvent", {"job_ids": ["w0!1", "w0!2"]}, KillJob(("w0!1", "w0!2"))),
    (
        "CallMeLaterEvent",
        {"call_me_later_id": "once", "when_type": "OneShot", "when": {"time": 31, "time_unit": "Second"}},
        CallMeLater(31.0, "once"),
    ),
    (
        "CallMeLaterEvent",
        {
            "call_me_later_id": "often", "when_type": "Periodic",
            "when": {"period": 250, "offset": 0, "time_unit": "Millisecond", "mode_type": "Infinite", "mode": {}},
        },
        CallMeLater(0.0, "often", 0.25),
    ),
    (
        "CallMeLaterEvent",
        {
            "call_me_later_id": "some", "when_type": "Periodic",
            "when": {"period": 7, "mode_type": "FinitePeriodNumber", "mode": {"nb_periods": 5}},
        },
        CallMeLater(0.0, "some", 7.0, 5),
    ),
    ("StopCallMeLaterEvent", {"call_me_later_id": "often"}, StopCalls("often")),
    (
        "RegisterProfileEvent",
        {"profile": {"id": "dyn!d", "profile_type": "DelayProfile", "profile": {"delay": 11.0}}},
        RegisterProfile("dyn", "d", {"type": "DelayProfile", "delay": 11.0}),
    ),
    (
        "RegisterJobEvent",
        {
            "job_id": "dyn!0",
            "job": {"resource_request": 8, "walltime": 600.5, "extra_data": "", "rigid": True, "profile_id": "w0!p"},
        },
        RegisterJob("dyn!0", {"res": 8, "profile": "w0!p", "walltime": 600.5}),
    ),
    ("FinishRegistrationEvent", {}, Notify({"type": "registration_finished"})),
    ("TurnOnOffHostsEvent", {"host_ids": "0-2", "state": 1}, SetResourceState([(0, 2)], "1")),
]  # fmt: skip


def said(*events: tuple[str, Any], now: float = 5.0) -> bytes:
    """Return a message as flatbuffers writes it, but for the spaces."""
    list_ = [{"timestamp": now, "event_type": kind, "event": data} for kind, data in events]
    return json.dumps({"now": now, "events": list_}, indent=2).encode() + b"\0"


@pytest.mark.parametrize("kind, data, decision", DECIDED, ids=range(len(DECIDED)))
def test_documented_decisions_are_read(kind: str, data: dict[str, Any], decision: Event) -> None:
    for raw in (said((kind, data)), said((kind, data))[:-1]):
        assert VERSION_5.read_decisions(raw, "it") == Message(5.0, [(5.0, decision)])


def test_documented_events_are_read() -> None:
    job = {"resource_request": 16, "walltime": -1.0, "extra_data": '{"a": 1}', "rigid": True, "profile_id": "w0!p"}
    killed = {
        "kill_progress_type": "KillProgressAtomicProfile",
        "kill_progress": {"profile_id": "w0!p", "progress": 0.3},
    }
    raw = said(
        ("SimulationBeginsEvent", {"host_number": 3, "computation_host_number": 2, "workloads": []}),
        ("JobSubmittedEvent", {"job_id": "w0!1", "job": job, "submission_time": 4.5}),
        ("JobCompletedEvent", {"job_id": "w0!1", "state": "COMPLETED_KILLED", "return_code": 2**32 - 1}),
        ("JobsKilledEvent", {"job_ids": ["w0!1"], "progresses": [{"job_id": "w0!1", "wrapper": killed}]}),
        ("RequestedCallEvent", {"call_me_later_id": "x", "last_periodic_call": True}),
        ("AllStaticJobsHaveBeenSubmittedEvent", {}),
        (
            "ExternalEventOccurredEvent",
            {"id": "e", "external_event_type": "GenericExternalEvent", "external_event": {}},
        ),
        ("HostsTurnedOnOffEvent", {"host_ids": "0-1", "state": 0}),
        ("SimulationEndsEvent", {}),
    )
    events = [event for _, event in VERSION_5.read_events(raw, "Batsim").events]
    assert events[0].data()["nb_compute_resources"] == 2
    assert events[1:6] == [
        JobSubmitted("w0!1", {"res": 16, "profile": "w0!p", "extra_data": '{"a": 1}', "subtime": 4.5}),
        JobCompleted("w0!1", "COMPLETED_KILLED", -1, ""),
        JobKilled(("w0!1",), {}),
        RequestedCall("x", last=True),
        Notify({"type": "no_more_static_job_to_submit"}),
    ]
    assert events[7:] == [ResourceStateChanged("0-1", "0"), SimulationEnds()]


def test_what_is_written_in_batsims_place_is_read_again() -> None:
    job = {"id": "w0!1", "subtime": 1.125, "walltime": 1e9 / 7, "res": 2, "profile": "d"}
    message = Message(
        1e9 / 7,
        [
            (1.25, JobSubmitted("w0!1", job, {"type": "delay", "delay": 3})),
            (1.25, Notify({"type": "no_more_static_job_to_submit"})),
            (2.0, JobCompleted("w0!1", "COMPLETED_WALLTIME_REACHED", -1, "0-1")),
            (2.0, JobKilled(["w0!1"], {"w0!1": JobProgress("d", 0.52)})),
            (3.0, RequestedCall("now", last=False)),
            (3.0, ResourceStateChanged("0-2", "1")),
            (1e9 / 7, SimulationEnds()),
        ],
    )
    raw = VERSION_5.from_batsim(message)
    assert raw.endswith(b"\0")
    again = VERSION_5.read_events(raw, "Batsim")
    assert again.now == message.now and [time for time, _ in again.events] == [time for time, _ in message.events]
    assert [event for _, event in again.events] == [
        JobSubmitted("w0!1", {"res": 2, "profile": "w0!d", "walltime": 1e9 / 7, "subtime": 1.125}),
        message.events[1][1],
        JobCompleted("w0!1", "COMPLETED_WALLTIME_REACHED", -1, ""),
        JobKilled(("w0!1",), {}),
        *(event for _, event in message.events[4:]),
    ]
    submitted = json.loads(raw[:-1])["events"][0]["event"]
    assert submitted["profile"] == {"id": "w0!d", "profile_type": "DelayProfile", "profile": {"delay": 3}}
    assert submitted["job"]["rigid"] is True and submitted["job"]["extra_data"] == ""


@pytest.mark.parametrize("time", [3.0, 0.1, 1e9 / 7, 2.0000000001, 0.0009])
def test_a_component_calls_at_the_first_millisecond_that_is_not_too_early(time: float) -> None:
    decided = [ExecuteJob("w0!1", [(0, 3), (7, 7)]), RejectJob("w0!2"), SetJobMetadata("w0!2", "x"), CallMeLater(time)]
    raw = VERSION_5.from_component(Message(0.0, [(0.0, event) for event in decided]))
    start, reject, call = [event for _, event in VERSION_5.read_decisions(raw, "it").events]
    assert (start, reject) == (decided[0], decided[1])
    assert isinstance(call, CallMeLater) and time <= call.timestamp < time + 0.00101


# --- profiles ---
PROFILES: list[dict[str, Any]] = [
    {"type": "delay", "delay": 20.5},
    {"type": "parallel", "cpu": [1e9, 2e9], "com": [0, 1, 2, 0]},
    {"type": "ptask", "cpu": [1e9, 2e9]},
    {"type": "parallel_homogeneous", "cpu": 1e9, "com": 5},
    {"type": "ParallelTaskHomogeneousProfile", "cpu": 1e9, "com": 5, "generation_strategy": "DefinedAmountsSpreadUniformly"},
    {"type": "parallel_homogeneous_total", "cpu": 1e9, "com": 0},
    {"type": "parallel_homogeneous_pfs", "bytes_to_read": 10, "bytes_to_write": 20, "storage": "nfs"},
    {"type": "data_staging", "nb_bytes": 100, "from": "a", "to": "b"},
]  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES, ids=range(len(PROFILES)))
def test_a_profile_means_the_same_in_both_forms(profile: dict[str, Any]) -> None:
    workload, name, again = read_profile(json.loads(json.dumps(profile_message("w0", "p", profile))))
    assert (workload, name) == ("w0", "p")
    assert parse_profile(again).work(2, None) == parse_profile(profile).work(2, None)


def test_sequences_and_traces_keep_their_parts() -> None:
    seq = {"type": "composed", "seq": ["a", "b"], "nb": 3}
    assert profile_message("w1", "s", seq) == {
        "id": "w1!s", "profile_type": "SequentialCompositionProfile",
        "profile": {"repetition_count": 3, "profile_ids": ["w1!a", "w1!b"]},
    }  # fmt: skip
    assert parse_profile(read_profile(profile_message("w1", "s", seq))[2]).sequence == ("a", "b")
    usage = profile_message("w0", "u", {"type": "usage_trace", "trace": "a/b.txt"})
    assert usage["profile"] == {"trace_type": "FractionalComputation", "filename": "a/b.txt"}
    assert parse_profile(read_profile(usage)[2]).trace == "a/b.txt"


@pytest.mark.parametrize(
    "profile", [{"type": "send"}, {"type": "msg_par_hg_tot", "cpu": 1, "com": 1}, {"type": []}, {}]
)
def test_what_protocol_5_cannot_say_is_an_error(profile: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="protocol 5"):
        profile_message("w0", "p", profile)


# --- the handshake ---
@pytest.mark.parametrize("init", ["", '{"a": "é"}', "x" * 70_000])
def test_the_first_message_is_told_from_one_of_version_4(init: str) -> None:
    raw = init_message(init)
    assert is_init_message(raw) and raw[4:].decode() == init
    assert raw[:4] == struct.pack("=I", len(init.encode()))
    assert not is_init_message(b'{"now":0.000000,"events":[]}') and not is_init_message(raw[:3])


def test_our_hello_asks_for_nothing() -> None:
    raw = hello_message("pilotfish", "1")
    assert raw[:4] == b"\2\0\0\0" or raw[:4] == b"\0\0\0\2"
    assert set(read_hello(raw, "it").values()) == {False}


def hello(flags: int = 2, count: int = 1, **more: Any) -> bytes:
    event = {"batprotocol_version": "1.0.0", "decision_component_name": "a", "decision_component_version": "1", **more}
    return struct.pack("=I", flags) + said(*[("EDCHelloEvent", event)] * count, now=0.0)


def test_features_are_read() -> None:
    features = {"dynamic_registration": True, "acknowledge_dynamic_jobs": True, "forward_unknown_external_events": True}
    constraints = {"compute_sharing": False, "storage_sharing": True}
    read = read_hello(hello(requested_simulation_features=features, scheduling_constraints=constraints), "it")
    assert dict(read) == features


@pytest.mark.parametrize(
    "raw, complaint",
    [
        (b"", "too short"),
        (hello(1), "0x1, which are binary flatbuffers"),
        (b'{"now":0,"events":[]}', "a component of version 4"),
        (hello(count=0), "0 events"),
        (hello(count=2), "2 events"),
        (hello(decision_component_name=1), "decision_component_name: found 1"),
        (hello(requested_simulation_features={"profile_reuse": 1}), "profile_reuse: found 1"),
        (hello(requested_simulation_features={"dynamic_registration": True}), "acknowledge_dynamic_jobs"),
        (hello(requested_simulation_features={"forward_profiles_on_jobs_killed": True}), "not forwarded"),
        (hello(scheduling_constraints={"compute_sharing": True}), "share hosts"),
        (struct.pack("=I", 2) + said(("RejectJobEvent", {"job_id": "a"})), "found 'RejectJobEvent'"),
    ],
    ids=range(11),
)
def test_a_wrong_hello_is_an_error(raw: bytes, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_hello(raw, "edc:x")
    assert complaint in str(error.value) and str(error.value).startswith("edc:x: ")


# --- errors ---
def start(**allocation: Any) -> bytes:
    return said(("ExecuteJobEvent", {"job_id": "w0!1", "allocation": {"host_allocation": "0", **SPREAD, **allocation}}))


def call(when_type: str, **when: Any) -> bytes:
    return said(("CallMeLaterEvent", {"call_me_later_id": "c", "when_type": when_type, "when": when}))


@pytest.mark.parametrize(
    "raw, complaint",
    [
        (b"", "not JSON"),
        (b'{"now": 1, "events": [{"timestamp": 1}]}', "events[0].event_type: missing"),
        (said(("EXECUTE_JOB", {})), "events[0].event_type: found 'EXECUTE_JOB'"),
        (said(("RejectJobEvent", None)), "events[0].event.job_id: missing"),
        (said(("RejectJobEvent", [])), "events[0].event: found a list"),
        (said(("KillJobsEvent", {"job_ids": []})), "events[0].event.job_ids: found a list that is empty"),
        (start(host_allocation="3-1"), "events[0].event.allocation.host_allocation: found '3-1'"),
        (start(executor_placement_type="NONE"), "executor_placement_type: found 'NONE'"),
        (start(executor_placement={"strategy": "FillOneHostCoresFirst"}), "FillOneHostCoresFirst is not done"),
        (call("OneShot", time=1.5), "events[0].event.when.time: found 1.5"),
        (call("OneShot", time=1, time_unit="Hour"), "time_unit: found 'Hour'"),
        (call("Periodic", period=0, mode_type="Infinite"), "period: found 0"),
        (call("Periodic", period=5, offset=1, mode_type="Infinite"), "offsets are not supported"),
        (call("Periodic", period=5, mode_type="FinitePeriodNumber", mode={}), "when.mode.nb_periods: missing"),
        (said(("CreateProbeEvent", {"probe_id": "p"})), "probes are not answered"),
        (said(("ForceSimulationStopEvent", {})), "cannot be stopped early"),
        (said(("RegisterProfileEvent", {"profile": {"id": "d", "profile_type": "DelayProfile", "profile": {}}})), "WORKLOAD!"),
        (said(("RegisterProfileEvent", {"profile": {"id": "w!d", "profile_type": "DelayProfile", "profile": {}}})), "delay: m"),
        (said(("RegisterJobEvent", {"job_id": "d!1", "job": {"resource_request": 0}})), "job.resource_request: found 0"),
    ],
    ids=range(19),
)  # fmt: skip
def test_an_error_says_where_and_quotes_the_message(raw: bytes, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        VERSION_5.read_decisions(raw, "edc:x")
    text = str(error.value)
    assert complaint in text and text.startswith("edc:x: ") and len(text) < 1200
    assert "; the message: " in text


def test_no_mutation_is_a_traceback() -> None:
    random.seed(19)
    read, messages = 0, [
        json.dumps(json.loads(said((kind, data))[:-1]), separators=(",", ":")).encode() for kind, data, _ in DECIDED
    ]  # fmt: skip
    for raw in messages * 400:
        mutated = bytearray(raw)
        for _ in range(random.randint(1, 3)):
            place = random.randrange(len(mutated))
            part = random.choice((b"", b'"', b"}", b"9", b"-", b"\xff", b"null", b"\0"))
            mutated[place : place + random.choice((0, 1, 1, 5))] = part
        try:
            VERSION_5.read_decisions(bytes(mutated), "it")
            read += 1
        except ConfigError as error:
            assert "; the message: " in str(error)
    assert 100 < read < 2400


def test_no_mutation_of_a_hello_is_a_traceback() -> None:
    random.seed(5)
    for _ in range(1000):
        mutated = bytearray(hello(requested_simulation_features={"profile_reuse": True}))
        place = random.randrange(len(mutated))
        mutated[place : place + random.choice((0, 1, 9))] = random.choice((b"", b"[", b"1", b"\0"))
        try:
            read_hello(bytes(mutated), "it")
        except ConfigError as error:
            assert "; the message: " in str(error)


def test_the_progress_of_a_sequence_names_its_present_part() -> None:
    document = progress_5("w0", JobProgress("s", 0.0, 1, 2, 3, JobProgress("p", 0.1)))
    assert document == {
        "kill_progress_type": "KillProgressSequentialProfile",
        "kill_progress": {
            "profile_id": "w0!s", "current_repetition": 1, "current_task_index": 2,
            "current_task_progress": {
                "kill_progress_type": "KillProgressAtomicProfile",
                "kill_progress": {"profile_id": "w0!p", "progress": 0.1},
            },
        },
    }  # fmt: skip
