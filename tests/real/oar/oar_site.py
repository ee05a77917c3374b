"""The shim of a site, and the adapter as a user of these tests runs it."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from oar_cluster import SCHEDULERS, USERS, OarCluster

import pilotfish
from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.oar.placement_file import PlacementFile
from pilotfish.adapters.oar.records.world import OarState, Reader
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType

SHIM = Path(pilotfish.__path__[0]) / "adapters" / "oar" / "shim"
QUEUE, PROGRAM = "pilotfish", "pilotfish_test_sched"
STOCK = "oar_sched_gantt_with_timesharing_and_fairsharing_and_quotas"
KIND = NodeType("t", 2, 4 * 2.0**30, 1e10)


def cluster(oar: OarCluster) -> Cluster:
    """Its nodes."""
    return Cluster("pilot", tuple(Node(name, KIND) for name in oar.nodes))


class Shim:
    """The shim as installed, with its placement file in a folder of `owner`'s."""

    def __init__(self, oar: OarCluster, owner: str) -> None:
        self.oar, self.owner = oar, owner
        self.folder = oar.path / f"placements-{owner}"
        self.file, self.config = self.folder / "placements", Path(f"/etc/oar/{PROGRAM}.conf")

    def install(self, scheduler: str = STOCK, longest_hold_s: int = 900) -> None:
        """Install it, and register a queue with it."""
        self.folder.mkdir(exist_ok=True)
        shutil.chown(self.folder, self.owner)
        self.folder.chmod(0o755)
        self.file.unlink(missing_ok=True)
        shutil.copy(SHIM / "PilotfishShim.pm", SCHEDULERS)
        shutil.copy(SHIM / "pilotfish_sched", SCHEDULERS / PROGRAM)
        (SCHEDULERS / PROGRAM).chmod(0o755)
        values = {"scheduler": scheduler, "file": self.file, "owner": self.owner, "longest_hold_s": longest_hold_s}
        self.config.write_text("".join(f"{word} {value}\n" for word, value in values.items()))
        if QUEUE not in self.oar.sql("select queue_name from queues").split():
            self.oar.add_queue(QUEUE, PROGRAM)

    def remove(self) -> None:
        """Remove the queue first, and the files last."""
        if self.oar.pid("postgres"):
            self.oar.run("oarnotify", "--remove-queue", QUEUE, check=False)
        for file in (self.config, SCHEDULERS / PROGRAM, SCHEDULERS / "PilotfishShim.pm"):
            file.unlink(missing_ok=True)


class Since:
    """OAR as a reader shows it, without the jobs of earlier tests: those before `first`."""

    def __init__(self, reader: Reader, first: int) -> None:
        self._reader, self.first = reader, first

    def world(self) -> OarState:
        """Return all that is new."""
        return self._new(self._reader.world())

    def find(self, ids: Collection[int] = (), names: Mapping[str, str] = {}) -> OarState:
        """Return what is new of these jobs."""
        return self._new(self._reader.find(ids, names))

    def _new(self, world: OarState) -> OarState:
        return replace(world, jobs=tuple(job for job in world.jobs if job.id >= self.first))


class Losing(PlacementFile):
    """A placement file; `lose` loses the answer to the next change."""

    lose = False

    def place(self, job: int, nodes: tuple[str, ...], for_s: float, alive_s: float) -> None:
        """Place a job, or lose the answer to that."""
        super().place(job, nodes, for_s, alive_s)
        if self.lose:
            self.lose = False
            raise AdapterError("no answer in time", transient=True, kind="timeout")


def as_user(user: str = USERS[0]) -> Iterable[str]:
    """Words that run a command as a user."""
    return OarCluster._as(user)
