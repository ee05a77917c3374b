"""Who counts already: users' own counters win.

Rule: a process counts if it holds a perf event, where that may be seen, or if it is a tool that does nothing else;
commands that we started ourselves, for other jobs, are not others.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from .base import ROOT, read_text

#: As /proc/PID/comm has them, 15 characters at most.
TOOLS = frozenset(("perf", "likwid-perfctr", "likwid-accessD", "pcm", "pcm-memory", "vtune", "emon", "AMDuProfPcm"))
_HELD = "anon_inode:[perf_event]"


def counting(pids: Iterable[int] | None = None, root: Path = ROOT) -> str | None:
    """Return who uses the counters, None if nobody is seen to.

    Args:
        pids: where to look; None = at all processes. O(their open files).
    """
    if pids is None:
        pids = (int(path.name) for path in (root / "proc").glob("[0-9]*"))
    for pid in pids:
        folder = root / "proc" / str(pid)
        name = read_text(folder / "comm")
        if pid != os.getpid() and name and (name in TOOLS or _holds(folder / "fd")) and not _ours(folder):
            return f"{name} (process {pid}) uses the counters"
    return None


def _holds(folder: Path) -> bool:
    try:
        return any(os.readlink(entry.path) == _HELD for entry in os.scandir(folder))
    except OSError:
        return False


def _ours(folder: Path) -> bool:
    """Whether we are the parent; from /proc/PID/stat, proc(5)."""
    fields = (read_text(folder / "stat") or "").rpartition(")")[2].split()
    return len(fields) > 1 and fields[1] == str(os.getpid())
