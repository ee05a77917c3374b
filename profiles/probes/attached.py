"""A counting command beside a job: perf or likwid-perfctr.

Rule: it never outlives us, and is never waited for longer than `PATIENCE_S`. What it is told to run is `cat` on a pipe
of ours, so that it ends, and prints, when we close the pipe, and also when we are killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence

from .tree import ProcessTree

PATIENCE_S = 5.0
#: For a command that was killed to be gone; one that hangs in the kernel is left to itself.
KILLED_S = 0.5
MOST_BYTES = 1 << 20


class Attached:
    """A command that counts until it is told to stop; `cost_s`: CPU seconds that it took, once it has ended.

    Args:
        argv: the command, without what it runs.
        tree: the job's, which does not take the command for the job's.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, argv: Sequence[str], tree: ProcessTree) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed once it is read)
        self._process = subprocess.Popen(
            [*argv, "cat"],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            env=os.environ | {"LC_ALL": "C"},
            start_new_session=True,
        )
        self._deadline = float("inf")
        self.cost_s, self.killed = 0.0, False
        tree.leave_out(self._process.pid)

    def ask(self) -> None:
        """Tell it to stop, without waiting for it."""
        assert self._process.stdin is not None
        if self._deadline == float("inf"):
            self._process.stdin.close()
            self._deadline = time.monotonic() + PATIENCE_S

    @property
    def settled(self) -> bool:
        """Whether `finish` would not have to wait: it has ended, or was told to long ago."""
        return self._reap() or time.monotonic() >= self._deadline

    def finish(self) -> str:
        """Tell it to stop and return what it printed, whatever came of it."""
        self.ask()
        self._wait(self._deadline)
        if not self._reap():
            self.kill()
        with self._said as file:
            file.seek(0)
            return file.read(MOST_BYTES).decode(errors="replace")

    def kill(self) -> None:
        """End it at once, with what it started; what it counted is lost."""
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
        """Whether it has ended."""
        if self._process.returncode is None:
            try:
                pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status, usage = self._process.pid, 0, None
            if pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                self.cost_s = usage.ru_utime + usage.ru_stime if usage else 0.0
        return self._process.returncode is not None


class Attaching:
    """What the probes that attach a command have in common."""

    def __init__(self) -> None:
        self._attached: Attached | None = None
        self._problem = ""

    def ask(self) -> None:
        """Tell the command to stop, without waiting for it."""
        if self._attached is not None:
            self._attached.ask()

    @property
    def settled(self) -> bool:
        """Whether `stop` would not have to wait."""
        return self._attached is None or self._attached.settled

    @property
    def cost_s(self) -> float:
        """CPU seconds that the command took, once it has ended."""
        return self._attached.cost_s if self._attached is not None else 0.0

    def kill(self, problem: str = "given up") -> None:
        """End the command at once; what it counted is not known, for this reason."""
        if self._attached is not None:
            self._attached.kill()
            self._attached, self._problem = None, problem

    def _attach(self, argv: Sequence[str], tree: ProcessTree) -> None:
        try:
            self._attached = Attached([*argv, "--"] if argv[0] == "perf" else argv, tree)
        except OSError as problem:
            self._problem = f"{argv[0]} cannot be started: {problem.strerror}"

    def _printed(self) -> str | None:
        """End the command and return what it printed; None, and the problem is known, where nothing was counted."""
        if self._attached is None:
            return None
        printed = self._attached.finish()
        if self._attached.killed and not printed.strip():
            self._problem = f"it did not end within {PATIENCE_S:g} s"
            return None
        return printed


def complaint(printed: str) -> str:
    """Return the first line of what a command printed that says something: mostly why it did not count."""
    lines = (line.strip() for line in printed.splitlines())
    telling = (line for line in lines if line and line.strip("-=#* ") and line not in ("Error:", "Warning:"))
    return next(telling, "it printed nothing")[:120]
