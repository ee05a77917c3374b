"""The datagram socket on which the resource manager reports that something has happened, such as the end of a job.

Rule: a datagram wakes the daemon and carries no information: the daemon then reads the resource manager. Only datagrams
of root, the daemon's own user and the users named in the configuration count; the kernel names the sender
(SCM_CREDENTIALS, unix(7)). After a flood by other users the socket is ignored for a while; cycles go on at their
cadence.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import struct
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from ...formats.text import count
from ...simulate.errors import ConfigError
from ..config import DaemonConfig
from ..state.users import user_name
from .access import uid_of
from .ipc import socket_path
from .places import check_place

log = logging.getLogger("pilotfish.service")
#: Datagrams of strangers in one second that close the ear, and for how many seconds.
MOST_STRANGERS, DEAF_S = 20, 60.0
_CREDENTIALS = struct.Struct("iII")
_MOST_AT_ONCE = 1000


def event_users(config: DaemonConfig, endpoint: str, file: Path) -> list[int] | None:
    """Return whose events are heard; None: none, because a dry run leaves them to the daemon that listens.

    Args:
        config: of the service.
        endpoint: where the service listens.
        file: the configuration's, for errors.

    Raises:
        ConfigError: a user does not exist, or the socket cannot be there.
    """
    if not config.events.users or endpoint != config.endpoint:
        return None
    check_place(config.event_socket, "events", socket.SOCK_DGRAM)
    return [uid_of(user, file, "events.users") for user in config.events.users]


class EventSocket:
    """The socket; anybody may write to its file.

    Args:
        path: its file; the folder is made if missing.
        users: uids that are heard, besides root and this user.
        clock: monotonic, seconds.

    Raises:
        ConfigError: the socket cannot be made.
    """

    def __init__(self, path: Path, users: Collection[int], clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self._users, self._clock = socket_path(str(path)), {0, os.geteuid(), *users}, clock
        check_place(self.path, "events", socket.SOCK_DGRAM)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._strangers, self._since, self._deaf_until = 0, -math.inf, -math.inf
        try:
            self.path.unlink(missing_ok=True)
            self._socket.bind(str(self.path))
            self.path.chmod(0o666)
        except OSError as error:
            self._socket.close()
            raise ConfigError("events", "path", f"cannot listen on {self.path}: {error.strerror}") from None

    def fileno(self) -> int | None:
        """Return the descriptor to wait for; None while nothing is heard."""
        return None if self._clock() < self._deaf_until else self._socket.fileno()

    def heard(self) -> bool:
        """Take the datagrams that have arrived, without waiting; return whether an allowed user sent one."""
        news = False
        for _ in range(_MOST_AT_ONCE):
            try:
                _, extra, _, _ = self._socket.recvmsg(0, socket.CMSG_SPACE(_CREDENTIALS.size))
            except BlockingIOError:
                return news
            sender = next(
                (_CREDENTIALS.unpack(data)[1] for _, kind, data in extra if kind == socket.SCM_CREDENTIALS), -1
            )
            if sender in self._users:
                news = True
            elif self._flooded_by(sender):
                return news
        return news

    def _flooded_by(self, uid: int) -> bool:
        """Count a datagram of a stranger; return whether it is one too many."""
        now = self._clock()
        if now - self._since > 1.0:
            self._strangers, self._since = 0, now
        self._strangers += 1
        if self._strangers > MOST_STRANGERS:
            self._deaf_until = now + DEAF_S
            flood = count(self._strangers, "datagram")
            log.warning(
                "%s in a second from %s, who is not in events.users: no events for %g s", flood, user_name(uid), DEAF_S
            )
        return self._strangers > MOST_STRANGERS

    def close(self) -> None:
        """Close the socket and remove its file."""
        self._socket.close()
        with suppress(OSError):
            self.path.unlink()
