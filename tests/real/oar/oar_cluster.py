"""A real OAR 2.5 on this machine, from Debian's packages, without systemd: PostgreSQL, Almighty, and an sshd for each node.

Rule: all listens on loopback only, and only processes that it started are ended. OAR's programs know one configuration,
/etc/oar/oar.conf, so an OAR that a site has set up is left alone; ours has a mark in its first line, and the packaged
one is put back at the end. Needs root.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import guardian
from waiting import look_until

CONFIG, PACKAGED = Path("/etc/oar/oar.conf"), Path("/usr/share/oar/oar-common/oar.conf")
MARK = "# written by the tests of pilotfish\n"
LIBRARY = Path("/usr/lib/oar")
SCHEDULERS = LIBRARY / "schedulers"
PACKAGES = "postgresql openssh-server oar-server oar-user oar-node oar-server-pgsql oar-user-pgsql taktuk libjson-perl"
#: Users that submit jobs: OAR refuses root and its own account, and gives jobs their user's shell.
USERS = ("pilotfish-a", "pilotfish-b")
PATIENCE_S = 60.0
#: What is fixed in Almighty, as OAR has it and as the tests do: the longest time between two scheduling passes, that
#: until a notification which came too early is looked at, and how it runs OAR's programs, see PROGRAMS.
CHANGED = {
    "my $schedulertimeout = 60;": "my $schedulertimeout = 6;",
    "my $read_commands_timeout = 10;": "my $read_commands_timeout = 0.2;",
    "exec($command);": "Programs::run($command);",
    'exec("$cmd_to_run");': 'Programs::run("$cmd_to_run");',
}
#: Options of ssh with which a connection takes 0.01 instead of 0.1 s of CPU time, and leaves no key behind.
CHEAP = "-o KexAlgorithms=curve25519-sha256 -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
SETTINGS = """
DB_TYPE="Pg"
DB_HOSTNAME="127.0.0.1"
DB_PORT="{database}"
DB_BASE_PASSWD="{password}"
DB_BASE_PASSWD_RO="{password}"
SERVER_HOSTNAME="127.0.0.1"
SERVER_PORT="{server}"
LOG_LEVEL="3"
LOG_FILE="{path}/log/oar.log"
OPENSSH_CMD="/usr/bin/ssh -p {ssh} -e none {cheap}"
PINGCHECKER_GENERIC_COMMAND="{ping}"
FINAUD_FREQUENCY="{finaud}"
SCHEDULER_JOB_SECURITY_TIME="1"
SCHEDULER_MIN_TIME_BETWEEN_2_CALLS="1"
SCHEDULER_GANTT_HOLE_MINIMUM_TIME="1"
JOBDEL_WALLTIME="15"
"""
#: Almighty cannot be told on which address to listen.
LOOPBACK = """package LoopbackOnly;
BEGIN { delete $ENV{PERL5OPT}; delete $ENV{PERL5LIB}; }
require IO::Socket::INET;
my $new = \\&IO::Socket::INET::new;
no warnings 'redefine';
*IO::Socket::INET::new = sub { my $c = shift; my %a = @_;
  $a{LocalAddr} = '127.0.0.1' if $a{Listen} && !$a{LocalAddr}; return $new->($c, %a); };
1;
"""
#: Almighty's processes run OAR's programs, instead of other processes that compile OAR's modules first, which is two
#: thirds of what such a program costs.
PROGRAMS = """package Programs;
use OAR::IO; use OAR::PingChecker; use OAR::Schedulers::GanttHoleStorage; use OAR::Walltime;
use DBD::Pg; use English; use IPC::Open2; use POSIX;
sub run { my ($program, @words) = split ' ', $_[0];
  POSIX::close($_) for 3 .. 63; OAR::Conf::reset_conf(); @ARGV = @words;
  package main; do $program; die "$program: $@" if $@; exit 0; }
