"""Messages of version 4 of Batsim's protocol: write them as Batsim does, and as a decision component.

Rule: in Batsim's place whole numbers are written as they are, all others with six decimals, and an unknown walltime is
an absent key.
Source: recorded messages of Batsim 4.2.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from .kill_progress import progress_4
from .messages import JobCompleted, JobKilled, Message


def as_batsim(value: Any) -> str:
    """Return JSON as Batsim writes it: numbers that are not whole have six decimals, and nothing is spaced."""
    write = _WRITTEN.get(type(value))
    return write(value) if write is not None else json.dumps(value)


def _object(value: Mapping[str, Any]) -> str:
    parts = list[str]()
    for key, part in value.items():
        kind = type(part)
        if kind is str:
            written = encode_basestring(part)
        elif kind is int:
            written = str(part)
        else:
            written = f"{part:.6f}" if kind is float else as_batsim(part)
        parts.append(f"{_key(key)}:{written}")
    return "{" + ",".join(parts) + "}"


_key = lru_cache(maxsize=1000)(encode_basestring)


def _array(value: Sequence[Any]) -> str:
    return "[" + ",".join(map(as_batsim, value)) + "]"


_WRITTEN: dict[type, Callable[[Any], str]] = {
    float: lambda value: f"{value:.6f}", int: str, str: encode_basestring, dict: _object, list: _array, tuple: _array,
}  # fmt: skip


def batsim_message(message: Message) -> bytes:
    """Return the text of a message as Batsim sends it."""
    parts = list[str]()
    for time, event in message.events:
        if type(event) is JobCompleted:  # half of all events
            data = (
                f'{{"job_id":{encode_basestring(event.job_id)},"job_state":"{event.job_state}",'
                f'"return_code":{event.return_code},"alloc":{encode_basestring(event.alloc)}}}'
            )
        elif type(event) is JobKilled:
            progress = {job: progress_4(one) for job, one in event.job_progress.items()}
            data = as_batsim({"job_ids": event.job_ids, "job_progress": progress})
        else:
            data = as_batsim(event.data())
        parts.append(f'{{"timestamp":{time:.6f},"type":"{event.type}","data":{data}}}')
    events = ",".join(parts)
    return f'{{"now":{message.now:.6f},"events":[{events}]}}'.encode("utf-8", "replace")


def component_message(message: Message) -> bytes:
    """Return the text of a message as a decision component sends it, with all digits."""
    events = [{"timestamp": time, "type": event.type, "data": event.data()} for time, event in message.events]
    return json.dumps({"now": message.now, "events": events}, separators=(",", ":")).encode()
