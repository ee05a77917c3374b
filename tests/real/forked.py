"""The command line in a fork of this process, which has imported already what a command takes half a second to import.

Rule: a command gets streams, an environment, a folder, a user and a session of its own, and no file of this process.
What the interpreter itself does (its start, imports, its last words) is tested with real processes: tests/real/
test_installed.py, test_first_use.py and test_malformed.py.

    python forked.py    run the command lines on stdin, one a line, as JSON (the arguments of `run`); print, as JSON, the
                        exit status, stdout and stderr of each
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import pkgutil
import pwd
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

from pilotfish import cli
from pilotfish.cli.__main__ import main


def run(
    argv: Sequence[str], *, env: Mapping[str, str], user: str = "", cwd: str | Path = ".", umask: int = -1,
    timeout: float,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a command line to its end, as `subprocess.run` does; `user`: who runs it, "" for this one."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if not pid:
            _become(argv, (out, err), env, user, cwd, umask)
        ended = os.pidfd_open(pid)
        try:
            if not select.select([ended], [], [], timeout)[0]:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(argv, timeout)
        finally:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.close(ended)
        said = [file.seek(0) or file.read().decode() for file in (out, err)]
    return subprocess.CompletedProcess(argv, code, *said)


def _become(
    argv: Sequence[str], files: Sequence[IO[bytes]], env: Mapping[str, str], user: str, cwd: str | Path, umask: int
) -> NoReturn:
    code = 70
    try:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        os.setsid()
        for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
            signal.signal(number, handler)
        for number, file in enumerate((os.open(os.devnull, os.O_RDWR), *(file.fileno() for file in files))):
            os.dup2(file, number)
        os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        logging.root.handlers.clear()
        os.environ.clear()
        os.environ.update(env)
        if user:
            who = pwd.getpwnam(user)
            os.setgroups([])
            os.setgid(who.pw_gid)
            os.setuid(who.pw_uid)
        os.chdir(cwd)
        if umask >= 0:
            os.umask(umask)
        code = main(argv)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    for module in pkgutil.iter_modules(cli.__path__, "pilotfish.cli."):
        importlib.import_module(module.name)
    for line in sys.stdin:
        try:
            done = run(**json.loads(line))
            print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
        except subprocess.TimeoutExpired as error:
            print(json.dumps([-signal.SIGKILL, "", str(error)]), flush=True)
