"""The daemon under systemd: the log on stderr as plain text or JSON lines, and notifications (sd_notify(3)).

Rule: no text of a job, a user or a file can control a terminal or forge a line of the log: the formatter escapes it.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import time
from typing import Any

from ..formats.text import clean

_EXTRA = ("cycle", "job")


class _Plain(logging.Formatter):
    """One line for each record; the lines of a traceback are indented, so that none can pass for a record."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return clean(super().formatMessage(record))

    def formatException(self, error: Any) -> str:
        return "\n".join(f"    {clean(line)}" for line in super().formatException(error).split("\n"))


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        entry |= {name: getattr(record, name) for name in _EXTRA if hasattr(record, name)}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def set_up_logging(level: str, style: str) -> None:
    """Log to stderr; also what libraries and Python warn of.

    Args:
        level: the least level: debug, info, warning or error.
        style: plain or json; plain lines have no time under systemd, whose journal adds it.
    """
    handler = logging.StreamHandler(sys.stderr)
    moment = "" if "JOURNAL_STREAM" in os.environ else "%(asctime)s "
    handler.setFormatter(_Json() if style == "json" else _Plain(f"{moment}%(levelname)s %(message)s"))
    for name in ("pilotfish", "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
    logging.getLogger("pilotfish").setLevel(level.upper())
    logging.lastResort = handler
    logging.captureWarnings(True)


def notify(*lines: str) -> bool:
    """Send `lines` ("READY=1", "WATCHDOG=1", ...) to the socket in NOTIFY_SOCKET; return whether they were sent.

    Errors are ignored: the daemon also works without a service manager.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address or address[0] not in "/@":
        return False
    if address[0] == "@":
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.settimeout(1.0)
            channel.connect(address)
            channel.sendall("\n".join(lines).encode())
    except OSError:
        return False
    return True


def notify_reloading() -> bool:
    """Notify systemd that a reload begins, with the clock reading that Type=notify-reload requires."""
    return notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
