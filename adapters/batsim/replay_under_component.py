"""Replay a workload under a decision component of Batsim.

Rule: whatever goes wrong with a component is one error that names it and quotes its message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...formats.batsim.descriptions import describe
from ...formats.batsim.hello_5 import init_message, read_hello
from ...formats.batsim.machine_description import CONFIG, resource_speeds, simulation_begins, states_of
from ...formats.batsim.messages import quoted
from ...formats.batsim.messages_5_write import profile_messages, simulation_begins_5
from ...formats.batsim.protocol_versions import VERSION_4, VERSION_5
from ...formats.documents.document_errors import from_source
from ...simulate.errors import ConfigError, PolicyError
from ...simulate.model.machine import Machine, speeds_of, storages_of
from ...simulate.model.network import unlimited
from ...simulate.model.workload import Workload
from ...simulate.replay.replay import replay
from ...simulate.replay.replay_case import ReplayOptions
from ...simulate.world.replay_result import Replayed
from .component_world import ComponentWorld
from .decision_component import DecisionComponent

#: When a component of protocol 5 may want to learn of profiles.
_FORWARDS = ("job_submission", "simulation_begins")
#: What is wrong where an error names no part of a reply.
REPLY = "its reply"
#: Column with the ids of jobs as the component knows them.
FULL_ID = "full_id"


def replay_under_component(
    ask: Callable[[bytes], bytes], name: str, jobs: Workload, machine: Machine,
    files: Sequence[Path], *, config: Mapping[str, Any] | None = None, latency_s: float = 0.0,
    natural: bool = False, protocol: int = 4, options: ReplayOptions = ReplayOptions(),
) -> tuple[Replayed, int]:  # fmt: skip
    """Replay a workload; return the result, and how many messages were sent.

    Args:
        ask: sends a message to the component and returns its reply.
        name: of the component, for messages.
        jobs: the workload.
        machine: its resources.
        files: where the workload comes from.
        config: what differs from `CONFIG` in the configuration that the component gets; in protocol 5 its
            initialisation string, as `sched-config`.
        latency_s: seconds by which each end reaches the component later.
        natural: submissions of one instant come in the order of the files, not in that of their ids as text.
        protocol: the version that the component speaks, 4 or 5.
        options: those of the replay.

    Raises:
        ConfigError: the workload cannot be described or replayed.
        PolicyError: the component does not answer, or answers what cannot be done.
    """
    cluster, settings = machine.cluster, {**CONFIG, **(config or {})}
    described = describe(jobs, files)
    names, speeds = storages_of(cluster), resource_speeds(machine, cluster)
    storages = None if names is None else {label: machine.processors + i for i, label in enumerate(names)}
    if machine.network is None:  # for jobs whose ranks share a resource
        machine = replace(machine, network=lambda: unlimited(speeds or [1.0] * machine.processors))
    world = ComponentWorld(
        simulation_begins(machine, cluster, described, settings), states_of(machine, cluster), storages,
        speeds_of(cluster), registers=bool(settings["dynamic-jobs-enabled"]),
        forwards=bool(settings["profiles-forwarded-on-submission"]), natural=natural, latency_s=latency_s,
    )  # fmt: skip
    if protocol == 5:
        world = _after_hello(world, ask, name, str(settings["sched-config"]), speeds)
    version = VERSION_5 if protocol == 5 else VERSION_4
    component = DecisionComponent(name, ask, world, described, _returns(jobs), version)
    jobs = replace(jobs, more={**jobs.more, FULL_ID: _objects(described.ids)})
    try:
        replayed = replay(jobs, machine, component, options)
        component.end()
    except PolicyError as error:
        quote = (
            ""
            if "; the message: " in error.problem
            else f"; the message: {quoted(component.said.decode('utf-8', 'replace'))}"
        )
        raise PolicyError(name, error.where or REPLY, f"{error.problem}{quote}", error.allowed) from error.__cause__
    except ConfigError as error:
        if error.source != name:
            raise
        raise PolicyError(name, error.key or REPLY, error.problem, error.allowed) from None
    return _as_written(replayed, component), component.messages


def _after_hello(
    world: ComponentWorld, ask: Callable[[bytes], bytes], name: str, init: str, speeds: Sequence[float]
) -> ComponentWorld:
    """Return what a component of protocol 5 learns and may do, which it asks for in its hello. Raises PolicyError."""
    try:
        wishes = read_hello(ask(init_message(init)), name)
        forwards, at_start = (wishes.get(f"forward_profiles_on_{when}", False) for when in _FORWARDS)
        if forwards:
            from_source(name, profile_messages, world.about["profiles"])
        about = from_source(name, partial(simulation_begins_5, profiles=at_start), world.about, speeds)
    except ConfigError as error:
        raise PolicyError(name, error.key or REPLY, error.problem, error.allowed) from None
    states = {"0": True, **({"1": False} if False in world.states.values() else {})} if world.states else {}
    registers = wishes.get("dynamic_registration", False)
    return replace(world, about=about, states=states, registers=registers, forwards=forwards)


def _returns(jobs: Workload) -> list[int] | None:
    exit_codes: list[int] | None = jobs.more["returns"].tolist() if "returns" in jobs.more else None
    return exit_codes


def _as_written(replayed: Replayed, component: DecisionComponent) -> Replayed:
    """Return a replay whose workload has the column `metadata`, if the component attached some.

    A job that the component registered has the name of its workload apart from its own, as Batsim writes it.
    """
    jobs = replayed.workload
    columns = dict(jobs.more)
    ids = columns.pop(FULL_ID).tolist()
    if component.metadata:
        columns["metadata"] = _objects([component.metadata.get(job_id, "") for job_id in ids])
    if component.registered:
        origins = columns["workload"].tolist() if "workload" in columns else [jobs.name] * len(jobs)
        rows = zip(ids, origins, columns["name"].tolist(), strict=True)
        parts = [job.split("!", 1) if job in component.registered else (*names,) for job, *names in rows]
        columns["workload"], columns["name"] = (_objects([part[i] for part in parts]) for i in (0, 1))
    return replace(replayed, workload=replace(jobs, more=columns))


def _objects(values: list[str]) -> Any:
    column = np.empty(len(values), object)
    column[:] = values
    return column
