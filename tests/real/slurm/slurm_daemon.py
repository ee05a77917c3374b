"""`pilotfish daemon` in a process of its own, beside the real Slurm."""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path
from typing import Any

import yaml
from real_world import Served

from pilotfish.adapters.slurm.handed_over.marks import Pin, PinRecord
from pilotfish.daemon.socket import ipc


class SlurmDaemon(Served):
    """The daemon, its files in `folder`, run as `user` if one is named; `options` go to the adapter."""

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

    def placed(self, job: int) -> tuple[str, ...]:
        """The nodes to which it pinned a job last; () if it did not."""
        chosen = [each["data"]["nodes"] for each in self.story(job)["story"] if each["kind"] == "chosen"]
        return tuple(chosen[-1]) if chosen else ()

    def story(self, job: int) -> dict[str, Any]:
        """What became of a job."""
        return dict(ipc.ask(str(self.socket), "explain", trusted=lambda uid: True, job=f"slurm/{job}"))

    def metric(self, name: str) -> float:
        """The value of a metric, all its labels in the name, 0 where there is none."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            found = re.search(rf"^{re.escape(name)} (\S+)$", answer.read().decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    @property
    def port(self) -> int:
        """Where it serves metrics: the only port of TCP on which it listens."""
        assert self.process
        inodes = set()
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                inodes.add(os.readlink(link).removeprefix("socket:[").rstrip("]"))
            except OSError:
                continue
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                return int(words[1].split(":")[1], 16)
        raise AssertionError("it serves no metrics")
