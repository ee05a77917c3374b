"""Run a command and measure its resource use.

Rule: the command behaves as if it were not measured: it has its own session, its streams, its exit code, and receives
our signals. The job ends with its first process; processes that it leaves behind are measured until then and killed. An
ended process stays a zombie until its last readings are taken.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from ...simulate.errors import ConfigError, PilotfishError
from ..measurement import Measurement
from ..probes.process_tree import ProcessTree, children
from .counters import Counters
from .observer import JobObserver

PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER = 36, 37
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PATIENCE_S, LEFTOVER_PATIENCE_S = 5.0, 1.0


class Signals:
    """Forwards our signals to the job's process group; `kill_at` is when a job that does not end is killed."""

    def __init__(self) -> None:
        self._group: int | None = None
        self._early: list[int] = []
        self._before: dict[int, object] = {}
        self.kill_at = float("inf")

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            self._before = {signum: signal.signal(signum, self._forward) for signum in FORWARDED}
            self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)  # type: ignore[arg-type]

    def forward_to(self, group: int) -> None:
        """Forward signals to this process group from now on, including those that came earlier."""
        self._group = group
        for signum in self._early:
            self._forward(signum, None)

    def _forward(self, signum: int, _: FrameType | None) -> None:
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
    """Yield a function that waits at most the given seconds for a process to end, and returns whether it has."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):  # kernels before Linux 5.3
        yield lambda timeout_s: _wait_in_steps(pid, timeout_s)
        return
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    try:
        yield lambda timeout_s: bool(poll.poll(timeout_s * 1000))
    finally:
        os.close(handle)


def _wait_in_steps(pid: int, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not (ended := _has_ended(pid)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return ended


def _has_ended(pid: int) -> bool:
    """Return whether a child of ours is a zombie; it stays one."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end_leftovers(tree: ProcessTree) -> list[int]:
    """End the processes that outlive the job's first one: TERM, then KILL. Return their pids, all zombies."""
    previous: list[int] | None = None
    for signum in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        deadline = time.monotonic() + LEFTOVER_PATIENCE_S
        signalled: set[int] = set()
        while True:
            tree.refresh()
            orphans = tree.orphans()
            alive = [pid for pid in orphans if not _has_ended(pid)]
            if not alive:
                # Children of a process that just ended may be reparented to us only now: check once more.
                if orphans == previous:
                    return orphans
                previous = orphans
                time.sleep(0.005)
                continue
            for pid in set(alive) - signalled:
                send(pid, signum)
            signalled.update(alive)
            if time.monotonic() >= deadline:
                break
            time.sleep(0.005)
    return [pid for pid in tree.orphans() if _has_ended(pid)]


def send(pid: int, signum: int) -> None:
    """Send a signal to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)


@contextlib.contextmanager
def subreaper() -> Iterator[None]:
    """Adopt orphans among our descendants (prctl(2), Linux 3.4)."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    before = ctypes.c_int(0)
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


class CommandError(PilotfishError):
    """The command could not be started; `exit_code` as in a shell: 127 not found, 126 not executable."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def measure(
    argv: Sequence[str],
    *,
    interval_s: float = 0.1,
    cpus: Iterable[int] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    node_type: str | None = None,
    stdout: IO[str] | int | None = None,
    counters: bool = False,
) -> tuple[int, Measurement]:
    """Run `argv` to its end and return (exit code as a shell reports it, its measurement).

    The isolated time is the wall time minus the time spent waiting for a core. While this runs, this process adopts
    orphans (subreaper): do not start other processes meanwhile.

    Args:
        argv: the command and its arguments.
        interval_s: time between readings, seconds; longer if a reading is expensive.
        cpus: CPU ids that it may use; None = ours.
        env: its whole environment; None = ours.
        cwd: its working directory.
        node_type: the cluster file's name for this machine, stored with the measurement.
        stdout: destination of its standard output; None = ours.
        counters: also read hardware counters that are available and unused.

    Raises:
        CommandError: the command cannot be started.
        ConfigError: `cpus` names a CPU that we may not use.
    """
    with subreaper(), Signals() as signals:
        others = children(os.getpid())
        hardware = Counters() if counters else None
        began = time.monotonic()
        child = _start(argv, cpus, env, cwd, stdout)
        try:
            signals.forward_to(child.pid)
            observer = JobObserver(
                child.pid,
                reaper=os.getpid(),
                others=others,
                began=began,
                interval_s=interval_s,
                node_type=node_type,
                counters=hardware,
            )
            _sample_until_end(child.pid, observer, signals)
            wall_s = time.monotonic() - began
            leftovers = end_leftovers(observer.tree)
            observer.sample(last=True)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            if hardware is not None:
                hardware.give_up()
            raise
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        usages = [usage, *(os.wait4(pid, 0)[2] for pid in leftovers)]
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # what is not above it may be our own at the fork
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    return code, observer.finish(
        wall_s=wall_s,
        cpu_s=sum(usage.ru_utime + usage.ru_stime for usage in usages),
        most_resident=max((usage.ru_maxrss * 1024.0 for usage in usages if usage.ru_maxrss > own_peak), default=0.0),
        exit_code=code,
    )


def _start(
    argv: Sequence[str],
    cpus: Iterable[int] | None,
    env: Mapping[str, str] | None,
    cwd: str | Path | None,
    stdout: IO[str] | int | None,
) -> subprocess.Popen[bytes]:
    before = os.sched_getaffinity(0)
    cpu_set = before if cpus is None else set(cpus)
    if not cpu_set or not cpu_set <= before:
        cpu_names = ",".join(map(str, sorted(cpu_set))) or "none"
        raise ConfigError("cpus", "", f"found {cpu_names}", f"some of {','.join(map(str, sorted(before)))}")
    try:
        os.sched_setaffinity(0, cpu_set)
        return subprocess.Popen(argv, env=env, cwd=cwd, stdout=stdout, start_new_session=True)
    except (OSError, ValueError, IndexError) as problem:
        name, reason = argv[0] if argv else "", getattr(problem, "strerror", None) or problem
        if cwd is not None and not Path(cwd).is_dir():
            raise CommandError(f"{cwd}: is not a directory to run a command in", 126) from None
        if isinstance(problem, FileNotFoundError) or not name:
            raise CommandError(f"{name or 'the command'}: command not found", 127) from None
        raise CommandError(f"{name}: cannot be run: {reason}", 126) from None
    finally:
        os.sched_setaffinity(0, before)


def _sample_until_end(pid: int, observer: JobObserver, signals: Signals) -> None:
    """Sample the job until its first process has ended; the process is not reaped."""
    with exit_of(pid) as has_ended:
        while not has_ended(min(observer.pause_s, max(0.0, signals.kill_at - time.monotonic()))):
            if time.monotonic() >= signals.kill_at:
                for member in observer.tree.threads:
                    send(member, signal.SIGKILL)
            observer.sample()
