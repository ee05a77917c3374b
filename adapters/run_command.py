"""Runs a resource manager's command: one at a time, with a time limit.

Rule: a command that failed or timed out may have changed nothing, or may still do so later; a caller that changes
something reads before it tries again. A command that ran out of time, or whose answer is longer than LARGEST_ANSWER, is
killed. A setuid program cannot be killed; it is left alone and not waited for. A read, by a command or by a library, is
given up when this process is to stop.
`BackgroundCommand` is for questions for which the caller does not wait.
"""

from __future__ import annotations

import os
import select
import selectors
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from .base import AdapterError

T = TypeVar("T")
#: Seconds between two looks whether this process is to stop.
LOOK_S = 0.2
#: Most bytes of a piece of a command's output.
PIECE_BYTES = 2**20
#: Most bytes that a command may print; a queue of 100,000 jobs has some 100 MiB.
LARGEST_ANSWER = 2**29


class StopFlag:
    """A flag that a signal handler may set. `wanted`: this process is to stop."""

    wanted = False


STOP = StopFlag()
#: Commands that could not be killed, to be reaped when they have ended.
_unreaped: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True, slots=True)
class EndedCommand:
    """The end of a command. Its standard output is bytes, because a user's text may be in any encoding."""

    exit_code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """The standard output; bytes that are no UTF-8 are surrogates, as `os.fsdecode` makes them."""
        return self.stdout.decode(errors="surrogateescape")

    def failure(self, argv: Sequence[str], message: str, output: str, *, away: bool) -> AdapterError:
        """Return the error of a command that failed.

        Args:
            argv: The command.
            message: One sentence for a person.
            output: What it has printed about its failure.
            away: The resource manager cannot be reached; otherwise it refuses.
        """
        kind = "unreachable" if away else "refused"
        return AdapterError(
            message, transient=away, kind=kind, argv=argv, exit_code=self.exit_code, stderr_tail=output[-500:]
        )


def run_command(
    argv: Sequence[str],
    timeout_s: float,
    environment: Mapping[str, str],
    needs: str,
    folder: Path | None = None,
    *,
    reads: bool = False,
) -> EndedCommand:
    """Run a command without a stdin, and return how it ended.

    Args:
        argv: The command.
        timeout_s: Time limit, seconds.
        environment: All of its environment.
        needs: What a person is told to install where there is no such command.
        folder: Its working directory; None: ours.
        reads: It changes nothing, so it is given up when this process is to stop.

    Raises:
        AdapterError: It could not be run (`missing`, `spawn`), did not end in time (`timeout`), printed more than
            LARGEST_ANSWER (`parse`), or was given up (`stopped`).
    """
    process = _start(argv, environment, needs, folder, subprocess.PIPE, subprocess.PIPE)
    try:
        stdout, stderr = _output(process, argv, timeout_s, reads=reads)
    except BaseException:
        _abandon(process)
        raise
    return EndedCommand(process.returncode, stdout, stderr.decode(errors="replace"))


def stream_command(
    argv: Sequence[str], timeout_s: float, environment: Mapping[str, str], needs: str
) -> Generator[bytes, None, EndedCommand]:
    """Run a command that changes nothing, yield what it prints, and return how it ended, with no standard output.

    Args:
        argv: The command.
        timeout_s: Most seconds in which it prints nothing; those in which the caller works do not count.
        environment: All of its environment.
        needs: What a person is told to install where there is no such command.

    Raises:
        AdapterError: As `run_command`.
    """
    with os.fdopen(os.memfd_create("stderr", os.MFD_CLOEXEC), "w+b") as errors:
        process = _start(argv, environment, needs, None, subprocess.PIPE, errors)
        assert process.stdout is not None
        output, poll = process.stdout.fileno(), select.poll()
        poll.register(output, select.POLLIN)
        try:
            deadline = time.monotonic() + timeout_s
            while True:
                if STOP.wanted:
                    raise AdapterError(f"{argv[0]} was given up", transient=True, kind="stopped", argv=argv)
                if not poll.poll(LOOK_S * 1000):
                    if time.monotonic() >= deadline:
                        why = f"{argv[0]} printed nothing for {timeout_s:g} s"
                        raise AdapterError(why, transient=True, kind="timeout", argv=argv)
                    continue
                piece = os.read(output, PIECE_BYTES)
                if not piece:
                    break
                yield piece
                deadline = time.monotonic() + timeout_s
            process.stdout.close()
            process.wait()
        except BaseException:
            _abandon(process)
            raise
        errors.seek(0)
        return EndedCommand(process.returncode, b"", errors.read().decode(errors="replace"))


