"""Where pilotfish keeps what it keeps, from the environment.

Rule: the only place that knows these paths. Nothing is created here; whoever writes first makes the
directory.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..simulate.errors import ConfigError

SOCKET_NAME = "pilotfish.sock"
SITE_CLIENT = Path("/etc/pilotfish/client.yaml")
LONGEST_SOCKET_PATH = 107  # sun_path of unix(7) holds 108 bytes, the last one a zero


def _directory(ours: str, systemd: str, xdg: str, fallback: str) -> Path:
    """Return our own variable's directory, else systemd's first, else XDG's, else one below the home.

    Raises:
        ConfigError: there is no home.
    """
    if found := os.environ.get(ours):
        return Path(found).expanduser()
    if found := os.environ.get(systemd):
        return Path(found.split(":")[0])
    if (found := os.environ.get(xdg)) and os.path.isabs(found):
        return Path(found) / "pilotfish"
    try:
        return Path.home() / fallback / "pilotfish"
    except RuntimeError:
        problem = "it is not set, and this user has no home directory"
        raise ConfigError("HOME", "", problem, f"a directory; or set {ours}") from None


def state_dir() -> Path:
    """Return where what must outlive a restart is: PILOTFISH_STATE, STATE_DIRECTORY or XDG_STATE_HOME."""
    return _directory("PILOTFISH_STATE", "STATE_DIRECTORY", "XDG_STATE_HOME", ".local/state")


def cache_dir() -> Path:
    """Return the directory of what may be deleted: PILOTFISH_CACHE, CACHE_DIRECTORY or XDG_CACHE_HOME."""
    return _directory("PILOTFISH_CACHE", "CACHE_DIRECTORY", "XDG_CACHE_HOME", ".cache")


def client_files() -> list[Path]:
    """Return where it may be said how clients reach pilotfish, a later file going before: PILOTFISH_CLIENT alone,
    else the site's and the user's.
    """
    if found := os.environ.get("PILOTFISH_CLIENT"):
        return [Path(found).expanduser()]
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return [SITE_CLIENT, *([Path(home) / "pilotfish" / "client.yaml"] if os.path.isabs(home) else [])]


def profile_store_path() -> Path:
    """Return the file of the profile store."""
    return state_dir() / "profiles.sqlite"


def runtime_socket() -> str:
    """Return the daemon's ZeroMQ endpoint: PILOTFISH_SOCKET, else a socket in the runtime or state directory.

    Raises:
        ConfigError: the path is longer than a Unix socket's may be.
    """
    chosen = os.environ.get("PILOTFISH_SOCKET")
    if chosen and "://" in chosen and not chosen.startswith("ipc://"):
        return chosen
    if chosen:
        path = Path(chosen.removeprefix("ipc://")).expanduser()
    elif systemd := os.environ.get("RUNTIME_DIRECTORY"):
        path = Path(systemd.split(":")[0]) / SOCKET_NAME
    elif runtime := os.environ.get("XDG_RUNTIME_DIR"):
        path = Path(runtime) / SOCKET_NAME
    else:
        path = state_dir() / SOCKET_NAME
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise ConfigError(
            "PILOTFISH_SOCKET",
            "",
            f"the socket's path has {len(os.fsencode(path))} bytes: {path}",
            f"at most {LONGEST_SOCKET_PATH}",
        )
    return f"ipc://{path}"
