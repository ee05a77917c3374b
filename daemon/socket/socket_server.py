"""The daemon's end of its socket: HTTP over a Unix socket, in the daemon's own thread.

Rule: the permissions of the socket file decide which users may connect, and the kernel reports which user it is. Every
connection has one request, a deadline, and a bounded size; every user has a bounded number of connections. So no user
can block the daemon's cycles, exhaust its memory, or shut out other users. Of the waiting requests, those of the user
who has needed the least time come first. A request that is answered in steps goes on until its turn ends, and a user
who asks again after a pause is at most one turn ahead of the others.
"""

from __future__ import annotations

import grp
import json
import logging
import os
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Container, Generator, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ...simulate.errors import ConfigError
from ..state.users import Peer
from .ipc import LARGEST_BODY, LARGEST_HEAD, SUBMIT, VERSION, peer_of, refusal, socket_path
from .places import check_place

log = logging.getLogger("pilotfish.requests")
#: Most connections accepted in a row, and for how long requests are answered in a row, seconds.
MOST_AT_ONCE, LONGEST_S = 64, 0.1
#: Seconds for a request to arrive, and for its reply to be read.
DEADLINE_S = 20.0
WARN_EVERY_S = 60.0
#: Connections of all users; the daemon's own user and root have some more.
MOST_CONNECTIONS, RESERVED = 512, 32
#: Bytes of the requests of one user that are being received, as multiples of the largest one.
_MOST_BODIES = 2
#: How often deadlines are checked, seconds.
_EXPIRE_EVERY_S = 1.0
#: Parts of a request that are received in a row, of 64 KiB at most.
_PARTS = 16
#: Seconds of CPU time for which the steps of one request are taken in a row, and by which a user who paused is ahead.
TURN_S = 0.05
_REASONS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
            408: "Request Timeout", 411: "Length Required", 413: "Content Too Large", 429: "Too Many Requests",
            500: "Internal Server Error", 503: "Service Unavailable"}  # fmt: skip
_CHANGING = frozenset({SUBMIT, "cancel"})
#: Requests whose answers show the cluster as it is.
_QUESTIONS = frozenset({"status", "nodes", "explain"})
#: Returns a reply, or makes it in steps; the last step returns it.
Handler = Callable[[dict[str, Any], Peer], dict[str, Any] | Generator[None, None, dict[str, Any]]]


class BadRequestError(Exception):
    """A request is refused before it is handled; the arguments are those of `refusal`."""


class _Connection:
    """A connection: what has been received of its request, and what is left to send of its reply."""

    def __init__(self, channel: socket.socket, peer: Peer, deadline: float) -> None:
        self.channel, self.peer, self.deadline = channel, peer, deadline
        self.received = bytearray()
        self.request: dict[str, Any] | None = None
        self.body_at, self.length = 0, -1
        self.steps: Generator[None, None, dict[str, Any]] | None = None
        self.reply: memoryview | None = None

    @property
    def complete(self) -> bool:
        """True once the whole request is here."""
        return self.length >= 0 and len(self.received) >= self.body_at + self.length

    def receive(self) -> bool:
        """Take what has arrived; return False once the other end is gone. Raises BadRequestError, OSError."""
        for _ in range(_PARTS):
            try:
                part = self.channel.recv(2**16)
            except BlockingIOError:
                break
            if not part:
                return False
            self.received += part
            if self.length < 0:
                self._read_head()
            if self.complete or self.length < 0:
                break
        return True

    def _read_head(self) -> None:
        end = self.received.find(b"\r\n\r\n", 0, LARGEST_HEAD)
        if end >= 0:
            self.request, self.length = _parse_head(bytes(self.received[:end]).decode("latin-1"))
            self.body_at = end + 4
        elif len(self.received) >= LARGEST_HEAD:
            raise BadRequestError(f"the head of the request has more than {LARGEST_HEAD} bytes", 413)

    def arguments(self) -> dict[str, Any]:
        """Return the complete request. Raises BadRequestError."""
        assert self.request is not None
        if self.length == 0:
            return self.request
        try:
            body = self.received[self.body_at : self.body_at + self.length].decode()
        except UnicodeDecodeError:
            raise BadRequestError("the body is not text in UTF-8") from None
        return {**self.request, "workflow": body}


