"""Messages of version 5 of Batsim's protocol (batprotocol) in JSON: write the events and decisions of version 4 so.

Rule: Batsim ends each message with a NUL, which components cut off, so it is written in Batsim's place. Components look
up what they need, so they get all fields of the expected outputs; Batsim refuses unknown fields, so it gets no others
than those that every release knows. What version 5 cannot express, such as metadata of jobs, is left out.
Source: the schema and the expected outputs of batprotocol; Batsim's `server.cpp`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .kill_progress import progress_5
from .messages import (
    CallMeLater,
    Event,
    ExecuteJob,
    JobCompleted,
    JobKilled,
    JobSubmitted,
    Message,
    Notify,
    RejectJob,
    RequestedCall,
    ResourceStateChanged,
    SimulationBegins,
    SimulationEnds,
    interval_text,
)
from .profiles_5 import full_id, profile_message

Data = dict[str, Any]
#: Notices of version 4 -> events of version 5.
_NOTICES = {
    "no_more_static_job_to_submit": "AllStaticJobsHaveBeenSubmittedEvent",
    "no_more_external_event_to_occur": "AllStaticExternalEventsHaveBeenInjectedEvent",
}


def batsim_message_5(message: Message) -> bytes:
    """Return the text of a message in Batsim's place."""
    return _written(message, _EVENTS) + b"\0"


def component_message_5(message: Message) -> bytes:
    """Return the text of a message of a decision component of ours."""
    return _written(message, _DECISIONS)


def _written(message: Message, kinds: Mapping[type[Event], Callable[[Any], tuple[str, Data]]]) -> bytes:
    events = list[Data]()
    for time, event in message.events:
        if type(event) in kinds:
            name, data = kinds[type(event)](event)
            events.append({"timestamp": time, "event_type": name, "event": data})
    return json.dumps({"now": message.now, "events": events}, separators=(",", ":")).encode()


# --- what Batsim says ---
def simulation_begins_5(about: Mapping[str, Any], speeds: Sequence[float], *, profiles: bool) -> Data:
    """Return what SimulationBeginsEvent says of the machine and the workloads. O(resources + profiles).

    Args:
        about: the `data` of SIMULATION_BEGINS.
        speeds: flop/s of each resource; () = unknown.
        profiles: the component asked for the profiles.

    Raises:
        ConfigError: protocol 5 has no such profile.
    """
    event = {
        "host_number": about["nb_resources"], "computation_host_number": about["nb_compute_resources"],
        "computation_hosts": [_host(host, speeds) for host in about["compute_resources"]],
        "storage_host_number": about["nb_storage_resources"],
        "storage_hosts": [_host(host, ()) for host in about["storage_resources"]],
        "batsim_arguments": ["pilotfish", "simulate"], "batsim_execution_context_json": "{}",
        "workloads": [{"name": name, "filename": file} for name, file in about["workloads"].items()],
    }  # fmt: skip
    if profiles:
        event["profiles"] = profile_messages(about["profiles"])
    return event


def profile_messages(profiles: Mapping[str, Mapping[str, Data]]) -> list[Data]:
    """Return all profiles as protocol 5 writes them. Raises ConfigError: it has no such profile."""
    return [
        profile_message(home, name, profile)
        for home, of_workload in profiles.items()
        for name, profile in of_workload.items()
    ]


def _host(one: Data, speeds: Sequence[float]) -> Data:
    return {
        "id": one["id"], "name": one["name"], "pstate": 0, "pstate_count": 1, "state": "IDLE",
        "properties": _pairs(one["properties"]), "zone_properties": _pairs(one["zone_properties"]), "core_count": 1,
        "computation_speed": [float(speeds[one["id"]])] if speeds else [],
    }  # fmt: skip


def _pairs(properties: Mapping[str, Any]) -> list[Data]:
    return [{"key": key, "value": str(value)} for key, value in properties.items()]


def _submitted(event: JobSubmitted) -> tuple[str, Data]:
    job, extra = event.job, event.job.get("extra_data", "")
    profile = full_id(event.job_id.partition("!")[0], job["profile"])
    data: Data = {
        "job_id": event.job_id,
        "job": {
            "resource_request": job["res"], "walltime": float(job.get("walltime", -1.0)),
            "extra_data": extra if isinstance(extra, str) else json.dumps(extra), "rigid": True, "profile_id": profile,
        },
        "submission_time": float(job["subtime"]),
    }  # fmt: skip
    if event.profile is not None:
        home, _, name = profile.partition("!")
        data["profile"] = profile_message(home, name, event.profile)
    return "JobSubmittedEvent", data


def _completed(event: JobCompleted) -> tuple[str, Data]:
    return "JobCompletedEvent", {
        "job_id": event.job_id, "state": event.job_state, "return_code": event.return_code % 2**32,
    }  # fmt: skip


def _killed(event: JobKilled) -> tuple[str, Data]:
    return "JobsKilledEvent", {
        "job_ids": list(event.job_ids),
        "progresses": [
            {"job_id": job_id, "wrapper": progress_5(job_id.partition("!")[0], progress)}
            for job_id, progress in event.job_progress.items()
        ],
    }  # fmt: skip


_EVENTS: dict[type[Event], Callable[[Any], tuple[str, Data]]] = {
    SimulationBegins: lambda event: ("SimulationBeginsEvent", dict(event.about)),
    SimulationEnds: lambda event: ("SimulationEndsEvent", {}),
    JobSubmitted: _submitted,
    JobCompleted: _completed,
    JobKilled: _killed,
    RequestedCall: lambda event: (
        "RequestedCallEvent", {"call_me_later_id": event.call_id, "last_periodic_call": event.last},
    ),
    Notify: lambda event: (_NOTICES[event.about["type"]], {}),
    ResourceStateChanged: lambda event: (
        "HostsTurnedOnOffEvent", {"host_ids": event.resources, "state": int(event.state)},
    ),
}  # fmt: skip


# --- what a component says ---
def _execute(event: ExecuteJob) -> tuple[str, Data]:
    placement = {
        "host_allocation": interval_text(event.alloc),
        "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
        "executor_placement": {"strategy": "SpreadOverHostsFirst"},
    }
    data = {"job_id": event.job_id, "allocation": placement, "profile_allocation_override": [], "storage_placement": []}
    return "ExecuteJobEvent", data


def _call_later(event: CallMeLater) -> tuple[str, Data]:
    """Batsim counts whole seconds or milliseconds: call at the first one that is not too early."""
    ticks = math.ceil(event.timestamp * 1e3)
    ticks += ticks / 1e3 < event.timestamp
    when = {"time": ticks, "time_unit": "Millisecond"}
    return "CallMeLaterEvent", {"call_me_later_id": f"at {event.timestamp}", "when_type": "OneShot", "when": when}


_DECISIONS: dict[type[Event], Callable[[Any], tuple[str, Data]]] = {
    ExecuteJob: _execute,
    RejectJob: lambda event: ("RejectJobEvent", {"job_id": event.job_id}),
    CallMeLater: _call_later,
}
