"""Compile kernels in processes of their own, while this one stays awake for signals and clients.

Rule: a process that compiles dies with the one that wants the kernel. Work is counted in lines of code, and the
remaining time is what the lines so far took, scaled. A kernel whose process fails is compiled here, which blocks.

A worker imports the compiler once and forks for each kernel, because a function that is compiled twice in one process
keeps the code of the first time, which other kernels may not want.
"""

from __future__ import annotations

import ctypes
import heapq
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import import_module

from ..formats.text import count
from ..machine_share import usable_cpus
from ..simulate.kernels.object_cache import KERNELS, Kernel, adopt, load, machine_code

#: Longest time between two reports of progress, seconds.
STEP_S = 0.2
#: Seconds between two lines about the progress; shortest remaining time that is worth a line of its own.
SAY_EVERY_S, WORTH_A_LINE_S = 15.0, 2.0
#: Work of a worker's start, in lines of compiled code: with the first module imported, with both, and once the first
#: function is compiled. Measured as the numbers below: CPU time of all kernels.
IMPORTS, STARTED, WARMED = 125, 155, 185
COMPILER = ("numba", "..simulate.kernels.compile")
#: Work of a line where each function is lowered, too.
LOWERED = 1.4
#: Share of a kernel's work before the last function is compiled, and before its code is written.
FUNCTIONS, OPTIMISED = 0.82, 0.92
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class CompilationProgress:
    """Progress of the compilation of some kernels.

    Args:
        kernels: all of them; `finished`: those that are compiled.
        share: of the work that is done, 0 to 1.
        left_s: seconds until all are compiled; None: not known yet.
    """

    kernels: Sequence[str]
    finished: Sequence[str]
    share: float
    left_s: float | None

    @property
    def done(self) -> bool:
        """True once all are compiled."""
        return len(self.finished) == len(self.kernels)

    def __str__(self) -> str:
        number = min(len(self.finished) + 1, len(self.kernels))
        of = count(len(self.kernels), "kernel")
        subject = KERNELS[self.kernels[0]].title if len(self.kernels) == 1 else f"{number} of {of}"
        remaining = (
            "" if self.left_s is None else f": {100 * self.share:.0f} %, about {max(self.left_s, 1.0):.0f} s left"
        )
        return f"compiling {subject} for this machine{remaining}"


