"""CPU time, throttling and peak memory of a job's control group.

Rule: a group is the job's only if we are not in it ourselves; other groups are not reported.

Source: cgroups(7); Documentation/admin-guide/cgroup-v2.rst, and cgroup-v1/cpuacct.rst and memory.rst of Linux.
"""

from __future__ import annotations

import os
from pathlib import Path

from .probe import ROOT, Probe, read_number, read_text
from .process_tree import ProcessTree

_NS, _US = 1e-9, 1e-6
#: Use of a group, without what is unknown: cpu_s, of which user_s and system_s; throttled_s: seconds for which a quota
#: kept it from running, summed over CPUs; memory_peak: bytes, since the group's creation.
Use = dict[str, float]


class Cgroup(Probe):
    """The control group of the tree's root, version 2 or 1."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._before: Use = {}
        self._now: Use = {}
        self._paths: dict[str, str] = {}
        self._own = False

    def available(self) -> str | None:
        """Return why no group can be read here, or None."""
        paths = parse_membership(read_text(self._root / "proc/self/cgroup") or "")
        if not paths:
            return "this kernel has no /proc/PID/cgroup"
        return None if self._use(paths) else "no cgroup with CPU accounting is mounted under /sys/fs/cgroup for us"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on the group of the tree's root, unless it is also ours."""
        self._paths = parse_membership(read_text(self._root / f"proc/{tree.root}/cgroup") or "")
        self._own = bool(own_groups(tree.root, self._root))
        self.sample(now)
        self._before = self._now

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read the group's counters once. O(1)."""
        self._now = self._use(self._paths) or self._now  # the group is removed with its last process

    def stop(self) -> Use | None:
        """Return the group's use since the start (the peak: since its creation); None without a group of its own."""
        if not self._own or not self._now:
            return None
        used = {key: max(0.0, self._now[key] - then) for key, then in self._before.items() if key in self._now}
        return used | {key: value for key, value in self._now.items() if key == "memory_peak"}

    def _use(self, paths: dict[str, str]) -> Use:
        """Return the use of a group since its creation; empty without its CPU time."""
        mounts = self._root / "sys/fs/cgroup"
        for mount in (mounts, mounts / "unified"):
            folder = mount / paths.get("", "/").lstrip("/")
            use = parse_v2(read_text(folder / "cpu.stat") or "", read_number(folder / "memory.peak"))
            if use:
                return use

        def version1(controller: str) -> Path:
            names = (controller, "cpu,cpuacct", "cpuacct,cpu")
            mount = next((mounts / name for name in names if (mounts / name).is_dir()), mounts / controller)
            return mount / paths.get(controller, "/").lstrip("/")

        times = parse_flat_keyed(read_text(version1("cpuacct") / "cpuacct.stat") or "")
        throttled = parse_flat_keyed(read_text(version1("cpu") / "cpu.stat") or "")
        tick = 1 / os.sysconf("SC_CLK_TCK")
        return _known(
            cpu_s=(read_number(version1("cpuacct") / "cpuacct.usage"), _NS),
            user_s=(times.get("user"), tick),
            system_s=(times.get("system"), tick),
            throttled_s=(throttled.get("throttled_time"), _NS),
            memory_peak=(read_number(version1("memory") / "memory.max_usage_in_bytes"), 1.0),
        )


def parse_membership(text: str) -> dict[str, str]:
    """Return controller -> path of /proc/PID/cgroup, version 2's under "". Malformed lines are skipped."""
    paths = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if number.isdigit() and colon and path.startswith("/"):
            paths.update(dict.fromkeys(controllers.split(","), path))
    return paths


def own_groups(pid: int, root: Path = ROOT) -> dict[str, str]:
    """Return controller -> path of a process's groups that we are not in; version 2's under ""."""
    ours = parse_membership(read_text(root / "proc/self/cgroup") or "")
    theirs = parse_membership(read_text(root / f"proc/{pid}/cgroup") or "")
    return {controller: path for controller, path in theirs.items() if ours.get(controller) != path}


def parse_v2(cpu_stat: str, memory_peak: float | None = None) -> Use:
    """Return the use in version 2's cpu.stat; `memory_peak`: bytes (memory.peak, Linux 5.19)."""
    found = parse_flat_keyed(cpu_stat)
    times = {f"{key}_s": (found.get(f"{word}_usec"), _US) for key, word in
             (("cpu", "usage"), ("user", "user"), ("system", "system"), ("throttled", "throttled"))}  # fmt: skip
    return _known(**times, memory_peak=(memory_peak, 1.0))


def parse_flat_keyed(text: str) -> dict[str, float]:
    """Return key -> number of a flat keyed file; lines other than a word and a whole number are skipped."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _known(**values: tuple[float | None, float]) -> Use:
    """Return name -> value x factor without unknown values; empty if the CPU time is unknown."""
    found = {name: value * factor for name, (value, factor) in values.items() if value is not None}
    return found if "cpu_s" in found else {}
