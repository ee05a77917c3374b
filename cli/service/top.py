"""`pilotfish top`: the cluster, the queue, its future and the guard rails, in a terminal."""

from __future__ import annotations

import sys
from typing import Any

from ...simulate.errors import ConfigError
from .. import options
from .daemon_client import ask_daemon


def top(socket: options.Socket = None) -> None:
    """Show the cluster now, the queue with when and why, its future, and the guard rails, in this terminal.

    The views of `pilotfish web`, for 80x24 characters or more; keys are named at the bottom. It only reads.

    \b
    Examples:
      pilotfish top
      pilotfish top --socket /run/pilotfish/pilotfish.sock
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("pilotfish top", "", "this is not a terminal", "a terminal, or pilotfish status")
    try:
        from ..terminal.top_app import TopApp
    except ImportError as error:
        raise ConfigError(
            "pilotfish top", "", f"{error.name} is not installed", "pip install 'pilotfish[tui]'"
        ) from None

    def ask(do: str, **arguments: Any) -> dict[str, Any]:
        return ask_daemon(socket, do, timeout_s=10.0, **arguments)

    ask("rights")  # fails in one sentence, before the terminal is taken
    TopApp(ask).run()
