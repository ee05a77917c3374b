"""Run a command and measure what it needs.

Rule: the command behaves as if nobody watched: its own session, its streams, its exit code, signals handed
on. The job ends with its first process; what that leaves behind is counted so far, and killed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from ..simulate.errors import ConfigError, PilotfishError
from .child import Signals, end_what_is_left, exit_of, send, subreaper
from .counters import Counters
from .measurement import Measurement
from .probes.tree import children
from .watch import Watch


class CommandError(PilotfishError):
    """The command could not be started; `exit_code` as in a shell: 127 not found, 126 not executable."""

    def __init__(self, message: str, exit_code: int) -> None:
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
    """Run `argv` to its end and return (exit code as a shell has it, what was measured).

    Measured in company, its isolated time is its wall time less the time that it waited for a core. While
    this runs, this process takes over orphans (subreaper): call it where nothing else is started meanwhile.

    Args:
        argv: the command and its arguments.
        interval_s: time between readings, seconds; longer where a reading is costly.
        cpus: CPU ids it may use; None = as we may.
        env: its whole environment; None = ours.
        cwd: its working directory.
        node_type: the cluster file's name for this machine, put down with the measurement.
        stdout: where its standard output goes; None = to ours.
        counters: also read the hardware's, as far as they are there and nobody else uses them.

    Raises:
        CommandError: it cannot be started.
        ConfigError: `cpus` names a CPU that is not ours.
    """
    with subreaper(), Signals() as signals:
        others = children(os.getpid())
        hardware = Counters() if counters else None
        began = time.monotonic()
        child = _start(argv, cpus, env, cwd, stdout)
        try:
            signals.hand_to(child.pid)
            watch = Watch(
                child.pid,
                reaper=os.getpid(),
                others=others,
                began=began,
                interval_s=interval_s,
                node_type=node_type,
                counters=hardware,
            )
            _until_end(child.pid, watch, signals)
            wall_s = time.monotonic() - began
            left = end_what_is_left(watch.tree)
            watch.sample(last=True)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            if hardware is not None:
                hardware.give_up()
            raise
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        usages = [usage, *(os.wait4(pid, 0)[2] for pid in left)]
    code = child.returncode if child.returncode >= 0 else 128 - child.returncode
    return code, watch.finish(
        wall_s=wall_s,
        cpu_s=sum(usage.ru_utime + usage.ru_stime for usage in usages),
        most_resident=_most_resident(usages),
        exit_code=code,
    )


def _most_resident(usages: Sequence[resource.struct_rusage]) -> float:
    """Return the largest process's peak, bytes; 0 where it may be what we ourselves had when we forked."""
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max((usage.ru_maxrss * 1024.0 for usage in usages if usage.ru_maxrss > ours), default=0.0)


def _start(
    argv: Sequence[str],
    cpus: Iterable[int] | None,
    env: Mapping[str, str] | None,
    cwd: str | Path | None,
    stdout: IO[str] | int | None,
) -> subprocess.Popen[bytes]:
    """Start the command in its own session, on `cpus`."""
    before = os.sched_getaffinity(0)
    wanted = before if cpus is None else set(cpus)
    if not wanted or not wanted <= before:
        found = ",".join(map(str, sorted(wanted))) or "none"
        raise ConfigError("cpus", "", f"found {found}", f"some of {','.join(map(str, sorted(before)))}")
    try:
        os.sched_setaffinity(0, wanted)
        return subprocess.Popen(argv, env=env, cwd=cwd, stdout=stdout, start_new_session=True)
    except (OSError, ValueError, IndexError) as problem:
        raise _not_started(argv, cwd, problem) from None
    finally:
        os.sched_setaffinity(0, before)


def _not_started(argv: Sequence[str], cwd: str | Path | None, problem: Exception) -> CommandError:
    """Return what a person is told of a command that could not be started."""
    if cwd is not None and not Path(cwd).is_dir():
        return CommandError(f"{cwd}: is not a directory to run a command in", 126)
    name = argv[0] if argv else ""
    if isinstance(problem, FileNotFoundError) or not name:
        return CommandError(f"{name or 'the command'}: command not found", 127)
    return CommandError(f"{name}: cannot be run: {getattr(problem, 'strerror', None) or problem}", 126)


def _until_end(pid: int, watch: Watch, signals: Signals) -> None:
    """Look at the job again and again until its first process has ended; it is not waited for."""
    with exit_of(pid) as has_ended:
        while not has_ended(min(watch.pause_s, max(0.0, signals.kill_at - time.monotonic()))):
            if time.monotonic() >= signals.kill_at:
                for member in watch.tree.threads:
                    send(member, signal.SIGKILL)
            watch.sample()
