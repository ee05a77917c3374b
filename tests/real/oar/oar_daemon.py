"""`pilotfish daemon` in a process of its own, next to the real OAR, and the work that it is given."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from oar_cluster import OarCluster
from oar_site import QUEUE, Shim
from real_world import PATIENCE_S, Served


class OarDaemon(Served):
    """The daemon, run as the owner of the shim's file, in a folder named after `name`; `options` go to the adapter."""

    manager = "oar"

    def __init__(self, name: str, oar: OarCluster, shim: Shim, *, dry: bool = False, **options: Any) -> None:
        folder = Path(tempfile.mkdtemp(prefix=f"daemon-{name}-", dir=oar.path))  # one more each time a test is tried
        folder.chmod(0o755)
        kind = {"cores": oar.cores, "memory": "4GiB", "memory_bandwidth": "10GB/s"}
        cluster = {
            "schema": "pilotfish/cluster/v1", "name": "pilot", "node_types": {"t": kind},
            "nodes": [{"names": ",".join(oar.nodes), "type": "t"}],
        }  # fmt: skip
        settings = {
            "database": oar.connection, "password_file": str(folder / "pgpass"), "placement_file": str(shim.file),
            "queues": [QUEUE], "server": f"127.0.0.1:{oar.server}", **options,
        }  # fmt: skip
        config = {
            "schema": "pilotfish/daemon/v1", "cluster": "cluster.yaml", "state_dir": "state", "cycle_seconds": 0.5,
            "without_gain": "place", "access": {"root": True, "submit": True}, "mode": "shadow" if dry else "live",
            "profiles": str(folder / "profiles.sqlite"), "socket": {"path": str(folder / "s")},
            "metrics": {"port": 0}, "adapter": {"name": "oar", "options": settings},
        }  # fmt: skip
        (folder / "cluster.yaml").write_text(yaml.safe_dump(cluster))
        (folder / "pilotfish.yaml").write_text(yaml.safe_dump(config))
        (folder / "pgpass").write_text(oar.password_file.read_text())
        (folder / "pgpass").chmod(0o600)
        super().__init__(folder, shim.owner)


@dataclass
class Work:
    """Jobs of one test. That a job ran, and how often, is told by the job itself."""

    oar: OarCluster
    trail: Path
    jobs: list[int] = field(default_factory=list)

    def add(self, seconds: float, *options: str, user: str, queue: str = QUEUE, many: int = 1) -> int:
        """Submit a job that leaves a trail, or an array of `many`, by one `oarsub`; return the first id."""
        line = f'echo "$OAR_JOB_ID $(date +%s.%N)" >> {self.trail}; sleep {seconds}'
        array = ("--array", str(many)) if many > 1 else ()
        first = self.oar.submit(line, "-q", queue, *options, *array, user=user)
        self.jobs += range(first, first + many)
        return first

    def runs(self) -> dict[int, list[float]]:
        """When each job ran, epoch seconds."""
        found: dict[int, list[float]] = {job: [] for job in self.jobs}
        for line in self.trail.read_text().splitlines() if self.trail.exists() else ():
            job, began = line.split()
            found.setdefault(int(job), []).append(float(began))
        return found

    def wait(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until every job has ended."""
        deadline = time.monotonic() + patience_s
        while alive := self._alive():
            assert time.monotonic() < deadline, f"waited in vain for {alive}"
            time.sleep(0.5)

    def _alive(self) -> list[int]:
        states = self.oar.jobs()
        return [job for job in self.jobs if states[job][0] not in ("Terminated", "Error")]

    def each_ran_once(self) -> None:
        """Assert that every job ran once, and nothing else did."""
        assert {job: len(runs) for job, runs in self.runs().items()} == dict.fromkeys(self.jobs, 1)


def work(oar: OarCluster, name: str) -> Work:
    """Work with an empty trail that every user may write."""
    trail = oar.shared() / name
    trail.write_text("")
    trail.chmod(0o666)
    return Work(oar, trail)
