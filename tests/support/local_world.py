"""Real processes for the tests of the local adapter."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from pilotfish.adapters.local import create
from pilotfish.adapters.local.adapter import LocalAdapter
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.model.plan import Cancel, Submit
from pilotfish.simulate.model.snapshot import JobView

CPUS = sorted(os.sched_getaffinity(0))
HALF = NodeType("half", 1, 1e9, 1e10)
PATIENCE_S = 120.0
CLUSTER = Cluster("here", (Node("a", HALF, "host0", (CPUS[0],)), Node("b", HALF, "host0", (CPUS[-1],))))


def sh(id: str, line: str, **options: Any) -> Job:
    """Return a job of one shell line."""
    return Job(id, DEFAULT_PROFILE, command=("/bin/sh", "-c", line), **options)


def python(id: str, code: str, **options: Any) -> Job:
    """Return a job of one Python program."""
    return Job(id, DEFAULT_PROFILE, command=(sys.executable, "-I", "-S", "-c", code), **options)


class LocalWorld:
    """See World in adapter_contract."""

    def __init__(self, path: Path) -> None:
        self.path, self.state = path, path / "state"
        self.adapter = self._make()

    def _make(self, grace_s: float = 0.3) -> LocalAdapter:
        return create(CLUSTER, self.state, grace_s=grace_s)

    def job(self, id: str, seconds: float, exit_code: int = 0, walltime: float | None = None) -> Job:
        note = shlex.quote(str(self.path / f"{id}.runs"))
        return sh(id, f"echo ran >> {note}; sleep {seconds}; exit {exit_code}", walltime=walltime)

    def step(self) -> None:
        self.adapter.wait(0.1)

    def restart(self, **options: float) -> None:
        self.adapter.close()
        self.adapter = self._make(**options)

    def runs(self, id: str) -> int:
        path = self.path / f"{id}.runs"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def start(self, job: Job, *nodes: str, key: str = "") -> str:
        """Submit a job under its id as key, and return the key."""
        self.adapter.apply(Submit(key or job.id, job, nodes or ("a",)))
        return key or job.id

    def look(self, key: str) -> JobView:
        """The job as it is now."""
        (found,) = [job for job in self.adapter.snapshot().jobs if job.key == key]
        return found

    def finish(self, job: Job, *nodes: str) -> JobView:
        """Run a job to its end."""
        key = self.start(job, *nodes)
        return self.wait_for(lambda: (view := self.look(key)).state.ended and view)

    def all_ended(self) -> tuple[JobView, ...]:
        """Every job, once all have ended."""

        def ended() -> tuple[JobView, ...] | None:
            jobs = self.adapter.snapshot().jobs
            return jobs if all(job.state.ended for job in jobs) else None

        found: tuple[JobView, ...] = self.wait_for(ended)
        return found

    def wait_for(self, wanted: Any) -> Any:
        """Step until `wanted()` is true, and return what it was."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if found := wanted():
                return found
            self.step()
            time.sleep(0.005)
        raise AssertionError(f"never came: {self.adapter.snapshot().jobs}")

    def directory(self, key: str) -> Path:
        """Where the job is kept."""
        return self.adapter.output(key)[0].parent

    def begun(self, key: str) -> dict[str, Any]:
        """begin.json, once the job's own program runs."""
        path = self.directory(key) / "begin.json"
        self.wait_for(path.exists)
        found: dict[str, Any] = json.loads(path.read_text())
        self.wait_for(lambda: found["pid"] not in self.keepers())  # as its child is, until it is the job
        return found

    def kill_keeper(self, key: str) -> None:
        """kill -9 the keeper of a job that has begun, and wait until it is gone."""
        keeper = self.begun(key)["keeper_pid"]
        os.kill(keeper, signal.SIGKILL)
        self.wait_for(lambda: gone(keeper))

    def members(self) -> set[int]:
        """Processes of any job of this world."""
        return {pid for pid in self._ours() if pid not in self.keepers()}

    def keepers(self) -> set[int]:
        """Keepers of any job of this world."""
        found = set()
        for pid in self._ours():
            with suppress(OSError):
                if b"local.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.add(pid)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.adapter.close()
        for number in (signal.SIGTERM, signal.SIGKILL):  # keepers obey TERM: they end their job
            for pid in self._ours():
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            deadline = time.monotonic() + 3.0
            while self._ours() and time.monotonic() < deadline:
                time.sleep(0.02)

    def _ours(self) -> list[int]:
        """Processes that carry this world's path in their environment or command line, but for the adapter's own."""
        mark, found = os.fsencode(self.state / "jobs"), []
        adapters = {str(os.getpid()), *Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
        for name in os.listdir("/proc"):
            if name.isdigit() and name not in adapters:
                with suppress(OSError):
                    text = Path(f"/proc/{name}/cmdline").read_bytes() + Path(f"/proc/{name}/environ").read_bytes()
                    if mark in text:
                        found.append(int(name))
        return found


def gone(pid: int) -> bool:
    """Return whether the process has ended (its parent may not have waited for it yet)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


__all__ = ["CLUSTER", "CPUS", "Cancel", "LocalWorld", "gone", "python", "sh"]
