"""Whether a program of the resource manager has read a file of ours, as it does when a job is handed over.

Rule: a read is a hint and says nothing: anybody may read the file. So hints that come within EVERY_S are one.
Source: inotify(7). A file system without it, such as NFS of another host's reads, gives no hints.
"""

from __future__ import annotations

import ctypes
import logging
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger("pilotfish.adapters")
IN_OPEN = 0x20
EVERY_S = 0.5


class FileWatch:
    """Watches the folder, since the file is replaced when it changes.

    Args:
        path: The file.
        clock: Seconds, monotonic.
    """

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._name, self._clock, self._heard_at = os.fsencode(path.name), clock, -EVERY_S
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        folder = os.fsencode(path.parent)
        if self.descriptor >= 0 and libc.inotify_add_watch(self.descriptor, folder, IN_OPEN) < 0:
            why = os.strerror(ctypes.get_errno())
            log.warning("%s cannot be watched, so jobs that are handed over are seen later: %s", path.parent, why)

    def read(self, timeout_s: float) -> bool:
        """Wait for a read of the file for at most so many seconds; return whether there was one."""
        if self.descriptor < 0 or not select.select([self.descriptor], [], [], max(0.0, timeout_s))[0]:
            return False
        found = self._opened()
        now = self._clock()
        if not found or now - self._heard_at < EVERY_S:
            return False
        self._heard_at = now
        return True

    def _opened(self) -> bool:
        """Return whether the file was opened; forget all that was noted."""
        found = False
        while True:
            try:
                data = os.read(self.descriptor, 65536)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):  # struct inotify_event: wd, mask, cookie, len, name
                length = int.from_bytes(data[at + 12 : at + 16], sys.byteorder)
                found |= data[at + 16 : at + 16 + length].rstrip(b"\0") == self._name
                at += 16 + length

    def close(self) -> None:
        """Stop watching."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
