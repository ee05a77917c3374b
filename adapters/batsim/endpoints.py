"""Endpoints of decision components, and who may listen there.

Rule: a program that decides for a service must be trusted like a file of code. A socket file lies in a folder that only
this account or root can write. TCP is for this machine alone: nothing on the way is checked or encrypted.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...simulate.errors import ConfigError
from ...trust import check_folder

#: Endpoints of other processes that ZeroMQ knows everywhere.
ENDPOINT = re.compile(r"tcp://.+:(\d+|\*)|ipc://.+")
_LOOPBACK = re.compile(r"tcp://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+")
_ALLOWED = "ipc://FILE in a folder that only this account or root can write, tcp://127.0.0.1:PORT"


def service_endpoint(text: str, folder: Path) -> str:
    """Return the endpoint of a component that decides for a service, with an absolute path.

    Args:
        text: as the operator wrote it.
        folder: to which a path is relative.

    Raises:
        ConfigError: it is none, or others can listen there by design.
    """
    scheme, _, path = text.partition("://")
    if scheme == "ipc" and path and path[0] != "@" and "\0" not in path:
        return f"ipc://{folder / Path(path).expanduser()}"
    if _LOOPBACK.fullmatch(text):
        return text
    raise ConfigError("policy", "", f"found {text!r:.100}", _ALLOWED)


def check_listener(endpoint: str) -> None:
    """Refuse a socket's file in a folder that others can write. Raises ConfigError."""
    if endpoint.startswith("ipc://"):
        try:
            check_folder(os.path.dirname(endpoint.removeprefix("ipc://")))
        except OSError as error:
            raise ConfigError("policy", "", f"{endpoint}: {error.strerror}: {error.filename}", _ALLOWED) from None
