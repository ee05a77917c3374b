"""A decision component that asks for the consumed energy gets what the result has at that time."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from pilotfish.adapters.batsim.replay_under_component import replay_under_component
from pilotfish.cli.inputs import read_machine
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.simulate.model.machine import machine_of, speeds_of, storages_of
from pilotfish.simulate.replay.energy import consumed, track
from pilotfish.simulate.replay.replay_case import ReplayOptions

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="all" routing="Full">
<cluster id="c" prefix="n" radical="0-3" suffix="" speed="1Gf" bw="1MBps" lat="0us" router_id="r">
<prop id="wattage_per_state" value="10:60:100"/></cluster></zone></platform>
"""
PROFILES: dict[str, dict[str, Any]] = {
    "wait": {"type": "delay", "delay": 7},
    "compute": {"type": "parallel_homogeneous", "cpu": 3e9, "com": 0},
    "send": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 2e6},
    "both": {"type": "composed", "seq": ["wait", "send", "compute"], "repeat": 2},
}


class Asks:
    """First come, first served on the first free hosts; asks for the energy in each reply."""

    def __init__(self) -> None:
        self.free, self.held, self.queue = list(range(4)), dict[str, list[int]](), deque[tuple[str, int]]()
        self.answers = list[tuple[float, float]]()

    def __call__(self, raw: bytes) -> bytes:
        message = json.loads(raw)
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                self.queue.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self.free = sorted(self.free + self.held.pop(data["job_id"]))
            elif event["type"] == "ANSWER":
                self.answers.append((event["timestamp"], data["consumed_energy"]))
        now, events = message["now"], list[dict[str, Any]]()
        while self.queue and self.queue[0][1] <= len(self.free):
            job, size = self.queue.popleft()
            self.held[job], self.free = self.free[:size], self.free[size:]
            alloc = " ".join(map(str, self.held[job]))
            events.append({"timestamp": now, "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": alloc}})
        if message["events"] and message["events"][0]["type"] not in ("SIMULATION_ENDS", "ANSWER"):
            events.append({"timestamp": now, "type": "QUERY", "data": {"requests": {"consumed_energy": {}}}})
        return json.dumps({"now": now, "events": events}).encode()


@pytest.mark.parametrize(
    "kinds", [["wait"], ["compute", "wait"], ["send"], ["both", "compute", "send", "wait", "both"]]
)
def test_the_answers_are_the_energy_of_the_result(tmp_path: Path, kinds: list[str]) -> None:
    jobs = [{"id": str(i), "subtime": 2.0 * i, "res": 1 + i % 3, "profile": kind, "walltime": 1000}
            for i, kind in enumerate(kinds)]  # fmt: skip
    workload, platform = tmp_path / "w.json", tmp_path / "p.xml"
    workload.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": PROFILES}))
    platform.write_text(PLATFORM)
    cluster = read_machine(platform)
    machine, asks = machine_of(cluster), Asks()
    read = read_workload(workload, speeds=speeds_of(cluster), storages=storages_of(cluster))
    replayed, _ = replay_under_component(asks, "asks", read, machine, [workload], options=ReplayOptions(log_power=True))
    assert machine.powers is not None and len(asks.answers) > len(kinds)
    energy = track(replayed, machine.powers)
    rows = dict(zip(energy.time.tolist(), energy.joules.tolist(), strict=True))
    for time, joules in asks.answers:
        expected = [value for row, value in rows.items() if abs(row - time) < 1e-6]
        assert not expected or joules == pytest.approx(expected[0], rel=1e-6, abs=1e-4)
    assert asks.answers[-1][1] == pytest.approx(consumed(replayed, machine.powers), rel=1e-6)
