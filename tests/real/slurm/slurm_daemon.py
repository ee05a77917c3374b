"""`pilotfish daemon` in a process of its own, beside the real Slurm."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import yaml
from real_world import COMMAND, PATIENCE_S, eventually

from pilotfish.daemon import wire


class SlurmDaemon:
    """The daemon, its files in `folder`; `options` go to the adapter."""

    def __init__(self, folder: Path, nodes: int, cpus: int, **options: Any) -> None:
        self.folder, self.socket, self.log, self.out = folder, folder / "s", folder / "log", folder / "out"
        kind = {"cores": cpus, "memory": "4GiB", "memory_bandwidth": "10GB/s"}
        cluster = {
            "schema": "pilotfish/cluster/v1", "name": "pilot", "node_types": {"t": kind},
            "nodes": [{"names": f"n[1-{nodes}]", "type": "t"}],
        }  # fmt: skip
        config = {
            "schema": "pilotfish/daemon/v1", "cluster": "cluster.yaml", "state_dir": "state", "cycle_seconds": 0.5,
            "profiles": str(folder / "profiles.sqlite"), "socket": {"path": str(self.socket)},
            "metrics": {"enabled": False}, "adapter": {"name": "slurm", "options": options},
        }  # fmt: skip
        self.config = folder / "pilotfish.yaml"
        (folder / "cluster.yaml").write_text(yaml.safe_dump(cluster))
        self.config.write_text(yaml.safe_dump(config))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start it, and wait until it answers."""
        self.spawn(*options)
        eventually(self.status, "an answer of the daemon")

    def spawn(self, *options: str) -> None:
        """Start it."""
        with self.log.open("a") as log, self.out.open("a") as out:
            argv = [*COMMAND, "daemon", "--config", str(self.config), *options]
            self.process = subprocess.Popen(argv, stdout=out, stderr=log)

    def status(self) -> dict[str, Any] | None:
        """What it says; None where nobody answers yet."""
        assert self.process is not None and self.process.poll() is None, self.log.read_text()
        try:
            return wire.ask(f"ipc://{self.socket}", "status")
        except wire.WireError:
            return None

    def story(self, job: int) -> dict[str, Any]:
        """What became of a job."""
        return dict(wire.ask(f"ipc://{self.socket}", "explain", job=f"slurm/{job}"))

    def stop(self, number: signal.Signals) -> int:
        """Send it a signal, and wait until it is gone; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self.process = None
        return code

    def close(self) -> None:
        """End it if it runs."""
        if self.process is not None:
            self.stop(signal.SIGKILL)
