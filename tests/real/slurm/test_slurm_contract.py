"""The Slurm adapter keeps the contract of all adapters, against a real Slurm."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from adapter_contract import AdapterContract
from slurm_cluster import SlurmCluster

from pilotfish.adapters.slurm import create
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.adapters.slurm.transport.runner import CommandRunner
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job

pytestmark = pytest.mark.xdist_group("slurm 2")
KIND = NodeType("t", 4, 4 * 2.0**30, 1e10)
CLUSTER = Cluster("pilot", tuple(Node(f"n{number}", KIND) for number in range(1, 5)))


class Since(CommandTransport):
    """Slurm without the jobs of earlier tests, which it remembers."""

    first = 0

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        return [job for job in super().jobs(ids) if job.id >= self.first]


class SlurmWorld:
    """See World in adapter_contract."""

    def __init__(self, path: Path) -> None:
        self.path, self.transport = path, Since(CommandRunner())
        self.transport.first = max((job.id + 1 for job in self.transport.jobs()), default=0)
        self.adapter = self._make()

    def _make(self) -> SlurmAdapter:
        adapter = create(CLUSTER, output_dir=self.path)
        adapter.transport = self.transport
        return adapter

    def job(self, id: str, seconds: float, exit_code: int = 0, walltime: float | None = None) -> Job:
        note = shlex.quote(str(self.path / f"{id}.runs"))
        line = f"echo ran >> {note}; sleep {seconds}; exit {exit_code}"
        return Job(id, DEFAULT_PROFILE, command=("/bin/sh", "-c", line), walltime=walltime)

    def step(self) -> None:
        time.sleep(0.35)  # a limit of a minute is enforced within half a minute more

    def restart(self) -> None:
        self.adapter.close()
        self.adapter = self._make()

    def runs(self, id: str) -> int:
        path = self.path / f"{id}.runs"
        return len(path.read_text().splitlines()) if path.exists() else 0


class TestSlurmContract(AdapterContract):
    """With real jobs of Slurm's."""

    @pytest.fixture
    def world(self, slurm: SlurmCluster, tmp_path: Path) -> SlurmWorld:
        return SlurmWorld(tmp_path)
