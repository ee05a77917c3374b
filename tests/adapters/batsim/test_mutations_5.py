"""No value in a message of protocol 5 is a traceback or a hang, on either side: what is odd is an error, or is carried out."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pilotfish.adapters.batsim import decision_component
from pilotfish.adapters.batsim.policy_component import PolicyComponent
from pilotfish.formats.batsim.hello_5 import init_message
from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.queue_policies.policy_specs import Easy, parse
from pilotfish.simulate.queue_policies.uncompiled import uncompiled

from .test_protocol_5 import Component, Decisions, run, start

ODD: list[Any] = [
    None, True, -1, 0, 1, 2.5, 1e300, -1e9, 2**53, 2**70, "", "x", "w0!1", "w0!2", "dyn!1", "0-9", "0 1", [], {},
    ["w0!1", "w0!1"], {"a": 1}, "OneShot", "Periodic",
]  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return each container and key inside a document."""
    pairs = []
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            pairs += [(value, key), *places(value[key])]
    return pairs


def mutated(raw: bytes) -> bytes:
    """Return a message in which one value is odd, missing, or there twice."""
    head, body = (b"", raw) if raw.startswith(b"{") else (raw[:4], raw[4:])
    value = json.loads(body.rstrip(b"\0"))
    container, key = random.choice(places(value))
    how = random.random()
    if how < 0.6:
        container[key] = random.choice(ODD)
    elif how < 0.8 and isinstance(container, dict):
        del container[key]
    elif isinstance(container, list):
        container.append(container[key])
    else:
        container[key] = [container[key]]
    return head + json.dumps(value).encode()


def decide(kind: str, event: dict[str, Any], now: float) -> Decisions:
    """Take every kind of decision in one replay."""
    profile = {"id": "dyn!wait", "profile_type": "DelayProfile", "profile": {"delay": 5.0}}
    job = {"resource_request": 1, "walltime": 100.0, "profile_id": "dyn!wait"}
    when = {"period": 7, "mode_type": "FinitePeriodNumber", "mode": {"nb_periods": 3}}
    decisions: dict[tuple[str, Any], Decisions] = {
        ("SimulationBeginsEvent", None): [
            ("RegisterProfileEvent", {"profile": profile}),
            ("RegisterJobEvent", {"job_id": "dyn!1", "job": job}),
            ("CallMeLaterEvent", {"call_me_later_id": "some", "when_type": "Periodic", "when": when}),
            ("CallMeLaterEvent", {"call_me_later_id": "once", "when_type": "OneShot", "when": {"time": 3}}),
            ("TurnOnOffHostsEvent", {"host_ids": "3", "state": 1}),
        ],
        ("HostsTurnedOnOffEvent", None): [("TurnOnOffHostsEvent", {"host_ids": "3", "state": 0})] * (now < 7),
        ("AllStaticJobsHaveBeenSubmittedEvent", None): [
            ("KillJobsEvent", {"job_ids": ["w0!1"]}), start("w0!2", "2"),
        ],
        ("JobSubmittedEvent", "w0!1"): [start("w0!1", "0-1")],
        ("JobCompletedEvent", "w0!1"): [start("dyn!1", "1")],
    }  # fmt: skip
    return decisions.get((kind, event.get("job_id")), [])


def test_no_reply_of_a_component_is_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_component, "MOST_IN_VAIN", 50)
    random.seed(19)
    run_count = 0
    for i in range(401):
        component = Component(decide, dynamic_registration=True, acknowledge_dynamic_jobs=True)
        messages, at, ask = [], random.randrange(8) if i else -1, component.ask

        def answer(raw: bytes, messages: list[bytes] = messages, at: int = at, ask: Any = ask) -> bytes:
            messages.append(raw)
            return mutated(ask(raw)) if len(messages) == at + 1 else ask(raw)

        monkeypatch.setattr(component, "ask", answer)
        try:
            run(component, tmp_path)
            run_count += 1
        except PolicyError as error:
            assert i and "; the message: " in str(error)
        except (KeyError, IndexError, ValueError, TypeError) as error:  # of the component, when it was misled
            assert _raised_in_component(error), error
    assert 5 < run_count < 200


def _raised_in_component(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and Path(trace.tb_frame.f_code.co_filename).name.startswith("test_")


def said(now: float, *events: tuple[str, dict[str, Any]]) -> bytes:
    return Component.message(now, list(events)) + b"\0"


def submitted(number: int, size: int, walltime: float) -> tuple[str, dict[str, Any]]:
    job = {"resource_request": size, "walltime": walltime, "extra_data": "", "rigid": True, "profile_id": "w0!p"}
    return "JobSubmittedEvent", {"job_id": f"w0!{number}", "job": job, "submission_time": 0.0}


#: What a Batsim 5 says in a simulation of three jobs under EASY.
TALK = [
    said(0.0, ("SimulationBeginsEvent", {"host_number": 4, "computation_host_number": 4})),
    said(0.0, submitted(1, 2, 100.0), submitted(2, 4, 50.5), submitted(3, 1, -1.0)),
    said(0.0, ("AllStaticJobsHaveBeenSubmittedEvent", {})),
    said(50.25, ("JobCompletedEvent", {"job_id": "w0!1", "state": "COMPLETED_SUCCESSFULLY", "return_code": 0})),
    said(
        60.0,
        ("RequestedCallEvent", {"call_me_later_id": "x", "last_periodic_call": False}),
        ("ExternalEventOccurredEvent", {"id": "e", "external_event_type": "G", "external_event": {}}),
        ("HostsTurnedOnOffEvent", {"host_ids": "0", "state": 0}),
    ),
    said(70.0, ("SimulationEndsEvent", {})),
]


def test_no_message_of_batsim_is_a_traceback() -> None:
    random.seed(7)
    easy = parse("easy")
    assert isinstance(easy, Easy)
    run_count = 0
    for i in range(1001):
        component, at = PolicyComponent(uncompiled(easy, 0), "easy"), random.randrange(len(TALK)) if i else -1
        component.answer(init_message(""))
        try:
            for k, raw in enumerate(TALK):
                component.answer(mutated(raw) if k == at else raw)
            run_count += 1
        except (ConfigError, PolicyError):
            assert i
    assert 50 < run_count < 900
