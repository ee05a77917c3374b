"""The keeper: one small process for each job that starts it, enforces its limits and records how it ended.

Rule: a job is started by the holder of its lock, once: begin.json appears before the job's first instruction,
and only where there was none; end.json appears when nothing of the job is left. Where begin.json is already
there, an earlier keeper was killed: this one adopts the job, whose exit code nobody can learn any more. A directory
that is removed while the job runs is made again (`restore`).

It runs as `python -I -S -E -c COMMAND ADAPTERS_DIR JOB_DIR LOCK_FD`, the lock taken and inherited; standard
library only, so that it is up in milliseconds; it outlives whoever started it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time

from .group_use import group_use
from .launch import become
from .outcome import killed_for_memory, outcome, unknown_outcome, write_end
from .pace import Pace
from .processes import boot_id, descendants, is_alive, marked, start_ticks
from .records import BEGIN, CANCEL, CONTROL, END, PACE, PROBLEM, SPEC, read_record, reserve_end, write_record
from .restore import restore
from .sampler import Sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = "import sys; sys.path.append(sys.argv[1]); from local.keeper import main; main(*sys.argv[2:])"
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
KILLS = 100  # after so many, 50 ms apart, what is left hangs in the kernel: the job ends without it
ORPHANED = "its keeper was killed; exit code unknown"
CANCELLED = ("cancelled", "cancelled")
TRIES = 20  # to write the end down, 50 ms apart, while somebody removes or looks at the directory
LOOK_S, LONGEST_LOOK_S = 0.4, 8.0  # how often the directory is looked for: as samples are taken, between these
SETTLE_S = 0.3  # how long it is left alone when it is missing: who removes it comes to an end first
REMOVED = "its directory was removed while it ran"
RESTARTED = "the machine was restarted while it ran; exit code unknown"


class Keeper:
    """Keeps one job: `begin` or `adopt` it, `watch` it to its end, `record` how it ended."""

    def __init__(self, directory: str, lock: int) -> None:
        self.directory, self.lock = directory, lock
        self.begun: dict[str, Any] = {}  # begin.json as it was written
        self.removed = False
        self.missed: float | None = None  # since when it is missing
        self.spec = _spec(directory)
        self.walltime = _number(self.spec.get("job", {}).get("walltime"), None)
        self.grace_s = _number(self.spec.get("grace_s"), 5.0) or 0.0
        self.groups: list[str] = [group for group in self.spec.get("cgroups", ()) if isinstance(group, str)]
        self.boot = boot_id()
        self.pid = self.ticks = 0
        self.adopted = self.told = False
        self.status: int | None = None
        self.lost, self.says = ORPHANED, -1
        self.stop: tuple[str, str] | None = None  # the state that it ends in, and why
        self.start_time, self.started = time.time(), time.monotonic()
        self.finished: float | None = None
        self.usage = dict.fromkeys(("cpu_seconds", "read_bytes", "written_bytes"), 0.0)
        self.memory_bytes = 0.0
        self.sampler = Sampler(Pace(os.path.join(directory, "..", "..", PACE)))
        self.said = b""  # by the job's process before its first instruction
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
        signal.signal(signal.SIGTERM, self._told)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        return wake

    def _control(self) -> int:
        path = os.path.join(self.directory, CONTROL)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def _told(self, *_: object) -> None:
        self.told = True

    def begin(self) -> None:
        """Fork the job behind a gate, write that it begins, open the gate: dead before that, it never ran."""
        gate, opener = os.pipe()
        self.says, tell = os.pipe()
        os.set_blocking(self.says, False)
        self.poller.register(self.says, select.POLLIN)
        self.floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.pid = os.fork()
        if self.pid == 0:
            os.close(opener)
            become(self.spec, gate, tell)
        os.close(gate)
        os.close(tell)
        self.ticks = start_ticks(self.pid) or 0
        for group in self.groups:
            with contextlib.suppress(OSError), open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(self.pid))
        me = os.getpid()
        job = {"pid": self.pid, "start_ticks": self.ticks, "boot_id": self.boot, "start_time": time.time()}
        keeper = {"keeper_pid": me, "keeper_ticks": start_ticks(me) or 0}
        self.begun = job | keeper
        write_record(self.directory, BEGIN, self.begun, once=True)
        self.start_time, self.started = time.time(), time.monotonic()
        os.write(opener, b"!")
        os.close(opener)

    def adopt(self) -> None:
        """Find the job of a killed keeper again."""
        self.adopted = True
        self.sampler.start()
        with contextlib.suppress(ValueError, TypeError, LookupError):  # unreadable: known by their mark alone
            begun = self.begun = read_record(self.directory, BEGIN) or {}
            pid, ticks, self.start_time = (
                int(begun["pid"]),
                int(begun["start_ticks"]),
                float(begun["start_time"]),
            )
            self.started -= max(0.0, time.time() - self.start_time)
            if begun["boot_id"] != self.boot:
                self.lost, self.finished = RESTARTED, time.monotonic()
                return
            self.pid, self.ticks = pid, ticks
            with contextlib.suppress(OSError):
                self.poller.register(os.pidfd_open(pid), select.POLLIN)

    def watch(self) -> None:
        """Return when nothing of the job is left; walltime and cancel end it: TERM, a grace, then KILL."""
        kill_at: float | None = None
        kills = 0
        while True:
            left, now = self._reap(), time.monotonic()
            if self.finished is not None and (not left or kills > KILLS):
                return
            if self.stop is None and self.finished is None:
                self.stop = self._why_stop(now)
                if self.stop:
                    kill_at = now + self.grace_s
                    self._signal(signal.SIGTERM)
                    self._signal(signal.SIGCONT)
            elif self.stop is None and kill_at is None:
                kill_at = now  # what a job leaves behind goes with it
            if kill_at is not None and now >= kill_at:
                self._signal(signal.SIGKILL)
                kills += 1
                kill_at = now + (0.05 if kills < KILLS else 1.0)
            if now >= self.sampler.due:
                self.sampler.sample(self._members())
            look = self._look(now)
            self._sleep(min(self.sampler.due, self._deadline() if kill_at is None else kill_at, look) - now)

    def _reap(self) -> bool:
        """Wait for whoever has ended; return whether anything of the job is left."""
        while not self.adopted:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if ended is None:
                return True
            self.sampler.last_words(ended.si_pid)
            _, status, used = os.wait4(ended.si_pid, 0)
            self._count(used)
            if ended.si_pid == self.pid:
                self.status, self.finished = status, time.monotonic()
        if is_alive(self.pid, self.ticks, self.boot):
            return True
        left = bool(self._members())
        if self.finished is None and (
            self.pid or not left
        ):  # without a known first process all of them are the job
            self.finished = time.monotonic()
        return left

    def _count(self, used: resource.struct_rusage) -> None:
        usage = self.usage
        usage["cpu_seconds"] += used.ru_utime + used.ru_stime
        usage["read_bytes"] += used.ru_inblock * 512.0
        usage["written_bytes"] += used.ru_oublock * 512.0
        if used.ru_maxrss > self.floor:  # below, it may be what this process had when it forked
            self.memory_bytes = max(self.memory_bytes, used.ru_maxrss * 1024.0)

    def _deadline(self) -> float:
        return float("inf") if self.walltime is None else self.started + self.walltime

    def _why_stop(self, now: float) -> tuple[str, str] | None:
        if now >= self._deadline():
            return "timeout", f"reached its walltime of {self.walltime:g} s"
        if self.cancelled():
            return CANCELLED
        return ("cancelled", "its keeper was told to end (SIGTERM)") if self.told else None

    def cancelled(self) -> bool:
        """Whether somebody wants it to end."""
        return os.path.exists(os.path.join(self.directory, CANCEL))

    def _members(self) -> set[int]:
        """The job's processes: all that descend from this subreaper, also those that left session and group;
        an adopted job's are known by what they carry in their environment."""
        if self.adopted:
            found = marked(self.directory)
            if is_alive(self.pid, self.ticks, self.boot):
                found |= {self.pid} | descendants(self.pid)
        else:
            found = descendants(os.getpid())
        for group in self.groups:
            with contextlib.suppress(OSError, ValueError), open(os.path.join(group, "cgroup.procs")) as file:
                found.update(map(int, file.read().split()))
        return found - {0, os.getpid()}

    def _signal(self, number: int) -> None:
        if number == signal.SIGKILL:
            for group in self.groups:  # cgroup v2 has a switch that no fork can outrun
                with contextlib.suppress(OSError), open(os.path.join(group, "cgroup.kill"), "r+") as file:
                    file.write("1")
        for pid in self._members():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _look(self, now: float) -> float:
        """Make the job's directory again if it was removed; return when to look again."""
        if os.path.exists(os.path.join(self.directory, BEGIN)):
            self.missed = None
            return max(now + LOOK_S, min(self.sampler.due, now + LONGEST_LOOK_S))
        self.missed = now if self.missed is None else self.missed
        if now - self.missed >= SETTLE_S:
            self._hold()
        return now + SETTLE_S

    def _hold(self) -> bool:
        """See that the job's directory is there with its records; False where its end cannot be written there."""
        if not (self.spec and self.begun):
            return os.path.isdir(self.directory)
        lock = restore(self.directory, self.lock, self.spec, self.begun)
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
            elif fd == self.says:
                self._hear()
            else:  # the adopted job's first process has ended
                self.poller.unregister(fd)

    def _hear(self) -> None:
        """Read what the child says; it is cut off when the job's own program takes its place."""
        with contextlib.suppress(BlockingIOError):
            while words := os.read(self.says, 4096):
                self.said += words
            self.poller.unregister(self.says)
            self.sampler.start()

    def record(self) -> None:
        """Write how it ended, and let go of its control groups."""
        if self.status is None:
            cancelled = CANCELLED if self.cancelled() else None
            result = unknown_outcome(*(self.stop or cancelled or ("failed", self.lost)))
        else:
            if not self.sampler.started:
                self._hear()
            said = self.said.decode(errors="replace")
            result = outcome(self.status, self.stop, said, killed_for_memory(self.groups))
        held_up = group_use(self.groups)
        _release(self.groups)
        self.sampler.end()
        seen = self.sampler.usage() | held_up
        usage = seen if self.adopted else self.usage | seen
        if memory_bytes := max(seen.get("memory_bytes", 0.0), self.memory_bytes):
            usage["memory_bytes"] = memory_bytes
        finish_time = self.start_time + (self.finished or time.monotonic()) - self.started
        for _ in range(TRIES):
            if self._hold() and write_end(
                self.directory, self._told_of_removal(result), self.start_time, finish_time, usage
            ):
                return
            time.sleep(0.05)

    def _told_of_removal(self, result: dict[str, Any]) -> dict[str, Any]:
        if not self.removed:
            return result
        return result | {"reason": "; ".join(filter(None, (result["reason"], REMOVED)))}


