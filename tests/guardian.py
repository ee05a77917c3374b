"""A process that outlives a test run, and ends what the run started once the run is gone: Ctrl-C, SIGTERM, kill -9.

The run is known by a mark in the environment of its processes. Unlike a process group, a session or a line of parents
the mark survives a daemon's double fork, `setsid` and a change of user, and it needs no control groups.

It also removes the folder of the run, where `folder` points: tests put there what other users must read, or what is
too large to be left behind.

Rule: only processes that carry the mark of the run, and their descendants, are ended. A run within a run has both
marks.

    python tests/guardian.py COMMAND ...    run a command under guard, as conftest.py does for pytest
    python tests/guardian.py --hold COMMAND ...    start a daemon, and stay the parent of what it leaves behind
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

MARK = "TEST_RUN_GUARD"  # not PILOTFISH_...: fixtures drop those for servers that outlive one test
FOLDER = "TEST_RUN_FOLDER"
HOLD = (sys.executable, "-S", "-E", str(Path(__file__).resolve()), "--hold")
EVERY_S = 0.3
PR_SET_CHILD_SUBREAPER, MNT_DETACH = 36, 2
GRACE_S = 1.0  #: between SIGTERM and SIGKILL, such that a program can tidy up
PATIENCE_S = 20.0


def start(*also: int) -> str:
    """Mark this process and its future children, start their guardian, and return the mark.

    Args:
        also: Process ids whose end ends the run, too, such as that of `make`.
    """
    mark = uuid.uuid4().hex
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="pilotfish-run-")
    folder().chmod(0o755)
    os.environ[MARK] = ":".join(filter(None, (os.environ.get(MARK), mark)))
    watched = [f"{pid}@{started(pid)}" for pid in (os.getpid(), *also)]
    guardian = subprocess.Popen(
        [sys.executable, "-S", "-E", str(Path(__file__).resolve()), "--watch", mark, str(folder()), *watched],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        env={
            name: value for name, value in os.environ.items() if name != MARK
        },  # the guardian of an outer run spares it
    )
    assert guardian.stdout is not None
    guardian.stdout.readline()  # it watches
    guardian.wait()
    guardian.stdout.close()
    guardian.returncode = 0  # it ends after this process: nothing waits for it
    return mark


def folder() -> Path:
    """Return a folder for this run, below which every user may read. The guardian removes it."""
    return Path(os.environ[FOLDER])


def outer() -> list[int]:
    """Return the process ids of the `make` that started this process, if one did, and of all that is between them.

    A `make` gives its children a MAKELEVEL, so that the first process above this one that has none is the outermost.
    """
    found = [os.getpid()]
    with suppress(OSError):
        while b"MAKELEVEL=" in Path(f"/proc/{found[-1]}/environ").read_bytes():
            found.append(int(Path(f"/proc/{found[-1]}/stat").read_text().rpartition(")")[2].split()[1]))
    return found[1:]


def started(pid: int) -> str:
    """Return when a process started, in clock ticks since boot; "" if it has ended."""
    with suppress(OSError, IndexError):
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    return ""


def marked(mark: str, also: Iterable[int] = ()) -> set[int]:
    """Return the processes that carry the mark, and their descendants; this process is not one of them.

    Args:
        mark: What `start` returned.
        also: Processes to count as marked. What a process adds to its own environment cannot be seen from outside.
    """
    found, parent = set(also), {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError, IndexError, ValueError):
            state, above, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if state in "ZX":
                continue
            parent[pid] = int(above)
            for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                if word.startswith(f"{MARK}=".encode()) and mark.encode() in word:
                    found.add(pid)
    grown = True
    while grown:
        more = {pid for pid, above in parent.items() if above in found and pid not in found}
        found |= more
        grown = bool(more)
    return (found & parent.keys()) - {os.getpid()}


def end(mark: str, run: int = 0, begun: str = "") -> None:
    """End every process that carries the mark, and the process that began the run.

    Args:
        mark: What `start` returned.
        run: The process id of the run itself, 0 for none.
        begun: When that process started, as `started` returns it.
    """
    seen: dict[int, str] = {run: begun} if run else {}  # also those whose parents end before them
    termed: set[int] = set()
    begin = time.monotonic()
    while time.monotonic() < begin + PATIENCE_S:
        found = marked(mark, [pid for pid, since in seen.items() if since and started(pid) == since])
        if not found:
            return
        seen |= {pid: started(pid) for pid in found if pid not in seen}
        if time.monotonic() < begin + GRACE_S:
            _send(found - termed, signal.SIGTERM)
            termed |= found
        else:
            _send(found, signal.SIGKILL)
        time.sleep(0.05)


def hold(argv: list[str]) -> int:
    """Run a command that becomes a daemon, and stay the parent of everything it leaves behind.

    A program may overwrite its environment (Slurm's step daemons put their title there), and the mark with it. As a
    descendant of a process that keeps the mark it is found nevertheless.

    Returns:
        The exit status of the command. A child of this process holds its daemons until the last has ended.
    """
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        return int(os.read(reader, 1)[0])
    os.setsid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.set_inheritable(writer, False)
    os.write(writer, bytes([subprocess.run(argv, check=False).returncode & 0xFF]))
    for number in (0, 1, 2, reader, writer):
        os.close(number)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(0)


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)


def _watch(mark: str, place: str, watched: list[str]) -> None:
    """Wait until one of the watched processes has ended, then end the run and remove its folder."""
    if os.fork():  # no descendant of the run, which the guardian of an outer run ends
        os._exit(0)
    print("watching", flush=True)
    processes = [(int(pid), begin) for pid, _, begin in (word.partition("@") for word in watched)]
    while all(started(pid) == begin for pid, begin in processes):
        time.sleep(EVERY_S)
    end(mark, *processes[0])
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        if (where := line.split()[1]).startswith(f"{place}/"):
            ctypes.CDLL(None).umount2(where.encode(), MNT_DETACH)
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1] == "--hold":
        sys.exit(hold(sys.argv[2:]))
    if sys.argv[1] == "--watch":
        _watch(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        start(*outer())
        os.execvp(sys.argv[1], sys.argv[1:])
