"""`pilotfish web`: pages that show the cluster, its queue and its future, for browsers."""

from __future__ import annotations

import errno
import logging
import os
import socket as sockets
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

from ...simulate.errors import ConfigError
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
            "ADDRESS", "Where browsers, or the site's proxy, reach it: a loopback ADDRESS:PORT, or a socket's PATH."
        ),
    ] = "127.0.0.1:9837",
    host: Annotated[
        list[str] | None, option("NAME", "A further name under which browsers reach it, such as the proxy's.")
    ] = None,
    user_header: Annotated[
        str, option("NAME", "The header in which the proxy names the user; only with a socket's PATH.", default="none")
    ] = "",
    socket: options.Socket = None,
) -> None:
    """Serve pages that show the cluster now, the queue, and when its jobs will start and end.

    It only reads, and asks the service alone. Behind a proxy, users see what `access.see` lets them see.

    \b
    Examples:
      pilotfish web
      pilotfish web --listen /run/pilotfish-web/web.sock --user-header X-User
    """
    is_path = listen.startswith("/")
    if user_header and not is_path:
        why = "every user of this machine could send the header to a port"
        raise ConfigError("command line", "--user-header", why, "with --listen PATH, whose permissions name the proxy")
    try:
        import uvicorn

        from ...web.server import application
    except ImportError as error:
        raise ConfigError(
            "pilotfish web", "", f"{error.name} is not installed", "pip install 'pilotfish[web]'"
        ) from None

    def ask(do: str, **arguments: Any) -> dict[str, Any]:
        return ask_daemon(socket, do, timeout_s=10.0, **arguments)

    listener = _listener_at_path(Path(listen)) if is_path else _listener_at_port(listen)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    app = application(ask, [*_OWN_NAMES, *(host or ())], user_header)
    settings = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, proxy_headers=False, limit_concurrency=1024,
        timeout_graceful_shutdown=2, h11_max_incomplete_event_size=32 * 2**10,
    )  # fmt: skip
    show(f"pages at {listen if is_path else f'http://{listen}/'}; Ctrl-C ends")
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


def _listener_at_port(listen: str) -> sockets.socket:
    """Return a socket at a port of this machine. Raises ConfigError: another address, or it cannot be made."""
    address, _, port = listen.rpartition(":")
    address = address.strip("[]")
    try:
        number, is_loopback = int(port), ip_address(address).is_loopback
    except ValueError:
        raise ConfigError("command line", "--listen", f"found {listen!r}", _ALLOWED) from None
    if not is_loopback:
        why = f"{address} can be reached from other machines, and the pages ask for no password"
        raise ConfigError("command line", "--listen", why, f"{_ALLOWED}, behind the site's proxy")
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
