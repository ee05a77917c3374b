"""A real systemd as process 1 of namespaces of its own, in which the units of the service run.

Rule: it has its own processes, mounts, network and control groups, and its changes of files stay in memory. Nothing on
this machine is changed, and if the test ends in any way, the kernel ends everything. There are no controllers of
resources: MemoryMax and TasksMax have no effect.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from waiting import look_until

import pilotfish
from pilotfish.simulate.kernels.object_cache import cache_directory

ROOT = Path(pilotfish.__file__).resolve().parent
BOOT = Path(__file__).with_name("boot.sh")
SYSTEMD = "/usr/lib/systemd/systemd"
PROGRAMS = ("unshare", "nsenter", "systemctl", "journalctl", "ip", "pivot_root", SYSTEMD)
NAMESPACES = ("--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "--kill-child")
PATIENCE_S = 60.0
CONFIG = """schema: pilotfish/daemon/v1
cluster: cluster.yaml
adapter: {name: local, options: {cgroups: false}}
socket: {mode: "0660", group: operators}
"""
CLUSTER = """schema: pilotfish/cluster/v1
name: here
node_types: {t: {cores: 1, memory: 1GiB, memory_bandwidth: 1GB/s}}
nodes: [{names: a, type: t, cpus: "0"}]
"""


def missing() -> str:
    """Return why no systemd can be started here, or ""."""
    if os.geteuid() != 0:
        return "not root: a systemd needs namespaces of its own"
    if absent := [program for program in PROGRAMS if not shutil.which(program)]:
        return f"not installed: {', '.join(absent)} (packages systemd, util-linux and iproute2)"
    return "" if _hierarchy() else "no control groups of version 2 are mounted"


def _hierarchy() -> Path | None:
    """Return where control groups of version 2 are mounted."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(place)
    return None


class Machine:
    """A systemd below `folder`, which starts at once; `down` ends it.

    Args:
        folder: for what it needs; empty.
        bare: whether no pilotfish is installed.
        seen: folders of this machine, and where they are seen inside.
        lower: a root file system; None: this machine's own.
    """

    def __init__(
        self, folder: Path, *, bare: bool = False, seen: Mapping[Path, str] | None = None, lower: Path | None = None
    ) -> None:
        hierarchy, kernels = _hierarchy(), cache_directory()
        assert hierarchy is not None and kernels is not None
        self._groups = hierarchy / f"pilotfish-test-{os.getpid()}"
        self._groups.mkdir()
        scratch = folder / "scratch"
        scratch.mkdir(parents=True)
        places = [scratch, ROOT, Path(sys.base_prefix).resolve(), sysconfig.get_path("purelib"), kernels]
        bound = [str(word) for pair in (seen or {}).items() for word in pair]
        self._log = (folder / "boot").open("w")
        self._parent = subprocess.Popen(
            ["unshare", *NAMESPACES, "sh", BOOT, *map(str, places), "bare" * bare, *bound],
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, preexec_fn=self._enter,
            env=os.environ | {"LOWER": str(lower or "")},
        )  # fmt: skip
        self._folder, self._first = folder, 0
        try:
            assert look_until(self._is_up, PATIENCE_S), (folder / "boot").read_text()
        except BaseException:
            self.down()
            raise

    def _enter(self) -> None:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the test
        (self._groups / "cgroup.procs").write_text("0")

    def _is_up(self) -> bool:
        assert self._parent.poll() is None, (self._folder / "boot").read_text()
        children = Path(f"/proc/{self._parent.pid}/task/{self._parent.pid}/children").read_text().split()
        if not children or Path(f"/proc/{children[0]}/comm").read_text().strip() != "systemd":
            return False
        self._first = int(children[0])
        return self.run("systemctl", "is-system-running", check=False) in ("running", "degraded")

    def run(self, *argv: str | Path, check: bool = True, both: bool = False) -> str:
        """Run a command inside, as root; return what it printed.

        Args:
            argv: the command.
            check: fail if its exit code is not 0.
            both: also return what it printed on stderr.
        """
        done = self.process(*argv)
        assert not check or done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return (done.stdout + done.stderr * both).strip()

    def process(self, *argv: str | Path, patience_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as root, for so many seconds at most."""
        inside = ["nsenter", f"--target={self._first}", "--all", *map(str, argv)]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
        return subprocess.run(inside, capture_output=True, text=True, timeout=patience_s, env=environment)

    def write(self, path: str, text: str) -> None:
        """Write a file inside, for everybody to read."""
        inside = Path(f"/proc/{self._first}/root{path}")
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.write_text(text)
        inside.chmod(0o644)

    def configure(self, keys: str = "") -> None:
        """Write the configuration of the service, with these keys in it."""
        self.write("/etc/pilotfish/pilotfish.yaml", CONFIG + keys)

    def python(self, code: str) -> str:
        """Run Python code inside; return what it printed."""
        return self.run(
            "env", "LD_LIBRARY_PATH=/opt/pilotfish/python/lib", "/opt/pilotfish/python/bin/python3", "-c", code
        )

    def since(self, unit: str) -> str:
        """Return the option of journalctl for what was logged since a unit was started last."""
        return f"_SYSTEMD_INVOCATION_ID={self.show(unit, 'InvocationID')}"

    def journal(self, *options: str) -> list[str]:
        """Return the messages in the journal."""
        self.run("journalctl", "--sync")
        return self.run("journalctl", "--quiet", "--output=cat", *options).splitlines()

    def show(self, unit: str, name: str) -> str:
        """Return a property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit)

    def down(self) -> None:
        """End everything inside, and remove its control groups."""
        if self._first:
            with suppress(ProcessLookupError):
                os.kill(self._first, signal.SIGKILL)
        self._parent.kill()
        self._parent.wait()
        self._log.close()
        until = time.monotonic() + PATIENCE_S
        while self._groups.exists() and time.monotonic() < until:
            for folder, *_ in os.walk(self._groups, topdown=False):
                with suppress(OSError):
                    os.rmdir(folder)
            time.sleep(0.02)
        assert not self._groups.exists()
