"""Messages of version 4 of Batsim's protocol: write them as Batsim does, and as a decision component.

Rule: in Batsim's place whole numbers are written as they are, all others with six decimals, and an unknown walltime is
an absent key.
Source: recorded messages of Batsim 4.2.1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from .kill_progress import progress_4
from .messages import JobCompleted, JobKilled, JobSubmitted, Message


def _object(value: Mapping[str, Any]) -> str:
    return _template(tuple(value)) % tuple([_WRITE[type(part)](part) for part in value.values()])


@lru_cache(maxsize=1000)
def _template(keys: tuple[str, ...]) -> str:
    """Return the text of an object with %s in place of its values."""
    return "{" + ",".join([encode_basestring(key).replace("%", "%%") + ":%s" for key in keys]) + "}"


def _array(value: Sequence[Any]) -> str:
    return "[" + ",".join([_WRITE[type(part)](part) for part in value]) + "]"


class _Writers(dict[type, Callable[[Any], str]]):
    """The function that writes a value, by its type."""

    def __missing__(self, key: type) -> Callable[[Any], str]:
        return json.dumps


_WRITE = _Writers({float: "%.6f".__mod__, int: str, str: encode_basestring, dict: _object, list: _array, tuple: _array})


def batsim_message(message: Message) -> bytes:
    """Return the text of a message as Batsim sends it."""
    parts, head, before = list[str](), "", math.nan
    for time, event in message.events:
        if time != before:
            head, before = f'{{"timestamp":{time:.6f},"type":"', time
        if type(event) is JobCompleted:  # this kind and the next one are almost all events of a replay
            parts.append(
                f'{head}JOB_COMPLETED","data":{{"job_id":{encode_basestring(event.job_id)},'
                f'"job_state":"{event.job_state}","return_code":{event.return_code},'
                f'"alloc":{encode_basestring(event.alloc)}}}}}'
            )
        elif type(event) is JobSubmitted and event.profile is None:
            job_id, job = encode_basestring(event.job_id), _object(event.job)
            parts.append(f'{head}JOB_SUBMITTED","data":{{"job_id":{job_id},"job":{job}}}}}')
        else:
            data = event.data()
            if type(event) is JobKilled:
                data = {**data, "job_progress": {job: progress_4(one) for job, one in event.job_progress.items()}}
            parts.append(f'{head}{event.type}","data":{_object(data)}}}')
    return f'{{"now":{message.now:.6f},"events":[{",".join(parts)}]}}'.encode("utf-8", "replace")


def component_message(message: Message) -> bytes:
    """Return the text of a message as a decision component sends it, with all digits."""
    events = [{"timestamp": time, "type": event.type, "data": event.data()} for time, event in message.events]
    return json.dumps({"now": message.now, "events": events}, separators=(",", ":")).encode()
