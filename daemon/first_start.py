"""The start of the service, also on a machine that must compile the simulator first because no package brought it.

Rule: the socket of the service opens only when it can plan, because jobs are held back as soon as it is there. Until
then a socket next to it answers each request with the progress, systemd gets it as STATUS, and a signal stops at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import Any

from ..simulate.errors import ConfigError
from ..simulate.kernels.object_cache import is_kept, is_warm, load
from .compilation import Announcements, compile_kernels
from .report.exporter import Health
from .socket.ipc import refusal, starting_path
from .socket.socket_server import Server
from .state.users import Peer
from .systemd import notify

log = logging.getLogger("pilotfish.service")
#: Seconds that systemd grants for compiling from each report of progress on, on however busy a machine.
COMPILE_S = 900
PACKAGED = "the simulator is the package's, for many processors; a start after `pilotfish warm` takes this machine's"


def load_loops(
    loops: Sequence[str], endpoint: str, socket: dict[str, Any], health: Health, stopping: Callable[[], bool]
) -> bool:
    """Load compiled loops, after compiling those that are missing; return False if the service is to stop.

    Args:
        loops: names of kernels.
        endpoint: path of the socket that will open.
        socket: options of the server there.
        health: shows the progress.
        stopping: whether the service is to stop.
    """
    missing = [loop for loop in loops if not is_warm(loop)]
    if not all(loop in missing or is_kept(loop) for loop in loops):
        log.info("%s", PACKAGED)
    if missing:
        with ExitStack() as stack:
            server = _answer_meanwhile(endpoint, socket, health, stack)
            steps = stack.enter_context(closing(compile_kernels(missing, log.info)))
            due = Announcements(time.monotonic)
            for progress in steps:
                if stopping():
                    return False
                health.starting(f"starting: {progress}")
                notify(f"STATUS={progress}", f"EXTEND_TIMEOUT_USEC={COMPILE_S * 10**6}")
                if due(progress):
                    log.info("%s", progress)
                if server is not None:
                    server.serve()
    health.starting("starting")
    for loop in loops:
        load(loop, log.info)
    return not stopping()


def _answer_meanwhile(endpoint: str, socket: dict[str, Any], health: Health, stack: ExitStack) -> Server | None:
    """Return a server that answers each request with why the service is not ready; None: its path is too long.

    Raises ConfigError if it cannot listen, because then the service could not either.
    """

    def answer(request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        return refusal(f"the daemon at {endpoint} is {health.why_not_ready}")

    try:
        path = starting_path(endpoint)
    except ConfigError as error:
        log.debug("clients do not see the progress of the start: %s", error)
        return None
    server = Server(str(path), answer, **socket)
    stack.callback(server.close)
    return server
