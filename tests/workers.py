"""Workers of pytest-xdist, and daemons, that are forks of one process, which has imported all tests and what they test;
each would do so for itself.

Rule: a fork gets the streams that were opened for it, and nothing but imports happened before.

    python tests/workers.py SOCKET -u -c CODE    what pytest-xdist starts in place of a Python: the server at that
                                                 socket runs the code in a fork, whose end ends this process
    python tests/workers.py --serve NUMBER [ARGUMENT...]    the server, which listens on the file of that number; what
                                                            follows are pytest's arguments
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

if __name__ == "__mp_main__":  # in a process that `multiprocessing` starts in a worker
    sys.path.append(str(Path(__file__).parent))
import guardian

PATIENCE_S = 10.0
PR_SET_MM, PR_SET_MM_MAP = 35, 14
#: How the names of the variables begin that a Python obeys when it starts, which no fork does, and those without harm.
EARLY, HARMLESS = ("PYTHON", "LD_"), {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
#: Where a Python that has just started looks for modules.
PATH = [*sys.path]
#: The mounts that the server sees; a worker may change to others.
MOUNTS = os.readlink("/proc/self/ns/mnt")
LIBC = ctypes.CDLL(None, use_errno=True)
#: What /proc shows of this process; it has to stay in memory.
_shown: ctypes.Array[ctypes.c_char]


class Forked:
    """A Python script in a fork of the server; it is used as a `subprocess.Popen`, and /proc shows it as one's process.

    Args:
        words: The script and its arguments.
        env: What the script sees, which differs in no variable that a Python obeys when it starts.
        streams: Its standard output and its standard error.
        server: Where the server listens.
        cwd: The folder in which the script runs.
    """

    def __init__(
        self, words: Sequence[str], env: Mapping[str, str], streams: Sequence[IO[Any]], server: Path, cwd: str
    ) -> None:
        self.args = words
        self.returncode: int | None = None
        self._waiter = socket.socket(socket.AF_UNIX)
        self._waiter.connect(str(server))
        code = f"wait_for_script(client, {[*words]!r}, {dict(env)!r}, {cwd!r})"
        with open(os.devnull) as nothing:
            numbers = [nothing.fileno(), *(stream.fileno() for stream in streams)]
            socket.send_fds(self._waiter, [code.encode()], numbers)
        self.pid = self._number()

    def _number(self) -> int:
        text = self._waiter.recv(99)
        if not text:
            raise ConnectionResetError(f"{self.args}: the process that waits for it has ended")
        return int(text)

    def poll(self) -> int | None:
        """Return its exit status, None while it runs."""
        with suppress(BlockingIOError, subprocess.TimeoutExpired):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return its exit status."""
        if self.returncode is None:
            self._waiter.settimeout(timeout)
            try:
                self.returncode = self._number()
            except TimeoutError as error:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from error
            self._waiter.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def start(
    words: Sequence[str | Path], env: Mapping[str, str], *streams: IO[Any], user: str = "", cwd: str | Path = "."
) -> Forked | subprocess.Popen[bytes]:
    """Start a Python script: in a fork if there is a server, and its Python would be started as the server's was.

    A user has a server of their own: they may not read the modules of our Python, and have another one.
    """
    theirs: Mapping[str, str] = {} if user else os.environ
    early = {name for name in (*env, *theirs) if name.startswith(EARLY)} - HARMLESS
    served = _path().exists() and (user or os.readlink("/proc/self/ns/mnt") == MOUNTS)
    if served and all(env.get(name) == theirs.get(name) for name in early):
        with _making:
            server = _server_of(user).path if user else _path()
        with suppress(ConnectionError):  # it could not start: neither can the script, which says why
            return Forked([*map(str, words)], env, streams, server, os.path.abspath(cwd))
    argv = [*as_user(user), sys.executable, *words]
    return subprocess.Popen(argv, env=env, stdout=streams[0], stderr=streams[1], cwd=cwd)


def as_user(user: str) -> list[str]:
    """Return the prefix of a command that runs as that user; "": nothing."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []


def _path() -> Path:
    """Where the workers' server listens."""
    return guardian.folder() / "workers"


_making = threading.Lock()


@cache
def _server_of(user: str) -> Server:
    return Server(guardian.folder() / f"scripts-{user}-{os.getpid()}", [], user)


