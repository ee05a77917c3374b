"""The socket between the daemon and its clients: one JSON request, one JSON reply, over a ZeroMQ ipc socket.

Rule: the permissions of the socket file decide which users may connect; its folder must be trusted, and a client asks
only a socket of the service (see `trust`). Every message is answered, or dropped if it cannot be answered; none can
stop the daemon. A daemon that does not run is one clear error.
"""

from __future__ import annotations

import grp
import json
import math
import os
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..simulate.errors import ConfigError, PilotfishError
from ..trust import check_socket, make_folder
from .paths import LONGEST_SOCKET_PATH

VERSION = 1
LARGEST_MESSAGE = 64 * 2**20
#: Most requests answered in a row, and for how long, seconds.
MOST_AT_ONCE, LONGEST_S = 64, 0.1
#: Messages queued for one client, each way; replies that a client never reads are dropped.
MOST_QUEUED = 16
Handler = Callable[[dict[str, Any]], dict[str, Any]]


class DaemonError(PilotfishError):
    """The daemon could not be reached, or refused."""


class NoDaemonError(DaemonError):
    """No daemon listens, or it did not answer in time; a retry may help."""


def socket_path(endpoint: str) -> Path:
    """Return the file of an `ipc://` endpoint. Raises ConfigError: another kind of endpoint, or a path too long."""
    path = endpoint.removeprefix("ipc://")
    if path == endpoint or not path.startswith("/"):
        raise ConfigError("socket", "path", f"found {endpoint!r}", "an absolute path")
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise ConfigError("socket", "path", f"{path} is too long for a socket", f"{LONGEST_SOCKET_PATH} bytes")
    return Path(path)


class Server:
    """The daemon's end.

    Args:
        endpoint: "ipc:///path"; its folder is made, its owner's only, if missing.
        handler: turns a request into a reply; must not raise.
        mode: permissions of the socket file.
        group: of the socket file; None = the daemon's.

    Raises:
        ConfigError: another daemon listens there, or the socket cannot be made.
    """

    def __init__(self, endpoint: str, handler: Handler, *, mode: int = 0o600, group: str | None = None) -> None:
        import zmq

        self.path, self._handler, self._zmq = socket_path(endpoint), handler, zmq
        if _connect_error(self.path) is None:
            raise ConfigError("socket", "path", f"another daemon listens on {self.path} already")
        if os.path.lexists(self.path) and not stat.S_ISSOCK(os.lstat(self.path).st_mode):
            raise ConfigError("socket", "path", f"{self.path} is there and is no socket", "a path of its own")
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
        self._socket.setsockopt(zmq.LINGER, 500)
        self._socket.setsockopt(zmq.SNDTIMEO, 0)
        self._socket.set_hwm(MOST_QUEUED)
        try:
            self._bind(endpoint, mode, group)
        except (OSError, zmq.ZMQError, KeyError) as error:
            self._context.destroy(linger=0)
            reason = f"no group {group!r} exists" if isinstance(error, KeyError) else error.strerror
            raise ConfigError("socket", "path", f"cannot listen on {self.path}: {reason}") from None

    def _bind(self, endpoint: str, mode: int, group: str | None) -> None:
        number = grp.getgrnam(group).gr_gid if group else -1
        make_folder(self.path.parent, sticky=True)
        before = os.umask(0o177)
        try:
            self._socket.bind(endpoint)
        finally:
            os.umask(before)
        if group:
            os.chown(self.path, -1, number)
        os.chmod(self.path, mode)

    def wait(self, timeout_s: float, *others: int) -> None:
        """Block until a request arrives or another file descriptor is readable, at most `timeout_s` seconds."""
        poller = self._zmq.Poller()
        poller.register(self._socket, self._zmq.POLLIN)
        for descriptor in others:
            poller.register(descriptor, self._zmq.POLLIN)
        poller.poll(max(0, math.ceil(timeout_s * 1000)))

    def serve(self) -> int:
        """Answer the queued requests without blocking; return how many were answered.

        At most MOST_AT_ONCE are answered, and none after LONGEST_S, so that a flood of requests does not stop cycles.
        """
        count, end = 0, time.monotonic() + LONGEST_S
        while count < MOST_AT_ONCE and time.monotonic() < end:
            try:
                frames = self._socket.recv_multipart(self._zmq.NOBLOCK)
            except self._zmq.Again:
                return count
            count += 1
            reply = _encode(self._reply(frames))
            try:
                self._socket.send_multipart([frames[0], *frames[1:-1][:1], reply])
            except self._zmq.ZMQError:
                continue
        return count

    def _reply(self, frames: list[bytes]) -> dict[str, Any]:
        if len(frames) != 3 or frames[1]:
            return refusal("not one message with a JSON object")
        try:
            request = json.loads(frames[2].decode())
        except (ValueError, RecursionError):
            return refusal("not a JSON object in UTF-8")
        if not isinstance(request, dict):
            return refusal("not a JSON object")
        if request.get("v") != VERSION:
            return refusal(f"found version {request.get('v')!r:.40} of the protocol (allowed: {VERSION})")
        return self._handler(request)

    def close(self) -> None:
        """Stop listening and remove the socket file."""
        self._socket.close()
        self._context.term()
        self.path.unlink(missing_ok=True)


def refusal(error: str) -> dict[str, Any]:
    """Return a reply that refuses a request."""
    return {"ok": False, "error": error}


def ask(endpoint: str, do: str, *, timeout_s: float = 10.0, **arguments: Any) -> dict[str, Any]:
    """Send one request to the daemon and return its reply.

    Args:
        endpoint: "ipc:///path".
        do: submit, status, cancel, explain or accuracy (see `daemon.rpc`).
        timeout_s: longest wait for the reply, seconds.
        arguments: of the request.

    Raises:
        NoDaemonError: no daemon listens, or no reply came in time.
        DaemonError: the daemon refused, or the user may not connect.
    """
    import zmq

    path = socket_path(endpoint)
    if error := _connect_error(path):
        if isinstance(error, PermissionError):
            raise DaemonError(f"you may not connect to the daemon at {path} (permission denied)")
        raise NoDaemonError(f"no pilotfish daemon listens at {path} (`pilotfish daemon --config FILE` starts one)")
    _refuse_strangers(path)
    message = _encode({"v": VERSION, "do": do, **arguments})
    if len(message) > LARGEST_MESSAGE:
        raise DaemonError(f"the request has {len(message)} bytes (allowed: {LARGEST_MESSAGE})")
    with zmq.Context() as context, context.socket(zmq.REQ) as channel:
        channel.setsockopt(zmq.LINGER, 0)
        channel.connect(endpoint)
        channel.send(message)
        if not channel.poll(int(timeout_s * 1000)):
            raise NoDaemonError(f"the daemon at {path} did not answer within {timeout_s:g} s")
        reply: dict[str, Any] = json.loads(channel.recv())
    if not reply.get("ok"):
        raise DaemonError(str(reply.get("error", "the daemon refused without a reason")))
    return reply


def _refuse_strangers(path: Path) -> None:
    """Raise DaemonError for a socket that may be another user's: what is sent there may hold secrets."""
    try:
        check_socket(path)
    except OSError as error:
        raise DaemonError(f"nothing was sent: {error.strerror}") from None


def _connect_error(path: Path) -> OSError | None:
    """Return None if a process listens on the socket at `path`, also with a full backlog, else the error."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return None
        except OSError as error:
            return error
    return None


def _encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