class Announcements:
    """Picks the progress that is worth a line: the first, the first with a time, and one every SAY_EVERY_S after it.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._due_at, self._timed = clock, -math.inf, False

    def __call__(self, progress: CompilationProgress) -> bool:
        """Return whether to print this progress."""
        first_time = not self._timed and (progress.left_s or 0.0) >= WORTH_A_LINE_S
        if progress.done or not (first_time or self._clock() >= self._due_at):
            return False
        self._timed, self._due_at = self._timed or first_time, self._clock() + SAY_EVERY_S
        return True


def work_of(kernel: Kernel) -> float:
    """Return the work of compiling a kernel, in lines of code."""
    return kernel.lines * (LOWERED if kernel.lowered else 1.0) / FUNCTIONS


class _Worker:
    """A process that compiles one kernel after another, and the work that it has reported.

    It reads names of kernels. It writes a line for each piece of work, and the object code after a line with its size.
    """

    def __init__(self) -> None:
        argv = [sys.executable, "-P", "-m", __name__, str(os.getpid())]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads must not fork
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdin is not None and self.process.stdout is not None
        self._input, self.output = self.process.stdin, self.process.stdout
        self._received, self._size = bytearray(), -1
        self.started_at = self.reported_at = time.monotonic()
        self.kernel, self.start, self._lines, self._finished = "", 0, 0, 0.0

    def compile(self, kernel: str) -> None:
        """Start with a kernel."""
        self.kernel, self._lines, self._size = kernel, 0, -1
        with suppress(OSError):  # the process has died, which `read` notices
            os.write(self._input.fileno(), f"{kernel}\n".encode())

    def read(self) -> bool:
        """Take the reports that have arrived; return False at the end."""
        part = os.read(self.output.fileno(), 2**20)
        self._received += part
        while self._size < 0 and (end := self._received.find(b"\n")) >= 0:
            word, number = self._received[:end].split()
            del self._received[: end + 1]
            self.reported_at = time.monotonic()
            if word == b"start":
                self.start = int(number)
            elif word == b"lines":
                self.start, self._lines = WARMED, self._lines + int(number)
            else:
                self._size = int(number)
        return bool(part)

    def code(self) -> bytes | None:
        """Return the object code, once all has arrived; None: not yet."""
        if not 0 <= self._size <= len(self._received):
            return None
        code = bytes(self._received[: self._size])
        self._received.clear()
        self._finished += work_of(KERNELS[self.kernel])
        self.kernel, self.reported_at = "", time.monotonic()
        return code

    @property
    def part(self) -> float:
        """Work of its kernel so far, in lines of code."""
        if not self.kernel:
            return 0.0
        share = self._lines / KERNELS[self.kernel].lines
        return work_of(KERNELS[self.kernel]) * (OPTIMISED if share >= 1.0 else FUNCTIONS * share)

    @property
    def work(self) -> float:
        """Work of all its kernels and of its start so far, in lines of code."""
        return self.start + self._finished + self.part

    def leave(self) -> None:
        """Let the process end, which has nothing more to compile."""
        self._input.close()
        self.process.wait()

    def end(self) -> None:
        """Kill the process, if it still runs; what it has forked dies with it."""
        self.process.kill()
        self.process.wait()
        self._input.close()
        self.output.close()


def _seconds_left(workers: Sequence[_Worker], waiting: Sequence[str], now: float) -> float | None:
    """Return the seconds until all kernels are compiled; None: no function is compiled yet.

    The pace of the imports is no guide: modules in memory are read at once, however busy the CPUs are.

    Args:
        workers: all that were started.
        waiting: kernels that no worker has, the next one last.
        now: seconds, monotonic.
    """
    if all(worker.start < WARMED for worker in workers):
        return None
    work = sum(worker.work for worker in workers)
    pace = sum(worker.reported_at - worker.started_at for worker in workers) / work

    def seconds(worker: _Worker) -> float:
        remaining = pace * (WARMED - worker.start + work_of(KERNELS[worker.kernel]) - worker.part)
        waited = now - worker.reported_at
        return max(remaining - waited, remaining / 2, waited / 2)  # a report may be late, or the CPUs busy

    ends = sorted(seconds(worker) for worker in workers if worker.kernel) or [0.0]
    for kernel in reversed(waiting):
        heapq.heapreplace(ends, ends[0] + pace * work_of(KERNELS[kernel]))
    return max(ends)


def compile_kernels(
    kernels: Sequence[str], say: Callable[[str], None], workers: int | None = None
) -> Generator[CompilationProgress, None, None]:
    """Compile kernels and load them, yielding the progress at least every STEP_S. Closing it ends the processes.

    Args:
        kernels: their names, see `KERNELS`.
        say: takes what makes kernels slow to load, one line each.
        workers: processes at a time; None: one a core.
    """
    waiting, finished = sorted(kernels, key=lambda name: work_of(KERNELS[name])), list[str]()
    started, busy, most = list[_Worker](), list[_Worker](), min(workers or len(usable_cpus()), len(kernels))
    total = sum(work_of(KERNELS[name]) for name in kernels) + most * WARMED

    def progress() -> CompilationProgress:
        work = sum(work_of(KERNELS[name]) for name in finished) + sum(worker.start + worker.part for worker in started)
        left_s = _seconds_left(started, waiting, time.monotonic())
        return CompilationProgress(tuple(kernels), tuple(finished), min(1.0, work / total), left_s)

    with selectors.DefaultSelector() as selector, ExitStack() as stack:

        def compile_here(kernel: str) -> None:
            load(kernel, say)
            finished.append(kernel)

        while waiting or busy:
            while waiting and len(busy) < most:
                kernel = waiting.pop()
                try:
                    worker = _Worker()
                except OSError:  # no further process can be started
                    compile_here(kernel)
                    continue
                stack.callback(worker.end)
                worker.compile(kernel)
                started.append(worker)
                busy.append(worker)
                selector.register(worker.output, selectors.EVENT_READ, worker)
            yield progress()
            for key, _ in selector.select(STEP_S):
                worker = key.data
                kernel, alive = worker.kernel, worker.read()
                if (code := worker.code()) is not None:
                    adopt(kernel, code, say)
                    finished.append(kernel)
                    if waiting:
                        worker.compile(waiting.pop())
                        continue
                elif alive:
                    continue
                else:
                    worker.kernel = ""
                    compile_here(kernel)
                selector.unregister(key.fileobj)
                busy.remove(worker)
                worker.leave()
    yield CompilationProgress(tuple(kernels), tuple(finished), 1.0, 0.0)


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _work(parent: int) -> None:
    """Compile the kernels that are named on the standard input, until it closes or one fails."""
    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    for work, module in zip((IMPORTS, STARTED), COMPILER, strict=True):
        import_module(module, __package__)
        _report("start", work)
    for line in sys.stdin:
        worker = os.getpid()
        process = os.fork()
        if process == 0:
            _compile(line.strip(), worker)
        if os.waitpid(process, 0)[1] != 0:
            break
    os._exit(0)


def _compile(kernel: str, worker: int) -> None:
    """Compile a kernel, write its code, and end this process, without a word if that fails: the parent tries again."""
    status = 1
    try:
        die_with(worker)
        code = machine_code(kernel, lambda lines: _report("lines", lines))
        _report("code", len(code))
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stream:
            stream.write(code)
        status = 0
    finally:
        os._exit(status)


def _report(word: str, number: int) -> None:
    os.write(sys.stdout.fileno(), f"{word} {number}\n".encode())


if __name__ == "__main__":
    _work(int(sys.argv[1]))
