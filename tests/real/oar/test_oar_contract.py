"""The OAR adapter keeps the contract of all adapters, against a real OAR: with the shim, and as an ordinary user."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from adapter_contract import AdapterContract, Mind, ended, view
from oar_cluster import USERS, OarCluster
from oar_site import QUEUE, Losing, Shim, Since, as_user, cluster

from pilotfish.adapters.oar.adapter import OarAdapter
from pilotfish.adapters.oar.commands import Commands
from pilotfish.adapters.oar.job_views import Selection, state_of
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.model.plan import Place, Submit
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.xdist_group("oar")


class OarWorld:
    """See World in adapter_contract."""

    def __init__(self, path: Path, oar: OarCluster, shim: Shim | None) -> None:
        self.path, self.oar, self.shim, self.hold_s = path, oar, shim, 600
        self.notes = oar.shared() / path.name
        self.notes.mkdir()
        shutil.chown(self.notes, USERS[0])
        self.notes.chmod(0o1777)
        self.commands = Commands(15.0, tuple(as_user()), self.notes)
        self.reader = Since(self.commands.psql, oar.connection, oar.password_file, 15.0)
        self.reader.first = 1 + int(oar.sql("select coalesce(max(job_id), 0) from jobs"))
        if shim is not None:
            shim.file.unlink(missing_ok=True)
        self.adapter = self._make()

    def _make(self) -> OarAdapter:
        keep, ours = [f"queue {QUEUE}"], Selection(frozenset({QUEUE}))
        file = Losing(self.shim.file, keep, self.hold_s) if self.shim else None
        host = ("127.0.0.1", self.oar.server)
        options = ["-q", QUEUE] if self.shim else []
        return OarAdapter(
            cluster(self.oar), self.reader, self.commands, ours if self.shim else Selection(), file,
            server=host, submit_options=options, output_dir=self.notes, user=USERS[0],
        )  # fmt: skip

    def job(self, id: str, seconds: float, exit_code: int = 0, walltime: float | None = None) -> Job:
        return Job(
            id, DEFAULT_PROFILE, command=("/bin/sh", "-c", self._line(id, seconds, exit_code)), walltime=walltime
        )

    def _line(self, id: str, seconds: float, exit_code: int = 0) -> str:
        return f"date +%s.%N >> {shlex.quote(str(self.notes / id))}.runs; sleep {seconds}; exit {exit_code}"

    def step(self) -> None:
        time.sleep(0.35)

    def restart(self) -> None:
        self.adapter.close()
        self.adapter = self._make()

    def runs(self, id: str) -> int:
        path = self.notes / f"{id}.runs"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def hand_over(self, id: str, seconds: float, hold_s: int) -> str:
        self.hold_s = hold_s  # the site's choice, not the user's
        self.restart()
        self.adapter.keep_holding(self.adapter.snapshot().time + 20)
        return f"oar/{self.oar.submit(self._line(id, seconds), '-q', QUEUE, '-l', '/core=1,walltime=0:10:00')}"

    def user(self, key: str, does: Mind) -> None:
        commands = {Mind.CANCEL: "oardel", Mind.HOLD: "oarhold"}
        if does not in commands:
            pytest.skip(f"OAR has no command for {does.value}")
        self.oar.run(commands[does], key.partition("/")[2], user=USERS[0])
        if does is Mind.CANCEL:
            self.oar.until(lambda: self.oar.jobs()[int(key.partition("/")[2])][0] == "Error", "the job to end")

    def drain(self, node: str, *, drained: bool = True) -> None:
        self.oar.run("oarnodesetting", "-h", node, "-s", "Absent" if drained else "Alive")

    @contextmanager
    def away(self) -> Iterator[None]:
        self.adapter.reader = Since(self.commands.psql, "host=127.0.0.1 port=9 dbname=oar", None, 2.0)
        yield
        self.adapter.reader = self.reader

    def lose(self) -> None:
        assert isinstance(self.adapter.placements, Losing)
        self.adapter.placements.lose = True


class TestOarContract(AdapterContract):
    """With the shim."""

    def test_start_time_is_when_the_process_began(self, world: OarWorld, placing: tuple[str, ...]) -> None:
        world.adapter.apply(Submit("k", world.job("a", 0.2), placing[:1]))
        done = ended(world, "k")
        assert done.start_time == pytest.approx(float((world.notes / "a.runs").read_text()), abs=1.5)

    def test_a_job_that_oar_submits_again_is_still_the_same_job(
        self, world: OarWorld, placing: tuple[str, ...], oar: OarCluster
    ) -> None:
        """Its node does not answer OAR's ping when it is launched there."""
        key = world.hand_over("a", 0.2, 600)
        script = oar.path / "ping"
        script.write_text(f'#!/bin/sh\nfor n in "$@"; do [ "$n" = {placing[1]} ] && echo "$n" >&2; done; exit 0\n')
        script.chmod(0o755)
        oar.ping = str(script)
        oar.configure()
        try:
            world.adapter.apply(Place(key, view(world.adapter.snapshot(), key).job, placing[1:2]))
            done = ended(world, key)
        finally:
            oar.ping = "/bin/true"
            oar.configure()
            oar.run("oarnodesetting", "-h", placing[1], "-s", "Alive")
        chain = [job for job in world.reader.world().jobs if job.first == int(key.partition("/")[2])]
        assert len(chain) == 2 and {state for state, _ in map(state_of, chain)} == {JobState.UNKNOWN, done.state}
        assert (done.state, world.runs("a")) == (JobState.COMPLETED, 1)
        assert done.nodes and done.nodes[0] != placing[1]
        recalled = world.adapter.recall({key: 0.0})
        assert recalled[key].state is JobState.COMPLETED

    @pytest.fixture
    def world(self, oar: OarCluster, shim: Shim, tmp_path: Path) -> OarWorld:
        return OarWorld(tmp_path, oar, shim)


class TestOarUsersContract(AdapterContract):
    """As an ordinary user: no shim, and no job is handed over."""

    @pytest.fixture
    def world(self, oar: OarCluster, tmp_path: Path) -> OarWorld:
        return OarWorld(tmp_path, oar, None)
