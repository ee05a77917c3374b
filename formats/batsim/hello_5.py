"""The handshake of version 5 of Batsim's protocol: an initialisation string, and the hello of the component.

Rule: only JSON is supported; a component that asks for an unsupported feature is refused, and the error names the
feature.
Source: Batsim's documentation of version 5, "Initialization phase" and "Simulation features"; its `edc.cpp`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..documents.document_errors import bad, inside
from ..documents.schema import flag, mapping, text
from ..text import count
from .messages import Event, refusal
from .messages_5_read import read_5, take

#: The flag of a hello that chooses JSON; 1 is for binary flatbuffers.
JSON_FLAG = 2
#: Version of batprotocol that our hello names.
VERSION = "1.0.0"
#: What a component may ask for, in every release.
FEATURES = (
    "dynamic_registration", "profile_reuse", "acknowledge_dynamic_jobs", "forward_profiles_on_job_submission",
    "forward_profiles_on_jobs_killed", "forward_profiles_on_simulation_begins",
)  # fmt: skip
_NUMBER = struct.Struct("=I")


@dataclass(slots=True)
class Hello(Event):
    """The first message of a component. `features`: the features that it asks for."""

    features: Mapping[str, bool] = field(default_factory=dict)
    type: ClassVar[str] = "EDCHelloEvent"


def init_message(said: str) -> bytes:
    """Return the first message of Batsim, with the initialisation string of the component."""
    data = said.encode("utf-8", "replace")
    return _NUMBER.pack(len(data)) + data


def is_init_message(raw: bytes) -> bool:
    """Return whether a message is the first one of a Batsim 5: its length, as a number of 4 bytes, and text."""
    return len(raw) >= _NUMBER.size and _NUMBER.unpack_from(raw)[0] == len(raw) - _NUMBER.size


def hello_message(name: str, version: str) -> bytes:
    """Return the first reply of a component: JSON, and nothing special asked for."""
    hello = {
        "batprotocol_version": VERSION, "decision_component_name": name, "decision_component_version": version,
        "decision_component_commit": "", "requested_simulation_features": dict.fromkeys(FEATURES, False),
    }  # fmt: skip
    message = {"now": 0.0, "events": [{"timestamp": 0.0, "event_type": "EDCHelloEvent", "event": hello}]}
    return _NUMBER.pack(JSON_FLAG) + json.dumps(message).encode()


def read_hello(raw: bytes, sender: str) -> Mapping[str, bool]:
    """Return the features that the hello of a component asks for.

    Args:
        raw: its first reply.
        sender: its name, for messages.

    Raises:
        ConfigError: it is not a hello in JSON, or asks for what is not done.
    """
    flags = _NUMBER.unpack_from(raw)[0] if len(raw) >= _NUMBER.size else None
    text_bytes = raw[_NUMBER.size :]
    if flags != JSON_FLAG:
        problem = "is too short for its flags" if flags is None else f"has the flags {flags:#x}"
        hint = ", which are binary flatbuffers" if flags == 1 else ""
        allowed = "the flags 0x2, for JSON, and a hello; without --protocol 5 a component of version 4"
        raise refusal(sender, "", f"its hello {problem}{hint}", allowed, raw.decode("utf-8", "replace"))
    message = read_5(text_bytes, {"EDCHelloEvent": _hello}, sender)
    if len(message.events) != 1 or not isinstance(hello := message.events[0][1], Hello):
        raise refusal(
            sender,
            "events",
            f"{count(len(message.events), 'event')}",
            "one hello",
            text_bytes.decode("utf-8", "replace"),
        )
    return hello.features


def _hello(data: dict[str, Any]) -> Event:
    for key in ("batprotocol_version", "decision_component_name", "decision_component_version"):
        take(data, key, text)
    requests = take(data, "requested_simulation_features", mapping, {})
    features = {key: inside(f"requested_simulation_features.{key}", flag, value) for key, value in requests.items()}
    constraints = take(data, "scheduling_constraints", mapping, {})
    if constraints.get("compute_sharing"):
        raise bad("jobs cannot share hosts", "false", key="scheduling_constraints.compute_sharing")
    if features.get("forward_profiles_on_jobs_killed"):
        raise bad("profiles of killed jobs are not forwarded", "false", key="forward_profiles_on_jobs_killed")
    if features.get("dynamic_registration") and not features.get("acknowledge_dynamic_jobs"):
        raise bad("jobs are registered with acknowledgement only", "true", key="acknowledge_dynamic_jobs")
    return Hello(features)
