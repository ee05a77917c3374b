"""The command `pilotfish` as a user has it: a process of its own, or a fork of this one."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import forked
import guardian
import workers
from installed import locked
from waiting import look_until, without_cluster

from pilotfish.daemon.socket import ipc
from pilotfish.simulate.kernels.object_cache import cache_directory

SCRIPT = Path(sys.executable).with_name("pilotfish")
COMMAND = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "pilotfish.cli"]
CPUS = sorted(os.sched_getaffinity(0))
PATIENCE_S = 120.0
Found = TypeVar("Found")
#: What a log says of a fault of pilotfish's own, and of nothing else.
OWN_FAULT = re.compile("Traceback|Fatal Python error|report this")
#: A `sitecustomize.py` that steps the clock of a Python by the seconds in a file.
CLOCK = """import time
real = time.time
def stepped():
    try:
        return real() + float(open({clock!r}).read())
    except (OSError, ValueError):
        return real()
time.time = stepped
"""


def pilotfish(*argv: str | Path, **options: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a fork; keyword arguments are added to its environment."""
    return forked.run([*map(str, argv)], env=os.environ | options, timeout=PATIENCE_S)


def process(*argv: str | Path, **options: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with a Python of its own; keyword arguments are added to its environment."""
    return subprocess.run(
        [*COMMAND, *map(str, argv)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ | options,
    )


def run_as(
    user: str, *argv: str | Path, env: dict[str, str], cwd: str | Path = "/", timeout: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end as a user, with the Python that they may run."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = workers.start([SCRIPT, *argv], env, out, err, user=user, cwd=cwd)
        try:
            process.wait(timeout)
        finally:
            process.kill()
            process.wait()
        out.seek(0)
        err.seek(0)
        stdout, stderr = out.read().decode(), err.read().decode()
    return subprocess.CompletedProcess(argv, process.returncode or 0, stdout, stderr)


def users_cache(user: str) -> Path:
    """Return a cache that every user may read, for PILOTFISH_CACHE, with the kernel of plans in it.

    An ordinary user may have a Python of another version than ours: then their kernel is compiled, once a run.
    """
    cache = guardian.folder() / "users-cache"
    with locked(guardian.folder() / "users-cache.lock"):
        if not cache.exists():
            cache.mkdir()
            if (kernels := cache_directory()) is not None and kernels.is_dir():
                shutil.copytree(kernels, cache / "kernels" / kernels.name)
            subprocess.run(["chown", "-R", f"{user}:", cache], check=True)
            load = "from pilotfish.simulate.kernels.object_cache import load; load()"
            as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
            environment = os.environ | {"PILOTFISH_CACHE": str(cache)}
            subprocess.run([*as_user, sys.executable, "-c", load], env=environment, cwd="/", check=True)
            subprocess.run(["chown", "-R", "root:", cache], check=True)
            subprocess.run(["chmod", "-R", "a+rX", cache], check=True)
    return cache


def own_faults(log: str) -> list[str]:
    """Return the lines of a daemon's log that report a fault of pilotfish's own, such as an illegal move of a job."""
    return [line for line in log.splitlines() if OWN_FAULT.search(line)]


class Served:
    """`pilotfish daemon` in a process of its own; what it says is in `log` and `out`. It runs as `user`, if one is
    named; `folder` is then theirs. `manager` is the name of its adapter; `prefix` may be changed before it starts.

    Rule: a log that reports a fault of pilotfish's own fails the test, however the daemon ended.
    """

    manager = ""

    def __init__(self, folder: Path, user: str = "") -> None:
        self.user, self.prefix = user, workers.as_user(user)
        self.environment = os.environ.copy()
        if user:
            mine = {"HOME": folder, "PILOTFISH_CACHE": users_cache(user), "PILOTFISH_STATE": folder / "state"}
            self.environment |= {name: str(path) for name, path in mine.items()}
            subprocess.run(["chown", "-R", f"{user}:{user}", folder], check=True)
        self.folder, self.config = folder, folder / "pilotfish.yaml"
        self.socket, self.log, self.out = folder / "s", folder / "log", folder / "out"
        self.process: subprocess.Popen[bytes] | workers.Forked | None = None

    def spawn(self, *options: str) -> None:
        """Start it."""
        words = ["daemon", "--config", str(self.config), *options]
        with self.log.open("a") as log, self.out.open("a") as out:
            if self.prefix == workers.as_user(self.user) and SCRIPT.exists():
                self.process = workers.start([SCRIPT, *words], self.environment, out, log, user=self.user)
            else:
                argv = [*self.prefix, *COMMAND, *words]
                self.process = subprocess.Popen(argv, stdout=out, stderr=log, env=self.environment)

    def start(self, *options: str) -> None:
        """Start it and wait until it answers."""
        self.spawn(*options)
        eventually(lambda: self.ask("status"), "an answer of the daemon")

    def ask(self, do: str, **arguments: Any) -> dict[str, Any] | None:
        """Return the answer to a question; None if there is no answer yet."""
        assert self.process is not None and self.process.poll() is None, self.log.read_text()
        try:
            return ipc.ask(str(self.socket), do, trusted=lambda uid: True, **arguments)
        except ipc.DaemonError:
            return None

    def stop(self, number: int) -> int:
        """Send it a signal, and wait until it is gone; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self.process = None
        assert own_faults(self.log.read_text()) == []
        return code

    def placed(self, job: int) -> tuple[str, ...]:
        """The nodes to which it pinned a job last; () if it did not, or has never seen the job."""
        try:
            story = self.story(job)["story"]
        except ipc.DaemonError as error:
            if "has no job" not in str(error):
                raise
            story = []
        chosen = [each["data"]["nodes"] for each in story if each["kind"] == "chosen"]
        return tuple(chosen[-1]) if chosen else ()

    def story(self, job: int) -> dict[str, Any]:
        """What became of a job."""
        return dict(ipc.ask(str(self.socket), "explain", trusted=lambda uid: True, job=f"{self.manager}/{job}"))

    def metric(self, name: str) -> float:
        """The value of a metric, all its labels but the cluster in the name, 0 where there is none."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            text = without_cluster(answer.read().decode())
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    @property
    def port(self) -> int:
        """Where it serves metrics: the only port of TCP on which it listens."""
        assert self.process
        inodes = set()
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            try:
                inodes.add(os.readlink(link).removeprefix("socket:[").rstrip("]"))
            except OSError:
                continue
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                return int(words[1].split(":")[1], 16)
        raise AssertionError("it serves no metrics")

    def close(self) -> None:
        """End it if it runs."""
        if self.process is not None:
            self.stop(signal.SIGKILL)


def eventually(look: Callable[[], Found], what: str, patience_s: float = PATIENCE_S) -> Found:
    """Look until there is something, and return that."""
    if found := look_until(look, patience_s):
        return found
    raise AssertionError(f"{what} did not come about within {patience_s:g} s")
