"""Notice when the resource manager reads a file, as it does when a job is handed over or one of its programs begins.

Rule: a read is only a hint, because any user may read the files. Hints within EVERY_S of each other count as one.
Source: inotify(7). A file system that does not report reads, such as NFS for reads by other hosts, gives no hints.
"""

from __future__ import annotations

import ctypes
import logging
import os
import select
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

log = logging.getLogger("pilotfish.adapters")
IN_OPEN = 0x20
EVERY_S = 0.5


class FileWatch:
    """Watches the folders of the files, since a file is replaced when it changes.

    Args:
        files: The files.
        clock: Seconds, monotonic.
    """

    def __init__(self, files: Iterable[Path], clock: Callable[[], float]) -> None:
        self._clock, self._heard_at = clock, -EVERY_S
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watched: set[tuple[int, bytes]] = set()  # number of the folder, and name
        for file in files if self.descriptor >= 0 else ():
            number = libc.inotify_add_watch(self.descriptor, os.fsencode(file.parent), IN_OPEN)
            self._watched.add((number, os.fsencode(file.name)))
            if number < 0:
                why = os.strerror(ctypes.get_errno())
                log.warning("%s cannot be watched, so the daemon sees handed-over jobs later: %s", file.parent, why)

    def read(self, timeout_s: float) -> bool:
        """Wait for a read of a file for at most so many seconds; return whether there was one."""
        if self.descriptor < 0 or not select.select([self.descriptor], [], [], max(0.0, timeout_s))[0]:
            return False
        was_opened = self._opened()
        now = self._clock()
        if not was_opened or now - self._heard_at < EVERY_S:
            return False
        self._heard_at = now
        return True

    def _opened(self) -> bool:
        """Return whether a file was opened; forget all that was noted."""
        was_opened = False
        while True:
            try:
                data = os.read(self.descriptor, 65536)
            except BlockingIOError:
                return was_opened
            at = 0
            while at < len(data):  # struct inotify_event: wd, mask, cookie, len, name
                length = int.from_bytes(data[at + 12 : at + 16], sys.byteorder)
                number = int.from_bytes(data[at : at + 4], sys.byteorder)
                was_opened |= (number, data[at + 16 : at + 16 + length].rstrip(b"\0")) in self._watched
                at += 16 + length

    def close(self) -> None:
        """Stop watching."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
