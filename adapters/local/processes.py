"""Processes: which are alive, which descend from another, which belong to a job.

Rule: a process is identified by its id, its start time and the boot, never by its id alone. Standard library only,
because the keeper imports this. Source: proc(5).
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Collection

MARK = "PILOTFISH_JOB_DIR"  #: in each job's environment; identifies the processes of an orphaned job


def busy_seconds(cpus: Collection[int]) -> float:
    """Return for how many seconds some CPUs have run anything since boot, together (/proc/stat).

    Raises:
        OSError, ValueError: it cannot be read.
    """
    ticks = 0
    with open("/proc/stat") as file:
        for line in file:
            name, *fields = line.split()
            if not name.startswith("cpu"):
                break
            if name != "cpu" and int(name[3:]) in cpus:
                user, nice, system, _, _, irq, softirq = map(int, fields[:7])
                ticks += user + nice + system + irq + softirq
    return ticks / os.sysconf("SC_CLK_TCK")


@functools.cache
def boot_id() -> str:
    """Return the kernel's id of this boot; process ids mean nothing in another one."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def start_ticks(pid: int) -> int | None:
    """Return when process `pid` started, in clock ticks since boot (field 22 of stat); None if it has ended."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in (b"Z", b"X") else int(fields[19])


def age_s(ticks: int) -> float:
    """Return how long ago a process started, seconds, by the clock of the boot, which is never set.

    Args:
        ticks: Its `start_ticks`, of this boot.
    """
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))


def is_alive(pid: int, ticks: int, boot: str) -> bool:
    """Return whether the process that had `pid` and started at `ticks` of that boot still runs."""
    return pid > 0 and start_ticks(pid) == ticks and boot == boot_id()


def descendants(root: int) -> set[int]:
    """Return the processes below `root`. O(descendants) if the kernel lists children, otherwise O(all)."""
    pids: set[int] = set()
    todo = [root]
    while todo:
        pid = todo.pop()
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                    new = set(map(int, file.read().split())) - pids
                pids |= new
                todo += new
        except FileNotFoundError:
            if pid == root:
                return _below(root)
        except OSError:
            continue  # it ended meanwhile
    return pids


def marked(directory: str) -> set[int]:
    """Return the live processes whose environment assigns them to the job in `directory`. O(all)."""
    mark = os.fsencode(f"{MARK}={directory}")
    pids = set()
    for pid in _all():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if mark in file.read().split(b"\0") and start_ticks(pid) is not None:
                pids.add(pid)
    return pids


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[bytes] | None:
    """Return the fields of stat from the third on; the second, a name in parentheses, may hold anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split() or None
    except OSError:
        return None


def _below(root: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid in _all():
        if fields := _stat(pid):
            children.setdefault(int(fields[1]), []).append(pid)
    pids: set[int] = set()
    todo = [root]
    while todo:
        new = set(children.get(todo.pop(), ())) - pids
        pids |= new
        todo += new
    return pids
