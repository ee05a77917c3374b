"""The client's end of the daemon's socket: HTTP over a Unix socket, one request a connection.

Rule: a daemon that does not run, does not answer, or is not the one that is expected is one clear error.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ...simulate.errors import ConfigError, PilotfishError
from ..paths import LONGEST_SOCKET_PATH, STARTING
from ..state.users import Peer, user_name

#: The first part of each request's path.
VERSION = "v1"
#: Bytes of the text before a body, and of the body of a submission.
LARGEST_HEAD, LARGEST_BODY = 32 * 2**10, 8 * 2**20
#: Seconds without an answer after which a client looks whether the daemon's process is stopped.
STOPPED_S = 5.0
#: The request whose body is a workflow; the arguments of all others are in the query.
SUBMIT = "submit"


class DaemonError(PilotfishError):
    """The daemon could not be reached, or refused."""


class NoDaemonError(DaemonError):
    """No daemon listens, or it did not answer in time; a retry may help."""


class SilentDaemonError(NoDaemonError):
    """A daemon listens, and did not answer in time."""


class _AbsentError(NoDaemonError):
    """No daemon listens."""


class _LaterError(DaemonError):
    """There are too many requests at this moment."""


def peer_of(connection: socket.socket) -> Peer:
    """Return who connected, or who listens (SO_PEERCRED of unix(7)). Raises OSError."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
    pid, uid, gid = struct.unpack("iII", credentials)
    return Peer(uid, gid, pid)


def socket_path(endpoint: str) -> Path:
    """Return the file of a socket, with or without `ipc://` in front. Raises ConfigError: not absolute, or too long."""
    path = endpoint.removeprefix("ipc://")
    if not path.startswith("/"):
        raise ConfigError("socket", "path", f"found {endpoint!r}", "an absolute path")
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise ConfigError("socket", "path", f"{path} is too long for a socket", f"{LONGEST_SOCKET_PATH} bytes")
    return Path(path)


def starting_path(endpoint: str) -> Path:
    """Return the file of the socket of a service that still starts. Raises ConfigError, as `socket_path`."""
    return socket_path(f"{endpoint}{STARTING}")


def refusal(error: str, code: int = 400) -> dict[str, Any]:
    """Return a reply that refuses a request.

    Args:
        error: one sentence for the user.
        code: of HTTP, 400 to 599.
    """
    return {"ok": False, "error": error, "code": code}


#: What a user does who may not connect.
WITHOUT_IT = "--adapter slurm or oar shows your own jobs without it"


def own_or_root(uid: int) -> bool:
    """Return whether a user is root or the one who runs this process."""
    return uid in (0, os.geteuid())


def ask(
    endpoint: str, do: str, *, timeout_s: float = 10.0, trusted: Callable[[int], bool] = own_or_root, **arguments: Any
) -> dict[str, Any]:
    """Send one request to the daemon and return its reply.

    Args:
        endpoint: path of the socket.
        do: submit, status, cancel, explain or accuracy (see `daemon.socket.rpc`).
        timeout_s: longest wait for the reply, seconds.
        trusted: whether the user of that uid may be the daemon's; nothing is sent to another one.
        arguments: of the request; None = not given. The `workflow` of a submission is its body.

    Raises:
        NoDaemonError: no daemon listens, it still starts, no reply came in time, or its process is stopped.
        DaemonError: the daemon refused, the user may not connect, or the daemon is not trusted.
    """
    try:
        return _ask(socket_path(endpoint), do, timeout_s, trusted, arguments)
    except _AbsentError as absent:
        try:
            _ask(starting_path(endpoint), "status", timeout_s, trusted, {})
        except (_AbsentError, ConfigError):
            raise absent from None
        except DaemonError as progress:
            raise NoDaemonError(str(progress)) from None
        raise


def _ask(
    path: Path, do: str, timeout_s: float, trusted: Callable[[int], bool], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Send one request to the socket at `path`, see `ask`."""
    until, pause_s = time.monotonic() + timeout_s, 0.05
    body = str(arguments.pop("workflow")).encode() if do == SUBMIT else b""
    if len(body) > LARGEST_BODY:
        raise DaemonError(f"the workflow has {len(body):,} bytes as JSON (allowed: {LARGEST_BODY:,})")
    query = urlencode({key: value for key, value in arguments.items() if value is not None})
    head = f"POST /{VERSION}/{do}?{query} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    silent = SilentDaemonError(f"the daemon at {path} did not answer within {timeout_s:g} s")
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
            _connect(channel, path, until, silent)
            peer = peer_of(channel)
            if not trusted(peer.uid):
                whose = f"{user_name(peer.uid)} listens at {path}, and is not you, root, or the service's account"
                raise DaemonError(f"{whose}; nothing was sent (service_user in client.yaml names the account)")
            try:
                answer = _exchange(channel, head.encode() + body, until, peer.pid)
            except TimeoutError:
                raise silent from None
            except OSError as error:
                raise NoDaemonError(f"the daemon at {path} closed the connection ({error.strerror})") from None
        try:
            return _reply(answer, path)
        except _LaterError as error:
            if time.monotonic() + pause_s >= until:
                raise NoDaemonError(str(error)) from None
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 1.0)


def _connect(channel: socket.socket, path: Path, until: float, silent: NoDaemonError) -> None:
    """Connect, and wait while the queue of connections is full, which `connect` of a Unix socket does not do."""
    channel.setblocking(False)
    while error := channel.connect_ex(str(path)):
        if error != errno.EAGAIN:
            break
        if time.monotonic() >= until:
            raise silent
        time.sleep(0.01)
    if error in (errno.EPERM, errno.EACCES):
        raise DaemonError(f"you may not connect to the daemon at {path} (permission denied); {WITHOUT_IT}")
    if error:
        raise _AbsentError(f"no pilotfish daemon listens at {path} (`pilotfish daemon --config FILE` starts one)")


def _exchange(channel: socket.socket, request: bytes, until: float, pid: int) -> bytes:
    """Return all that the daemon answers. Raises TimeoutError, OSError, SilentDaemonError."""
    sent, parts = memoryview(request), []
    try:
        while sent:
            channel.settimeout(_left(until))
            sent = sent[channel.send(sent) :]
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before all of it was read; the answer says why
    while True:
        channel.settimeout(min(_left(until), STOPPED_S))
        try:
            part = channel.recv(2**16)
        except ConnectionResetError:
            part = b""
        except TimeoutError:
            if is_stopped(pid):
                raise SilentDaemonError(f"the daemon does not answer: its process {pid} is stopped") from None
            continue
        parts.append(part)
        if not part:
            return b"".join(parts)


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped, by a signal or a debugger; False: it runs, waits, or cannot be seen."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in (b"T", b"t")


def _left(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _reply(answer: bytes, path: Path) -> dict[str, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head:
        raise NoDaemonError(f"the daemon at {path} closed the connection without an answer")
    try:
        reply = json.loads(body)
    except ValueError:
        raise DaemonError(f"the answer from {path} is not one of a pilotfish daemon") from None
    if not isinstance(reply, dict) or not reply.get("ok"):
        why = reply.get("error") if isinstance(reply, dict) else None
        later = head.split(b" ", 2)[1:2] in ([b"429"], [b"503"])
        raise (_LaterError if later else DaemonError)(str(why or "the daemon refused without a reason"))
    return reply
