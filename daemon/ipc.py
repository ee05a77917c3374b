"""The wire between the daemon and its clients: one JSON request, one JSON reply, over a ZeroMQ ipc socket.

Rule: the file's permissions say who may talk; whatever arrives is answered, or dropped if it cannot be
answered, and never hurts the daemon. A daemon that is not there is one clear line.
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

VERSION = 1
LARGEST_MESSAGE = 64 * 2**20
MOST_AT_ONCE, LONGEST_S = 64, 0.1  # requests, and seconds, that are answered in a row
LONGEST_PATH = 107  # sun_path of unix(7) holds 108 bytes, the last one a zero
MOST_KEPT = 16  # messages for one client, each way; answers to one who asks on and never listens are dropped
Handler = Callable[[dict[str, Any]], dict[str, Any]]


class WireError(PilotfishError):
    """The daemon could not be asked, or said no."""


class AbsentError(WireError):
    """Nobody listens, or nobody answered in time: asking again later may help."""


def socket_path(endpoint: str) -> Path:
    """The file of an `ipc://` endpoint. Raises ConfigError for another kind, or a path too long for a
    socket.
    """
    path = endpoint.removeprefix("ipc://")
    if path == endpoint or not path.startswith("/"):
        raise ConfigError("socket", "path", f"found {endpoint!r}", "an absolute path")
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise ConfigError("socket", "path", f"{path} is too long for a socket", f"{LONGEST_PATH} bytes")
    return Path(path)


def _answers(path: Path) -> OSError | None:
    """None if somebody listens on the socket at `path`, also where so many wait that he takes no more, else why not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return None
        except OSError as error:
            return error
    return None


class Server:
    """The daemon's end.

    Args:
        endpoint: "ipc:///path"; the folder is made if missing.
        handler: turns a request into a reply; must not raise.
        mode: permissions of the socket file.
        group: its group, where clients of a group may talk.

    Raises:
        ConfigError: another daemon listens there, or the socket cannot be made.
    """

    def __init__(
        self, endpoint: str, handler: Handler, *, mode: int = 0o600, group: str | None = None
    ) -> None:
        import zmq

        self._path, self._handler, self._zmq = socket_path(endpoint), handler, zmq
        if _answers(self._path) is None:
            raise ConfigError("socket", "path", f"another daemon listens on {self._path} already")
        if os.path.lexists(self._path) and not stat.S_ISSOCK(os.lstat(self._path).st_mode):
            raise ConfigError("socket", "path", f"{self._path} is there and is no socket", "a path of its own")
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
        self._socket.setsockopt(zmq.LINGER, 500)
        self._socket.setsockopt(zmq.SNDTIMEO, 0)
        self._socket.set_hwm(MOST_KEPT)
        try:
            self._bind(endpoint, mode, group)
        except (OSError, zmq.ZMQError, KeyError) as error:
            self._context.destroy(linger=0)
            reason = f"there is no group {group!r}" if isinstance(error, KeyError) else error.strerror
            raise ConfigError("socket", "path", f"cannot listen on {self._path}: {reason}") from None

    def _bind(self, endpoint: str, mode: int, group: str | None) -> None:
        number = grp.getgrnam(group).gr_gid if group else -1
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        before = os.umask(0o177)
        try:
            self._socket.bind(endpoint)
        finally:
            os.umask(before)
        if group:
            os.chown(self._path, -1, number)
        os.chmod(self._path, mode)

    def wait(self, timeout_s: float, *others: int) -> None:
        """Block until a request waits or another file descriptor is readable, at most `timeout_s`."""
        poller = self._zmq.Poller()
        poller.register(self._socket, self._zmq.POLLIN)
        for descriptor in others:
            poller.register(descriptor, self._zmq.POLLIN)
        poller.poll(max(0, math.ceil(timeout_s * 1000)))

    def serve(self) -> int:
        """Answer what waits, without blocking, at most MOST_AT_ONCE and none after LONGEST_S: who floods us must not
        keep us from our work. Returns how many requests were answered."""
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
        """Stop listening and take the socket file away."""
        self._socket.close()
        self._context.term()
        self._path.unlink(missing_ok=True)


def refusal(error: str) -> dict[str, Any]:
    """A reply that says no."""
    return {"ok": False, "error": error}


def ask(endpoint: str, do: str, *, timeout_s: float = 10.0, **arguments: Any) -> dict[str, Any]:
    """Send one request to the daemon and return its reply.

    Args:
        do: submit, status, cancel or explain, with their arguments (see `daemon.requests`).
        timeout_s: how long to wait for the answer.

    Raises:
        AbsentError: nobody listens, or no answer came in time.
        WireError: the daemon said no, or may not be asked.
    """
    import zmq

    path = socket_path(endpoint)
    if error := _answers(path):
        if isinstance(error, PermissionError):
            raise WireError(f"you may not talk to the daemon at {path} (permission denied)")
        raise AbsentError(
            f"no pilotfish daemon listens at {path} (`pilotfish daemon --config FILE` starts one)"
        )
    message = _encode({"v": VERSION, "do": do, **arguments})
    if len(message) > LARGEST_MESSAGE:
        raise WireError(f"the request has {len(message)} bytes (allowed: {LARGEST_MESSAGE})")
    with zmq.Context() as context, context.socket(zmq.REQ) as channel:
        channel.setsockopt(zmq.LINGER, 0)
        channel.connect(endpoint)
        channel.send(message)
        if not channel.poll(int(timeout_s * 1000)):
            raise AbsentError(f"the daemon at {path} did not answer within {timeout_s:g} s")
        reply: dict[str, Any] = json.loads(channel.recv())
    if not reply.get("ok"):
        raise WireError(str(reply.get("error", "the daemon refused without a reason")))
    return reply


def _encode(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