class Server:
    """The process that imports what pytest collects; its forks become workers, and run scripts. Or one for scripts only.

    Args:
        path: Where it listens, in a folder where this user alone may write.
        arguments: pytest's; none: it imports pilotfish, and no tests.
        user: Whose process it is; "": this user's.
    """

    def __init__(self, path: Path, arguments: list[str], user: str = "") -> None:
        self.path, self.worker = path, f"{sys.executable} -S -E {__file__} {path}"  #: in place of a Python
        kept = ("PATH", guardian.FOLDER, guardian.MARK) if user else [*os.environ]
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen(100)
            number = listening.fileno()
            argv = [*as_user(user), sys.executable, __file__, "--serve", str(number), *arguments]
            env = {name: os.environ[name] for name in kept if name in os.environ}
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, pass_fds=[number], env=env)

    def close(self) -> None:
        """Wait until it and its workers have ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=PATIENCE_S)


def serve(listening: socket.socket, arguments: list[str]) -> None:
    """Import what is needed, and run the code of each client in a fork, until this process's standard input ends."""
    if arguments:
        _collect(arguments)
    else:
        sys.path.insert(0, str(Path(__file__).parent / "real"))
        import forked

        forked.import_commands()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    while sys.stdin not in select.select([sys.stdin, listening], [], [])[0]:
        client = listening.accept()[0]
        code, files, *_ = socket.recv_fds(client, 1 << 16, 3)
        if not os.fork():
            listening.close()
            _become(code, files, client)
        client.close()
        for file in files:
            os.close(file)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    listening.close()
    with suppress(ChildProcessError):
        while True:
            os.wait()


class Partial:
    """The modules of which pytest has imported a part, until an error or a skip; it would take them for whole again."""

    def __init__(self) -> None:
        self._paths: set[Path] = set()

    def pytest_collectreport(self, report: Any) -> None:
        """Note the file of a report that says that not all was collected."""
        if not report.passed:
            self._paths.add(Path(report.nodeid.partition("::")[0]).absolute())

    def forget(self) -> None:
        """Let the next import run them from their beginning."""
        for name, module in [*sys.modules.items()]:
            if (file := getattr(module, "__file__", None)) and Path(file) in self._paths:
                del sys.modules[name]


def _collect(arguments: list[str]) -> None:
    """Import what pytest collects."""
    import pytest

    sys.path[0] = os.getcwd()  # as `python -m pytest` does
    said = os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nothing, number)
    partial = Partial()
    pytest.main([*arguments, "-n0", "--collect-only"], [partial])
    partial.forget()  # a worker that collects the same reports its error, or why it is skipped
    for number, file in zip((1, 2), said, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.close(nothing)


def _become(code: bytes, files: list[int], client: socket.socket) -> NoReturn:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0)
    exec(code, {"__name__": "__main__", "client": client, "wait_for_script": wait_for_script})
    os._exit(0)


def wait_for_script(client: socket.socket, words: list[str], env: dict[str, str], cwd: str) -> None:
    """Run a script in a fork of this process; send its process id and, when it has ended, its exit status."""
    pid = os.fork()
    if not pid:
        _run_script(words, env, cwd)
    client.send(str(pid).encode())
    os.closerange(0, 3)
    client.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def _run_script(words: list[str], env: dict[str, str], cwd: str) -> NoReturn:
    code: object = 1
    try:
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        with suppress(PermissionError):  # a user's process may inherit a folder that it could not enter
            os.chdir(cwd)
        argv = [sys.executable, *words]
        if not _show(argv, [f"{name}={value}" for name, value in env.items()]):
            os.execve(sys.executable, argv, env)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        sys.argv, sys.path = words, [str(Path(words[0]).parent), *PATH[1:]]
        sys.stdout, sys.stderr = (  # as Python opened them, but for other files
            os.fdopen(number, "w", buffering=buffering, encoding=before.encoding, errors=before.errors)
            for number, buffering, before in ((1, -1, sys.stdout), (2, 1, sys.stderr))
        )
        runpy.run_path(words[0], run_name="__main__")
        code = None
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    os._exit((code or 0) & 0xFF)


def _show(argv: list[str], environment: list[str]) -> bool:
    """Let /proc show these arguments and this environment of this process, by which tests find it; return if it does.

    See `PR_SET_MM_MAP` in prctl(2): the kernel wants all of the process's map again, of which /proc/self/stat has most.
    """
    global _shown
    pieces = [b"".join(os.fsencode(word) + b"\0" for word in words) for words in (argv, environment)]
    _shown = ctypes.create_string_buffer(b"".join(pieces))
    begin, middle = ctypes.addressof(_shown), ctypes.addressof(_shown) + len(pieces[0])
    fields = [0, 0, 0, *map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[1:])]
    LIBC.sbrk.restype = ctypes.c_void_p
    of_map = (*fields[25:27], *fields[44:47], LIBC.sbrk(0), fields[27], begin, middle, middle, middle + len(pieces[1]))
    parts = (ctypes.c_uint64 * 13)(*of_map, 0, 0xFFFFFFFF << 32)  # no other vector, no other program
    return bool(LIBC.prctl(PR_SET_MM, PR_SET_MM_MAP, parts, ctypes.sizeof(parts), 0) == 0)


def ask(path: str, code: str) -> NoReturn:
    """Let the server run code in a fork with the streams of this process, and wait for its end."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [code.encode()], [0, 1, 2])
        os.closerange(0, 2)
        with suppress(ConnectionError):
            server.recv(1)
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(socket.socket(fileno=int(sys.argv[2])), sys.argv[3:])
    else:
        ask(sys.argv[1], sys.argv[-1])
