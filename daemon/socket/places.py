"""Places of the sockets of the service, and whether a socket can be made there.

Rule: what keeps a socket from being made is found before anything is compiled. The socket itself comes after, because
jobs are held back as soon as it is there.
"""

from __future__ import annotations

import errno
import grp
import logging
import os
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...simulate.errors import ConfigError
from ...trust import make_folder
from .ipc import socket_path

if TYPE_CHECKING:
    from ..config import DaemonConfig
    from .access import Access

log = logging.getLogger("pilotfish.service")


def check_place(path: Path, section: str, kind: int = socket.SOCK_STREAM, group: str | None = None) -> None:
    """Check that a socket can be made at a path; its folder is made if missing.

    Args:
        path: of the socket.
        section: of the configuration, for errors.
        kind: SOCK_STREAM or SOCK_DGRAM.
        group: of its file; None: this user's.

    Raises:
        ConfigError: another daemon listens there, another file is there, this user may not write to the folder, or
            there is no such group.
    """
    if _listens(path, kind):
        raise ConfigError(section, "path", f"another daemon listens on {path} already", "a path of its own")
    if os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise ConfigError(section, "path", f"{path} exists and is not a socket", "a path of its own")
    try:
        if not os.access(make_folder(path.parent, sticky=True), os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if group:
            grp.getgrnam(group)
    except (OSError, KeyError) as error:
        reason = f"no group {group!r} exists" if isinstance(error, KeyError) else error.strerror
        raise ConfigError(section, "path", f"cannot listen on {path}: {reason}") from None


def free_endpoint(endpoint: str, group: str | None, *, dry: bool) -> str:
    """Return where the service listens: at the endpoint, or next to it for a dry run if a daemon listens there.

    Args:
        endpoint: path of the configured socket.
        group: of its file; None: this user's.
        dry: whether this is a dry run.

    Raises:
        ConfigError: no socket can be made there.
    """
    try:
        check_place(socket_path(endpoint), "socket", group=group)
    except ConfigError as error:
        if not dry:
            raise
        dry_endpoint = f"{endpoint}.dry-run"
        log.warning("%s; the dry run listens at %s", error, dry_endpoint)
        check_place(socket_path(dry_endpoint), "socket", group=group)
        return dry_endpoint
    return endpoint


def socket_options(config: DaemonConfig, access: Access) -> dict[str, Any]:
    """Return the options of the server at the socket.

    Args:
        config: of the service.
        access: the rights of users.
    """
    section, most = config.socket, config.quotas.connections
    return {"mode": int(section.mode, 8), "group": section.group, "bars": access.bars, "connections": most}


def _listens(path: Path, kind: int) -> bool:
    """Return whether a process listens on the socket at `path`, also with a full backlog."""
    with socket.socket(socket.AF_UNIX, kind) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except BlockingIOError:
            return True
        except OSError:
            return False
    return True
