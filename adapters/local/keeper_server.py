"""The keeper server: one process that has imported the keeper, and forks the keeper of each job.

A new interpreter for each job costs 60 ms of CPU time before the job begins, a fork 2 ms.

Rule: it keeps no state. Jobs and keepers outlive it, and the next job gets a new server. A job whose lock was on its
way to a server that was killed is found by the next snapshot, as one that never began.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

COMMAND = "import sys; sys.path.append(sys.argv[1]); from local.keeper import serve; serve(int(sys.argv[2]))"
#: A server that takes no request, or does not end, is killed after so many seconds; what it was asked for never began.
END_S = 10.0


class KeeperServer:
    """The adapter's end: starts the server with the first job, and again if it is gone.

    Args:
        jobs: the folder of the jobs; it stands in the command line of the server and of its keepers, for `ps`.
        environment: of the server, and of all keepers.
    """

    def __init__(self, jobs: str | os.PathLike[str], environment: Mapping[str, str]) -> None:
        self._jobs, self._environment = jobs, environment
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def start(self, directory: str, lock: int) -> None:
        """Start a keeper that inherits the job's lock, so that the lock is held at every moment. Raises OSError."""
        if self._channel is not None:
            with suppress(ConnectionError, TimeoutError):
                socket.send_fds(self._channel, [os.fsencode(directory)], [lock])
                return
            self.close()
        self._channel = self._connect()
        socket.send_fds(self._channel, [os.fsencode(directory)], [lock])

    def _connect(self) -> socket.socket:
        channel, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        channel.settimeout(END_S)
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        with remote:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-E", "-c", COMMAND, package, str(remote.fileno()), self._jobs],
                    pass_fds=(remote.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                    env=dict(self._environment),
                )
            except BaseException:
                channel.close()
                raise
        return channel

    def close(self) -> None:
        """End the server once it has started the keepers that it was asked for; they go on."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            try:
                self._process.wait(END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
