"""A counting command beside a job: perf or likwid-perfctr.

Rule: it never outlives us. What it is told to run is `cat` on a pipe of ours, so that it ends, and prints, when we
close the pipe, and also when we are killed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence

from .tree import ProcessTree

PATIENCE_S = 5.0
MOST_BYTES = 1 << 20


class Attached:
    """A command that counts until it is told to stop.

    Args:
        argv: the command, without what it runs.
        tree: the job's, which does not take the command for the job's.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, argv: Sequence[str], tree: ProcessTree) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed once it is read)
        self._process = subprocess.Popen(
            [*argv, "cat"],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            env=os.environ | {"LC_ALL": "C"},
            start_new_session=True,
        )
        tree.leave_out(self._process.pid)

    def finish(self) -> str:
        """Tell it to stop and return what it printed, whatever came of it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with self._said as file:
            file.seek(0)
            return file.read(MOST_BYTES).decode(errors="replace")


def complaint(printed: str) -> str:
    """Return the first line of what a command printed that says something: mostly why it did not count."""
    lines = (line.strip() for line in printed.splitlines())
    telling = (line for line in lines if line and line.strip("-=#* ") and line not in ("Error:", "Warning:"))
    return next(telling, "it printed nothing")[:120]
