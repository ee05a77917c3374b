"""The messages between Batsim and its decision component, and how they are read in version 4 of the protocol (JSON).

Rule: what is read is checked, and an error quotes the message.
Source: Batsim's documentation, "Protocol"; and recorded messages of Batsim 4.2.1 where it is silent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from dataclasses import fields as dataclass_fields
from functools import partial
from typing import Any, ClassVar

from ...simulate.errors import ConfigError
from ...simulate.model.intervals import Interval, MergedIntervals, merge_intervals
from ...simulate.model.workload import LONGEST
from ..documents.document_errors import bad, found, inside
from ..documents.quantities import checked_number, number, whole
from ..documents.schema import listed, mapping, one_of, require, text

#: Longest part of a message that an error quotes, characters.
QUOTED = 300
#: Longest range of resources, characters.
_LONGEST_RANGE = 21
#: The states of a job that ran.
SUCCEEDED, FAILED, TIMED_OUT, KILLED = (
    "COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED", "COMPLETED_KILLED",
)  # fmt: skip
Data = Mapping[str, Any]
_seconds = number(-LONGEST, LONGEST)
_any_object = mapping
_decode = json.JSONDecoder().decode


def quoted(message: str) -> str:
    """Return a message for an error, shortened."""
    return message if len(message) <= QUOTED else f"{message[:QUOTED]}... ({len(message):,} characters)"


# --- allocations ---
def interval_text(intervals: Iterable[Interval]) -> str:
    """Return resources as Batsim writes them, such as "0-3 7"."""
    return " ".join([str(first) if first == last else f"{first}-{last}" for first, last in intervals])


def intervals_of(value: Any) -> MergedIntervals:
    """Return the resources that a text names, sorted and merged. Raises ConfigError."""
    if type(value) is str and value.isdigit() and value.isascii() and len(value) < 10:  # a number
        only = int(value)
        return MergedIntervals(((only, only),))
    parts = text(value).replace(",", " ").split()
    joined = "".join(parts)
    if joined.isdigit() and joined.isascii() and len(max(parts, key=len)) < 10:  # numbers, and no ranges
        numbers = list(map(int, parts))
        merged = merge_intervals(zip(numbers, numbers, strict=True))
    else:
        ranges = [pair for part in parts if (pair := _range(part)) is not None]
        merged = merge_intervals(ranges) if len(ranges) == len(parts) else -1
    if isinstance(merged, int) or not merged:
        raise bad(found(value), 'numbers and ranges, such as "0-3 7", each resource once')
    return merged


def _range(part: str) -> Interval | None:
    """Return the first and last number of a range; None: it is none."""
    first, dash, last = part.partition("-")
    if len(part) <= _LONGEST_RANGE and part.isascii() and first.isdigit() and (last.isdigit() or not dash):
        low, high = int(first), int(last or first)
        return (low, high) if low <= high < 2**31 else None
    return None


def _requests(value: Any) -> dict[str, Any]:
    requests = mapping(value)
    for name, arguments in requests.items():
        inside(name, mapping, arguments)
    return requests


def _ranks(value: Any) -> dict[int, int]:
    place = whole(0, 2**31)
    try:
        return {place(int(rank)): place(int(host)) for rank, host in mapping(value).items()}
    except (TypeError, ValueError):
        raise bad(found(value), "a mapping of ranks to places in the allocation") from None


def _storages(value: Any) -> dict[str, int]:
    return {label: inside(label, whole(0, 2**31), place) for label, place in mapping(value).items()}


def _job_id(value: Any) -> str:
    return text(value) if value != "" else text(None)


def _state(value: Any) -> str:
    digits = str(value) if type(value) is int else text(value)
    if not digits.isascii() or not digits.isdigit():
        raise bad(found(value), "the number of a state, as text")
    return digits


# --- events and decisions ---
@dataclass(slots=True)
class Event:
    """An event or decision in a message, of either side; its fields are those of `data` in the message."""

    #: Name in the message.
    type: ClassVar[str]
    #: Converter of each field; a field without a default must be there.
    fields: ClassVar[dict[str, Callable[[Any], Any]]] = {}

    def data(self) -> Data:
        """Return the `data` of the message, without fields that are not given."""
        return {name: value for name in self.fields if (value := getattr(self, name)) is not None}


@dataclass(slots=True)
class _About(Event):
    """An event whose `data` has no fixed fields."""

    about: Data

    def data(self) -> Data:
        """Return the `data` of the message."""
        return self.about


@dataclass(slots=True)
class SimulationBegins(_About):
    """The first event. `about`: the machine, the configuration, the profiles."""

    type: ClassVar[str] = "SIMULATION_BEGINS"


@dataclass(slots=True)
class SimulationEnds(Event):
    """The last event."""

    type: ClassVar[str] = "SIMULATION_ENDS"


@dataclass(slots=True)
class JobSubmitted(Event):
    """A job is submitted. `job`: its description; `profile`: that of its profile, if profiles are forwarded."""

    job_id: str
    job: Data
    profile: Data | None = None
    type: ClassVar[str] = "JOB_SUBMITTED"
    fields: ClassVar = {"job_id": _job_id, "job": _any_object, "profile": _any_object}


@dataclass(slots=True)
class JobCompleted(Event):
    """A job ended, in whatever state. `alloc`: its resources."""

    job_id: str
    job_state: str
    return_code: int = 0
    alloc: str = ""
    type: ClassVar[str] = "JOB_COMPLETED"
    fields: ClassVar = {
        "job_id": _job_id, "job_state": lambda value: one_of(value, (SUCCEEDED, FAILED, TIMED_OUT, KILLED)),
        "return_code": whole(-(2**31), 2**31 - 1), "alloc": text,
    }  # fmt: skip


@dataclass(slots=True)
class JobKilled(Event):
    """The jobs of a KILL_JOB have ended. `job_progress`: the Progress of each that did not end by itself."""

    job_ids: Sequence[str]
    job_progress: Data = field(default_factory=dict)
    type: ClassVar[str] = "JOB_KILLED"
    fields: ClassVar = {"job_ids": listed(_job_id), "job_progress": _any_object}


@dataclass(slots=True)
class ResourceStateChanged(Event):
    """Resources are in another state now."""

    resources: str
    state: str
    type: ClassVar[str] = "RESOURCE_STATE_CHANGED"
    fields: ClassVar = {"resources": text, "state": _state}


@dataclass(slots=True)
class RequestedCall(Event):
    """The time of a CALL_ME_LATER has come. `call_id`: that of the call; `last`: of a number of periodic calls."""

    call_id: str = ""
    last: bool = False
    type: ClassVar[str] = "REQUESTED_CALL"


@dataclass(slots=True)
class Answer(_About):
    """The answer to a QUERY."""

    type: ClassVar[str] = "ANSWER"


@dataclass(slots=True)
class Notify(_About):
    """A notice of either side; `about` has its type, and maybe more."""

    type: ClassVar[str] = "NOTIFY"


@dataclass(slots=True)
class Query(Event):
    """A question of either side. `requests`: what is asked, and the arguments."""

    requests: Data
    type: ClassVar[str] = "QUERY"
    fields: ClassVar = {"requests": _requests}


@dataclass(slots=True)
class ExecuteJob(Event):
    """Start a job on resources. `mapping`: place in `alloc` of each rank."""

    job_id: str
    alloc: list[Interval]
    mapping: Mapping[int, int] | None = None
    storage_mapping: Mapping[str, int] | None = None
    additional_io_job: Data | None = None
    type: ClassVar[str] = "EXECUTE_JOB"
    fields: ClassVar = {
        "job_id": _job_id, "alloc": intervals_of, "mapping": _ranks, "storage_mapping": _storages,
        "additional_io_job": _any_object,
    }  # fmt: skip

    def data(self) -> Data:
        """Return the `data` of the message."""
        return {**Event.data(self), "alloc": interval_text(self.alloc)}


@dataclass(slots=True)
class RejectJob(Event):
    """Never run a job."""

    job_id: str
    type: ClassVar[str] = "REJECT_JOB"
    fields: ClassVar = {"job_id": _job_id}


@dataclass(slots=True)
class KillJob(Event):
    """End running jobs now."""

    job_ids: Sequence[str]
    type: ClassVar[str] = "KILL_JOB"
    fields: ClassVar = {"job_ids": listed(_job_id, least=1)}


@dataclass(slots=True)
class CallMeLater(Event):
    """Call again at a time, seconds. Protocol 5 has ids and, in place of a time, a period: `times` calls or endless."""

    timestamp: float
    call_id: str | None = None
    period_s: float | None = None
    times: int | None = None
    type: ClassVar[str] = "CALL_ME_LATER"
    fields: ClassVar = {"timestamp": _seconds}


@dataclass(slots=True)
class StopCalls(Event):
    """Make no more periodic calls of an id; in protocol 5 alone."""

    call_id: str
    type: ClassVar[str] = "STOP_CALL_ME_LATER"


@dataclass(slots=True)
class RegisterJob(Event):
    """Submit a job of the component's own, now."""

    job_id: str
    job: Data
    type: ClassVar[str] = "REGISTER_JOB"
    fields: ClassVar = {"job_id": _job_id, "job": _any_object}


