"""A site with accounting whose clock runs many times as fast as time: Slurm and its jobs under libfaketime.

Rule: munged and MariaDB keep the true clock. All else shares one clock that begins at BEGIN. Launches, ends and commands
take as long as ever, so that by the fast clock they take longer; the periods of the scheduler are exact.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import guardian
import slurm_site
from slurm_site import SlurmSite

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
BEGIN = "2026-03-02 06:00:00"
CONFIG = """
ClusterName=pilot
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket={path}/munge/munged.sock
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={path}/controller
SlurmdSpoolDir={path}/spool/%n
SlurmctldPidFile={path}/run/slurmctld.pid
SlurmdPidFile={path}/run/slurmd.%n.pid
SlurmctldLogFile={path}/log/slurmctld.log
SlurmdLogFile={path}/log/slurmd.%n.log
SlurmctldDebug=verbose
SlurmdDebug=error
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
PropagateResourceLimits=NONE
ReturnToService=2
SlurmctldTimeout=300
SlurmdTimeout=3600
MessageTimeout=100
InactiveLimit=0
MinJobAge=3600
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database}
AccountingStoragePass={path}/munge/munged.sock
{rules}
{nodes}
PartitionName=main Nodes=ALL Default=YES
{partitions}
"""
NODE = "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} State=UNKNOWN {shape}"


def missing() -> str:
    """Why no such site can be started here, or ""."""
    return slurm_site.missing() or ("" if LIBRARY else "not installed: libfaketime (package faketime)")


class FastSlurm(SlurmSite):
    """A site below `path`.

    Args:
        path: its folder.
        rules: lines of slurm.conf, perhaps with defaults of partitions.
        parts: lines of its partitions; `main` has all nodes.
        shapes: of each node, n1, n2, ...: what its line in slurm.conf has besides its name and address.
        accounts: arguments of sacctmgr, one command each.
        speed: seconds of its clock in a second.
        begin: what its clock shows first, UTC.
        topology: topology.conf; "": none.
    """

    def __init__(
        self, path: Path, rules: str, parts: Sequence[str], shapes: Sequence[str], accounts: Sequence[str], speed: float,
        begin: str = BEGIN, topology: str = "",
    ) -> None:  # fmt: skip
        super().__init__(path, nodes=len(shapes))
        self.rules, self.parts, self.shapes, self.accounts, self.speed = rules, parts, shapes, accounts, speed
        self.begin, self.topology = begin, topology
        self.clock: dict[str, str] = {}

    @property
    def services(self) -> tuple[str, ...]:
        """What runs, in the order in which it is ended."""
        return tuple(name for name in super().services if name not in ("slurmrestd", "powerd"))

    def start_munge(self) -> None:
        """Start munged, with the true clock."""
        with self._true_clock():
            super().start_munge()

    def start_database(self) -> None:
        """Start MariaDB, with the true clock."""
        with self._true_clock():
            super().start_database()

    def start_clock(self) -> None:
        """Start the clock: a process that keeps it in memory that all others share."""
        if self.clock:
            return
        settings = {"FAKETIME": f"@{self.begin} x{self.speed:g}", "NO_FAKE_STAT": "1", "FAKETIME_DONT_RESET": "1"}
        self._spawn("clock", "faketime", "-m", "-f", settings["FAKETIME"], "sleep", "infinity", **settings)
        pid = int((self.path / "run" / "clock.pid").read_text())
        shared = [Path(f"/dev/shm/{name}_{pid}") for name in ("sem.faketime_sem", "faketime_shm")]
        self.until(lambda: all(path.exists() for path in shared), "the clock")
        for path in shared:
            path.chmod(0o666)
        words = f"/faketime_sem_{pid} /faketime_shm_{pid}"
        self.clock = {**settings, "FAKETIME_SHARED": words, "LD_PRELOAD": str(LIBRARY)}

    def now(self) -> float:
        """Return what its clock shows, seconds since the epoch."""
        return float(self.run("date", "+%s.%N"))

    def controller_started(self) -> float:
        """Return when slurmctld started, by its clock, seconds since the epoch."""
        log = (self.path / "log" / "slurmctld.log").read_text()
        return datetime.fromisoformat(log[1 : log.index("]")]).replace(tzinfo=UTC).timestamp()

    def down(self) -> None:
        """End every job and every process of ours, and the clock."""
        super().down()
        with suppress(OSError, ValueError):
            pid = int((self.path / "run" / "clock.pid").read_text())
            os.killpg(pid, signal.SIGKILL)
            for name in ("sem.faketime_sem", "faketime_shm"):
                Path(f"/dev/shm/{name}_{pid}").unlink(missing_ok=True)
        self.clock = {}

    def _up(self) -> None:
        if not self.config.exists():
            self._lay_out()
        with self._true_clock():
            self.start_munge()
            self.start_database()
        self.start_clock()
        self.start_accounting()
        self._add_accounts()
        self.start_controller()
        self._start_nodes()
        self.resume()

    def _start_nodes(self) -> None:
        names = [f"n{number}" for number in range(1, self.nodes + 1) if not self.pid(f"slurmd.n{number}")]
        for name in names:
            (self.path / "spool" / name).mkdir(parents=True, exist_ok=True)
        if names:
            self._start(*guardian.HOLD, "sh", "-c", " && ".join(f"slurmd -N {name}" for name in names))

    def _lay_out(self) -> None:
        super()._lay_out()
        gpus = [
            f"NodeName=n{number} Name=gpu File=/dev/null,/dev/zero"
            for number, shape in enumerate(self.shapes, 1)
            if "Gres=gpu:2" in shape
        ]
        (self.path / "etc" / "gres.conf").write_text("\n".join(gpus) + "\n")
        if self.topology:
            (self.path / "etc" / "topology.conf").write_text(self.topology)

    def _add_accounts(self) -> None:
        if "pilot" not in self.run("sacctmgr", "-nP", "list", "cluster"):
            for words in ("add cluster pilot", *self.accounts):
                self.run("sacctmgr", "-iQ", *words.split())

    def _configuration(self, ports: Sequence[int]) -> str:
        host = socket.gethostname().split(".")[0]
        nodes = [
            NODE.format(number=number, host=host, port=port, shape=shape)
            for number, (port, shape) in enumerate(zip(ports[1:], self.shapes, strict=True), 1)
        ]
        words = {"host": host, "path": self.path, "controller": ports[0], "database": self.ports["database"]}
        return CONFIG.format(rules=self.rules, nodes="\n".join(nodes), partitions="\n".join(self.parts), **words)

    def _surroundings(self) -> dict[str, str]:
        return super()._surroundings() | self.clock | {"TZ": "UTC"}

    @contextmanager
    def _true_clock(self) -> Iterator[None]:
        clock, self.clock = self.clock, {}
        try:
            yield
        finally:
            self.clock = clock