def _parse_head(head: str) -> tuple[dict[str, Any], int]:
    """Return the request without its body, and the length of the body. Raises BadRequestError."""
    first, *lines = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequestError("not a request of HTTP/1.1")
    method, target, _ = words
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name.lower() in headers:
            raise BadRequestError("a header is malformed, or given twice")
        headers[name.lower()] = value.strip()
    try:
        parts = urlsplit(target)
        query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), max_num_fields=20)
    except ValueError:
        raise BadRequestError("the query cannot be read") from None
    version, _, do = parts.path.removeprefix("/").partition("/")
    if version != VERSION:
        raise BadRequestError(f"found {parts.path[:40]!r} (allowed: /{VERSION}/REQUEST)", 404)
    if method not in ("POST", "GET") or (method == "GET" and do in _CHANGING):
        raise BadRequestError(f"found the method {method[:10]} (allowed: POST, and GET for what changes nothing)", 405)
    request = dict(query)
    if len(request) < len(query) or "do" in request or (do == SUBMIT and "workflow" in request):
        raise BadRequestError("an argument is given twice")
    return {**request, "do": do}, _body_length(headers, do)


def _body_length(headers: dict[str, str], do: str) -> int:
    if "transfer-encoding" in headers:
        raise BadRequestError("the length of the body must be given, as Content-Length", 411)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) < 16):
        raise BadRequestError("Content-Length is not a number")
    allowed = LARGEST_BODY if do == SUBMIT else 0
    if int(length) > allowed:
        raise BadRequestError(f"the body has {int(length):,} bytes (allowed: {allowed:,})", 413)
    return int(length)


