"""Mutated messages in the middle of a run, of a component and of Batsim: an error or a valid schedule, and no more."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from pilotfish.adapters.batsim.component_world import ComponentWorld
from pilotfish.adapters.batsim.decision_component import DecisionComponent
from pilotfish.adapters.batsim.policy_component import PolicyComponent
from pilotfish.formats.batsim.descriptions import Descriptions
from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.model.machine import TAURUS_POWERS
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Easy
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.replay_result import Replayed

HOSTS, JOBS = 4, 6
#: All of them with the profile `hunt`, else a part.
RUNS = 5_000 if settings.default and settings.default.max_examples >= 1000 else 400
WORLD = ComponentWorld(
    {"nb_compute_resources": HOSTS, "config": {}, "profiles": {"w0": {}}}, {"0": True, "1": False}, registers=True
)
ODD: list[Any] = [None, True, -1, 0, 1, 3, 1e300, -1e300, 5.5, math.nan, "", "0", "0-3", "3-0", "0 0", "w0!0", "w0!99", [],
                  {}, ["w0!1"], {"0": 0}, "é\0", 2**70]  # fmt: skip
EXTRA: list[tuple[str, dict[str, Any]]] = [
    ("CALL_ME_LATER", {"timestamp": 3.5}), ("CALL_ME_LATER", {"timestamp": 2e9}), ("KILL_JOB", {"job_ids": ["w0!0"]}),
    ("SET_RESOURCE_STATE", {"resources": "2-3", "state": "1"}), ("SET_RESOURCE_STATE", {"resources": "2", "state": "0"}),
    ("REJECT_JOB", {"job_id": "w0!5"}), ("EXECUTE_JOB", {"job_id": "w0!0", "alloc": "0"}),
    ("QUERY", {"requests": {"consumed_energy": {}}}), ("SET_JOB_METADATA", {"job_id": "w0!0", "metadata": "m"}),
    ("REGISTER_JOB", {"job_id": "d!1", "job": {"res": 1, "profile": "p", "walltime": 9}}),
    ("REGISTER_PROFILE", {"workload_name": "d", "profile_name": "p", "profile": {"type": "delay", "delay": 2}}),
    ("NOTIFY", {"type": "registration_finished"}),
]  # fmt: skip


def jobs() -> tuple[Workload, Descriptions]:
    sizes, times = [1, 3, 2, 4, 1, 2], [0.0, 0.0, 1.0, 2.0, 2.0, 30.0]
    run = np.array([5.0, 9.0, 3.0, 4.0, 20.0, 1.0])
    descriptions = [{"id": f"w0!{i}", "subtime": times[i], "res": sizes[i], "profile": "p"} for i in range(JOBS)]
    workload = Workload("w", np.arange(JOBS), np.array(times), run, run + 2, np.array(sizes))
    described = Descriptions(
        [f"w0!{i}" for i in range(JOBS)], descriptions, {"w0": {"p": {"type": "delay", "delay": 5}}}
    )
    return workload, described


class Fcfs:
    """A component that starts jobs in their order on the lowest free hosts."""

    def __init__(self) -> None:
        self.free, self.held, self.queue = list(range(HOSTS)), dict[str, list[int]](), list[tuple[str, int]]()

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                self.queue.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self.free = sorted(self.free + self.held.pop(data["job_id"], []))
        events = []
        while self.queue and self.queue[0][1] <= len(self.free):
            job, size = self.queue.pop(0)
            self.held[job], self.free = self.free[:size], self.free[size:]
            alloc = " ".join(map(str, self.held[job]))
            events.append({"timestamp": message["now"], "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": alloc}})
        return {"now": message["now"], "events": events}


def mutated(message: dict[str, Any], rng: random.Random, extra: list[tuple[str, dict[str, Any]]]) -> bytes:
    """Change values, types, order, times, ids or bytes of a message, or say something twice or in addition."""
    events, kind = message["events"], rng.randrange(7)
    if kind == 0:
        return damaged(json.dumps(message).encode(), rng)
    if kind == 1:
        where: Any = message
        while isinstance(where, dict | list) and where:
            key = rng.choice([*where]) if isinstance(where, dict) else rng.randrange(len(where))
            if not isinstance(where[key], dict | list) or rng.random() < 0.2:
                where[key] = rng.choice(ODD)
                break
            where = where[key]
    elif kind == 2 and events:
        events.append(json.loads(json.dumps(rng.choice(events))))
    elif kind == 3:
        rng.shuffle(events)
        message["now"] += rng.choice([0.5, 7.25, 1e9, 1e-7, -1.0])
    elif kind == 4 and events:
        rng.choice(events)["timestamp"] += rng.choice([1e-7, -1e-7, -1, 0.25, 40.0])
    elif kind == 5 and events:
        del events[rng.randrange(len(events))]
    else:
        name, data = rng.choice(extra)
        at = rng.choice([message["now"]] * 4 + [message["now"] + 2.5])
        message["now"] = max(message["now"], at)
        events.insert(
            rng.randrange(len(events) + 1), {"timestamp": at, "type": name, "data": json.loads(json.dumps(data))}
        )
    return json.dumps(message).encode()


def damaged(raw: bytes, rng: random.Random) -> bytes:
    parts = bytearray(raw)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(parts))
        parts[at : at + rng.choice((0, 1, 1, 6))] = rng.choice((b"", b'"', b"}", b"9", b"-", b"\xff", b"null", b"1e"))
    return bytes(parts)


def check(done: Replayed) -> None:
    """Check that no job started twice, and that no two jobs had one host at once."""
    started = np.flatnonzero(~done.rejected)
    hosts: list[tuple[int, float, float]] = []
    for row in started.tolist():
        pieces = done.pieces[done.piece0[row] :][: done.piece_count[row]]
        places = [host for first, last in pieces[["first", "last"]].tolist() for host in range(first, last + 1)]
        assert len(places) == done.workload.size[row]
        hosts += [(host, done.start_time[row], done.finish_time[row]) for host in places]
    hosts.sort()
    for (first_host, _, end), (second_host, begin, _) in pairwise(hosts):
        assert first_host != second_host or begin >= end


@pytest.mark.parametrize("powered", [False, True])
def test_replies_of_a_component(powered: bool, record_property: Callable[[str, str], None]) -> None:
    rng, (workload, described), ends = random.Random(19), jobs(), {"valid": 0, "refused": 0}
    for _ in range(RUNS):
        component, at, reply_count = Fcfs(), rng.randrange(9), 0

        def ask(raw: bytes, component: Fcfs = component, at: int = at) -> bytes:
            nonlocal reply_count
            reply_count += 1
            assert reply_count < 30_000
            reply = component.answer(json.loads(raw))
            return mutated(reply, rng, EXTRA) if reply_count == at + 1 else json.dumps(reply).encode()

        world = WORLD if powered else ComponentWorld(WORLD.about, registers=True)
        policy = DecisionComponent("it", ask, world, described)
        try:
            replayed = replay(workload, HOSTS, policy, powers=TAURUS_POWERS)
            policy.end()
            check(replayed)
            ends["valid"] += 1
        except (PolicyError, ConfigError) as error:
            assert str(error) and "Traceback" not in str(error) and error.__cause__ is None
            ends["refused"] += 1
    assert min(ends.values()) > RUNS / 10
    record_property("measured", f"{RUNS} mutated replies: {ends['valid']} valid, {ends['refused']} refused")


def test_messages_of_batsim() -> None:
    workload, described = jobs()
    messages = list[bytes]()
    real = PolicyComponent(uncompiled(Easy(), 0), "easy")

    def ask(raw: bytes) -> bytes:
        messages.append(raw)
        return real.answer(raw)[0]

    policy = DecisionComponent("it", ask, ComponentWorld(WORLD.about), described)
    replay(workload, HOSTS, policy)
    policy.end()
    rng, refused = random.Random(20), 0
    extra = [(event["type"], event["data"]) for raw in messages for event in json.loads(raw)["events"]]
    for _ in range(RUNS):
        component, at, started = (
            PolicyComponent(uncompiled(Easy(), 0), "easy"),
            rng.randrange(len(messages)),
            set[str](),
        )
        try:
            for i, raw in enumerate(messages):
                text, _ = component.answer(mutated(json.loads(raw), rng, extra) if i == at else raw)
                for event in json.loads(text)["events"]:
                    if event["type"] == "EXECUTE_JOB":
                        assert event["data"]["job_id"] not in started
                        started.add(event["data"]["job_id"])
        except (ConfigError, PolicyError) as error:
            assert str(error)
            refused += 1
    assert RUNS / 10 < refused < RUNS
