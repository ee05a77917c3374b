"""Requests to slurmrestd: over TCP or a unix socket, each as a named user with a token, never longer than a limit.

Rule: a reading request may be asked twice, a writing one is sent once, on a fresh connection, so that nobody listening
means that nothing was sent. Neither proxies nor redirections see the token.
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
from ...base import AdapterError
from . import errors
from .token import TokenSource

CONNECT_S = 3.0
#: an answer that took longer than this is not about the token
FAST_S = 2.0
CHUNK = 1 << 16


class _UnixConnection(HTTPConnection):
    """A connection to a socket of this machine."""

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__("localhost", **options)
        self._path = path

    def connect(self) -> None:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(CONNECT_S)
            made.connect(self._path)
        except OSError as error:
            made.close()
            raise NewConnectionError(self, f"{self._path}: {error.strerror or error}") from None
        self.sock = made


class _UnixPool(HTTPConnectionPool):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", maxsize=1)
        self._path = path

    def _new_conn(self) -> HTTPConnection:
        return _UnixConnection(self._path, timeout=self.timeout.connect_timeout)


class UnixAdapter(HTTPAdapter):
    """Lets a requests session speak to a unix socket."""

    def __init__(self, path: str) -> None:
        self._pool = _UnixPool(path)
        super().__init__()

    def get_connection_with_tls_context(self, *_args: Any, **_options: Any) -> HTTPConnectionPool:
        """The pool of the socket, whatever the URL says."""
        return self._pool

    get_connection = get_connection_with_tls_context  # requests before 2.32

    def close(self) -> None:
        """Close its connections."""
        super().close()
        self._pool.close()
        self._pool = _UnixPool(self._pool._path)


class Client:
    """One slurmrestd.

    Args:
        url: `http://HOST:PORT`, `https://HOST:PORT`, or `unix:/PATH`.
        user: whom the token is for.
        timeout_s: seconds after which an answer is given up; a controller that is down answers after 9 to 10.

    Raises:
        ConfigError: the URL is none of these.
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
        self.exposed = scheme == "http" and not _is_here(host)

    def get(self, path: str, what: str, **query: str | int) -> dict[str, Any]:
        """Ask; `what` names the question for errors. Raises as `errors.read` does, `NotDone` where nobody listens."""
        return self._patiently(lambda: self._send("GET", path, what, params=query))

    def post(self, path: str, what: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Change something, once. Raises as `get`; only `NotDone` and refusals mean that nothing was changed."""
        self._session.close()  # a connection that was kept may be dead, and then nobody knows what was sent
        return self._send("POST", path, what, json=body)

    def close(self) -> None:
        """Let go of connections."""
        self._session.close()

    def _patiently(self, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Ask once more where the token may be what is wrong, or where a connection was kept for too long."""
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

    def _send(self, method: str, path: str, what: str, **options: Any) -> dict[str, Any]:
        token = self._token.get()
        headers = {"X-SLURM-USER-NAME": self.user, "X-SLURM-USER-TOKEN": token.text, "Accept": "application/json"}
        deadline = self._clock() + self.timeout_s
        limits = (CONNECT_S, self.timeout_s)
        try:
            with closing(
                self._session.request(
                    method,
                    f"{self._base}{path}",
                    headers=headers,
                    timeout=limits,
                    stream=True,
                    allow_redirects=False,
                    **options,
                )
            ) as answer:
                body = self._whole(answer, deadline, what)
                return errors.read(what, answer.status_code, body)
        except (requests.RequestException, HTTPError, OSError) as error:
            raise _problem(what, self.url, error) from None

    def _whole(self, answer: requests.Response, deadline: float, what: str) -> bytes:
        """The body; an answer that trickles is given up, too, so that it is read as it comes."""
        parts = []
        while part := answer.raw.read1(CHUNK, decode_content=True):
            parts.append(part)
            if self._clock() > deadline:
                message = f"{what}: slurmrestd's answer took longer than {self.timeout_s:g} s"
                raise AdapterError(message, transient=True, kind="timeout")
        return b"".join(parts)


def _parts(url: str) -> tuple[str, str]:
    """`http` or `https` and a host, or `unix` and a path. Raises ConfigError."""
    path = url.removeprefix("unix:")
    if url.startswith("unix:") and path.startswith("/"):
        return "unix", path
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and not parts.username and parts.port != 0:
            return parts.scheme, parts.hostname
    raise ConfigError("adapter slurm", "rest_url", f"found {url!r}", "http://HOST:PORT, https://HOST:PORT, unix:/PATH")


def _problem(what: str, url: str, error: Exception) -> AdapterError:
    """What went wrong on the way; the request's headers, with the token in them, stay out of it."""
    if _never_connected(error):
        return errors.NotDone(f"{what}: nobody listens at {url}", kind="unreachable")
    if isinstance(error, requests.Timeout):
        return AdapterError(f"{what}: slurmrestd did not answer in time", transient=True, kind="timeout")
    why = "slurmrestd closed the connection without a whole answer"
    if isinstance(error, requests.exceptions.SSLError):
        return errors.NotDone(f"{what}: {url}: its certificate is not trusted", kind="unreachable")
    return AdapterError(f"{what}: {why}", transient=True, kind="closed")


def _never_connected(error: Exception) -> bool:
    if isinstance(error, (requests.ConnectTimeout, NewConnectionError)):
        return True
    reason = getattr(error.args[0], "reason", error.args[0]) if error.args else None
    return isinstance(reason, NewConnectionError)


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
