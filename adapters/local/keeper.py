"""The keeper: one small process for each job, which starts it, enforces its limits and records how it ended.

Rule: the holder of a job's lock starts it, once. begin.json appears before the job's first instruction and only if
there was none; end.json appears when no process of the job is left. If begin.json already exists, an earlier keeper was
killed: the new one adopts the job, whose exit code is lost, and counts its walltime by the clock of the boot, because
the wall clock may have been set meanwhile. A job directory that is removed while the job runs is restored
(`restore_directory`).

It is forked by `keeper_server` with the lock taken and inherited, imports the standard library only, so that it is up
in milliseconds, and outlives the process that started it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
import time

from .cgroups import group_use, members, remove
from .job_files import (
    BEGIN,
    CANCEL,
    CONTROL,
    END,
    MTIME_S,
    PACE,
    PROBLEM,
    SPEC,
    file_sizes,
    inputs_of_run,
    opened,
    read_record,
    reserve_end,
    restore_directory,
    write_record,
)  # fmt: skip
from .job_process import become_job, outcome, unknown_outcome, write_end
from .processes import age_s, boot_id, busy_seconds, descendants, is_alive, marked, start_ticks
from .sampler import Pace, Sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


LONGEST_PATH = 4096  # bytes, PATH_MAX of linux/limits.h
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
KILLS = 100  # after so many SIGKILLs, 50 ms apart, the rest hangs in the kernel: the job ends without it
ORPHANED = "its keeper was killed; exit code unknown"
CANCELLED = ("cancelled", "cancelled")
TRIES = 20  # attempts to write the end, 50 ms apart, while another process removes or reads the directory
CHECK_S, LONGEST_CHECK_S = 0.4, 8.0  # the directory is checked as often as samples are taken, within these bounds
SETTLE_S = 0.3  # a missing directory is left alone this long, so that its removal can finish
REMOVED = "its directory was removed while it ran"
RESTARTED = "the machine was restarted while it ran; exit code unknown"


class Keeper:
    """Keeps one job: `begin` or `adopt` it, `watch` it to its end, `record` how it ended."""

    def __init__(self, directory: str, lock: int) -> None:
        self.directory, self.lock = directory, lock
        self.begun: dict[str, Any] = {}  # begin.json as it was written
        self.removed = False
        self.missing_since: float | None = None  # monotonic seconds
        self.spec = _spec(directory)
        self.walltime = _number(self.spec.get("job", {}).get("walltime"), None)
        self.grace_s = _number(self.spec.get("grace_s"), 5.0) or 0.0
        self.groups: list[str] = [group for group in self.spec.get("cgroups", ()) if isinstance(group, str)]
        self.boot = boot_id()
        self.pid = self.ticks = 0
        self.adopted = self.terminated = False
        self.status: int | None = None
        self.lost_reason, self.launch_pipe = ORPHANED, -1
        self.stop: tuple[str, str] | None = None  # the state in which it ends, and the reason
        self.start_time, self.started = time.time(), time.monotonic()
        self.finished: float | None = None
        self.usage = dict.fromkeys(("cpu_seconds", "read_bytes", "written_bytes"), 0.0)
        self.memory_bytes = 0.0
        self.busy_before: float | None = None  # seconds for which its CPUs were busy before it began
        self.sampler = Sampler(Pace(os.path.join(directory, "..", "..", PACE)))
        self.launch_error = b""  # written by the job's process before its first instruction
        self.poller = select.poll()
        self.inputs = [self._listen(), self._control()]
        for fd in self.inputs:
            self.poller.register(fd, select.POLLIN)

    def _listen(self) -> int:
        wake, wakeup = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        return wake

    def _control(self) -> int:
        path = os.path.join(self.directory, CONTROL)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def _on_sigterm(self, *_: object) -> None:
        self.terminated = True

    def begin(self) -> None:
        """Fork the job behind a gate, record its start, open the gate. A job that dies before that never ran."""
        sizes = self._sizes()
        gate, opener = os.pipe()
        self.launch_pipe, error_pipe = os.pipe()
        os.set_blocking(self.launch_pipe, False)
        self.poller.register(self.launch_pipe, select.POLLIN)
        self.floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.pid = os.fork()
        if self.pid == 0:
            os.close(opener)
            become_job(self.spec, gate, error_pipe)
        os.close(gate)
        os.close(error_pipe)
        self.ticks = start_ticks(self.pid) or 0
        for group in self.groups:
            with contextlib.suppress(OSError), open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(self.pid))
        me = os.getpid()
        job = {"pid": self.pid, "start_ticks": self.ticks, "boot_id": self.boot, "start_time": time.time()}
        keeper = {"keeper_pid": me, "keeper_ticks": start_ticks(me) or 0, "sizes": [*map(list, sizes.items())]}
        self.begun = job | keeper
        write_record(self.directory, BEGIN, self.begun, once=True)
        with contextlib.suppress(OSError, ValueError, TypeError):
            self.busy_before = busy_seconds(self.spec["cpus"])
        self.start_time, self.started = time.time(), time.monotonic()
        os.write(opener, b"!")
        os.close(opener)

    def adopt(self) -> None:
        """Find the job of a killed keeper again."""
        self.adopted = True
        self.sampler.start()
        with contextlib.suppress(ValueError, TypeError, LookupError):  # unreadable: found by its environment alone
            begun = self.begun = read_record(self.directory, BEGIN) or {}
            pid, ticks = int(begun["pid"]), int(begun["start_ticks"])
            self.start_time = float(begun["start_time"])
            if begun["boot_id"] != self.boot:
                self.started -= max(0.0, time.time() - self.start_time)
                self.lost_reason, self.finished = RESTARTED, time.monotonic()
                return
            self.started -= age_s(ticks)
            self.pid, self.ticks = pid, ticks
            with contextlib.suppress(OSError):
                self.poller.register(os.pidfd_open(pid), select.POLLIN)

    def watch(self) -> None:
        """Return when no process of the job is left; walltime and cancel send SIGTERM, then SIGKILL after a grace."""
        kill_at: float | None = None
        kills = 0
        while True:
            alive, now = self._reap(), time.monotonic()
            if self.finished is not None and (not alive or kills > KILLS):
                return
            if self.stop is None and self.finished is None:
                self.stop = self._why_stop(now)
                if self.stop:
                    kill_at = now + self.grace_s
                    self._signal(signal.SIGTERM)
                    self._signal(signal.SIGCONT)
            elif self.stop is None and kill_at is None:
                kill_at = now  # processes that outlive the job's first process are ended with it
            if kill_at is not None and now >= kill_at:
                self._signal(signal.SIGKILL)
                kills += 1
                kill_at = now + (0.05 if kills < KILLS else 1.0)
            if now >= self.sampler.due:
                self.sampler.sample(self._members())
            check_at = self._check_directory(now)
            self._sleep(min(self.sampler.due, self._deadline() if kill_at is None else kill_at, check_at) - now)

    def _reap(self) -> bool:
        """Reap ended children; return whether any process of the job is left."""
        while not self.adopted:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if ended is None:
                return True
            self.sampler.sample_ended(ended.si_pid)
            _, status, used = os.wait4(ended.si_pid, 0)
            self._count(used)
            if ended.si_pid == self.pid:
                self.status, self.finished = status, time.monotonic()
        if is_alive(self.pid, self.ticks, self.boot):
            return True
        alive = bool(self._members())
        if self.finished is None and (self.pid or not alive):  # without a known first process, all of them are the job
            self.finished = time.monotonic()
        return alive

    def _count(self, used: resource.struct_rusage) -> None:
        usage = self.usage
        usage["cpu_seconds"] += used.ru_utime + used.ru_stime
        usage["read_bytes"] += used.ru_inblock * 512.0
        usage["written_bytes"] += used.ru_oublock * 512.0
        if used.ru_maxrss > self.floor:  # below, it may be what this process used when it forked
            self.memory_bytes = max(self.memory_bytes, used.ru_maxrss * 1024.0)

    def _deadline(self) -> float:
        return float("inf") if self.walltime is None else self.started + self.walltime

    def _why_stop(self, now: float) -> tuple[str, str] | None:
        if now >= self._deadline():
            return "timeout", f"reached its walltime of {self.walltime:g} s"
        if self.cancelled():
            return CANCELLED
        return ("cancelled", "its keeper received SIGTERM") if self.terminated else None

    def cancelled(self) -> bool:
        """Return whether a cancel was requested."""
        return os.path.exists(os.path.join(self.directory, CANCEL))

    def _members(self) -> set[int]:
        """Return the job's processes.

        They are all descendants of this subreaper, even outside the session and process group; for an adopted job, the
        processes with its mark in their environment.
        """
        if self.adopted:
            pids = marked(self.directory)
            if is_alive(self.pid, self.ticks, self.boot):
                pids |= {self.pid} | descendants(self.pid)
        else:
            pids = descendants(os.getpid())
        for group in self.groups:
            with contextlib.suppress(OSError, ValueError):
                pids |= members(group)
        return pids - {0, os.getpid()}

    def _signal(self, number: int) -> None:
        if number == signal.SIGKILL:
            for group in self.groups:  # cgroup v2 kills the whole group at once, faster than any fork
                with contextlib.suppress(OSError), open(os.path.join(group, "cgroup.kill"), "r+") as file:
                    file.write("1")
        for pid in self._members():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _check_directory(self, now: float) -> float:
        """Restore the job's directory if it was removed; return when to check again."""
        if os.path.exists(os.path.join(self.directory, BEGIN)):
            self.missing_since = None
            return max(now + CHECK_S, min(self.sampler.due, now + LONGEST_CHECK_S))
        self.missing_since = now if self.missing_since is None else self.missing_since
        if now - self.missing_since >= SETTLE_S:
            self._restore_directory()
        return now + SETTLE_S

    def _restore_directory(self) -> bool:
        """Ensure that the job's directory has its records; return False if its end cannot be written there."""
        if not (self.spec and self.begun):
            return os.path.isdir(self.directory)
        lock = restore_directory(self.directory, self.lock, self.spec, self.begun)
        if lock is not None and lock != self.lock:
            os.close(self.lock)
            self.lock, self.removed = lock, True
            with contextlib.suppress(OSError):
                self.inputs.append(self._control())
                self.poller.register(self.inputs[-1], select.POLLIN)
        return lock is not None

    def _sleep(self, seconds: float) -> None:
        for fd, _ in self.poller.poll(int(max(0.0, min(seconds, 3600.0)) * 1000) + 1):
            if fd in self.inputs:
                with contextlib.suppress(BlockingIOError):
                    os.read(fd, 4096)
            elif fd == self.launch_pipe:
                self._read_launch_error()
            else:  # the adopted job's first process has ended
                self.poller.unregister(fd)

    def _read_launch_error(self) -> None:
        """Read what the child reports; the pipe closes when the job's own program takes its place."""
        with contextlib.suppress(BlockingIOError):
            while words := os.read(self.launch_pipe, 4096):
                self.launch_error += words
            self.poller.unregister(self.launch_pipe)
            self.sampler.start()

    def record(self) -> None:
        """Write how the job ended and remove its control groups."""
        group_usage = group_use(self.groups)
        if self.status is None:
            cancelled = CANCELLED if self.cancelled() else None
            result = unknown_outcome(*(self.stop or cancelled or ("failed", self.lost_reason)))
        else:
            if not self.sampler.started:
                self._read_launch_error()
            launch_error = self.launch_error.decode(errors="replace")
            result = outcome(self.status, self.stop, launch_error, group_usage.get("oom_kill_events", 0) > 0)
        remove(self.groups)
        self.sampler.end()
        observed = self.sampler.usage() | group_usage
        usage = observed if self.adopted else self.usage | observed
        if memory_bytes := max(observed.get("memory_bytes", 0.0), self.memory_bytes):
            usage["memory_bytes"] = memory_bytes
        with contextlib.suppress(OSError, ValueError, TypeError):
            if self.busy_before is not None:
                usage["busy_seconds"] = busy_seconds(self.spec["cpus"]) - self.busy_before
        usage |= self._input_sizes()
        finish_time = self.start_time + (self.finished or time.monotonic()) - self.started
        for _ in range(TRIES):
            if self._restore_directory() and write_end(
                self.directory, self._with_removal(result), self.start_time, finish_time, usage
            ):
                return
            time.sleep(0.05)

    def _input_sizes(self) -> dict[str, float]:
        """Return the sizes of the files that its command names, from before it began."""
        sizes = self._sizes(self.start_time - MTIME_S)
        try:  # as an earlier keeper wrote it
            return inputs_of_run({str(key): float(size) for key, size in self.begun.get("sizes", ())}, sizes)
        except (ValueError, TypeError):
            return {}

    def _sizes(self, since: float = 0.0) -> dict[str, float]:
        return file_sizes(self.spec.get("files", ()), str(self.spec.get("directory", "")), since)

    def _with_removal(self, result: dict[str, Any]) -> dict[str, Any]:
        if not self.removed:
            return result
        return result | {"reason": "; ".join(filter(None, (result["reason"], REMOVED)))}