@dataclass(slots=True)
class RegisterProfile(Event):
    """Add a profile for the component's own jobs."""

    workload_name: str
    profile_name: str
    profile: Data
    type: ClassVar[str] = "REGISTER_PROFILE"
    fields: ClassVar = {"workload_name": _job_id, "profile_name": _job_id, "profile": _any_object}


@dataclass(slots=True)
class SetResourceState(Event):
    """Bring resources into a state: 0 computes, another may be off."""

    resources: list[Interval]
    state: str
    type: ClassVar[str] = "SET_RESOURCE_STATE"
    fields: ClassVar = {"resources": intervals_of, "state": _state}

    def data(self) -> Data:
        """Return the `data` of the message."""
        return {"resources": interval_text(self.resources), "state": self.state}


@dataclass(slots=True)
class SetJobMetadata(Event):
    """Attach text to a job, for the results."""

    job_id: str
    metadata: str
    type: ClassVar[str] = "SET_JOB_METADATA"
    fields: ClassVar = {"job_id": _job_id, "metadata": text}


_FROM_DATA = (SimulationBegins, Answer, Notify)
_BOTH: tuple[type[Event], ...] = (Query, Answer, Notify)
_OF_BATSIM: tuple[type[Event], ...] = (
    SimulationBegins, SimulationEnds, JobSubmitted, JobCompleted, JobKilled, ResourceStateChanged, RequestedCall,
)  # fmt: skip
_OF_COMPONENTS: tuple[type[Event], ...] = (
    ExecuteJob, RejectJob, KillJob, CallMeLater, RegisterJob, RegisterProfile, SetResourceState, SetJobMetadata,
)  # fmt: skip
#: What Batsim says, and what a decision component says, by name.
EVENTS = {kind.type: kind for kind in (*_OF_BATSIM, *_BOTH)}
DECISIONS = {kind.type: kind for kind in (*_OF_COMPONENTS, *_BOTH)}


