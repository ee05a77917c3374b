"""`pilotfish daemon` in a process of its own, beside the real Slurm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from real_world import Served

from pilotfish.adapters.slurm.handed_over.pin_record import Pin, PinRecord


class SlurmDaemon(Served):
    """The daemon, its files in `folder`, run as `user` if one is named; `options` go to the adapter."""

    manager = "slurm"

    def __init__(self, folder: Path, nodes: int, cpus: int, user: str = "", **options: Any) -> None:
        super().__init__(folder, user)
        kind = {"cores": cpus, "memory": "4GiB", "memory_bandwidth": "10GB/s"}
        cluster = {
            "schema": "pilotfish/cluster/v1", "name": "pilot", "node_types": {"t": kind},
            "nodes": [{"names": f"n[1-{nodes}]", "type": "t"}],
        }  # fmt: skip
        config = {
            "schema": "pilotfish/daemon/v1", "cluster": "cluster.yaml", "state_dir": "state", "cycle_seconds": 0.5, "without_gain": "place",
            "access": {"root": True, "submit": True},
            "profiles": str(folder / "profiles.sqlite"), "socket": {"path": str(self.socket)},
            "metrics": {"enabled": False}, "adapter": {"name": "slurm", "options": options},
        }  # fmt: skip
        (folder / "cluster.yaml").write_text(yaml.safe_dump(cluster))
        self.config.write_text(yaml.safe_dump(config))

    def record(self, job: int, uid: int, nodes: tuple[str, ...], time: float) -> None:
        """Record a pin as this daemon does before it sets one."""
        PinRecord(self.config.parent / "state" / "slurm").add(job, Pin(uid, nodes, int(time)))
