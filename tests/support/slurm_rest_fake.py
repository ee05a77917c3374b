"""A fake slurmrestd with prepared answers, over TCP or a Unix socket, that records the requests.

The real one is in tests/real/slurm; this one gives the answers that a healthy server does not give.
"""

from __future__ import annotations

import base64
import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

Answer = tuple[int, bytes]


def token(exp: float | None = None, iat: float | None = None, **claims: Any) -> str:
    """Return an unsigned token."""
    times = {name: value for name, value in (("exp", exp), ("iat", iat)) if value is not None}
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256"}, {**times, **claims})]
    return ".".join(
        [*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "c2VjcmV0LXNpZ25hdHVyZQ"]
    )


class FakeRest:
    """Serve `answers[path]`, which may be a function of the query; `asked` are the requests so far."""

    def __init__(self, path: Path | None = None) -> None:
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answers: dict[str, Answer | Callable[[str], Answer]] = {}
        self.slow_s = 0.0
        self.headers: dict[str, str] = {}  # more headers of each answer
        self.connections: list[socket.socket] = []
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = _UnixServer(str(path), handler) if path else _Server(("127.0.0.1", 0), handler)
        self.url = f"unix:{path}" if path else f"http://127.0.0.1:{self._server.socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def paths(self) -> list[str]:
        """What was asked for."""
        return [path for _, path, _, _ in self.asked]

    def hang_up(self) -> None:
        """Close the connections that clients keep open."""
        while self.connections:
            with suppress(OSError):
                self.connections.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


class _UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    fake: FakeRest
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.fake.connections.append(self.connection)

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.fake.asked.append((self.command, self.path, dict(self.headers), body))
        path, _, query = self.path.partition("?")
        given = self.fake.answers.get(path, (404, b"Unable find requested URL."))
        status, answer = given(query) if callable(given) else given
        self.send_response(status)
        for name, value in self.fake.headers.items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        with suppress(BrokenPipeError):  # the client reads no more than it wants
            for start in range(0, len(answer), 64) if self.fake.slow_s else ():
                self.wfile.write(answer[start : start + 64])
                time.sleep(self.fake.slow_s)
            if not self.fake.slow_s:
                self.wfile.write(answer)

    do_POST = do_GET

    def address_string(self) -> str:
        return "client"

    def log_message(self, *_: object) -> None:
        """Nothing."""