def _spec(directory: str) -> dict[str, Any]:
    """Return spec.json as far as it is readable: an orphaned job is kept even without it."""
    try:
        spec = read_record(directory, SPEC) or {}
    except ValueError:
        spec = {}
    return spec if isinstance(spec.get("job"), dict) and isinstance(spec.get("cgroups"), list) else {}


def _number(value: Any, otherwise: float | None) -> float | None:
    return float(value) if isinstance(value, (int, float)) else otherwise


def keep(directory: str, lock: int) -> None:
    """Keep the job in `directory` to its end, from where an earlier keeper left off; the lock is held."""
    with contextlib.suppress(ValueError):
        if "state" in (read_record(directory, END) or {}):
            return
    reserve_end(directory)
    keeper = Keeper(directory, lock)
    begun = os.path.exists(os.path.join(directory, BEGIN))
    if not begun and keeper.cancelled():
        remove(keeper.groups)
        write_end(directory, unknown_outcome("cancelled", "cancelled before it began"), None, time.time(), {})
        return
    if begun:
        keeper.adopt()
    else:
        keeper.begin()
    keeper.watch()
    keeper.record()


def main(directory: str, lock: int) -> None:
    """Detach from the caller, become the parent of all processes that the job leaves behind, and keep the job."""
    os.setsid()
    os.set_inheritable(lock, False)
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        keep(directory, lock)
    except Exception as error:
        with contextlib.suppress(OSError), opened(os.path.join(directory, PROBLEM), os.O_WRONLY | os.O_CREAT) as fd:
            os.ftruncate(fd, 0)
            os.write(fd, f"{type(error).__name__}: {error}".encode(errors="replace"))


def serve(fd: int) -> None:
    """Fork a keeper for each directory and lock that are received, until the adapter is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    with contextlib.suppress(ImportError):
        import ctypes  # noqa: F401  # once for all keepers
    with socket.socket(fileno=fd) as channel:
        while True:
            directory, locks, *_ = socket.recv_fds(channel, LONGEST_PATH, 1)
            if not directory:
                return
            if os.fork() == 0:
                channel.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                main(os.fsdecode(directory), locks[0])
                os._exit(0)
            for lock in locks:
                os.close(lock)
