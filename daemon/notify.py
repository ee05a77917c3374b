"""Telling systemd how we are (sd_notify(3)): a datagram to the socket that it names, or nothing without
one.
"""

from __future__ import annotations

import os
import socket
import time


def notify(*lines: str) -> bool:
    """Send `lines` ("READY=1", "WATCHDOG=1", "STATUS=...", ...); returns whether systemd was told.

    A service manager that does not listen is no reason to fail, so errors are swallowed.
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


def reloading() -> bool:
    """Say that a reload begins, with the clock reading that Type=notify-reload asks for."""
    return notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
