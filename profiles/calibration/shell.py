"""Commands of the site, run by its shell on this machine, about a node that they find in $PILOTFISH_NODE.

Rule: each in a session of its own, so that one that takes too long ends with all that it started; no more than
MOST_SAID of what it says is kept.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from typing import IO

from .switching import Answer

MOST_SAID = 65536
#: What timeout(1) exits with.
_TOO_LONG = 124


class Shell:
    """`Site` of this machine."""

    def __init__(self, node: str) -> None:
        self._environment = {**os.environ, "PILOTFISH_NODE": node}

    def launch(self, command: str) -> Running:
        """Begin a command."""
        return Running(command, self._environment)

    def ask(self, command: str, limit_s: float) -> Answer:
        """Run a command to its end; one that takes too long has failed."""
        running = self.launch(command)
        try:
            return running.wait(limit_s)
        except BaseException:
            running.stop()
            raise

    def now(self) -> float:
        """Seconds of a clock that is never set."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(max(0.0, seconds))


class Running:
    """A command that runs; it cannot block on what it says, as that goes to a file."""

    def __init__(self, command: str, environment: dict[str, str]) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as we do)
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command], start_new_session=True, env=environment, stdin=subprocess.DEVNULL,
            stdout=self._said, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def poll(self) -> Answer | None:
        """What it came to; None = it still runs."""
        code = self._process.poll()
        return None if code is None else self._answer(code)

    def wait(self, limit_s: float) -> Answer:
        """What it comes to."""
        try:
            return self._answer(self._process.wait(limit_s))
        except subprocess.TimeoutExpired:
            self.stop()
            return Answer(_TOO_LONG, f"it took longer than {limit_s:g} s")

    def stop(self) -> None:
        """End it, with all that it started, where it still runs."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _answer(self, code: int) -> Answer:
        self._said.seek(0)
        return Answer(code, self._said.read(MOST_SAID).decode(errors="replace"))
