"""The command line in a fork of a process that has imported already what a command takes half a second to import: of
this one, or of a server, which may be another user's, with another Python.

Rule: a command gets streams, an environment, a folder and a session of its own, and no file of the process that forks.
What the interpreter itself does (its start, imports, its last words) is tested with real processes: tests/real/
test_installed.py, test_first_use.py and test_malformed.py.

    python forked.py    the server: run the command lines on stdin, one a line, as JSON (the arguments of `run`); print,
                        as JSON, the exit status, stdout and stderr of each
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import pkgutil
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

from pilotfish import adapters, cli, daemon
from pilotfish.cli.__main__ import main

#: What a server leaves to its forks: modules that run when they are imported, need extras, or take long.
LEFT_OUT = ("__main__", "_backend", "dask_workers", "top_app")


def run(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: str | Path = ".", umask: int = -1, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end, as `subprocess.run` does."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if not pid:
            _become(argv, (out, err), env, cwd, umask)
        ended = os.pidfd_open(pid)
        try:
            if not select.select([ended], [], [], timeout)[0]:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(argv, timeout)
        finally:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.close(ended)
        stdout, stderr = _content(out), _content(err)
    return subprocess.CompletedProcess(argv, code, stdout, stderr)


def _content(file: IO[bytes]) -> str:
    """Return all that was written to a file."""
    file.seek(0)
    return file.read().decode()


def _become(
    argv: Sequence[str], files: Sequence[IO[bytes]], env: Mapping[str, str], cwd: str | Path, umask: int
) -> NoReturn:
    code = 70
    try:
        sys.settrace(None)
        threading.settrace(None)
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number, file in enumerate((os.open(os.devnull, os.O_RDWR), *(file.fileno() for file in files))):
            os.dup2(file, number)
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        logging.root.handlers.clear()
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        if umask >= 0:
            os.umask(umask)
        code = main(argv)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


class Server:
    """A process whose forks run command lines.

    Args:
        python: The command that starts its Python, perhaps as another user.
        script: This file, where that user may read it.
        env: What it sees. It ends with this process.
    """

    def __init__(self, python: Sequence[str], script: str | Path, env: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([*python, str(script)], stdin=pipe, stdout=pipe, text=True, env=env, cwd="/")
        self._free = threading.Lock()

    def run(self, argv: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end; see the function `run`."""
        assert self._process.stdin and self._process.stdout
        said = ""
        with self._free, suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"argv": argv, **options}) + "\n")
            self._process.stdin.flush()
            said = self._process.stdout.readline()
        if not said:
            return subprocess.CompletedProcess(argv, 127, "", "the server has ended: Permission denied, most likely")
        return subprocess.CompletedProcess(argv, *json.loads(said))


def import_commands() -> None:
    """Import all that commands, and the daemon, may import, but for LEFT_OUT."""
    for package in (adapters, cli, daemon):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(LEFT_OUT):
                importlib.import_module(module.name)


if __name__ == "__main__":
    import_commands()
    for line in sys.stdin:
        try:
            done = run(**json.loads(line))
            print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
        except subprocess.TimeoutExpired as error:
            print(json.dumps([-signal.SIGKILL, "", str(error)]), flush=True)
