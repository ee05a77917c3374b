"""Commands that read hardware counters for a job (perf, likwid-perfctr), and the check for other users of the counters.

Rule: a command never outlives this process and is never waited for longer than `PATIENCE_S`. It runs `cat` on a pipe of
ours, so it ends and prints its counts when the pipe closes, also when we are killed. Counters that another process uses
are left alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .probe import ROOT, Probe, read_text, stat_fields
from .process_tree import ProcessTree

#: Time for a command to end after its pipe is closed.
PATIENCE_S = 5.0
#: Time for a killed command to end; one that hangs in the kernel is abandoned.
KILLED_S = 0.5
MOST_BYTES = 1 << 20
#: Names of counter_user tools in /proc/PID/comm, which holds 15 characters at most.
TOOLS = frozenset(("perf", "likwid-perfctr", "likwid-accessD", "pcm", "pcm-memory", "vtune", "emon", "AMDuProfPcm"))
_PERF_EVENT = "anon_inode:[perf_event]"


class ExternalCounter:
    """A command that counts until it is asked to stop; `cost_s`: its CPU seconds, once it has ended.

    Args:
        argv: the command, without the program that it runs.
        tree: the job's processes; the command is excluded from them.

    Raises:
        OSError: the command cannot be started.
    """

    def __init__(self, argv: Sequence[str], tree: ProcessTree) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `finish`)
        self._process = subprocess.Popen(
            [*argv, "cat"],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            env=os.environ | {"LC_ALL": "C"},
            start_new_session=True,
        )
        self._deadline = float("inf")
        self.cost_s, self.killed = 0.0, False
        tree.exclude(self._process.pid)

    def request_stop(self) -> None:
        """Ask the command to stop, without waiting."""
        assert self._process.stdin is not None
        if self._deadline == float("inf"):
            self._process.stdin.close()
            self._deadline = time.monotonic() + PATIENCE_S

    @property
    def ready(self) -> bool:
        """True if `finish` returns at once: the command has ended, or its time to end is over."""
        return self._reap() or time.monotonic() >= self._deadline

    def finish(self) -> str:
        """Stop the command and return its output, whatever its exit code."""
        self.request_stop()
        self._wait(self._deadline)
        if not self._reap():
            self.kill()
        with self._output as file:
            file.seek(0)
            return file.read(MOST_BYTES).decode(errors="replace")

    def kill(self) -> None:
        """Kill the command and its children; their counts are lost."""
        self.killed = True
        self._deadline = time.monotonic()
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        self._wait(self._deadline + KILLED_S)

    def _wait(self, deadline: float) -> None:
        while not self._reap() and time.monotonic() < deadline:
            time.sleep(0.005)

    def _reap(self) -> bool:
        if self._process.returncode is None:
            try:
                pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status, usage = self._process.pid, 0, None
            if pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                self.cost_s = usage.ru_utime + usage.ru_stime if usage else 0.0
        return self._process.returncode is not None


@dataclass(frozen=True, slots=True)
class EventCounts:
    """Counts of a job or of the whole node; None = unknown.

    Args:
        cpu_s: CPU seconds that were counted.
        instructions, cycles: counts.
        moved_bytes: bytes to and from memory.
        miss_bytes: last-level cache misses x 64 bytes: a lower bound of the traffic, without prefetches and
            write-backs.
        problem: why something is unknown.
        user_only: instructions, cycles and misses inside the kernel were excluded.
    """

    cpu_s: float | None = None
    instructions: float | None = None
    cycles: float | None = None
    moved_bytes: float | None = None
    miss_bytes: float | None = None
    problem: str = ""
    user_only: bool = False

    @property
    def ipc(self) -> float | None:
        """Instructions per cycle."""
        return self.instructions / self.cycles if self.instructions and self.cycles else None


class ExternalCounterProbe(Probe):
    """Base of the probes that run a counting command; its counts are read once, at the end.

    Args:
        root: directory that holds /proc and /sys.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._command: ExternalCounter | None = None
        self._problem = ""

    def request_stop(self) -> None:
        """Ask the command to stop, without waiting."""
        if self._command is not None:
            self._command.request_stop()

    @property
    def ready(self) -> bool:
        """True if `stop` returns at once."""
        return self._command is None or self._command.ready

    @property
    def cost_s(self) -> float:
        """CPU seconds of the command, once it has ended."""
        return self._command.cost_s if self._command is not None else 0.0

    def kill(self, problem: str = "given up") -> None:
        """Kill the command; `problem` is why its counts are unknown."""
        if self._command is not None:
            self._command.kill()
            self._command, self._problem = None, problem

    def _start_command(self, argv: Sequence[str], tree: ProcessTree) -> None:
        try:
            self._command = ExternalCounter([*argv, "--"] if argv[0] == "perf" else argv, tree)
        except OSError as problem:
            self._problem = f"{argv[0]} cannot be started: {problem.strerror}"

    def stop(self) -> EventCounts:
        """Stop the command and return its counts."""
        if self._command is None:
            return EventCounts(problem=self._problem)
        printed = self._command.finish()
        if self._command.killed and not printed.strip():
            return EventCounts(problem=f"it did not end within {PATIENCE_S:g} s")
        return self._conclude(printed)

    @abstractmethod
    def _conclude(self, printed: str) -> EventCounts:
        """Return the counts in what the command printed."""


def first_message(printed: str) -> str:
    """Return the first line of a command's output that holds a message, mostly why it did not count."""
    lines = (line.strip() for line in printed.splitlines())
    meaningful = (line for line in lines if line and line.strip("-=#* ") and line not in ("Error:", "Warning:"))
    return next(meaningful, "it printed nothing")[:120]


def counter_user(pids: Iterable[int] | None = None, root: Path = ROOT) -> str | None:
    """Return which process uses the hardware counters, None if none does.

    A process uses them if it holds a perf event (where that is visible) or is a counting tool. Our own process and its
    children, which count for other jobs, are ignored. O(open files of the processes).

    Args:
        pids: processes to examine; None = all.
        root: directory that holds /proc.
    """
    if pids is None:
        pids = (int(path.name) for path in (root / "proc").glob("[0-9]*"))
    for pid in pids:
        folder = root / "proc" / str(pid)
        name = read_text(folder / "comm")
        counts = pid != os.getpid() and name and (name in TOOLS or _holds_perf_event(folder / "fd"))
        if counts and stat_fields(pid, root)[1:2] != [str(os.getpid())]:  # the parent
            return f"{name} (process {pid}) uses the counters"
    return None


def _holds_perf_event(folder: Path) -> bool:
    try:
        return any(os.readlink(entry.path) == _PERF_EVENT for entry in os.scandir(folder))
    except OSError:
        return False
