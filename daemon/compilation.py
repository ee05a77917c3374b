"""Compile kernels in processes of their own, while this one stays awake for signals and clients.

Rule: a process that compiles dies with the one that wants the kernel. Progress is counted in compiled functions, and
the remaining time is what those so far took, scaled; before enough are compiled it is not known. A kernel whose process
fails is compiled here, which blocks.
"""

from __future__ import annotations

import ctypes
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ..formats.text import count
from ..machine_share import usable_cpus
from ..simulate.kernels import KERNELS, adopt, load, machine_code

#: Longest time between two reports of progress, seconds.
STEP_S = 0.2
#: Share of the functions, and seconds since the first was compiled, after which the remaining time is known.
ENOUGH, ENOUGH_S = 0.03, 1.0
#: Seconds between two lines about the progress.
SAY_EVERY_S = 15.0
#: Share of a kernel's time after its last function: the code is optimised once more and written.
AFTER = 0.07
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
        first_time = progress.left_s is not None and not self._timed
        if progress.done or not (first_time or self._clock() >= self._due_at):
            return False
        self._timed, self._due_at = self._timed or first_time, self._clock() + SAY_EVERY_S
        return True


class _Child:
    """A process that compiles a kernel. It writes a dot for each compiled function, a newline, and the object code."""

    def __init__(self, kernel: str) -> None:
        argv = [sys.executable, "-P", "-m", __name__, kernel, str(os.getpid())]
        self.kernel = kernel
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self._received = bytearray()

    def read(self) -> bool:
        """Take what has arrived; return False at the end."""
        assert self.process.stdout is not None
        part = os.read(self.process.stdout.fileno(), 2**20)
        self._received += part
        return bool(part)

    @property
    def share(self) -> float:
        """Share of the kernel that is compiled."""
        functions = self._received.find(b"\n")
        functions = len(self._received) if functions < 0 else functions
        return (1.0 - AFTER) * min(1.0, functions / KERNELS[self.kernel].functions)

    def code(self) -> bytes | None:
        """Return the object code, once the process has written all; None: it failed."""
        _, _, code = self._received.partition(b"\n")
        return bytes(code) if code and self.process.wait() == 0 else None

    def end(self) -> None:
        """Kill the process, if it still runs."""
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def compile_kernels(
    kernels: Sequence[str], say: Callable[[str], None], workers: int | None = None
) -> Generator[CompilationProgress, None, None]:
    """Compile kernels and load them, yielding the progress at least every STEP_S. Closing it ends the processes.

    Args:
        kernels: their names, see `KERNELS`.
        say: takes what makes kernels slow to load, one line each.
        workers: processes at a time; None: one a core.
    """
    waiting, finished = sorted(kernels, key=lambda name: KERNELS[name].functions), list[str]()
    children, most = list[_Child](), workers or len(usable_cpus())
    weights = {name: KERNELS[name].functions for name in kernels}
    first: tuple[float, float] | None = None  # when the first functions had been compiled, and the share then

    def progress() -> CompilationProgress:
        nonlocal first
        compiled = sum(weights[name] for name in finished) + sum(weights[each.kernel] * each.share for each in children)
        share, now = compiled / sum(weights.values()), time.monotonic()
        first = first or ((now, share) if share > 0.0 else None)
        enough = first is not None and share - first[1] >= ENOUGH and now - first[0] >= ENOUGH_S
        left_s = (now - first[0]) * (1.0 - share) / (share - first[1]) if enough and first is not None else None
        return CompilationProgress(tuple(kernels), tuple(finished), share, left_s)

    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        while waiting or children:
            while waiting and len(children) < most:
                kernel = waiting.pop()
                try:
                    child = _Child(kernel)
                except OSError:  # no further process can be started
                    load(kernel, say)
                    finished.append(kernel)
                    continue
                stack.callback(child.end)
                children.append(child)
                selector.register(child.process.stdout, selectors.EVENT_READ, child)  # type: ignore[arg-type]
            yield progress()
            for key, _ in selector.select(STEP_S):
                child = key.data
                if child.read():
                    continue
                selector.unregister(key.fileobj)
                children.remove(child)
                code = child.code()
                load(child.kernel, say) if code is None else adopt(child.kernel, code, say)
                finished.append(child.kernel)
    yield progress()


def _compile(kernel: str, parent: int) -> None:
    """Compile a kernel in this process, which dies with the one that started it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    out = sys.stdout.fileno()

    code = machine_code(kernel, lambda: os.write(out, b"."))
    with os.fdopen(os.dup(out), "wb") as stream:
        stream.write(b"\n" + code)


if __name__ == "__main__":
    _compile(sys.argv[1], int(sys.argv[2]))
