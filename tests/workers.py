"""Workers of pytest-xdist that are forks of one process, which has imported all tests; each would do so for itself.

Rule: a worker gets the streams that pytest-xdist opened for it, and nothing but imports happened before the fork.

    python tests/workers.py SOCKET -u -c CODE    what pytest-xdist starts in place of a Python: the server at that
                                                 socket runs the code in a fork, whose end ends this process
    python tests/workers.py --serve NUMBER [ARGUMENT...]    the server, which listens on the file of that number; what
                                                            follows are pytest's arguments
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NoReturn

PATIENCE_S = 10.0


class Server:
    """The process that imports what pytest collects; its forks become workers.

    Args:
        path: Where it listens, in a folder where this user alone may write.
        arguments: pytest's.
    """

    def __init__(self, path: Path, arguments: list[str]) -> None:
        self.worker = f"{sys.executable} -S -E {__file__} {path}"  #: in place of a Python
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
            listening.listen(100)
            number = listening.fileno()
            argv = [sys.executable, __file__, "--serve", str(number), *arguments]
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, pass_fds=[number])

    def close(self) -> None:
        """Wait until it and its workers have ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=PATIENCE_S)


def serve(listening: socket.socket, arguments: list[str]) -> None:
    """Import what pytest collects, and fork a worker for each client, until this process's standard input ends.

    With --cov, the lines that imports reach are counted here, in `.coverage-imports`; workers count those of tests.
    """
    import pytest
    from coverage import Coverage

    sys.path[0] = os.getcwd()  # as `python -m pytest` does
    said = os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nothing, number)
    counts = Coverage(data_file=".coverage-imports") if "--cov" in arguments else None
    with counts.collect() if counts else nullcontext():
        pytest.main([*arguments, "-n0", "--no-cov", "--collect-only"])  # a worker that collects the same reports errors
    if counts:
        counts.save()
    for number, file in zip((1, 2), said, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.close(nothing)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    while sys.stdin not in select.select([sys.stdin, listening], [], [])[0]:
        client = listening.accept()[0]
        code, files, *_ = socket.recv_fds(client, 1 << 16, 3)
        if not os.fork():
            listening.close()
            _become(code, files)
        client.close()
        for file in files:
            os.close(file)
    listening.close()
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _become(code: bytes, files: list[int]) -> NoReturn:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0)
    exec(code, {"__name__": "__main__"})
    os._exit(0)


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
