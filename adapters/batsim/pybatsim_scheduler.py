"""A scheduler of pybatsim in this process: it gets the same messages, without a socket and a process of its own.

Rule: pybatsim finds and makes the scheduler, and reads the messages; only its socket is replaced. What a scheduler
prints is not shown, and what it raises is an error that names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from ...simulate.errors import ConfigError

#: What an endpoint begins with that names a scheduler of pybatsim.
PYBATSIM = "pybatsim:"


class _Exchange:
    """In place of pybatsim's socket: the message that is to be read, and the reply."""

    def __init__(self) -> None:
        self.message: Any = None
        self.reply = b""

    def __call__(self, *_args: Any, **_kwargs: Any) -> _Exchange:
        """Be the socket that pybatsim makes."""
        return self

    def bind(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def recv(self, **_how: Any) -> Any:
        """Return the message."""
        return self.message

    def send(self, reply: Any) -> None:
        """Keep the reply."""
        self.reply = json.dumps(reply).encode()


def scheduler_in_process(name: str) -> Callable[[bytes], bytes]:
    """Return a function that lets a scheduler of pybatsim answer a message.

    Args:
        name: as the command `pybatsim` takes it: one that comes with it, such as easyBackfill, or ./mySched.py.

    Raises:
        ConfigError: pybatsim is not installed; by the function: the scheduler cannot be made, or fails.
    """
    try:
        from batsim import batsim
        from batsim.tools.launcher import instanciate_scheduler
    except ImportError as error:
        allowed = "pybatsim and what it imports, in pilotfish's environment"
        raise ConfigError(PYBATSIM + name, "", f"it cannot be imported: {error}", allowed) from None
    exchange, instances = _Exchange(), list[Any]()

    def ask(message: bytes) -> bytes:
        exchange.message = json.loads(message)
        with redirect_stdout(StringIO()):
            try:
                if instances:
                    instances[0].do_next_event()
                else:
                    vars(batsim)["NetworkHandler"] = exchange  # it reads the first message as it is made
                    instances.append(batsim.Batsim(instanciate_scheduler(name, {}), "", None))
            except SystemExit:
                raise _failure(name, "there is no such scheduler") from None
            except Exception as error:
                raise _failure(name, f"{type(error).__name__}: {error}") from error
        return exchange.reply

    return ask


def _failure(name: str, problem: str) -> ConfigError:
    return ConfigError(f"edc:{PYBATSIM}{name}", "", problem, "a scheduler that answers each message")
