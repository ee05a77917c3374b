"""The processes of a job.

Rule: a process is the job's if its parent is, if it is in the session of the job's root, or if it was reparented to us
as the subreaper; it stays the job's from then on. /proc is listed only after the kernel has created a process or
thread, and only new processes are read, so that a refresh costs microseconds.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path


class ProcessTree:
    """The processes of one job.

    Args:
        root: pid of the job's first process.
        reaper: pid of the subreaper that adopts the job's orphans; None without one.
        others: children that the reaper had before the job began. On a busy machine the job may have left orphans
            before the first refresh.
    """

    def __init__(self, root: int, reaper: int | None = None, others: Collection[int] = ()) -> None:
        self.root, self.reaper = root, reaper
        self.threads: dict[int, list[int]] = {root: []}
        self._foreign: set[int] = set() if reaper is None else {reaper}
        self._others = frozenset(others)
        self._newest, self._unchanged = b"", False

    def refresh(self) -> None:
        """Find new processes and threads, if there can be any. O(processes here), mostly O(1)."""
        newest = _newest_pid()
        if newest and newest == self._newest:
            if self._unchanged:
                return
            self._unchanged = True
        else:  # on a busy machine a new pid may appear in /proc only after this listing
            self._newest, self._unchanged = newest, False
        pids = {int(name) for name in _listing("/proc") if name.isdigit()}
        self._foreign &= pids
        self._adopt(sorted(pids - self._foreign - self.threads.keys()))
        for pid in list(self.threads):
            self.threads[pid] = [int(name) for name in _listing(f"/proc/{pid}/task")]
            if pid not in pids and pid != self.root:
                del self.threads[pid]

    def exclude(self, pid: int) -> None:
        """Exclude a process that we started ourselves, and its children, from the job."""
        self._foreign.add(pid)

    def orphans(self) -> list[int]:
        """Return the job's processes whose parent has ended and that were reparented to us."""
        return [pid for pid in self.threads if pid != self.root and _status(pid)[0] == self.reaper]

    def _adopt(self, candidates: list[int]) -> None:
        """Add those of the new processes that belong to the job, by their parents.

        A listing of /proc is not a snapshot: a process whose parent is missing from it is decided at the next refresh.
        """
        facts = {pid: _status(pid) for pid in candidates}
        undecided, before = set(facts), 0
        while len(undecided) != before:  # repeat: a child's pid may be below its parent's
            before = len(undecided)
            for pid in sorted(undecided):
                parent, session = facts[pid]
                reparented = parent == self.reaper is not None and pid not in self._others
                if parent in self.threads or session == self.root or reparented:
                    self.threads.setdefault(pid, [])
                    undecided.discard(pid)
                elif parent in self._foreign or parent == 0:
                    self._foreign.add(pid)
                    undecided.discard(pid)
        if any(facts[pid][0] > 0 for pid in undecided):
            self._newest = b""


def read_proc(path: str | Path, most: int = 8192) -> bytes | None:
    """Read up to `most` bytes of a file of /proc or /sys; None if it cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(handle, most)
    except OSError:
        return None
    finally:
        os.close(handle)


def _newest_pid() -> bytes:
    """Return the last pid or tid that the kernel assigned, b"" if /proc/loadavg does not show it."""
    newest = (read_proc("/proc/loadavg") or b"").rpartition(b" ")[2].strip()
    return b"" if newest == b"0" else newest


def _listing(path: str) -> list[str]:
    """Return the names in a directory, [] if it is gone."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def _status(pid: int) -> tuple[int, int]:
    """Return (parent, session) of a process, (-1, -1) if it is gone; from /proc/PID/stat, proc(5)."""
    fields = (read_proc(f"/proc/{pid}/stat", 512) or b"").rpartition(b")")[2].split()
    return (int(fields[1]), int(fields[3])) if len(fields) > 3 else (-1, -1)


def children(parent: int) -> list[int]:
    """Return the processes whose parent is `parent`."""
    return [pid for pid in map(int, filter(str.isdigit, _listing("/proc"))) if _status(pid)[0] == parent]
