"""The daemon under systemd: the log in the journal or on stderr, notifications (sd_notify(3)), and the heartbeat.

Rule: no text of a job, a user or a file can control a terminal, forge a line of the log, or forge a field of the
journal: the formatter escapes it, and the journal gets the length of each value.
Source: https://systemd.io/JOURNAL_NATIVE_PROTOCOL; systemd.exec(5), JOURNAL_STREAM and SyslogLevelPrefix; sd-daemon(3).
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..formats.text import clean
from ..trust import open_file

_EXTRA = ("cycle", "job", "user")
JOURNAL = "/run/systemd/journal/socket"
#: The file whose age shows the unit of the reaper that a live daemon watches its pins itself.
HEARTBEAT = "heartbeat"


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


class _Journal(logging.StreamHandler):  # type: ignore[type-arg]
    """Sends each record to the journal with its priority and fields; to stderr, with its priority, if that fails."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._channel.sendto(journal_entry(record, super().format(record)), JOURNAL)
        except OSError:  # an old journal, or an entry that is too long for a datagram
            super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).split("\n")
        return "\n".join(f"<{_priority(record)}>{line}" for line in lines)

    def close(self) -> None:
        self._channel.close()
        super().close()


def _priority(record: logging.LogRecord) -> int:
    """Return the priority of syslog(3)."""
    for level, priority in ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6)):
        if record.levelno >= level:
            return priority
    return 7


def journal_entry(record: logging.LogRecord, message: str) -> bytes:
    """Return a record as a datagram of the journal's native protocol.

    Args:
        record: its level, its logger, and its `cycle`, `job` and `user` become fields.
        message: the text, of one or several lines.
    """
    fields = {"PRIORITY": str(_priority(record)), "SYSLOG_IDENTIFIER": "pilotfish", "LOGGER": record.name}
    extra = {name.upper(): getattr(record, name, None) for name in _EXTRA}
    fields |= {name: clean(str(value)) for name, value in extra.items() if value not in (None, "")}
    entry = bytearray()
    for name, value in {"MESSAGE": message, **fields}.items():
        text = value.encode("utf-8", "backslashreplace")
        entry += name.encode() + b"\n" + len(text).to_bytes(8, "little") + text + b"\n"
    return bytes(entry)


def in_journal() -> bool:
    """Return whether stderr is the journal's, as systemd says in JOURNAL_STREAM."""
    with suppress(OSError, ValueError):
        status = os.fstat(sys.stderr.fileno())
        return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
    return False


def set_up_logging(level: str, style: str) -> None:
    """Log to the journal if stderr leads there, else to stderr; also what libraries and Python warn of.

    Args:
        level: the least level: debug, info, warning or error.
        style: plain or json; plain lines have no time in the journal, which adds it.
    """
    moment = "" if in_journal() else "%(asctime)s "
    handler = _Journal() if in_journal() else logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if style == "json" else _Plain(f"{moment}%(levelname)s %(message)s"))
    for name in ("pilotfish", "py.warnings"):
        logger = logging.getLogger(name)
        for earlier in logger.handlers:
            earlier.close()
        logger.handlers[:] = [handler]
        logger.propagate = False
    logging.getLogger("pilotfish").setLevel(level.upper())
    logging.lastResort = handler
    logging.captureWarnings(True)


def notify(*lines: str, descriptors: Sequence[int] = ()) -> bool:
    """Send `lines` ("READY=1", "WATCHDOG=1", ...) to the socket in NOTIFY_SOCKET; return whether they were sent.

    Errors are ignored: the daemon also works without a service manager.

    Args:
        lines: the assignments of sd_notify(3).
        descriptors: file descriptors that the service manager keeps, with the line FDSTORE=1.
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
            socket.send_fds(channel, ["\n".join(lines).encode()], list(descriptors))
    except OSError:
        return False
    return True


def notify_reloading() -> bool:
    """Notify systemd that a reload begins, with the clock reading that Type=notify-reload requires."""
    return notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


def beat() -> None:
    """Renew the heartbeat: a daemon that watches its pins itself is alive, and the reaper need not look.

    It lies in systemd's RuntimeDirectory. Without one there is no heartbeat, and the reaper always looks.
    """
    if path := _heartbeat():
        with suppress(OSError):
            file = open_file(path, os.O_WRONLY | os.O_CREAT)
            try:
                os.utime(file)
            finally:
                os.close(file)


def stop_beating() -> None:
    """Remove the heartbeat: the reaper looks from now on."""
    if path := _heartbeat():
        with suppress(OSError):
            path.unlink()


def _heartbeat() -> Path | None:
    folder = os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]
    return Path(folder) / HEARTBEAT if folder else None