@dataclass(slots=True)
class Message:
    """A message. `events`: each with its time, seconds, ascending and at most `now`."""

    now: float
    events: list[tuple[float, Event]] = field(default_factory=list)


def read_message(raw: bytes, kinds: Mapping[str, type[Event]], sender: str) -> Message:
    """Return the message that was received.

    Args:
        raw: as it was received.
        kinds: what it may say, EVENTS or DECISIONS.
        sender: what sent it, for messages.

    Raises:
        ConfigError: it is not a message of the protocol; the error quotes it.
    """
    return read_events(raw, partial(_event, kinds), sender)


def read_events(raw: bytes, event_of: Callable[[dict[str, Any]], Event], sender: str) -> Message:
    """Return the message that was received, in any version of the protocol.

    Args:
        raw: as it was received.
        event_of: converts an event, after its time was read. Raises ConfigError.
        sender: what sent it, for messages.

    Raises:
        ConfigError: it is not a message of the protocol; the error quotes it.
    """
    try:
        return _message(_decode(raw.decode()), event_of)
    except ConfigError as error:
        key, problem, allowed = error.key, error.problem, error.allowed
    except (ValueError, RecursionError):  # a UnicodeDecodeError is a ValueError
        key, problem, allowed = "", "it sent what is not JSON", "an object with now and events"
    raise refusal(sender, key, problem, allowed, raw.decode("utf-8", "replace"))


def refusal(sender: str, key: str, problem: str, allowed: str, message: str) -> ConfigError:
    """Return an error that quotes a message."""
    return ConfigError(sender, key, f"{problem}; the message: {quoted(message)}", allowed)


def _message(value: Any, event_of: Callable[[dict[str, Any]], Event]) -> Message:
    if type(value) is not dict or "now" not in value or "events" not in value:
        require(mapping(value), ("now", "events"))
    now, items = value["now"], value["events"]
    if not isinstance(items, list):
        raise bad(found(items), "a list of events", key="events")
    if type(now) is not float or not -LONGEST <= now <= LONGEST:
        now = inside("now", _seconds, now)
    events, before = list[tuple[float, Event]](), -LONGEST
    try:
        for item in items:
            timed = before, _ = _timed(item, event_of, before, now)
            events.append(timed)
    except ConfigError:  # again, to name the place
        inside(f"events[{len(events)}]", _timed, items[len(events)], event_of, before, now)
        raise
    return Message(now, events)


def _timed(item: Any, event_of: Callable[[dict[str, Any]], Event], before: float, now: float) -> tuple[float, Event]:
    if type(item) is dict and type(time := item.get("timestamp")) is float and before <= time <= now:
        return time, event_of(item)
    require(mapping(item), ("timestamp",))
    allowed = "times that ascend, up to now"
    time = inside("timestamp", lambda it: checked_number(it, allowed, before, now), item["timestamp"])
    return time, event_of(item)


def _event(kinds: Mapping[str, type[Event]], message: dict[str, Any]) -> Event:
    try:
        kind, data = kinds[message["type"]], message["data"]
        if kind is ExecuteJob and len(data) == 2:  # almost all decisions
            return ExecuteJob(_job_id(data["job_id"]), intervals_of(data["alloc"]))
        if type(data) is dict and kind not in _FROM_DATA:
            fields = kind.fields
            return kind(**{name: fields[name](part) for name, part in data.items() if name in fields})
    except (ConfigError, KeyError, TypeError):
        pass  # below, the error says where it is wrong; or it is odd, but right
    require(message, ("type",))
    kind = kinds[inside("type", one_of, message["type"], kinds)]
    data = inside("data", mapping, message.get("data", {}))
    if kind in _FROM_DATA:
        return kind(data)
    required = [part.name for part in dataclass_fields(kind) if part.default is part.default_factory is MISSING]
    inside("data", require, data, required)
    fields = kind.fields
    return kind(**{name: inside(f"data.{name}", fields[name], data[name]) for name in fields if name in data})
