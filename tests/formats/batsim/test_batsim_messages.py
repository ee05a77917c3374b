"""Messages of Batsim's protocol: written as Batsim does, read strictly, and no mutation of one is a traceback."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.batsim.kill_progress import JobProgress
from pilotfish.formats.batsim.messages import (
    DECISIONS,
    EVENTS,
    CallMeLater,
    ExecuteJob,
    JobCompleted,
    JobKilled,
    JobSubmitted,
    Message,
    RequestedCall,
    ResourceStateChanged,
    SimulationEnds,
    interval_text,
    intervals_of,
    read_message,
)
from pilotfish.formats.batsim.messages_4_write import batsim_message, component_message
from pilotfish.simulate.errors import ConfigError

#: Messages as Batsim 4.2.1 sent them.
SENT = {
    '{"now":10.123457,"events":[{"timestamp":10.123457,"type":"JOB_SUBMITTED","data":{"job_id":"w0!1","job":{"id":"w0!1",'
    '"subtime":10.123457,"walltime":133.333333,"res":2,"profile":"d","x":{"a":[1,2.500000,"éé"]}},"profile":{"type":'
    '"delay","delay":100.123457}}}]}': Message(
        10.123456789,
        [(10.123456789, JobSubmitted(
            "w0!1", {"id": "w0!1", "subtime": 10.123456789, "walltime": 133.333333333, "res": 2, "profile": "d",
                     "x": {"a": [1, 2.5, "éé"]}}, {"type": "delay", "delay": 100.123456789},
        ))],
    ),
    '{"now":60.123657,"events":[{"timestamp":60.123657,"type":"JOB_COMPLETED","data":{"job_id":"w0!2","job_state":'
    '"COMPLETED_WALLTIME_REACHED","return_code":-1,"alloc":"2"}}]}': Message(
        60.123656989, [(60.123656989, JobCompleted("w0!2", "COMPLETED_WALLTIME_REACHED", -1, "2"))]
    ),
    '{"now":486.100450,"events":[{"timestamp":486.100450,"type":"RESOURCE_STATE_CHANGED","data":{"resources":"0-2",'
    '"state":"1"}}]}': Message(486.10045, [(486.10045, ResourceStateChanged("0-2", "1"))]),
    '{"now":120.000000,"events":[{"timestamp":120.000000,"type":"REQUESTED_CALL","data":{}}]}': Message(
        120, [(120, RequestedCall())]
    ),
    '{"now":1320.000000,"events":[{"timestamp":1320.000000,"type":"SIMULATION_ENDS","data":{}}]}': Message(
        1320.0, [(1320.0, SimulationEnds())]
    ),
}  # fmt: skip


@pytest.mark.parametrize("raw, message", SENT.items())
def test_is_written_as_batsim_does_and_read_again(raw: str, message: Message) -> None:
    assert batsim_message(message).decode() == raw
    read = read_message(raw.encode(), EVENTS, "Batsim")
    assert batsim_message(read).decode() == raw
    for (_, event), (_, expected) in zip(read.events, message.events, strict=True):
        assert type(event) is type(expected)
        assert not isinstance(event, JobCompleted) or event.return_code == -1


def test_numbers_without_six_decimals_of_their_own() -> None:
    job = {"id": "w0!5", "subtime": 30, "walltime": 1e12, "big": 12345678901234567890, "tiny": 1e-7, "none": None}
    text = batsim_message(Message(0.0, [(0.0, JobSubmitted("w0!5", job))])).decode()
    for part in ('"subtime":30,', "1000000000000.000000", "12345678901234567890", '"tiny":0.000000', '"none":null'):
        assert part in text
    progress = {"w0!1": JobProgress("d", 0.52), "w0!2": JobProgress("s", 0.0, 1, 1, 3, JobProgress("d", 0.1))}
    killed = batsim_message(Message(1.0, [(1.0, JobKilled(["w0!1", "w0!2"], progress))]))
    inner = b'"current_task_index":4,"current_task":{"profile_name":"d","progress":0.100000}'
    assert b'"job_progress":{"w0!1":{"profile_name":"d","progress":0.520000},"w0!2":{"profile_name":"s",' in killed
    assert inner in killed


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.6f}") if isinstance(value, float) else value


@given(st.dictionaries(st.text(), VALUES, max_size=6))
def test_any_description_is_written_as_json_with_six_decimals(job: dict[str, Any]) -> None:
    job_id = "w0!5\n%s"
    document = json.loads(
        batsim_message(Message(1.5, [(1.5, JobSubmitted(job_id, job)), (1.5, JobSubmitted("%", {}, job))]))
    )
    first, second = (event["data"] for event in document["events"])
    assert first == {"job_id": job_id, "job": rounded(job)}
    assert second == {"job_id": "%", "job": {}, "profile": rounded(job)}


def test_a_component_writes_what_is_read_again() -> None:
    message = Message(1.25, [(1.0, ExecuteJob("w0!1", [(0, 3), (7, 7)])), (1.25, CallMeLater(1e9 / 7))])
    assert read_message(component_message(message), DECISIONS, "it") == message


@pytest.mark.parametrize("text, found", [("0-3 7", [(0, 3), (7, 7)]), ("2,0 1", [(0, 2)]), ("5", [(5, 5)])])
def test_resources(text: str, found: list[tuple[int, int]]) -> None:
    assert intervals_of(text) == found
    assert intervals_of(interval_text(found)) == found


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), min_size=1, max_size=12), st.sampled_from([" ", ","]))
def test_any_resources(ranges: list[tuple[int, int]], between: str) -> None:
    """Sorted and merged, however they are written, if no resource is named twice."""
    parts = [f"{first}-{first + more}" if more else f"{first}" for first, more in ranges]
    named = [host for first, more in ranges for host in range(first, first + more + 1)]
    if len(set(named)) < len(named):
        with pytest.raises(ConfigError):
            intervals_of(between.join(parts))
        return
    intervals = intervals_of(between.join(parts))
    assert [host for first, last in intervals for host in range(first, last + 1)] == sorted(named)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(intervals))


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "0-2 1", "1-2-3", "²", "9" * 5000, 5, None])
def test_wrong_resources(text: object) -> None:
    with pytest.raises(ConfigError):
        intervals_of(text)


def decision(**data: object) -> str:
    return json.dumps({"now": 5.0, "events": [{"timestamp": 5.0, "type": "EXECUTE_JOB", "data": data}]})


@pytest.mark.parametrize(
    "raw, complaint",
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "a mapping"),
        ('{"now": 1}', "events: missing"),
        ('{"now": "1", "events": []}', "now: found '1'"),
        ('{"now": NaN, "events": []}', "now: found nan"),
        (
            '{"now": 1, "events": [{"timestamp": 2, "type": "REJECT_JOB", "data": {"job_id": "a"}}]}',
            "times that ascend",
        ),
        ('{"now": 1, "events": [{"timestamp": 1, "type": "EXECUTE", "data": {}}]}', "did you mean 'EXECUTE_JOB'"),
        ('{"now": 1, "events": [{"timestamp": 1, "type": "KILL_JOB", "data": {"job_ids": []}}]}', "at least 1"),
        (decision(job_id="w0!1"), "events[0].data.alloc: missing"),
        (decision(job_id=1, alloc="0"), "events[0].data.job_id: found 1"),
        (decision(job_id="w0!1", alloc="0-"), "events[0].data.alloc: found '0-'"),
        (decision(job_id="w0!1", alloc="0", mapping={"0": "x"}), "ranks"),
    ],
    ids=range(13),
)
def test_an_error_says_where_and_quotes_the_message(raw: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_message(raw.encode(), DECISIONS, "edc:x")
    text = str(error.value)
    assert complaint in text and text.startswith("edc:x: ")
    assert f"; the message: {raw[:20]}" in text
    assert len(text) < 1000


SAID = [
    '{"now":0.0,"events":[{"timestamp":0.0,"type":"SET_JOB_METADATA","data":{"job_id":"w0!1","metadata":"some text"}},'
    '{"timestamp":0.0,"type":"EXECUTE_JOB","data":{"job_id":"dynamic!0","alloc":"0-3 7"}}]}',
    '{"now":1.0,"events":[{"timestamp":0.0,"type":"REGISTER_PROFILE","data":{"workload_name":"dynamic","profile_name":'
    '"delay_1","profile":{"type":"delay","delay":1}}},{"timestamp":0.5,"type":"REGISTER_JOB","data":{"job_id":"dynamic!0",'
    '"job":{"id":"0","subtime":0,"walltime":6,"res":1,"profile":"delay_1"}}}]}',
    '{"now":5,"events":[{"timestamp":5,"type":"SET_RESOURCE_STATE","data":{"resources":"0-2","state":"1"}},{"timestamp":5,'
    '"type":"CALL_ME_LATER","data":{"timestamp":480.0}},{"timestamp":5,"type":"KILL_JOB","data":{"job_ids":["w0!1"]}},'
    '{"timestamp":5,"type":"QUERY","data":{"requests":{"consumed_energy":{}}}},{"timestamp":5,"type":"NOTIFY","data":{}}]}',
]


def test_no_mutation_is_a_traceback() -> None:
    random.seed(19)
    read = 0
    for raw in (one.encode() for one in SAID * 3334):
        places = [random.randrange(len(raw)) for _ in range(random.randint(1, 3))]
        mutated = bytearray(raw)
        for place in places:
            mutated[place : place + random.choice((0, 1, 1, 5))] = random.choice(
                (b"", b'"', b"}", b"9", b"-", b"\xff", b"null")
            )
        try:
            read_message(bytes(mutated), DECISIONS, "it")
            read += 1
        except ConfigError as error:
            assert "; the message: " in str(error)
    assert 100 < read < 5000
