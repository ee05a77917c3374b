"""A job as a child of ours: signals handed on, its end noticed at once, nothing of it left behind.

Rule: a process that has ended stays a zombie until its last readings are taken.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from .probes.tree import ProcessTree

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PATIENCE_S, LEFTOVER_PATIENCE_S = 5.0, 1.0


class Signals:
    """Hands the signals that we get to the job's process group; says when to kill a job that stays."""

    def __init__(self) -> None:
        self._group: int | None = None
        self._early: list[int] = []
        self._before: dict[int, object] = {}
        self.kill_at = float("inf")

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            self._before = {signum: signal.signal(signum, self._pass_on) for signum in PASSED_ON}
            self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)  # type: ignore[arg-type]

    def hand_to(self, group: int) -> None:
        """Hand signals to this process group from now on, also those that came too early."""
        self._group = group
        for signum in self._early:
            self._pass_on(signum, None)

    def _pass_on(self, signum: int, _: FrameType | None) -> None:
        if self._group is None:
            self._early.append(signum)
            return
        if signum in ENDING:
            again = self.kill_at < float("inf")
            self.kill_at = time.monotonic() + (0.0 if again else PATIENCE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._group, signum)


@contextlib.contextmanager
def exit_of(pid: int) -> Iterator[Callable[[float], bool]]:
    """Give a function that waits at most so many seconds for a process to end, and says whether it has."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):
        yield lambda timeout_s: _wait_in_steps(pid, timeout_s)
        return
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    try:
        yield lambda timeout_s: bool(poll.poll(timeout_s * 1000))
    finally:
        os.close(handle)


def _wait_in_steps(pid: int, timeout_s: float) -> bool:
    """Wait for a process to end on kernels that have no pidfd (before Linux 5.3)."""
    deadline = time.monotonic() + timeout_s
    while not _has_ended(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)
    return True


def _has_ended(pid: int) -> bool:
    """Whether a child of ours is a zombie; it stays one."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end_what_is_left(tree: ProcessTree) -> list[int]:
    """End what outlives the job's first process: TERM, then KILL. Return the pids, all zombies of ours."""
    settled: list[int] | None = None
    for signum in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        deadline = time.monotonic() + LEFTOVER_PATIENCE_S
        asked: set[int] = set()
        while True:
            tree.refresh()
            ours = [pid for pid in tree.orphans() if pid != tree.root]
            alive = [pid for pid in ours if not _has_ended(pid)]
            if not alive:
                # Children of one that ended while we looked came to us only then: look once more, a little later.
                if ours == settled:
                    return ours
                settled = ours
                time.sleep(0.005)
                continue
            for pid in set(alive) - asked:
                send(pid, signum)
            asked.update(alive)
            if time.monotonic() >= deadline:
                break
            time.sleep(0.005)
    return [pid for pid in tree.orphans() if _has_ended(pid)]


def send(pid: int, signum: int) -> None:
    """Send a signal to a process that may have gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)


@contextlib.contextmanager
def subreaper() -> Iterator[None]:
    """Be the process to which orphans among our descendants go (prctl(2), Linux 3.4)."""
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        yield
        return
    before = ctypes.c_int(0)
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)
