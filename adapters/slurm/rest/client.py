"""HTTP client of slurmrestd: over TCP or a unix socket, as a named user with a token, within a time limit.

Rule: a read may be sent twice, and is given up when this process is to stop. A write is sent once, on a fresh
connection, so that a refused connection means that nothing was sent. The token is shown neither to
proxies nor to redirections.
Source: slurmrestd(8); requests' and urllib3's documentation of transport adapters.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import HTTPError, NewConnectionError

from ....simulate.errors import ConfigError
from ...base import AdapterError, ParseError
from ...run_command import call_read
from . import errors
from .token import TokenSource

CONNECT_S = 3.0
#: An answer that took longer than this was not delayed by the token, seconds.
FAST_S = 2.0
CHUNK = 1 << 16
#: Largest answer, bytes; the 22,000 jobs of a large queue are about 100 MiB.
LARGEST = 256 * 2**20


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, **options: Any) -> None:
        super().__init__("localhost", **options)
        self._path = path

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_S)
            connection.connect(self._path)
        except OSError as error:
            connection.close()
            raise NewConnectionError(self, f"{self._path}: {error.strerror or error}") from None
        self.sock = connection


class _UnixPool(HTTPConnectionPool):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", maxsize=1)
        self._path = path

    def _new_conn(self) -> HTTPConnection:
        return _UnixConnection(self._path, timeout=self.timeout.connect_timeout)


class UnixAdapter(HTTPAdapter):
    """Connects a requests session to a unix socket."""

    def __init__(self, path: str) -> None:
        self._pool = _UnixPool(path)
        super().__init__()

    def get_connection_with_tls_context(self, *_args: Any, **_options: Any) -> HTTPConnectionPool:
        """Return the pool of the socket, whatever the URL."""
        return self._pool

    get_connection = get_connection_with_tls_context  # requests before 2.32

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._pool.close()
        self._pool = _UnixPool(self._pool._path)


class Client:
    """One slurmrestd. Raises ConfigError for another kind of URL, or if `user` is not the name of an account.

    Args:
        url: `http://HOST:PORT`, `https://HOST:PORT`, or `unix:/PATH`.
        user: User of the token.
        token: Source of tokens.
        timeout_s: Time limit of an answer, seconds; a controller that is down answers after 9 to 10.
        clock: Monotonic clock, seconds.
    """

    def __init__(
        self,
        url: str,
        user: str,
        token: TokenSource,
        timeout_s: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url, self.user, self._token, self.timeout_s, self._clock = url, user, token, timeout_s, clock
        self._session = requests.Session()
        self._session.trust_env = False  # neither proxies nor ~/.netrc
        self._session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
        if not (user.isascii() and user.isprintable() and user.strip() == user):
            raise ConfigError("adapter slurm", "rest_user", f"found {user!r}", "the name of an account")
        scheme, host = _parts(url)
        self._base = "http://localhost" if scheme == "unix" else url.rstrip("/")
        if scheme == "unix":
            self._session.mount("http://", UnixAdapter(os.path.normpath(host)))
        self.exposed = scheme == "http" and host not in ("localhost", "::1") and not host.startswith("127.")

    def get(self, path: str, request: str, **query: str | int) -> dict[str, Any]:
        """Read; `request` names the request in errors. Raises as `errors.read` does; `NotDone` if no server listens."""
        return call_read(lambda: self._patiently(lambda: self._send("GET", path, request, params=query)), request)

    def post(self, path: str, request: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Change something, once. Raises as `get`; only `NotDone` and refusals mean that nothing was changed."""
        self._session.close()  # a kept connection may be dead, and then it is unknown whether the request was sent
        return self._send("POST", path, request, json=body)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def _patiently(self, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Send a read again if the token may be at fault, or if a connection was kept for too long."""
        began = self._clock()
        try:
            return ask()
        except errors.NotDone:
            raise
        except AdapterError as error:
            if not error.transient or self._clock() - began > FAST_S:
                raise
            if error.kind != "closed" and not self._token.renew():
                raise
            return ask()

    def _send(self, method: str, path: str, request: str, **options: Any) -> dict[str, Any]:
        token = self._token.get()
        headers = {"X-SLURM-USER-NAME": self.user, "X-SLURM-USER-TOKEN": token.text, "Accept": "application/json"}
        headers["Accept-Encoding"] = "identity"  # what is not packed needs no more memory than was received
        options |= {
            "headers": headers,
            "timeout": (CONNECT_S, self.timeout_s),
            "stream": True,
            "allow_redirects": False,
        }
        deadline = self._clock() + self.timeout_s
        try:
            with closing(self._session.request(method, f"{self._base}{path}", **options)) as answer:
                return errors.read(request, answer.status_code, token.hidden_in(self._whole(answer, deadline, request)))
        except (requests.RequestException, HTTPError, OSError) as error:
            raise _problem(request, self.url, error) from None

    def _whole(self, answer: requests.Response, deadline: float, request: str) -> bytes:
        """Return the body; it is read as it arrives, so that one that is slow or without end is given up too."""
        if (packed := answer.headers.get("Content-Encoding", "identity")) != "identity":
            raise ParseError(f"{request}: slurmrestd's answer is packed ({packed[:40]}), which was not asked for")
        parts, size = list[bytes](), 0
        while part := answer.raw.read1(CHUNK, decode_content=False):
            parts.append(part)
            size += len(part)
            if size > LARGEST:
                raise ParseError(f"{request}: slurmrestd's answer is larger than {LARGEST // 2**20} MiB")
            if self._clock() > deadline:
                message = f"{request}: slurmrestd's answer took longer than {self.timeout_s:g} s"
                raise AdapterError(message, transient=True, kind="timeout")
        return b"".join(parts)


def _parts(url: str) -> tuple[str, str]:
    """Return `http` or `https` and a host, or `unix` and a path. Raises ConfigError."""
    path = url.removeprefix("unix:")
    if url.startswith("unix:") and path.startswith("/"):
        return "unix", path
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and not parts.username and parts.port != 0:
            return parts.scheme, parts.hostname
    raise ConfigError("adapter slurm", "rest_url", f"found {url!r}", "http://HOST:PORT, https://HOST:PORT, unix:/PATH")


def _problem(request: str, url: str, error: Exception) -> AdapterError:
    """Return the error of a failed request, without its headers, which contain the token."""
    if _never_connected(error):
        return errors.NotDone(f"{request}: no server listens at {url}", kind="unreachable")
    if isinstance(error, requests.Timeout):
        return AdapterError(f"{request}: slurmrestd did not answer in time", transient=True, kind="timeout")
    if isinstance(error, requests.exceptions.SSLError):
        return errors.NotDone(f"{request}: {url}: its certificate is not trusted", kind="unreachable")
    why = f"{request}: slurmrestd closed the connection without a whole answer"
    return AdapterError(why, transient=True, kind="closed")


def _never_connected(error: Exception) -> bool:
    if isinstance(error, (requests.ConnectTimeout, NewConnectionError)):
        return True
    reason = getattr(error.args[0], "reason", error.args[0]) if error.args else None
    return isinstance(reason, NewConnectionError)
