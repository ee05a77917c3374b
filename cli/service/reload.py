"""`pilotfish reload`: let the service read its configuration again, and report whether it did."""

from __future__ import annotations

import time
from contextlib import suppress

from ...simulate.errors import ConfigError, PilotfishError
from .. import options
from ..inputs import config_file
from ..output.documents import print_json
from ..service_findings import endpoint_of
from ..streams import show, warn
from .daemon_client import ask_daemon

#: Longest wait for the service, which answers between two cycles, and for a change of `mode`, seconds.
ANSWER_S, REOPEN_S = 60.0, 120.0


def reload(config: options.ConfigFile = None, socket: options.Socket = None, as_json: options.Json = False) -> None:
    """Let the service read its configuration again; only an administrator may.

    If the file is wrong, the service goes on with the old one, and this command prints the reason and exits with 1.
    The keys marked (reload) in systemd/pilotfish.yaml take effect; the others need a restart. If `mode` changes,
    this command waits until the service answers again.

    \b
    Examples:
      pilotfish reload
      systemctl reload pilotfishd
    """
    from ...daemon.config import load_config
    from ...daemon.socket.ipc import NoDaemonError

    wrong: ConfigError | None = None
    if socket is None:
        try:
            socket = endpoint_of(load_config(config_file(config)))
        except ConfigError as error:  # the service refuses the file, too, and notes that
            wrong = error
    try:
        reply = ask_daemon(socket, "reload", timeout_s=ANSWER_S)
    except NoDaemonError as error:
        raise (wrong or error) from None
    if reply["reopens"]:
        _wait(socket, reply["mode"])
    if as_json:
        print_json("reloaded", {name: reply[name] for name in ("changed", "restart", "mode")})
        return
    show(f"reloaded: {', '.join(reply['changed']) or 'nothing changed'}")
    if reply["restart"]:
        warn(f"these keys need a restart: {', '.join(reply['restart'])}")


def _wait(socket: str | None, mode: str) -> None:
    """Wait until the service has opened everything again. Raises PilotfishError if it does not."""
    from ...daemon.socket.ipc import DaemonError

    until = time.monotonic() + REOPEN_S
    while time.monotonic() < until:
        with suppress(DaemonError):
            if ask_daemon(socket, "status", timeout_s=10.0)["run_mode"] == mode:
                return
        time.sleep(0.1)
    raise PilotfishError(f"the service does not answer {REOPEN_S:g} s after the change of mode; see its log")