def _output(
    process: subprocess.Popen[bytes], argv: Sequence[str], timeout_s: float, *, reads: bool
) -> tuple[bytes, bytes]:
    """Return what a command has printed on stdout and on stderr when it has ended; see `run_command`."""
    assert process.stdout is not None and process.stderr is not None
    begin = time.monotonic()
    late = AdapterError(f"{argv[0]} did not answer within {timeout_s:g} s", transient=True, kind="timeout", argv=argv)
    printed = {pipe.fileno(): bytearray() for pipe in (process.stdout, process.stderr)}
    with process.stdout, process.stderr, selectors.DefaultSelector() as pipes:
        for descriptor in printed:
            pipes.register(descriptor, selectors.EVENT_READ)
        while pipes.get_map():
            spent_s = time.monotonic() - begin
            if spent_s >= timeout_s:
                raise late
            if reads and STOP.wanted and spent_s >= LOOK_S:
                raise AdapterError(f"{argv[0]} was given up", transient=True, kind="stopped", argv=argv)
            for key, _ in pipes.select(min(LOOK_S, timeout_s - spent_s)):
                piece = os.read(key.fd, PIECE_BYTES)
                if not piece:
                    pipes.unregister(key.fd)
                printed[key.fd] += piece
            if sum(map(len, printed.values())) > LARGEST_ANSWER:
                why = f"{argv[0]} printed more than {LARGEST_ANSWER // 2**20} MiB"
                raise AdapterError(why, transient=True, kind="parse", argv=argv)
    try:
        process.wait(max(0.0, begin + timeout_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise late from None
    stdout, stderr = printed.values()
    return bytes(stdout), bytes(stderr)


def call_read(read: Callable[[], T], name: str) -> T:
    """Return what a function reads, or raise its error; it runs in a thread, which is left alone when we stop.

    Args:
        read: Changes nothing, and has a time limit of its own.
        name: For the error.

    Raises:
        AdapterError: It was given up (`stopped`).
    """
    answer = Future[T]()

    def run() -> None:
        try:
            answer.set_result(read())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="read", daemon=True).start()
    while not wait((answer,), LOOK_S).done:
        if STOP.wanted:
            raise AdapterError(f"{name} was given up", transient=True, kind="stopped")
    return answer.result()


class BackgroundCommand:
    """A command that runs while its caller goes on; its output is kept in memory, so that it never waits for a reader.

    Args:
        argv: The command.
        environment: All of its environment.
        needs: What a person is told to install where there is no such command.
        folder: Its working directory; None: ours.

    Raises:
        AdapterError: It could not be run (`missing`, `spawn`).
    """

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], needs: str, folder: Path | None = None
    ) -> None:
        self._output = [os.fdopen(os.memfd_create(name, os.MFD_CLOEXEC), "w+b") for name in ("stdout", "stderr")]
        try:
            self._process = _start(argv, environment, needs, folder, *self._output)
        except AdapterError:
            self._close()
            raise

    def poll(self) -> EndedCommand | None:
        """Return how it ended, once; None: it still runs."""
        if self._process.poll() is None:
            return None
        stdout, stderr = self._written()
        self._close()
        return EndedCommand(self._process.returncode, stdout, stderr)

    def abandon(self) -> str:
        """Kill it, or leave it alone; return what it has written to its standard error."""
        stderr = self._written()[1]
        _abandon(self._process)
        self._close()
        return stderr

    def _written(self) -> tuple[bytes, str]:
        sizes = [os.fstat(file.fileno()).st_size for file in self._output]
        stdout, stderr = (os.pread(file.fileno(), size, 0) for file, size in zip(self._output, sizes, strict=True))
        return stdout, stderr.decode(errors="replace")

    def _close(self) -> None:
        for file in self._output:
            file.close()


def _start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    needs: str,
    folder: Path | None,
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
) -> subprocess.Popen[bytes]:
    _unreaped[:] = [process for process in _unreaped if process.poll() is None]
    try:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment, cwd=folder
        )
    except FileNotFoundError:
        raise AdapterError(f"{argv[0]} is not on the PATH; {needs}", kind="missing", argv=argv) from None
    except OSError as error:
        raise AdapterError(f"{argv[0]}: {error.strerror}", transient=True, kind="spawn", argv=argv) from None


def _abandon(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    with suppress(PermissionError):
        process.kill()
        process.wait()
        return
    _unreaped.append(process)
