"""A worker: a process that answers one question after the other, until nobody asks any more.

Rule: it belongs to who started it: the kernel ends it with its parent, whatever it is doing; keys pressed at the
terminal are not for it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from multiprocessing.connection import Connection

from .task import attempt

#: Run as `python -P -c COMMAND FD PARENT MODULE_PATH...`.
COMMAND = "import sys; sys.path[:] = sys.argv[3:]; from pilotfish.daemon.sweep.worker import work; work()"
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def work() -> None:
    """Answer pairs (function, argument) with what the function gives, or a Failure."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with Connection(int(sys.argv[1])) as caller:
        if os.getppid() != int(sys.argv[2]):
            return
        while True:
            try:
                function, argument = caller.recv()
                caller.send(attempt(function, argument))
            except (EOFError, ConnectionError):
                return
