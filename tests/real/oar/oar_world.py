"""The world of the contract tests, and of others: the adapter next to a real OAR, and its users."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adapter_contract import Mind
from oar_cluster import PATIENCE_S, USERS, OarCluster
from oar_site import QUEUE, Losing, Shim, Since, as_user, cluster

from pilotfish.adapters.oar.adapter import OarAdapter
from pilotfish.adapters.oar.commands import OarCommands
from pilotfish.adapters.oar.job_views import OarSelection
from pilotfish.adapters.oar.records.oarstat import Oarstat
from pilotfish.adapters.oar.records.world import Database
from pilotfish.simulate.model.job import Job
from tests.support.local_world import sh


class OarWorld:
    """See World in adapter_contract."""

    def __init__(self, path: Path, oar: OarCluster, shim: Shim | None) -> None:
        self.path, self.oar, self.shim, self.hold_s = path, oar, shim, 600
        self.notes = oar.shared() / path.name
        self.notes.mkdir()
        shutil.chown(self.notes, USERS[0])
        self.notes.chmod(0o1777)
        self.commands = OarCommands(PATIENCE_S, tuple(as_user()), self.notes)
        database = Database(self.commands.psql, oar.connection, oar.password_file, PATIENCE_S)
        first = 1 + int(oar.sql("select coalesce(max(job_id), 0) from jobs"))
        self.reader = Since(database if shim else Oarstat(self.commands), first)
        if shim is not None:
            shim.file.unlink(missing_ok=True)
        self.adapter = self._make()

    def _make(self) -> OarAdapter:
        keep, ours = [f"queue {QUEUE}"], OarSelection(frozenset({QUEUE}))
        file = Losing(self.shim.file, keep, self.hold_s) if self.shim else None
        host = ("127.0.0.1", self.oar.server)
        options = ["-q", QUEUE] if self.shim else []
        return OarAdapter(
            cluster(self.oar), self.reader, self.commands, ours if self.shim else OarSelection(), file,
            server=host, submit_options=options, output_dir=self.notes, user=USERS[0],
        )  # fmt: skip

    def job(self, id: str, seconds: float, exit_code: int = 0, walltime: float | None = None) -> Job:
        return sh(id, self._line(id, seconds, exit_code), walltime=walltime)

    def _line(self, id: str, seconds: float, exit_code: int = 0) -> str:
        return f"date +%s.%N >> {shlex.quote(str(self.notes / id))}.runs; sleep {seconds}; exit {exit_code}"

    def step(self) -> None:
        time.sleep(0.5 if self.shim else 1.0)  # oarstat takes longer than the database

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
        number = self.oar.submit(self._line(id, seconds), "-q", QUEUE, "-l", "/core=1,walltime=0:10:00")
        self.adapter.settle(PATIENCE_S)
        return f"oar/{number}"

    def user(self, key: str, does: Mind) -> None:
        self.oar.run({Mind.CANCEL: "oardel", Mind.HOLD: "oarhold"}[does], key.partition("/")[2], user=USERS[0])
        if does is Mind.CANCEL:
            self.oar.until(lambda: self.oar.jobs()[int(key.partition("/")[2])][0] == "Error", "the job to end")

    def drain(self, node: str, *, drained: bool = True) -> None:
        self.oar.run("oarnodesetting", "-h", node, "-s", "Absent" if drained else "Alive")

    @contextmanager
    def away(self) -> Iterator[None]:
        nowhere = OarCommands(15.0)  # of its own, because it is soon asked no more
        self.adapter.reader = Database(nowhere.psql, "host=127.0.0.1 port=9 dbname=oar", None, 2.0)
        yield
        self.adapter.reader = self.reader

    def lose(self) -> None:
        assert isinstance(self.adapter.placements, Losing)
        self.adapter.placements.lose = True
