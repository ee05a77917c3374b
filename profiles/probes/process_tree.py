"""Which processes belong to a job.

Rule: a process is the job's if its parent is, if it is in the session of the job's root, or if it was
handed to us as the subreaper; once the job's, always the job's. /proc is only listed when the kernel has
made a process or thread since the last look or the one before it, and only what is new is read, so that a look
costs microseconds.
"""

from __future__ import annotations

import os
from collections.abc import Collection


class ProcessTree:
    """The processes of one job.

    Args:
        root: pid of the job's first process.
        reaper: pid of the subreaper to whom the job's orphans go, or None if there is none.
        others: children that the reaper had before the job began; on a busy machine the job may have left orphans
            before anybody looks.
    """

    def __init__(self, root: int, reaper: int | None = None, others: Collection[int] = ()) -> None:
        self.root, self.reaper = root, reaper
        self.threads: dict[int, list[int]] = {root: []}
        self._foreign: set[int] = set() if reaper is None else {reaper}
        self._others = frozenset(others)
        self._newest, self._settled = b"", False

    def refresh(self) -> None:
        """Look for new processes and threads, if there can be any. O(processes here), mostly O(1)."""
        newest = _newest_pid()
        if newest and newest == self._newest:
            if self._settled:
                return
            self._settled = True
        else:  # whom the kernel has numbered, it lists only a moment later, on a busy machine after this look
            self._newest, self._settled = newest, False
        found = {int(name) for name in _listing("/proc") if name.isdigit()}
        self._foreign &= found
        self._adopt(sorted(found - self._foreign - self.threads.keys()))
        for pid in list(self.threads):
            self.threads[pid] = [int(name) for name in _listing(f"/proc/{pid}/task")]
            if pid not in found and pid != self.root:
                del self.threads[pid]

    def leave_out(self, pid: int) -> None:
        """Take a process that we started ourselves meanwhile, and its children, for others'."""
        self._foreign.add(pid)

    def orphans(self) -> list[int]:
        """Return the job's processes whose parent has ended and left them to us."""
        return [pid for pid in self.threads if pid != self.root and _status(pid)[0] == self.reaper]

    def _adopt(self, candidates: list[int]) -> None:
        """Tell the job's new processes from others', each by its parent.

        A listing of /proc is no picture of one moment: who has a parent that was not listed is told next time.
        """
        facts = {pid: _status(pid) for pid in candidates}
        open_, before = set(facts), 0
        while len(open_) != before:  # again, as a child's pid may be below its parent's
            before = len(open_)
            for pid in sorted(open_):
                parent, session = facts[pid]
                handed_over = parent == self.reaper is not None and pid not in self._others
                if parent in self.threads or session == self.root or handed_over:
                    self.threads.setdefault(pid, [])
                    open_.discard(pid)
                elif parent in self._foreign or parent == 0:
                    self._foreign.add(pid)
                    open_.discard(pid)
        if any(facts[pid][0] > 0 for pid in open_):
            self._newest = b""


def _newest_pid() -> bytes:
    """Return the last pid or tid that the kernel gave out, or b"" where /proc/loadavg does not tell."""
    try:
        with open("/proc/loadavg", "rb", buffering=0) as file:
            newest = file.read(128).rsplit(b" ", 1)[-1].strip()
    except OSError:
        return b""
    return b"" if newest == b"0" else newest


def _listing(path: str) -> list[str]:
    """Return the names in a directory, none if it has gone."""
    try:
        return os.listdir(path)
    except OSError:
        return []


def _status(pid: int) -> tuple[int, int]:
    """Return (parent, session) of a process, (-1, -1) if it has gone; from /proc/PID/stat, proc(5)."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read(512).rsplit(b")", 1)[-1].split()
        return int(fields[1]), int(fields[3])
    except (OSError, IndexError, ValueError):
        return -1, -1


def children(parent: int) -> list[int]:
    """Return the processes whose parent this is."""
    return [pid for pid in map(int, filter(str.isdigit, _listing("/proc"))) if _status(pid)[0] == parent]
