"""A real Slurm on this machine, from Debian's packages, without systemd: munged, slurmctld, and a slurmd for each node.

Rule: everything it makes is below one directory, everything listens on loopback only, and only processes that it
started are ended. Needs root (slurmd runs jobs as their users).
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import guardian
from waiting import look_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "scancel", "sdiag")
PATIENCE_S = 180.0
GOOD = {"idle", "mix", "alloc", "comp", "plnd"}
CONFIG = """
ClusterName=pilot
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket={path}/munge/munged.sock,cred_expire=10
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={path}/controller
SlurmdSpoolDir={path}/spool/%n
SlurmctldPidFile={path}/run/slurmctld.pid
SlurmdPidFile={path}/run/slurmd.%n.pid
SlurmctldLogFile={path}/log/slurmctld.log
SlurmdLogFile={path}/log/slurmd.%n.log
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/{gather}
JobCompType=jobcomp/none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
InactiveLimit=0
KillWait=2
MinJobAge=300
WaitTime=0
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=5,sched_min_interval=200000,default_queue_depth=500,bf_interval=5,bf_continue,batch_sched_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
DefMemPerCPU=128
{extra}
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory} Feature=virt State=UNKNOWN
PartitionName=main Nodes=n[1-{nodes}] Default=YES MaxTime=1-0 DefaultTime=10 State=UP OverSubscribe=NO
PartitionName=half Nodes=n[1-{half}] MaxTime=1-0 DefaultTime=10 State=UP OverSubscribe=NO
{partitions}"""


def missing() -> str:
    """Why no Slurm can be started here, or ""."""
    if os.geteuid() != 0:
        return "not root: slurmd must run jobs as their users"
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    return f"not installed: {', '.join(absent)} (packages slurmctld slurmd slurm-client munge)" if absent else ""


PLAIN = """
PriorityType=priority/basic
AccountingStorageType=accounting_storage/none
"""


class SlurmCluster:
    """One Slurm below `path`; `up` and `down` may be called again. `gather`: what it measures of jobs."""

    gather = "none"

    def __init__(self, path: Path, *, nodes: int = 4, cpus: int = 4, memory: int = 4096, extra: str = PLAIN) -> None:
        self.path, self.nodes, self.cpus, self.memory, self.extra = path, nodes, cpus, memory, extra
        self.partitions = ""
        self.config = path / "etc" / "slurm.conf"
        self.environment = {"SLURM_CONF": str(self.config)}
        self.broken = ""  # why it cannot be used any more

    def run(self, *argv: str, user: str = "", check: bool = True) -> str:
        """Run a command of Slurm's, as a user if one is named; returns what it printed."""
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        done = subprocess.run(
            [*as_user, *argv], capture_output=True, text=True, timeout=60, env=self._surroundings(), cwd="/"
        )
        assert not check or done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def submit(self, line: str, *options: str, user: str = "games") -> int:
        """Submit a shell line; returns the job's id."""
        words = ("--parsable", "--output=/dev/null", "--chdir=/tmp", *options, f"--wrap={line}")
        return int(self.run("sbatch", *words, user=user).split(";")[0])

    def show(self, job: int) -> dict[str, str]:
        """What the controller knows of a job."""
        words = self.run("scontrol", "--oneliner", "show", "job", str(job)).split(" ")
        return dict(word.split("=", 1) for word in words if "=" in word)

    def shared(self) -> Path:
        """A folder in which everybody may write."""
        folder = self.path / "shared"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777)
        return folder

    def uid(self, user: str) -> int:
        """The number of a user."""
        return pwd.getpwnam(user).pw_uid

    def up(self) -> None:
        """Start what is not running, let every node take jobs, and wait until it does.

        What does not come up is ended and started again, without its jobs. Once that has failed, too, each further call
        fails at once, so that the tests that are left do not all wait in vain.
        """
        assert not self.broken, self.broken
        try:
            self._up()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            print(f"started again: {error}\n{self.trouble()}", file=sys.stderr)  # pytest shows it if a test fails
            self._end()
            for kept in ("controller", "spool"):
                for each in (self.path / kept).glob("*"):
                    shutil.rmtree(each) if each.is_dir() else each.unlink()
            self.broken = f"did not come up twice: {error}"
            self._up()
            self.broken = ""

    def trouble(self) -> str:
        """What its nodes, its processes and its logs say."""
        said = [self.run("sinfo", "--noheader", "--Node", "--partition=main", "--format=%N %T %E", check=False)]
        said += [", ".join(f"{who} {self.pid(who) or 'does not run'}" for who in self.services)]
        for log in sorted((self.path / "log").glob("slurm*.log")):
            lines = log.read_text(errors="replace").splitlines()
            said += [f"{log.name}:", *[line for line in lines if "Invalid node state" not in line][-10:]]
        return "\n".join(said)

    @property
    def services(self) -> tuple[str, ...]:
        """What runs, in the order in which it is ended."""
        return ("slurmctld", *(f"slurmd.n{number}" for number in range(1, self.nodes + 1)), "munged")

    def _up(self) -> None:
        if not self.config.exists():
            self._lay_out()
        self.start_munge()
        self.start_controller()
        for number in range(1, self.nodes + 1):
            self.start_node(f"n{number}")
        self.resume()

    def start_munge(self) -> None:
        """Start munged."""
        at = self.path / "munge"
        if self.pid("munged"):
            return
        (at / "munged.sock").unlink(missing_ok=True)
        self._start(
            *("setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "munged", f"--socket={at}/munged.sock"),
            *(f"--key-file={at}/munge.key", f"--pid-file={at}/munged.pid", f"--log-file={at}/munged.log"),
            *(f"--seed-file={at}/munged.seed", "--num-threads=4"),
        )

    def start_controller(self) -> None:
        """Start slurmctld, and wait until it answers."""
        self.launch_controller()
        self.until(self.controller_answers, "slurmctld")

    def launch_controller(self) -> None:
        """Start slurmctld."""
        if not self.pid("slurmctld"):
            self._start("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups", "slurmctld")

    def controller_answers(self) -> bool:
        """Whether slurmctld answers."""
        return "is UP" in self.run("scontrol", "ping", check=False)

    def start_node(self, name: str) -> None:
        """Start the slurmd of a node."""
        if not self.pid(f"slurmd.{name}"):
            (self.path / "spool" / name).mkdir(parents=True, exist_ok=True)
            self._start(*guardian.HOLD, "slurmd", "-N", name)

    def signal(self, who: str, number: signal.Signals) -> None:
        """Send a signal to `munged`, `slurmctld` or `slurmd.n1`; a fatal one is waited for."""
        pid = self.pid(who)
        assert pid, f"{who} does not run"
        os.kill(pid, number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.until(lambda: not self.pid(who), f"{who} to end")

    def pid(self, who: str) -> int:
        """The process of `munged`, `slurmctld` or `slurmd.n1` that we started, 0 if there is none."""
        file = self.path / ("munge/munged.pid" if who == "munged" else f"run/{who}.pid")
        with suppress(OSError, ValueError):
            pid = int(file.read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
            return pid if os.fsencode(self.path) in words else 0
        return 0

    def clear(self) -> None:
        """End every job, and let every node take jobs."""
        for state in ("PENDING", "RUNNING", "SUSPENDED"):
            self.run("scancel", f"--state={state}", check=False)
        self.until(lambda: not self.run("squeue", "--noheader"), "the queue to be empty")
        self.resume()

    def resume(self) -> None:
        """Let every node take jobs, and wait until it does."""

        def ready() -> bool:
            states = self.run("sinfo", "--noheader", "--Node", "--partition=main", "--format=%N %t", check=False)
            found = dict(line.split() for line in states.splitlines())
            for name, state in found.items():
                if state not in GOOD:
                    self.run("scontrol", "update", f"NodeName={name}", "State=RESUME", check=False)
            return len(found) == self.nodes and set(found.values()) <= GOOD

        self.until(ready, "every node to take jobs")

    def jobs(self) -> dict[int, tuple[str, str]]:
        """State and nodes of each job that is known."""
        lines = self.run("squeue", "--noheader", "--states=all", "--format=%A %T %N").splitlines()
        words = [(line + " ").split(" ") for line in lines]
        return {int(word[0]): (word[1], word[2]) for word in words}

    def down(self) -> None:
        """End every job and every process of ours."""
        if self.pid("slurmctld"):
            with suppress(AssertionError, subprocess.TimeoutExpired):
                self.clear()
        self._end()

    def _has_ended(self, who: str) -> bool:
        return not self.pid(who)

    def _end(self) -> None:
        for who in self.services:
            if pid := self.pid(who):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
                self.until(partial(self._has_ended, who), f"{who} to end")
        for pid in self._steps():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def until(self, wanted: Callable[[], object], what: str) -> None:
        """Wait for something."""
        assert look_until(wanted, PATIENCE_S), f"waited in vain for {what}; logs are in {self.path / 'log'}"

    def _lay_out(self) -> None:
        for name in ("etc", "run", "log", "spool", "munge", "controller"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        for parent in (self.path, *self.path.parents):  # the users of slurm and munge pass through
            if parent.stat().st_uid == os.geteuid() and parent != Path("/tmp"):
                with suppress(OSError):
                    parent.chmod(parent.stat().st_mode | 0o111)
        shutil.chown(self.path / "controller", "slurm", "slurm")
        for name in ("run", "log"):
            shutil.chown(self.path / name, "slurm", "slurm")
        key = self.path / "munge" / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        for path in (self.path / "munge", key):
            shutil.chown(path, "munge", "munge")
        (self.path / "munge").chmod(0o755)
        (self.path / "etc" / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        self.config.write_text(self._configuration(free_ports(1 + self.nodes)))

    def _configuration(self, ports: Sequence[int]) -> str:
        """Return slurm.conf; the first port is the controller's, the others are the nodes'."""
        return CONFIG.format(
            host=socket.gethostname().split(".")[0],
            path=self.path,
            controller=ports[0],
            nodes=self.nodes,
            half=max(1, self.nodes // 2),
            first=ports[1],
            last=ports[-1],
            cpus=self.cpus,
            memory=self.memory,
            gather=self.gather,
            extra=self.extra,
            partitions=self.partitions.format(nodes=self.nodes, half=max(1, self.nodes // 2)),
        )

    def _surroundings(self) -> dict[str, str]:
        """Without the mark of a test: what is started here outlives the test."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PILOTFISH_", "SLURM_"))}
        return kept | self.environment

    def _start(self, *argv: str) -> None:
        done = subprocess.run(
            argv,
            env=self._surroundings(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            timeout=30,
        )
        assert done.returncode == 0, f"{argv}: {done.stderr!r}"

    def is_ours(self, step: int) -> bool:
        """Whether a process is a step daemon of this cluster."""
        with suppress(OSError):
            program = os.readlink(f"/proc/{step}/exe")
            return "slurmstepd" in program and os.fsencode(self.path) in Path(f"/proc/{step}/environ").read_bytes()
        return False

    def _steps(self) -> list[int]:
        """Step daemons that outlived their slurmd."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self.is_ours(pid)]


def free_ports(count: int) -> Sequence[int]:
    """Free ports that follow one another; anywhere, because other clusters may look for theirs at this moment."""
    for first in random.Random(os.urandom(8)).sample(range(16000, 32000, 20), 200):
        ports = range(first, first + count)
        if all(map(_is_free, ports)):
            return ports
    raise AssertionError("no free ports between 16000 and 32000")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