class Server:
    """The daemon's end.

    Args:
        endpoint: path of the socket; its folder is made if missing.
        handler: turns a request of a peer into a reply; must not raise.
        mode: permissions of the socket file.
        group: of the socket file; None = the daemon's.
        connections: most connections of one user.
        bars: returns why a user may not connect, or "".

    Raises:
        ConfigError: another daemon listens there, or the socket cannot be made.
    """

    def __init__(
        self,
        endpoint: str,
        handler: Handler,
        *,
        mode: int = 0o600,
        group: str | None = None,
        connections: int = 64,
        bars: Callable[[Peer], str] = lambda peer: "",
    ) -> None:
        self.path, self._handler, self._most_each, self._bars = socket_path(endpoint), handler, connections, bars
        check_place(self.path, "socket", group=group)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._bind(mode, group)
        except OSError as error:
            self._socket.close()
            raise ConfigError("socket", "path", f"cannot listen on {self.path}: {error.strerror}") from None
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._connections: set[_Connection] = set()
        self._count: Counter[int] = Counter()
        self._complete: list[_Connection] = []
        self._spent: dict[int, float] = {}  # seconds of CPU time, by user; with a pause they go on from `_level`
        self._level = 0.0  # of the user who was answered last
        self._turn: tuple[_Connection | None, float] = None, 0.0  # a request in steps, and until which spent time
        self._warned: dict[str, float] = {}
        self._served = time.monotonic()

    def _bind(self, mode: int, group: str | None) -> None:
        self.path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            self._socket.bind(str(self.path))
        finally:
            os.umask(before)
        status = os.lstat(self.path)
        self._identity = status.st_dev, status.st_ino
        if group:
            os.chown(self.path, -1, grp.getgrnam(group).gr_gid)
        os.chmod(self.path, mode)
        self._socket.setblocking(False)
        self._socket.listen(128)

    def wait(self, timeout_s: float, *others: int) -> None:
        """Block until there is something to serve or another file descriptor is readable, `timeout_s` s at most."""
        for descriptor in others:
            self._selector.register(descriptor, selectors.EVENT_READ)
        most = 0.0 if self._complete else _EXPIRE_EVERY_S if self._connections else timeout_s
        try:
            self._selector.select(max(0.0, min(timeout_s, most)))
        finally:
            for descriptor in others:
                self._selector.unregister(descriptor)

    def serve(self, *, later: Container[str] = ()) -> int:
        """Go on with all connections, and answer requests, without blocking; return how many were answered.

        Args:
            later: the requests that wait.
        """
        self.receive()
        return self.answer(later=later)

    def receive(self) -> bool:
        """Go on with all connections without blocking; return whether a question about the cluster waits."""
        self._receive(time.monotonic() + LONGEST_S)
        self._expire()
        return any(client.request is not None and client.request["do"] in _QUESTIONS for client in self._complete)

    def answer(self, *, later: Container[str] = ()) -> int:
        """Answer requests that have arrived; return how many.

        No answer begins after LONGEST_S, so that a flood of requests does not stop cycles. A request that arrives
        meanwhile passes those of users who have needed more time.

        Args:
            later: the requests that wait.
        """
        end, answered = time.monotonic() + LONGEST_S, 0
        while time.monotonic() < end:
            waiting = [
                client for client in self._complete if client.request is None or client.request["do"] not in later
            ]
            if not waiting:
                break
            chosen = self._next(waiting)
            self._complete.remove(chosen)
            self._answer(chosen)
            answered += 1
            self._receive(end)
        return answered

    def _next(self, waiting: Sequence[_Connection]) -> _Connection:
        """Return the request to go on with: the one whose turn it is, else one of the user who needed least time."""
        current, turn_end = self._turn
        if current is not None and current in waiting and self._spent[current.peer.uid] < turn_end:
            return current
        chosen = min(waiting, key=lambda client: self._spent[client.peer.uid])
        self._level = max(self._level, spent := self._spent[chosen.peer.uid])
        self._turn = chosen, spent + TURN_S
        return chosen

    def _queue(self, connection: _Connection) -> None:
        """Let a complete request wait for its answer."""
        uid = connection.peer.uid
        if all(other.peer.uid != uid for other in self._complete):
            self._spent[uid] = max(self._spent.get(uid, 0.0), self._level - TURN_S)
        self._complete.append(connection)

    def _receive(self, end: float) -> None:
        """Go on with all connections without blocking; accept none after `end`, monotonic seconds."""
        for key, _ in self._selector.select(0.0):
            if key.data is None:
                self._accept(end)
            else:
                self._go_on(key.data)

    def _accept(self, end: float) -> None:
        for _ in range(MOST_AT_ONCE):
            try:
                channel, _ = self._socket.accept()
                peer = peer_of(channel)
            except OSError:  # none is left, the peer is gone, or there are no file descriptors
                return
            channel.setblocking(False)
            connection = _Connection(channel, peer, time.monotonic() + DEADLINE_S)
            self._connections.add(connection)
            self._count[peer.uid] += 1
            most = MOST_CONNECTIONS + (RESERVED if peer.uid in (0, os.geteuid()) else 0)
            if why_not := self._bars(peer):
                self._warn("users without a name in the user database try to connect; they are refused")
                self._refuse(connection, why_not, 403)
            elif self._count[peer.uid] > self._most_each:
                self._warn(f"{peer} has more than {self._most_each} connections; further ones are refused")
                self._refuse(connection, f"you have more than {self._most_each} connections to the daemon", 429)
            elif len(self._connections) > most:
                self._warn(f"there are {most} connections; further ones are refused")
                self._refuse(connection, "the daemon has too many connections", 503)
            else:
                self._selector.register(channel, selectors.EVENT_READ, connection)
                self._go_on(connection)  # mostly the request is here: it does not wait for another round
            if time.monotonic() > end:
                return

    def _go_on(self, connection: _Connection) -> None:
        """Read or write what is possible now."""
        try:
            if connection.reply is not None:
                self._send(connection)
                return
            if not connection.receive():
                self._drop(connection)
                return
            self._bound_bodies(connection)
            if connection.complete:
                self._selector.unregister(connection.channel)
                self._queue(connection)
        except BadRequestError as error:
            self._refuse(connection, *error.args)
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection)

    def _bound_bodies(self, connection: _Connection) -> None:
        """Refuse a request whose user already sends as much as one may."""
        uid = connection.peer.uid
        if connection.length > 0:
            mine = sum(max(0, other.length) for other in self._connections if other.peer.uid == uid)
            if mine > _MOST_BODIES * LARGEST_BODY:
                raise BadRequestError("you are sending too many large requests at once", 429)

    def _answer(self, connection: _Connection) -> None:
        """Answer a request, or go on with the next step of it."""
        began = time.thread_time()
        try:
            reply = self._step(connection)
        except BadRequestError as error:
            reply = refusal(*error.args)
        self._spent[connection.peer.uid] += time.thread_time() - began
        if reply is None:
            self._complete.insert(0, connection)  # before the user's others, which would take memory meanwhile
        else:
            self._turn = None, 0.0
            self._reply(connection, reply)

    def _step(self, connection: _Connection) -> dict[str, Any] | None:
        """Return the reply; None if there are more steps."""
        if connection.steps is None:
            arguments = connection.arguments()
            connection.received.clear()
            reply = self._handler(arguments, connection.peer)
            if not isinstance(reply, Generator):
                return reply
            connection.steps = reply
        try:
            next(connection.steps)
        except StopIteration as end:
            connection.steps = None
            return dict(end.value)
        return None

    def _refuse(self, connection: _Connection, error: str, code: int = 400) -> None:
        with suppress(OSError):  # else a close resets the connection before the reply is read
            connection.channel.recv(2**16)
        self._reply(connection, refusal(error, code))

    def _reply(self, connection: _Connection, reply: dict[str, Any]) -> None:
        code = 200 if reply.get("ok") else int(reply.pop("code", 400))
        body = json.dumps(reply, separators=(",", ":")).encode() + b"\n"
        head = f"HTTP/1.1 {code} {_REASONS.get(code, 'Error')}\r\nContent-Type: application/json\r\n"
        text = f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        connection.reply, connection.deadline = memoryview(text), time.monotonic() + DEADLINE_S
        with suppress(KeyError):
            self._selector.unregister(connection.channel)
        self._selector.register(connection.channel, selectors.EVENT_WRITE, connection)
        self._go_on(connection)

    def _send(self, connection: _Connection) -> None:
        assert connection.reply is not None
        connection.reply = connection.reply[connection.channel.send(connection.reply) :]
        if not connection.reply:
            self._drop(connection)

    def _expire(self) -> None:
        """Drop connections whose deadline has passed; the time in which the daemon was busy does not count."""
        now = time.monotonic()
        busy, self._served = now - self._served - _EXPIRE_EVERY_S, now
        for connection in self._connections if busy > 0 else ():
            connection.deadline += busy
        for connection in [
            client for client in self._connections if client.deadline < now and client not in self._complete
        ]:
            if connection.reply is None:
                self._refuse(connection, f"the request did not arrive within {DEADLINE_S:g} s", 408)
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        if connection not in self._connections:
            return
        with suppress(KeyError, ValueError):
            self._selector.unregister(connection.channel)
        self._connections.discard(connection)
        self._count[connection.peer.uid] -= 1
        if not self._count[connection.peer.uid]:
            del self._count[connection.peer.uid]
        connection.channel.close()

    def _warn(self, text: str) -> None:
        """Log a warning, at most once in WARN_EVERY_S."""
        now = time.monotonic()
        if now - self._warned.get(text, -WARN_EVERY_S) >= WARN_EVERY_S:
            self._warned[text] = now
            log.warning("%s", text)

    def close(self) -> None:
        """Send what can be sent, stop listening, and remove the socket file if it is still this one."""
        until = time.monotonic() + 0.5
        while any(client.reply is not None for client in self._connections) and time.monotonic() < until:
            for key, _ in self._selector.select(0.05):
                if key.data is not None and key.data.reply is not None:
                    self._go_on(key.data)
        for connection in list(self._connections):
            self._drop(connection)
        self._selector.close()
        self._socket.close()
        with suppress(FileNotFoundError):
            status = os.lstat(self.path)
            if (status.st_dev, status.st_ino) == self._identity:
                self.path.unlink()
