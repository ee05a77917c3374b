"""`pilotfish web`: pages that show the cluster, its queue and its future, for browsers."""

from __future__ import annotations

import errno
import logging
import os
import socket as sockets
import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

from ...simulate.errors import ConfigError
from ...trust import check_file
from .. import options
from ..options import option
from ..streams import show
from .daemon_client import ask_daemon

#: Host names under which browsers on this machine reach it.
_OWN_NAMES = ("localhost", "127.0.0.1", "[::1]")
_ALLOWED = "a loopback address and port, such as 127.0.0.1:9837, or the absolute path of a socket"


def web(
    listen: Annotated[
        str,
        option(
            "ADDRESS",
            "Where browsers, or the site's proxy, reach it: ADDRESS:PORT, or a socket's PATH. An address that other "
            "machines reach needs --tls and --tokens.",
        ),
    ] = "127.0.0.1:9837",
    host: Annotated[
        list[str] | None, option("NAME", "A further name under which browsers reach it, such as the proxy's.")
    ] = None,
    user_header: Annotated[
        str, option("NAME", "The header in which the proxy names the user; only with a socket's PATH.", default="none")
    ] = "",
    tls: Annotated[Path | None, option("FILE", "Certificate (PEM) by which the pages are encrypted.")] = None,
    tls_key: Annotated[Path | None, option("FILE", "Its key.", default="in the file of the certificate")] = None,
    tokens: Annotated[
        Path | None, option("FILE", "Answer only who has a token of FILE; `pilotfish web-token` makes them.")
    ] = None,
    socket: options.Socket = None,
) -> None:
    """Serve pages that show the cluster now, the queue, and when its jobs will start and end.

    It only reads, and asks the service alone. Behind a proxy, users see what `access.see` lets them see.

    \b
    Examples:
      pilotfish web
      pilotfish web --listen /run/pilotfish-web/web.sock --user-header X-User
      pilotfish web --listen 0.0.0.0:9837 --tls n.pem --tokens t.yaml
    """
    is_path = listen.startswith("/")
    if user_header and not is_path:
        why = "every user of this machine could send the header to a port"
        raise ConfigError("command line", "--user-header", why, "with --listen PATH, whose permissions name the proxy")
    if user_header and tokens is not None:
        raise ConfigError("command line", "--user-header", "a token names the user already", "one of the two")
    if tls_key is not None and tls is None:
        raise ConfigError("command line", "--tls-key", "no certificate is given", "with --tls FILE")
    if tls is not None:
        if is_path:
            raise ConfigError(
                "command line", "--tls", "a socket's PATH is of this machine", "with --listen ADDRESS:PORT"
            )
        _check_certificate(tls, tls_key)
    try:
        import uvicorn

        from ...web.prompt_requests import PromptRequests
        from ...web.server import application
        from ...web.tokens import AccessTokens
    except ImportError as error:
        raise ConfigError(
            "pilotfish web", "", f"{error.name} is not installed", "pip install 'pilotfish[web]'"
        ) from None

    def ask(do: str, **arguments: Any) -> dict[str, Any]:
        return ask_daemon(socket, do, timeout_s=10.0, **arguments)

    allowed = None if tokens is None else AccessTokens(tokens)
    is_safe = tls is not None and tokens is not None
    listener = _listener_at_path(Path(listen)) if is_path else _listener_at_port(listen, is_safe=is_safe)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    app = application(ask, [*_OWN_NAMES, *(host or ())], user_header, allowed)
    settings = uvicorn.Config(
        app, http=PromptRequests, log_config=None, access_log=False, server_header=False, proxy_headers=False,
        limit_concurrency=1024, timeout_graceful_shutdown=2, h11_max_incomplete_event_size=32 * 2**10,
        ssl_certfile=tls, ssl_keyfile=tls_key,
    )  # fmt: skip
    kind = "http" if tls is None else "https"
    show(f"pages at {listen if is_path else f'{kind}://{listen}/'}; Ctrl-C ends")
    with listener:
        uvicorn.Server(settings).run(sockets=[listener])


def _listener_at_path(path: Path) -> sockets.socket:
    """Return a socket that owner and group may connect to. Raises ConfigError: it cannot be made."""
    listener = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
    try:
        if path.is_socket() and listener.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink()  # of one that was killed
        before = os.umask(0o117)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
    except OSError as error:
        listener.close()
        raise _unusable(str(path), error, "the path of a new socket in a folder where you may write") from None
    return listener


def _check_certificate(certificate: Path, key: Path | None) -> None:
    """Raise ConfigError unless a certificate and its key can be used, and only its owner and group can read the key."""
    place = "--tls" if key is None else "--tls-key"
    try:
        check_file(key or certificate)
        if (key or certificate).stat().st_mode & 0o007:
            raise ConfigError("command line", place, f"all users can read {key or certificate}", "a key of mode 0640")
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, password="")
    except OSError as error:  # ssl.SSLError is one
        why = error.strerror or str(error)
        allowed = "a certificate in PEM, and its key without a password"
        raise ConfigError("command line", "--tls", f"{certificate} cannot be used: {why}", allowed) from None


def _listener_at_port(listen: str, *, is_safe: bool) -> sockets.socket:
    """Return a socket at a port. Raises ConfigError: others may reach it and are not kept away, or it cannot be made.

    Args:
        listen: the address and port.
        is_safe: what is sent is encrypted, and only who has a token is answered.
    """
    address, _, port = listen.rpartition(":")
    address = address.strip("[]")
    try:
        number, is_loopback = int(port), ip_address(address).is_loopback
    except ValueError:
        raise ConfigError("command line", "--listen", f"found {listen!r}", _ALLOWED) from None
    if not is_loopback and not is_safe:
        why = f"{address} can be reached from other machines, and what is sent there needs --tls and --tokens"
        raise ConfigError("command line", "--listen", why, f"both of them, or {_ALLOWED}, behind the site's proxy")
    if not 0 < number < 65536:
        raise ConfigError("command line", "--listen", f"found port {number}", "1 to 65535")
    listener = sockets.socket(sockets.AF_INET6 if ":" in address else sockets.AF_INET, sockets.SOCK_STREAM)
    listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    try:
        listener.bind((address, number))
    except OSError as error:
        listener.close()
        raise _unusable(listen, error, "a free port") from None
    return listener


def _unusable(place: str, error: OSError, allowed: str) -> ConfigError:
    why = os.strerror(error.errno) if error.errno else str(error)
    return ConfigError("command line", "--listen", f"cannot listen at {place}: {why}", allowed)
