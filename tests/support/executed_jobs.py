"""Jobs that a decision component executes as a test says, each when it is submitted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pilotfish.adapters.batsim.replay_under_component import replay_under_component
from pilotfish.formats.batsim.runs import MappedLater
from pilotfish.formats.replays.machines import read_machine
from pilotfish.formats.replays.workloads import read_workload
from pilotfish.formats.simgrid.network import SimGridWiring
from pilotfish.simulate.model.machine import machine_of, speeds_of, storages_of
from pilotfish.simulate.world.replay_result import Replayed

Data = dict[str, Any]


@dataclass
class Executor:
    """A component that executes each job at once.

    Args:
        how: data of EXECUTE_JOB, by the id of the job.
        also: further decisions by time, seconds: type and data.
    """

    how: Mapping[str, Data]
    also: Sequence[tuple[float, str, Data]] = ()
    events: list[Data] = field(default_factory=list)

    def __call__(self, raw: bytes) -> bytes:
        """Answer a message."""
        message = json.loads(raw)
        now, said = message["now"], list[Data]()
        for event in message["events"]:
            self.events.append(event)
            if event["type"] == "SIMULATION_BEGINS":
                said += [
                    {"timestamp": now, "type": "CALL_ME_LATER", "data": {"timestamp": time}} for time, _, _ in self.also
                ]
            if event["type"] == "REQUESTED_CALL":
                said += [
                    {"timestamp": now, "type": kind, "data": data} for time, kind, data in self.also if time == now
                ]
            if event["type"] == "JOB_SUBMITTED":
                job = event["data"]["job_id"]
                data = {"job_id": job, "alloc": f"0-{event['data']['job']['res'] - 1}", **self.how.get(job, {})}
                said.append({"timestamp": now, "type": "EXECUTE_JOB", "data": data})
        return json.dumps({"now": now, "events": said}).encode()


def executed(
    folder: Path, platform: str, profiles: Mapping[str, Data], jobs: Sequence[Data], component: Executor, **how: Any
) -> tuple[Replayed, SimGridWiring]:
    """Return the replay of jobs under a component, and the network of the platform.

    Args:
        folder: for the files.
        platform: the content of the platform's file.
        profiles: of the workload.
        jobs: of the workload.
        component: what decides.
        how: see `replay_under_component`.
    """
    (folder / "platform.xml").write_text(platform)
    (folder / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    cluster = read_machine(folder / "platform.xml")
    assert isinstance(cluster.wiring, SimGridWiring)
    storages = MappedLater(found) if (found := storages_of(cluster)) else found
    workload = read_workload(folder / "w.json", speeds=speeds_of(cluster), storages=storages)
    machine = machine_of(cluster, whole_nodes=True)
    done, _ = replay_under_component(component, "x", workload, machine, [folder / "w.json"], **how)
    return done, cluster.wiring
