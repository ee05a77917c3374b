"""The Slurm adapter keeps the contract of all adapters, against a real Slurm."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from adapter_contract import AdapterContract, Mind
from slurm_cluster import SlurmCluster

from pilotfish.adapters.base import AdapterError, Load
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.handed_over.resize_watch import RESIZED
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.adapters.slurm.transport.runner import CommandRunner
from pilotfish.adapters.slurm.transport.scontrol import Allocation
from pilotfish.adapters.slurm.user_client import own_jobs
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job
from pilotfish.simulate.model.plan import Place
from tests.support.local_world import sh

pytestmark = pytest.mark.xdist_group("slurm 3")
KIND = NodeType("t", 4, 4 * 2.0**30, 1e10)
CLUSTER = Cluster("pilot", tuple(Node(f"n{number}", KIND) for number in range(1, 5)))


class Since(CommandTransport):
    """Slurm without the jobs of earlier tests, which it remembers; `lose` loses the answer to the next change."""

    first, lose = 0, False

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        super().update(job, fields)
        self._lost()

    def submit(self, argv: Sequence[str]) -> None:
        super().submit(argv)
        self._lost()

    def _lost(self) -> None:
        if self.lose:
            self.lose = False
            raise AdapterError("no answer in time", transient=True, kind="timeout")

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        return [job for job in super().jobs(ids) if job.id >= self.first]


class SlurmWorld:
    """See World in adapter_contract."""

    def __init__(self, path: Path, slurm: SlurmCluster) -> None:
        self.path, self.slurm, self.transport = path, slurm, Since(CommandRunner())
        self.notes = slurm.shared() / path.name
        self.notes.mkdir()
        self.notes.chmod(0o1777)
        self.transport.first = max((job.id + 1 for job in self.transport.jobs()), default=0)
        self.adapter = self._make()

    def _make(self) -> SlurmAdapter:
        adapter = SlurmAdapter(CLUSTER, self.transport, SlurmSelection.of(), output_dir=self.path)
        adapter.keep_state(self.path / "state", read_only=False)
        return adapter

    def job(self, id: str, seconds: float, exit_code: int = 0, walltime: float | None = None) -> Job:
        return sh(id, self._line(id, seconds, exit_code), walltime=walltime)

    def _line(self, id: str, seconds: float, exit_code: int = 0) -> str:
        return f"echo ran >> {shlex.quote(str(self.notes / id))}.runs; sleep {seconds}; exit {exit_code}"

    def step(self) -> None:
        time.sleep(0.35)  # a limit of a minute is enforced within half a minute more

    def restart(self) -> None:
        self.adapter.close()
        self.adapter = self._make()

    def runs(self, id: str) -> int:
        path = self.notes / f"{id}.runs"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def hand_over(self, id: str, seconds: float, hold_s: int) -> str:
        held = (f"--begin=now+{hold_s}", f"--comment=pilotfish:hold={hold_s}") if hold_s else ("--comment=pilotfish",)
        return f"slurm/{self.slurm.submit(self._line(id, seconds), '--requeue', *held)}"

    def user(self, key: str, does: Mind) -> None:
        number = key.partition("/")[2]
        update = ("scontrol", "update", f"JobId={number}")
        argv = {
            Mind.CANCEL: ("scancel", number),
            Mind.HOLD: ("scontrol", "hold", number),
            Mind.BEGIN_LATER: (*update, "StartTime=now+900"),
            Mind.TAKE_BACK: (*update, "Comment=mine"),
            Mind.REQUEUE: ("scontrol", "requeue", number),
        }
        self.slurm.run(*argv[does], user="games")

    def drain(self, node: str, *, drained: bool = True) -> None:
        state = ("State=DRAIN", "Reason=test") if drained else ("State=RESUME",)
        self.slurm.run("scontrol", "update", f"NodeName={node}", *state)

    @contextmanager
    def away(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SLURM_CONF", "/nowhere/slurm.conf")
            self.adapter.transport = Since(CommandRunner(1.0))
            yield
        self.adapter.transport = self.transport

    def lose(self) -> None:
        self.transport.lose = True


class Late(Since):
    """A Slurm in which a job that is being placed begins on three nodes before the node list reaches slurmctld."""

    def __init__(self, slurm: SlurmCluster) -> None:
        super().__init__(CommandRunner())
        self.slurm = slurm

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        if "ReqNodeList" in fields:
            cores = {"n1": 2, "n2": 2, "n3": 2, "n4": 4}
            taken = [self.slurm.submit("sleep 60", f"-c{many}", f"-w{node}") for node, many in cores.items()]
            self.slurm.until(lambda: {self.slurm.jobs()[other][0] for other in taken} == {"RUNNING"}, "the others")
            self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now", user="games")
            self.slurm.until(lambda: self.slurm.jobs()[job][0] == "RUNNING", "the job to begin")
        super().update(job, fields)


def test_a_job_that_was_resized_all_the_same_is_reported(slurm: SlurmCluster, caplog: pytest.LogCaptureFixture) -> None:
    """One that nothing holds back is not changed: only a begin time that is moved in this very moment leads here."""
    transport = Late(slurm)
    adapter = SlurmAdapter(CLUSTER, transport, SlurmSelection(), load=Load)
    job = slurm.submit("sleep 60", "--ntasks=6", "--begin=now+600", "--comment=pilotfish:hold=600")
    transport.first = job
    for _ in range(8):  # what changes rarely is read one thing at a time
        adapter.snapshot()
    (view,) = adapter.snapshot().jobs
    assert own_jobs(15.0).allocation(job) == Allocation(False, {})
    adapter.apply(Place(view.key, view.job, ("n1", "n2")))
    for _ in range(2):
        shown = {view.key: view for view in adapter.snapshot().jobs}[view.key]
    has = own_jobs(15.0).allocation(job)
    assert (shown.nodes, shown.reason, has.resized) == (("n1", "n2"), RESIZED, True)
    assert has.cores == {"n1": (2, 3), "n2": (2, 3)}  # the first two are taken
    assert [record.levelname for record in caplog.records if "which resized it to" in record.getMessage()] == ["ERROR"]
    load = adapter.load()
    assert load is not None and load.requests["update", "resized"] == 1


class TestSlurmContract(AdapterContract):
    """With real jobs of Slurm's."""

    @pytest.fixture
    def world(self, slurm: SlurmCluster, tmp_path: Path) -> SlurmWorld:
        return SlurmWorld(tmp_path, slurm)
