"""A whole site on this machine: Slurm with accounts, limits, shared nodes, power saving, REST, and an operator who is
neither root nor Slurm's own user.

Rule: as in slurm_cluster; besides, MariaDB, slurmdbd and slurmrestd. `games` (research) and `news` (teaching) are
users, `backup` is the operator.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import guardian
import slurm_cluster
from slurm_cluster import SlurmCluster, free_ports

PROGRAMS = (*slurm_cluster.PROGRAMS, "slurmdbd", "slurmrestd", "sacctmgr", "sacct", "mariadbd", "mariadb-install-db")
OPERATOR = "backup"
JOB_END = Path(__file__).parents[3] / "systemd" / "pilotfish-job-end.sh"
REST_USER = "nobody"
SITE = """
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={path}/etc/jwt_hs256.key
AllowSpecResourcesUsage=YES
PriorityType=priority/multifactor
PriorityDecayHalfLife=7-0
PriorityCalcPeriod=1
PriorityWeightAge=1000
PriorityWeightFairshare=100000
PriorityWeightJobSize=1000
PriorityWeightQOS=10000
PreemptType=preempt/qos
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database}
AccountingStoragePass={path}/munge/munged.sock
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment
EpilogSlurmctld={path}/etc/job-end.sh
SuspendProgram={path}/etc/suspend.sh
ResumeProgram={path}/etc/resume.sh
SuspendTime=86400
SuspendTimeout=5
ResumeTimeout=60
SuspendRate=0
ResumeRate=0
"""
PARTITIONS = """
PartitionName=shared Nodes=n[1-{nodes}] Default=NO MaxTime=1-0 DefaultTime=10 State=UP OverSubscribe=FORCE:4
PartitionName=short Nodes=n[1-{half}] Default=NO MaxTime=5 DefaultTime=1 MaxNodes=2 State=UP OverSubscribe=NO
"""
DATABASE = """
AuthType=auth/munge
AuthInfo=socket={path}/munge/munged.sock
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={path}/etc/jwt_hs256.key
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={database}
SlurmUser=slurm
CommunicationParameters=NoInAddrAny
LogFile={path}/log/slurmdbd.log
PidFile={path}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={mariadb}
StorageUser=slurm
StoragePass=slurmdbpw
StorageLoc=slurm_acct_db
"""
#: Slurm's own user may not end root's slurmd: the power scripts leave marks, and a loop of root's obeys them.
POWER = """#!/bin/sh
for node in $(SLURM_CONF={path}/etc/slurm.conf scontrol show hostnames "$1"); do touch {path}/power/{what}.$node; done
"""
POWER_LOOP = """
while [ -d {path}/power ]; do
  for mark in {path}/power/off.*; do
    [ -e "$mark" ] || continue
    node=${{mark##*.}}; rm -f "$mark"; kill "$(cat {path}/run/slurmd.$node.pid)" 2>/dev/null
  done
  for mark in {path}/power/on.*; do
    [ -e "$mark" ] || continue
    node=${{mark##*.}}; rm -f "$mark"; (sleep 1; {hold} slurmd -b -N "$node") </dev/null >/dev/null 2>&1 &
  done
  sleep 1
done
"""
ACCOUNTS = """
add account research Fairshare=60
add account teaching Fairshare=40
add qos high Priority=100 MaxTRESPerUser=cpu={half_cpus}
add qos capped MaxJobsPerUser=2 MaxSubmitJobsPerUser=5
add qos brief MaxWall=00:02:00
add user games account=research Fairshare=10
add user news account=teaching Fairshare=10
add user root account=research
add user {operator} account=research AdminLevel=Operator
modify user where name=games,news,root,{operator} set qos=normal,high,capped,brief
"""


def missing() -> str:
    """Why no site can be started here, or ""."""
    if why := slurm_cluster.missing():
        return why
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    plugins = ("auth_jwt.so", "accounting_storage_mysql.so")
    absent += [name for name in plugins if not [*Path("/usr/lib").glob(f"*/slurm-wlm/{name}")]]
    packages = "slurmdbd slurmrestd mariadb-server slurm-wlm-jwt-plugin slurm-wlm-mysql-plugin"
    return f"not installed: {', '.join(absent)} (packages {packages})" if absent else ""


class SlurmSite(SlurmCluster):
    """A site below `path`; `rest_socket` and `rest_url` are slurmrestd's."""

    gather = "linux"

    def __init__(self, path: Path, *, nodes: int = 8, cpus: int = 4, memory: int = 4096, extra: str = "") -> None:
        super().__init__(path, nodes=nodes, cpus=cpus, memory=memory, extra=extra)
        self.rest_socket = path / "rest" / "slurmrestd.sock"
        self.events = path / "shared" / "events.sock"  #: slurmctld tells it of the end of each job
        self.ports: dict[str, int] = {}

    @property
    def rest_url(self) -> str:
        """Where slurmrestd listens."""
        return f"http://127.0.0.1:{self.ports['rest']}"

    @property
    def services(self) -> tuple[str, ...]:
        """What runs, in the order in which it is ended."""
        return (*super().services, "slurmrestd", "powerd", "slurmdbd", "mariadbd")

    def _up(self) -> None:
        if not self.config.exists():
            self._lay_out()
        self.start_munge()
        self.start_database()
        self.start_accounting()
        self.start_controller()
        self._add_accounts()
        for number in range(1, self.nodes + 1):
            self.start_node(f"n{number}")
        self._start_power()
        self.start_rest()
        self.resume()
        self.until(lambda: self._answers("sbatch", "--test-only", "--wrap=true", user="games"), "accounts to be known")

    def start_database(self) -> None:
        """Start MariaDB, the store of slurmdbd."""
        if self.pid("mariadbd"):
            return
        at = self.path / "mysql"
        self._spawn(
            "mariadbd",
            *("mariadbd", "--no-defaults", "--user=mysql", f"--datadir={at}/data", f"--socket={at}/mysqld.sock"),
            *("--bind-address=127.0.0.1", f"--port={self.ports['mariadb']}", f"--log-error={at}/error.log"),
            *(
                f"--tmpdir={at}/tmp",
                "--skip-log-bin",
                "--innodb-flush-log-at-trx-commit=0",
                "--innodb-buffer-pool-size=64M",
            ),
            *(f"--pid-file={at}/mariadbd.pid", "--innodb-lock-wait-timeout=900", "--max-allowed-packet=16M"),
        )
        self.until(lambda: self._sql("select 1"), "MariaDB")
        self._sql(
            "create database if not exists slurm_acct_db;"
            "create user if not exists slurm@localhost identified by 'slurmdbpw';"
            "create user if not exists slurm@'127.0.0.1' identified by 'slurmdbpw';"
            "grant all on slurm_acct_db.* to slurm@localhost; grant all on slurm_acct_db.* to slurm@'127.0.0.1';"
        )

    def start_accounting(self) -> None:
        """Start slurmdbd, and wait until it answers."""
        if not self.pid("slurmdbd"):
            self._start("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups", "slurmdbd")
        self.until(lambda: self._answers("sacctmgr", "-nP", "list", "cluster"), "slurmdbd")

    def start_rest(self) -> None:
        """Start slurmrestd on a port and a socket."""
        if not self.pid("slurmrestd"):
            self.rest_socket.unlink(missing_ok=True)
            who = ("setpriv", f"--reuid={REST_USER}", "--regid=nogroup", "--clear-groups")
            where = (f"127.0.0.1:{self.ports['rest']}", f"unix:{self.rest_socket}")
            plugins = ("-a", "rest_auth/jwt", "-s", "openapi/v0.0.38,openapi/dbv0.0.38,openapi/v0.0.37")
            self._spawn("slurmrestd", *who, "slurmrestd", *plugins, "-t", "4", *where, SLURM_JWT="daemon")
        self.until(lambda: _listens(self.ports["rest"]), "slurmrestd")

    def token(self, user: str = OPERATOR, lifespan_s: int = 600) -> str:
        """A token for a user."""
        return self.run("scontrol", "token", f"username={user}", f"lifespan={lifespan_s}").split("=", 1)[1]

    def pid(self, who: str) -> int:
        """The process of a service that we started, 0 if there is none."""
        if who in ("mariadbd", "slurmrestd", "powerd"):
            with suppress(OSError, ValueError):
                pid = int((self.path / "run" / f"{who}.pid").read_text())
                ours = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
                return pid if os.fsencode(self.path) in ours and not _is_zombie(pid) else 0
            return 0
        return super().pid(who)

    def _add_accounts(self) -> None:
        if "research" in self.run("sacctmgr", "-nP", "list", "account"):
            return
        if "pilot" not in self.run("sacctmgr", "-nP", "list", "cluster"):
            self.run("sacctmgr", "-iQ", "add", "cluster", "pilot")
        for line in ACCOUNTS.format(half_cpus=self.nodes * self.cpus // 2, operator=OPERATOR).strip().splitlines():
            self.run("sacctmgr", "-iQ", *line.split())

    def _start_power(self) -> None:
        if not self.pid("powerd"):
            self._spawn("powerd", "sh", "-c", POWER_LOOP.format(path=self.path, hold=shlex.join(guardian.HOLD)))

    def _lay_out(self) -> None:
        for name in ("mysql", "rest", "power", "etc", "run", "log"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        names = ("database", "mariadb", "rest")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.extra = SITE.format(path=self.path, **self.ports) + self.extra
        self.partitions = PARTITIONS
        super()._lay_out()
        for name, owner in (("mysql", "mysql"), ("rest", REST_USER), ("power", "slurm")):
            shutil.chown(self.path / name, owner)
        script = self.path / "etc" / "job-end.sh"
        script.write_text(JOB_END.read_text().replace("/run/pilotfish/events.sock", str(self.events)))
        script.chmod(0o755)
        key = self.path / "etc" / "jwt_hs256.key"
        key.write_bytes(os.urandom(32))
        text = DATABASE.format(path=self.path, host=socket.gethostname().split(".")[0], **self.ports)
        (self.path / "etc" / "slurmdbd.conf").write_text(text)
        for secret in (key, self.path / "etc" / "slurmdbd.conf"):
            shutil.chown(secret, "slurm", "slurm")
            secret.chmod(0o600)
        for name, what in (("suspend", "off"), ("resume", "on")):
            script = self.path / "etc" / f"{name}.sh"
            script.write_text(POWER.format(path=self.path, what=what))
            script.chmod(0o755)
        at = self.path / "mysql"
        (at / "tmp").mkdir(exist_ok=True)
        shutil.chown(at / "tmp", "mysql")
        self._start(
            *("mariadb-install-db", "--no-defaults", f"--datadir={at}/data", "--user=mysql", "--skip-test-db"),
            f"--tmpdir={at}/tmp",  # MariaDB tidies its own up, and what others have there, too
            "--auth-root-authentication-method=socket",
        )

    def _sql(self, text: str) -> bool:
        return self._answers("mariadb", "--no-defaults", f"--socket={self.path}/mysql/mysqld.sock", f"--execute={text}")

    def _answers(self, *argv: str, user: str = "") -> bool:
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        done = subprocess.run([*as_user, *argv], capture_output=True, timeout=60, env=self._surroundings(), cwd="/tmp")
        return done.returncode == 0

    def _spawn(self, who: str, *argv: str, **environment: str) -> None:
        """Start a service that stays in the foreground."""
        surroundings: Mapping[str, str] = self._surroundings() | environment
        with (self.path / "log" / f"{who}.log").open("ab") as log:
            child = subprocess.Popen(
                argv,
                env=surroundings,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self.path / "run" / f"{who}.pid").write_text(str(child.pid))


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and only waits for us to say that we know."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    return True