def _spec(directory: str) -> dict[str, Any]:
    """spec.json as far as it can be read: an orphaned job is looked after also where it cannot."""
    try:
        spec = read_record(directory, SPEC) or {}
    except ValueError:
        spec = {}
    return spec if isinstance(spec.get("job"), dict) and isinstance(spec.get("cgroups"), list) else {}


def _release(groups: list[str]) -> None:
    for group in groups:
        with contextlib.suppress(OSError):
            os.rmdir(group)


def _number(value: Any, otherwise: float | None) -> float | None:
    return float(value) if isinstance(value, (int, float)) else otherwise


def keep(directory: str, lock: int) -> None:
    """Keep the job in `directory` to its end, wherever an earlier keeper left off; the lock is held."""
    with contextlib.suppress(ValueError):
        if "state" in (read_record(directory, END) or {}):
            return
    reserve_end(directory)
    keeper = Keeper(directory, lock)
    begun = os.path.exists(os.path.join(directory, BEGIN))
    if not begun and keeper.cancelled():
        _release(keeper.groups)
        write_end(directory, unknown_outcome("cancelled", "cancelled before it began"), None, time.time(), {})
        return
    if begun:
        keeper.adopt()
    else:
        keeper.begin()
    keeper.watch()
    keeper.record()


def main(directory: str, lock: str) -> None:
    """Detach from whoever started this, become the parent of all that the job leaves behind, and keep it."""
    os.set_inheritable(int(lock), False)
    if os.fork():
        os._exit(0)
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        keep(directory, int(lock))
    except Exception as error:
        with contextlib.suppress(OSError), open(os.path.join(directory, PROBLEM), "w") as file:
            file.write(f"{type(error).__name__}: {error}")
