"""Memory traffic of a job by the processor's own bandwidth monitoring (Intel RDT MBM, AMD QoS), over resctrl.

Rule: the job gets a monitoring group of ours inside its control group; a job that is monitored already is left alone.
The group's name holds its owner, so that groups left by a crash are removed by the next start.

Source: Documentation/arch/x86/resctrl.rst of Linux.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from .probe import ROOT, Probe, read_text, stat_fields
from .process_tree import ProcessTree

PREFIX = "pilotfish."


@dataclass(frozen=True, slots=True)
class MonitoredTraffic:
    """Memory traffic of a job; None = unknown."""

    moved_bytes: float | None = None
    problem: str = ""


class Resctrl(Probe):
    """Traffic of the tree's own monitoring group from start to the last sample."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._folder = root / "sys/fs/resctrl"
        self._group: Path | None = None
        self._members: set[int] = set()
        self._first: float | None = None
        self._last: float | None = None
        self._problem = ""

    def available(self) -> str | None:
        """Return why bandwidth cannot be monitored here, or None."""
        if not self._folder.is_dir():
            return "this kernel or processor has no resctrl (/sys/fs/resctrl)"
        if not (self._folder / "mon_groups").is_dir():
            return "resctrl is not mounted or has no monitoring (mount -t resctrl resctrl /sys/fs/resctrl)"
        features = (read_text(self._folder / "info/L3_MON/mon_features") or "").split()
        if "mbm_total_bytes" not in features:
            return f"this processor does not monitor bandwidth, only {', '.join(features) or 'nothing'}"
        if not os.access(self._folder / "mon_groups", os.W_OK):
            return "only root may create monitoring groups under /sys/fs/resctrl/mon_groups"
        return None

    def start(self, tree: ProcessTree, now: float) -> None:
        """Create a group for the tree and remove stale groups."""
        super().start(tree, now)
        control, monitored = membership(read_text(self._root / f"proc/{tree.root}/cpu_resctrl_groups") or "")
        if monitored:
            self._problem = f"stepped back: the job is already in the monitoring group {monitored}"
            return
        remove_stale_groups(self._folder, self._root)
        self._group = self._folder / control / "mon_groups" / group_name(os.getpid(), self._root, tree.root)
        try:
            os.mkdir(self._group)
        except OSError as problem:  # ENOSPC: all monitoring identifiers are taken
            self._group, self._problem = None, f"stepped back: no monitoring group is available ({problem.strerror})"
            return
        self._add(self._group)
        self._first = self._last = read_total(self._group)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read the group once; children and orphans inherit it. O(last-level caches)."""
        if self._group is None:
            return
        self._add(self._group)
        if (total := read_total(self._group)) is not None:
            self._last = total

    def stop(self) -> MonitoredTraffic:
        """Remove the group and return the traffic."""
        if self._group is None:
            return MonitoredTraffic(problem=self._problem)
        with contextlib.suppress(OSError):
            os.rmdir(self._group)
        self._group = None
        problem = "" if self.moved_bytes is not None else "the bandwidth counters are unavailable (all assigned?)"
        return MonitoredTraffic(self.moved_bytes, problem)

    @property
    def moved_bytes(self) -> float | None:
        """Bytes moved until the last sample; None = unknown."""
        return None if self._first is None or self._last is None else max(0.0, self._last - self._first)

    def _add(self, group: Path) -> None:
        """Add the threads that are not in the group yet; their children inherit it."""
        for thread in {tid for pid, tids in self._tree.threads.items() for tid in (pid, *tids)} - self._members:
            self._members.add(thread)
            with contextlib.suppress(OSError):  # the thread has ended
                (group / "tasks").write_text(str(thread))


def membership(text: str) -> tuple[str, str]:
    """Return (control group, monitoring group) of /proc/PID/cpu_resctrl_groups, "" for the root or none."""
    groups = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return groups.get("res", "").strip().strip("/"), groups.get("mon", "").strip().strip("/")


def read_total(group: Path) -> float | None:
    """Return the bytes counted for a group in all last-level caches, None if one of them does not report its own."""
    texts = [read_text(domain / "mbm_total_bytes") or "" for domain in (group / "mon_data").glob("mon_L3_*")]
    return float(sum(map(int, texts))) if texts and all(map(str.isdecimal, texts)) else None


def group_name(owner: int, root: Path, job: int) -> str:
    """Return a group's name: the owner's pid and start time (ticks), and the job's root pid."""
    return f"{PREFIX}{owner}.{_start_ticks(owner, root)}.{job}"


def remove_stale_groups(folder: Path, root: Path = ROOT) -> None:
    """Remove our groups whose owner has ended."""
    for group in [*folder.glob(f"mon_groups/{PREFIX}*"), *folder.glob(f"*/mon_groups/{PREFIX}*")]:
        owner, _, rest = group.name.removeprefix(PREFIX).partition(".")
        if owner.isdecimal() and _start_ticks(int(owner), root) != rest.partition(".")[0]:
            with contextlib.suppress(OSError):
                os.rmdir(group)


def _start_ticks(pid: int, root: Path) -> str:
    """Return the start time of a process, clock ticks since boot; "" if it is gone."""
    fields = stat_fields(pid, root)
    return fields[19] if len(fields) > 19 else ""
