"""Messages of version 5 of Batsim's protocol (batprotocol) in JSON: read them as the events of version 4.

Rule: only what is documented is read; every other event is refused by name. A message may end with a NUL, as those of
Batsim do. Times of calls are whole numbers of seconds or milliseconds; periodic calls come at the multiples of their
period, without an offset, as in Batsim.
Source: Batsim's documentation of version 5, "Protocol"; the schema and the expected outputs of batprotocol; Batsim's
`periodic.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ...simulate.model.workload import LONGEST
from ..documents.document_errors import bad, inside
from ..documents.quantities import checked_number, whole
from ..documents.schema import flag, listed, mapping, one_of, require, text
from .messages import (
    FAILED,
    KILLED,
    SUCCEEDED,
    TIMED_OUT,
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
    SetResourceState,
    SimulationBegins,
    SimulationEnds,
    StopCalls,
    intervals_of,
    read_events,
)
from .profiles_5 import read_profile

Data = dict[str, Any]
#: Converts an event after its name and its time were read. Raises ConfigError.
Reader = Callable[[Data], Event]
_count = whole(1, 2**31 - 64)
_number = whole(0, 2**31)
_ticks = whole(0, int(LONGEST))
_ids = listed(text, least=1)
_MUST = object()


def take(data: Mapping[str, Any], key: str, convert: Callable[[Any], Any], default: Any = _MUST) -> Any:
    """Return the converted value of a field; null is a field that is not there."""
    if data.get(key) is not None:
        return inside(key, convert, data[key])
    if default is _MUST:
        raise bad("missing", "required", key=key)
    return default


def read_5(raw: bytes, kinds: Mapping[str, Reader], sender: str) -> Message:
    """Return the message that was received.

    Args:
        raw: as it was received, maybe with a NUL at its end.
        kinds: converter of each kind of event, EVENTS_5 or DECISIONS_5.
        sender: what sent it, for messages.

    Raises:
        ConfigError: it is not a message of the protocol; the error quotes it.
    """
    return read_events(raw.removesuffix(b"\0"), partial(_read, kinds), sender)


def _read(kinds: Mapping[str, Reader], message: Data) -> Event:
    require(message, ("event_type",))
    kind = inside("event_type", one_of, message["event_type"], kinds)
    data = {} if message.get("event") is None else inside("event", mapping, message["event"])
    return inside("event", kinds[kind], data)


def _begins(data: Data) -> Event:
    return SimulationBegins({**data, "nb_compute_resources": take(data, "computation_host_number", _count)})


def _submitted(data: Data) -> Event:
    job_id, job = take(data, "job_id", text), take(data, "job", mapping)
    return JobSubmitted(job_id, {**inside("job", _job, job), "subtime": take(data, "submission_time", _seconds, 0.0)})


def _job(job: Data) -> Data:
    """Return a job as a workload describes it; a walltime below 0 is none."""
    description = {"res": take(job, "resource_request", _count), "profile": take(job, "profile_id", text, "")}
    walltime = take(job, "walltime", _seconds, -1.0)
    if walltime >= 0.0:
        description["walltime"] = walltime
    if (extra := take(job, "extra_data", text, "")) != "":
        description["extra_data"] = extra
    return description


def _seconds(value: Any) -> float:
    return checked_number(value, f"seconds up to {LONGEST:g}", -LONGEST, LONGEST)


def _completed(data: Data) -> Event:
    state = take(data, "state", lambda value: one_of(value, (SUCCEEDED, FAILED, TIMED_OUT, KILLED)))
    returned = take(data, "return_code", whole(-(2**31), 2**32 - 1), 0)
    return JobCompleted(take(data, "job_id", text), state, returned - 2**32 * (returned >= 2**31), "")


def _switched(key: str, data: Data) -> Event:
    return ResourceStateChanged(take(data, "host_ids", text), str(take(data, key, _number)))


def _happened(data: Data) -> Event:
    return Notify({"type": "event", **data})


def _execute(data: Data) -> Event:
    allocation = take(data, "allocation", mapping)
    hosts, ranks = inside("allocation", _allocation, allocation)
    if take(data, "profile_allocation_override", listed(mapping), ()):
        raise bad("profiles cannot be placed apart from their job", "no override", key="profile_allocation_override")
    storages = dict(take(data, "storage_placement", listed(_storage), ()))
    return ExecuteJob(take(data, "job_id", text), hosts, ranks, storages or None)


def _allocation(data: Data) -> tuple[Any, Any]:
    hosts = take(data, "host_allocation", intervals_of)
    kinds = ("PredefinedExecutorPlacementStrategyWrapper", "CustomExecutorToHostMapping")
    kind = take(data, "executor_placement_type", lambda value: one_of(value, kinds))
    placement = take(data, "executor_placement", mapping, {})
    if kind == kinds[1]:
        ranks = inside("executor_placement", take, placement, "mapping", listed(_number))
        return hosts, dict(enumerate(ranks))
    allowed = ("SpreadOverHostsFirst", "FillOneHostCoresFirst")
    strategy = inside("executor_placement", take, placement, "strategy", lambda value: one_of(value, allowed),
                      allowed[0])  # fmt: skip
    if strategy != allowed[0]:
        raise bad(f"{strategy} is not done", allowed[0], key="executor_placement.strategy")
    return hosts, None


def _storage(value: Any) -> tuple[str, int]:
    data = mapping(value)
    return take(data, "storage_name", text), take(data, "host_id", _number, 0)


def _call_later(data: Data) -> Event:
    call_id, when = take(data, "call_me_later_id", text), take(data, "when", mapping)
    kind = take(data, "when_type", lambda value: one_of(value, ("OneShot", "Periodic")))
    return inside("when", _one_shot if kind == "OneShot" else _periodic, call_id, when)


def _in_seconds(when: Data, key: str) -> float:
    ticks: int = take(when, key, _ticks)
    unit = take(when, "time_unit", lambda value: one_of(value, ("Second", "Millisecond")), "Second")
    return ticks / (1.0 if unit == "Second" else 1e3)


def _one_shot(call_id: str, when: Data) -> Event:
    return CallMeLater(_in_seconds(when, "time"), call_id)


def _periodic(call_id: str, when: Data) -> Event:
    if take(when, "offset", _ticks, 0):
        raise bad("offsets are not supported, as in Batsim", "0", key="offset")
    if (period_s := _in_seconds(when, "period")) <= 0.0:
        raise bad("found 0", "a period of at least one unit", key="period")
    mode, times = take(when, "mode_type", lambda value: one_of(value, ("Infinite", "FinitePeriodNumber"))), None
    if mode == "FinitePeriodNumber":
        times = inside("mode", take, take(when, "mode", mapping), "nb_periods", whole(1, 2**32 - 1))
    return CallMeLater(0.0, call_id, period_s, times)


def _register_job(data: Data) -> Event:
    return RegisterJob(take(data, "job_id", text), inside("job", _job, take(data, "job", mapping)))


def _set_state(data: Data) -> Event:
    state = take(data, "state", _number)
    return SetResourceState(take(data, "host_ids", intervals_of), str(state))


def _refused(problem: str, allowed: str) -> Reader:
    def refuse(data: Data) -> Event:
        raise bad(problem, allowed)

    return refuse


#: What Batsim says, by name.
EVENTS_5: dict[str, Reader] = {
    "SimulationBeginsEvent": _begins,
    "SimulationEndsEvent": lambda data: SimulationEnds(),
    "JobSubmittedEvent": _submitted,
    "JobCompletedEvent": _completed,
    "JobsKilledEvent": lambda data: JobKilled(take(data, "job_ids", _ids), {}),
    "RequestedCallEvent": lambda data: RequestedCall(
        take(data, "call_me_later_id", text), take(data, "last_periodic_call", flag, False)
    ),
    "AllStaticJobsHaveBeenSubmittedEvent": lambda data: Notify({"type": "no_more_static_job_to_submit"}),
    "AllStaticExternalEventsHaveBeenInjectedEvent": lambda data: Notify({"type": "no_more_external_event_to_occur"}),
    "ExternalEventOccurredEvent": _happened,
    "HostsPStateChangedEvent": partial(_switched, "pstate"),
    "HostsTurnedOnOffEvent": partial(_switched, "state"),
}
#: What a decision component says, by name.
DECISIONS_5: dict[str, Reader] = {
    "ExecuteJobEvent": _execute,
    "RejectJobEvent": lambda data: RejectJob(take(data, "job_id", text)),
    "KillJobsEvent": lambda data: KillJob(take(data, "job_ids", _ids)),
    "CallMeLaterEvent": _call_later,
    "StopCallMeLaterEvent": lambda data: StopCalls(take(data, "call_me_later_id", text)),
    "RegisterProfileEvent": lambda data: RegisterProfile(*inside("profile", read_profile, data.get("profile"))),
    "RegisterJobEvent": _register_job,
    "FinishRegistrationEvent": lambda data: Notify({"type": "registration_finished"}),
    "TurnOnOffHostsEvent": _set_state,
    "ChangeHostsPStateEvent": _refused("hosts have one speed here", "hosts that are turned on and off"),
    "ForceSimulationStopEvent": _refused("a replay cannot be stopped early", "replays to their end"),
    **dict.fromkeys(
        ("CreateProbeEvent", "StopProbeEvent", "TriggerProbeEvent", "ResetProbeEvent"),
        _refused("probes are not answered", "components without probes"),
    ),
}
#: Decision -> its name.
NAMES_5: dict[type[Event], str] = {
    ExecuteJob: "ExecuteJobEvent", RejectJob: "RejectJobEvent", KillJob: "KillJobsEvent",
    CallMeLater: "CallMeLaterEvent", StopCalls: "StopCallMeLaterEvent", RegisterJob: "RegisterJobEvent",
    RegisterProfile: "RegisterProfileEvent", SetResourceState: "TurnOnOffHostsEvent",
}  # fmt: skip