1;
"""
SSHD = """Port {ssh}
ListenAddress {node}
PidFile {path}/run/sshd.{node}.pid
HostKey /etc/oar/oar_ssh_host_rsa_key
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PermitRootLogin no
AllowUsers oar
AcceptEnv OAR_CPUSET OAR_USER_CPUSET OAR_USER_GPUDEVICE OAR_JOB_USER
PermitUserEnvironment yes
MaxStartups 1024
MaxSessions 1024
"""


def programs() -> Path:
    """The folder of PostgreSQL's programs. Debian's `psql` is a script that finds this one, and takes five times as long."""
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/nowhere"))


def missing() -> str:
    """Why no OAR can be started here, or ""."""
    if os.geteuid() != 0:
        return "not root: OAR runs jobs as their users"
    needed = (LIBRARY / "Almighty", PACKAGED, programs() / "initdb", Path("/usr/sbin/sshd"), Path("/usr/bin/psql"))
    if absent := [str(each) for each in needed if not each.exists()]:
        return f"not installed: {', '.join(absent)} (packages {PACKAGES})"
    if not all(text in (LIBRARY / "Almighty").read_text() for text in CHANGED):
        return "an OAR of an unknown version"
    found = CONFIG.read_text() if CONFIG.exists() else MARK
    if not found.startswith(MARK) and found != PACKAGED.read_text():
        return f"{CONFIG} is a site's: it is left alone"
    return ""


class OarCluster:
    """One OAR below `path` with `nodes` nodes of `cores` cores; `up` and `down` may be called again."""

    def __init__(self, path: Path, *, nodes: int = 4, cores: int = 2) -> None:
        self.path, self.cores, self.password = path, cores, "pilotfish"
        self.nodes = tuple(f"127.0.1.{number}" for number in range(1, nodes + 1))
        self.database, self.server, self.ssh = (0, 0, 0)
        self.ping, self.finaud = "/bin/true", 0

    @property
    def connection(self) -> str:
        """How the read-only account of OAR connects to the database, in libpq's words."""
        return f"host=127.0.0.1 port={self.database} dbname=oar user=oar_ro"

    @property
    def password_file(self) -> Path:
        """The password of that account, in libpq's form."""
        return self.path / "pgpass"

    def up(self) -> None:
        """Start what is not running, and wait until it answers."""
        if not (self.path / "run").exists():
            self._lay_out()
        self.start_database()
        for node in self.nodes:
            self.start_node(node)
        self.start_server()
        if self.sql("select count(*) from resources") != "0":
            return
        for name in ("host", "cpu", "core"):
            self.run("oarproperty", *(["-c"] if name == "host" else []), "-a", name)
        number = 0
        for node in self.nodes:
            for core in range(self.cores):
                number += 1
                has = (f"host={node}", f"cpu={number}", f"core={number}", f"cpuset={core}")
                self.run("oarnodesetting", "-a", "-h", node, *(word for each in has for word in ("-p", each)))

    def start_database(self) -> None:
        """Start PostgreSQL."""
        if self.pid("postgres"):
            return
        argv = [programs() / "pg_ctl", "-w", "-D", self.path / "database", "-l", self.path / "log" / "postgres"]
        options = f"-p {self.database} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        self._start(*self._as("postgres"), *map(str, argv), "-o", options, "start")
        if self.sql("select count(*) from pg_database where datname='oar'", name="postgres") == "0":
            admin = ("--db-admin-user=postgres", "--db-admin-pass=x")
            self.run("oar-database", "--create", *admin, environment={"PGDATABASE": "postgres"})

    def start_server(self) -> None:
        """Start Almighty, and wait until it listens."""
        if not self.pid("almighty"):
            settings = {
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/var/lib/oar", "USER": "oar", "SHELL": "/bin/bash",
                "OARDIR": str(LIBRARY), "OARUSER": "oar", "OARCONFFILE": str(CONFIG), "OARXAUTHLOCATION": "/usr/bin/xauth",
                "OARDO_USER": "oar", "OARDO_UID": str(pwd.getpwnam("oar").pw_uid),
                "PERL5LIB": str(self.path / "lib"), "PERL5OPT": "-MLoopbackOnly -MPrograms",
            }  # fmt: skip
            program, text = self.path / "lib" / "Almighty", (LIBRARY / "Almighty").read_text()
            for theirs, ours in CHANGED.items():
                text = text.replace(theirs, ours)
            program.write_text(text)
            line = f"perl {program} </dev/null >>log/almighty 2>&1 & echo $! >run/almighty.pid"
            words = [f"{name}={value}" for name, value in settings.items()]
            kept = [f"{name}={os.environ[name]}" for name in (guardian.MARK,) if name in os.environ]
            self._start(*self._as("oar"), "env", "-i", *words, *kept, "/bin/sh", "-c", f"cd {self.path}; {line}")
        self.until(lambda: self._listens("127.0.0.1", self.server), "Almighty to listen")

    def start_node(self, node: str) -> None:
        """Start the sshd of a node."""
        if not self.pid(f"sshd.{node}"):
            config = self.path / f"sshd.{node}"
            config.write_text(SSHD.format(ssh=self.ssh, node=node, path=self.path))
            self._start("/usr/sbin/sshd", "-f", str(config), "-E", str(self.path / "log" / f"sshd.{node}"))
        self.until(lambda: self._listens(node, self.ssh), f"sshd of {node}")

    def run(self, *argv: str, user: str = "", check: bool = True, environment: dict[str, str] | None = None) -> str:
        """Run a command, as a user if one is named; return what it printed."""
        where = str(self.shared() if user else "/")
        surroundings = {**os.environ, "PWD": where, **(environment or {})}  # oarsub reads PWD
        done = subprocess.run(
            [*self._as(user), *argv], capture_output=True, text=True, timeout=60, env=surroundings, cwd=where
        )
        assert not check or done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def submit(self, line: str, *options: str, user: str = USERS[0]) -> int:
        """Submit a shell line; return the job's id."""
        said = self.run("oarsub", "-O", "/dev/null", "-E", "/dev/null", *options, line, user=user)
        found = re.search(r"^OAR_JOB_ID=(\d+)$", said, re.MULTILINE)
        assert found, said
        return int(found[1])

    def sql(self, statement: str, name: str = "oar") -> str:
        """What the database answers to its superuser."""
        where = ("-h", "127.0.0.1", "-p", str(self.database), "-U", "postgres")
        return self.run(str(programs() / "psql"), "-XAtq", *where, "-c", statement, name)

    def jobs(self) -> dict[int, tuple[str, tuple[str, ...]]]:
        """State and nodes of each job that is known."""
        statement = """select coalesce(json_object_agg(job_id, json_build_array(state, (select
            coalesce(json_agg(distinct network_address), '[]') from resources r, assigned_resources a where
            a.resource_id = r.resource_id and a.moldable_job_id = j.assigned_moldable_job))), '{}') from jobs j"""
        found: dict[str, Any] = json.loads(self.sql(statement))
        return {int(job): (state, tuple(sorted(nodes))) for job, (state, nodes) in found.items()}

    def shared(self) -> Path:
        """A folder in which everybody may write."""
        folder = self.path / "shared"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777)
        return folder

    def clear(self) -> None:
        """End every job, and let every node take jobs."""
        waiting = "select job_id from jobs where state not in ('Terminated', 'Error')"
        ended = "update jobs set state = 'Error', stop_time = submission_time where state in ('Waiting', 'Hold')"
        bad = "select count(*) from resources where state <> 'Alive'"
        *_, number = self.sql(f"{ended}; {bad}").splitlines()  # oardel takes seconds for each job that has not begun
        if number != "0":
            self.run("oarnodesetting", "-s", "Alive", "--sql", "state <> 'Alive'", check=False)  # or it is just then
            self.until(lambda: self.sql(bad) == "0", "the nodes")
        if ids := self.sql(waiting).split():
            self.run("oardel", *ids, check=False)
            self.until(lambda: not self.sql(waiting), "the queue to be empty")

    def add_queue(self, name: str, program: str) -> None:
        """Add a queue with a scheduler, in which jobs run before those of the default queue."""
        self.run("oarnotify", "--add-queue", f"{name},5,{program}")

    def signal(self, who: str, number: signal.Signals) -> None:
        """Send a signal to `almighty`, `postgres` or `sshd.NODE`; a fatal one is waited for.

        Almighty's helper that listens gets it, too; those that launch jobs do not: OAR never looks for a job that was
        being launched.
        """
        pid = self.pid(who)
        assert pid, f"{who} does not run"
        for each in (pid, *(_descendants(pid) if who == "almighty" else ())):
            with suppress(OSError):
                if each == pid or b"Almighty: appendice" in Path(f"/proc/{each}/cmdline").read_bytes():
                    os.kill(each, number)
        if number in (signal.SIGKILL, signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
            self.until(lambda: not self.pid(who), f"{who} to end")

    def pid(self, who: str) -> int:
        """The process of `almighty`, `postgres` or `sshd.NODE` that we started, 0 if there is none."""
        file = self.path / ("database/postmaster.pid" if who == "postgres" else f"run/{who}.pid")
        with suppress(OSError, ValueError, IndexError):
            pid = int(file.read_text().splitlines()[0])
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            known = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
            return pid if state not in "ZX" and os.fsencode(self.path) in known else 0
        return 0

    def down(self) -> None:
        """End every job and every process of ours, and put the packaged configuration back."""
        if self.pid("almighty"):
            with suppress(AssertionError, subprocess.TimeoutExpired):
                self.clear()
        for who in ("almighty", *(f"sshd.{node}" for node in self.nodes)):
            if pid := self.pid(who):
                for each in (pid, *_descendants(pid)):
                    with suppress(ProcessLookupError):
                        os.kill(each, signal.SIGKILL)
        if self.pid("postgres"):
            self.signal("postgres", signal.SIGQUIT)
        if CONFIG.read_text().startswith(MARK):
            self._install(PACKAGED.read_text())
        for user in USERS:
            subprocess.run(["userdel", "--remove", user], capture_output=True, check=False)

    def until(self, wanted: Callable[[], object], what: str) -> None:
        """Wait for something."""
        assert look_until(wanted, PATIENCE_S), f"waited in vain for {what}; logs are in {self.path / 'log'}"

    def configure(self) -> None:
        """Write the configuration again; Almighty reads it at its start, its schedulers at each pass."""
        settings = SETTINGS.format(**vars(self), cheap=CHEAP)
        names = {line.partition("=")[0] for line in settings.splitlines() if line}
        names |= {"JOB_RESOURCE_MANAGER_PROPERTY_DB_FIELD", "JOB_RESOURCE_MANAGER_FILE", "CPUSET_PATH"}
        names |= {"PINGCHECKER_SENTINELLE_SCRIPT_COMMAND"}
        kept = [line for line in PACKAGED.read_text().splitlines() if line.partition("=")[0] not in names]
        self._install("\n".join([MARK.rstrip(), *kept, settings]))

    def _lay_out(self) -> None:
        for name in ("run", "log", "lib"):
            (self.path / name).mkdir(parents=True)
            shutil.chown(self.path / name, "oar")
        for parent in (self.path, *self.path.parents):  # users and servers pass through
            if parent.stat().st_uid == os.geteuid() and parent != Path("/tmp"):
                with suppress(OSError):
                    parent.chmod(parent.stat().st_mode | 0o111)
        (self.path / "lib" / "LoopbackOnly.pm").write_text(LOOPBACK)
        (self.path / "lib" / "Programs.pm").write_text(PROGRAMS)
        for user in USERS:
            with suppress(KeyError):
                pwd.getpwnam(user)
                continue
            home = ("--create-home", f"--home-dir={self.path / user}", "--shell=/bin/bash")
            subprocess.run(["useradd", *home, user], check=True, capture_output=True)
        self.database, self.server, self.ssh = free_ports(3)
        self.password_file.write_text(f"*:*:*:*:{self.password}\n")
        self.password_file.chmod(0o600)
        self.configure()
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        data = self.path / "database"
        data.mkdir(mode=0o700)
        shutil.chown(data, "postgres")
        (self.path / "log").chmod(0o1777)
        initdb = [str(programs() / "initdb"), "-D", str(data), "-A", "trust", "-E", "UTF8", "--locale=C"]
        self.run(*self._as("postgres"), *initdb)
        rules = data / "pg_hba.conf"
        rules.write_text(f"host all oar_ro 127.0.0.1/32 md5\n{rules.read_text()}")  # as a site has it

    def _install(self, text: str) -> None:
        draft = CONFIG.with_name("oar.conf.pilotfish")
        draft.write_text(text)
        draft.chmod(0o600)
        shutil.chown(draft, "oar")
        draft.replace(CONFIG)

    @staticmethod
    def _as(user: str) -> list[str]:
        if not user:
            return []
        entry = pwd.getpwnam(user)
        identity = ["setpriv", f"--reuid={user}", f"--regid={entry.pw_gid}", "--init-groups"]
        return [*identity, "env", f"HOME={entry.pw_dir}", f"USER={user}", f"PATH={programs()}:{os.environ['PATH']}"]

    def _start(self, *argv: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PILOTFISH_")}
        done = subprocess.run(
            [*guardian.HOLD, *argv], env=kept, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{argv}: {done.stderr!r}"

    @staticmethod
    def _listens(host: str, port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((host, port)) == 0


def _descendants(root: int) -> list[int]:
    parents = {}
    for name in os.listdir("/proc"):
        with suppress(OSError, IndexError, ValueError):
            parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found[1:]


def free_ports(count: int) -> Sequence[int]:
    """Ports that are free now."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
