"""The paths of pilotfish's files, from the environment.

Rule: no other module knows these paths. Nothing is created here; the first writer makes the directory.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from ..simulate.errors import ConfigError

SOCKET_NAME = "pilotfish.sock"
SITE_CONFIG = Path("/etc/pilotfish/pilotfish.yaml")
SITE_CLIENT = Path("/etc/pilotfish/client.yaml")
#: The socket of the system's daemon, in the runtime directory of its unit.
SYSTEM_SOCKET = Path("/run/pilotfish") / SOCKET_NAME
#: What follows the name of the socket of a service that still starts.
STARTING = ".starting"
LONGEST_SOCKET_PATH = 107  # sun_path of unix(7) holds 108 bytes, the last one a zero


def state_dir() -> Path:
    """Return the directory of the state: PILOTFISH_STATE, STATE_DIRECTORY, or `pilotfish` in XDG_STATE_HOME.

    Raises ConfigError if none is set, and the user has no home directory.
    """
    if folder := os.environ.get("PILOTFISH_STATE"):
        return Path(folder).expanduser()
    if folder := os.environ.get("STATE_DIRECTORY"):
        return Path(folder.split(":")[0])
    if (folder := os.environ.get("XDG_STATE_HOME")) and os.path.isabs(folder):
        return Path(folder) / "pilotfish"
    try:
        return Path.home() / ".local/state/pilotfish"
    except RuntimeError:
        problem = "it is not set, and this user has no home directory"
        raise ConfigError("HOME", "", problem, "a directory; or set PILOTFISH_STATE") from None


def _user_config_dir() -> Path | None:
    """Return $XDG_CONFIG_HOME/pilotfish or ~/.config/pilotfish; None without a home directory."""
    home = os.environ.get("XDG_CONFIG_HOME") or ""
    home = home if os.path.isabs(home) else os.path.expanduser("~/.config")
    return Path(home) / "pilotfish" if os.path.isabs(home) else None


def default_config_path() -> Path | None:
    """Return the daemon's configuration: the user's file, else the site's; None if neither exists."""
    user = _user_config_dir()
    candidates = [*([user / SITE_CONFIG.name] if user else []), SITE_CONFIG]
    return next((path for path in candidates if os.path.isfile(path)), None)


def client_files() -> list[Path]:
    """Return the client settings files; a later file overrides an earlier one.

    PILOTFISH_CLIENT replaces both the site's and the user's file.
    """
    if file := os.environ.get("PILOTFISH_CLIENT"):
        return [Path(file).expanduser()]
    user = _user_config_dir()
    return [SITE_CLIENT, *([user / "client.yaml"] if user else [])]


def profile_store_path() -> Path:
    """Return the file of the profile store."""
    return state_dir() / "profiles.sqlite"


def runtime_socket() -> str:
    """Return the path of the daemon's socket: PILOTFISH_SOCKET, else a socket in the runtime or state directory.

    Raises ConfigError if the path is too long for a Unix socket.
    """
    chosen = os.environ.get("PILOTFISH_SOCKET")
    if chosen and "://" in chosen and not chosen.startswith("ipc://"):
        return chosen
    if chosen:
        path = Path(chosen.removeprefix("ipc://")).expanduser()
    else:
        systemd = os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]
        path = Path(systemd or os.environ.get("XDG_RUNTIME_DIR") or state_dir()) / SOCKET_NAME
    if (length := len(os.fsencode(path))) > LONGEST_SOCKET_PATH:
        problem = f"the socket's path has {length} bytes: {path}"
        raise ConfigError("PILOTFISH_SOCKET", "", problem, f"at most {LONGEST_SOCKET_PATH}")
    return str(path)


def client_socket() -> str:
    """Return the path of the socket that clients use.

    It is PILOTFISH_SOCKET, else that of the user's own daemon, else that of the system's, also while that starts. If no
    daemon listens at either, it is where the user's own would listen. Raises ConfigError as `runtime_socket`.
    """
    own_socket = runtime_socket()
    if os.environ.get("PILOTFISH_SOCKET") or _has_listener(own_socket):
        return own_socket
    has_system = os.path.exists(SYSTEM_SOCKET) or os.path.exists(f"{SYSTEM_SOCKET}{STARTING}")
    return str(SYSTEM_SOCKET) if has_system else own_socket


def _has_listener(path: str) -> bool:
    """Return whether a process listens at a socket, also if it is busy or refuses this user."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.setblocking(False)
        return channel.connect_ex(path) not in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR)
