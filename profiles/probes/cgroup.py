"""CPU time, throttling and peak memory of a job's control group.

Rule: a group is the job's only if we are not in it ourselves; other groups are not reported.

Source: cgroups(7); Documentation/admin-guide/cgroup-v2.rst, and cgroup-v1/cpuacct.rst and memory.rst of Linux.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .probe import ROOT, read_number, read_text
from .process_tree import ProcessTree

_NS, _US = 1e-9, 1e-6


@dataclass(frozen=True, slots=True)
class CgroupUse:
    """Resource use of a group since its creation, or between two readings; None = unknown.

    Args:
        cpu_s: CPU seconds; user_s, system_s: those outside and inside the kernel.
        throttled_s: seconds for which a quota kept it from running, summed over CPUs.
        memory_peak: bytes, since the group's creation.
    """

    cpu_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    throttled_s: float | None = None
    memory_peak: float | None = None

    def since(self, before: CgroupUse) -> CgroupUse:
        """Return the use after `before`; the peak is unchanged."""
        return CgroupUse(
            _difference(self.cpu_s, before.cpu_s),
            _difference(self.user_s, before.user_s),
            _difference(self.system_s, before.system_s),
            _difference(self.throttled_s, before.throttled_s),
            self.memory_peak,
        )


class Cgroup:
    """The control group of the tree's root, version 2 or 1."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._before = self._now = CgroupUse()
        self._paths: dict[str, str] = {}
        self._own = False

    def available(self) -> str | None:
        """Return why no group can be read here, or None."""
        paths = parse_membership(read_text(self._root / "proc/self/cgroup") or "")
        if not paths:
            return "this kernel has no /proc/PID/cgroup"
        if self._use(paths).cpu_s is None:
            return "no cgroup with CPU accounting is mounted under /sys/fs/cgroup for us"
        return None

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on the group of the tree's root, unless it is also ours."""
        self._paths = parse_membership(read_text(self._root / f"proc/{tree.root}/cgroup") or "")
        self._own = bool(own_groups(tree.root, self._root))
        self.sample(now)
        self._before = self._now

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read the group's counters once. O(1)."""
        found = self._use(self._paths)
        self._now = found if found.cpu_s is not None else self._now  # the group is removed with its last process

    def stop(self) -> CgroupUse | None:
        """Return the group's use, None if the job has no group of its own."""
        return self._now.since(self._before) if self._own and self._now.cpu_s is not None else None

    def _use(self, paths: dict[str, str]) -> CgroupUse:
        mounts = self._root / "sys/fs/cgroup"
        for mount in (mounts, mounts / "unified"):
            folder = mount / paths.get("", "/").lstrip("/")
            use = parse_v2(read_text(folder / "cpu.stat") or "", read_number(folder / "memory.peak"))
            if use.cpu_s is not None:
                return use
        return self._use_v1(mounts, paths)

    @staticmethod
    def _use_v1(mounts: Path, paths: dict[str, str]) -> CgroupUse:
        def folder(controller: str) -> Path:
            names = (controller, "cpu,cpuacct", "cpuacct,cpu")
            mount = next((mounts / name for name in names if (mounts / name).is_dir()), mounts / controller)
            return mount / paths.get(controller, "/").lstrip("/")

        usage = read_number(folder("cpuacct") / "cpuacct.usage")
        times = parse_flat_keyed(read_text(folder("cpuacct") / "cpuacct.stat") or "")
        throttled = parse_flat_keyed(read_text(folder("cpu") / "cpu.stat") or "").get("throttled_time")
        tick = 1 / os.sysconf("SC_CLK_TCK")
        return CgroupUse(
            _scaled(usage, _NS),
            _scaled(times.get("user"), tick),
            _scaled(times.get("system"), tick),
            _scaled(throttled, _NS),
            read_number(folder("memory") / "memory.max_usage_in_bytes"),
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


def parse_v2(cpu_stat: str, memory_peak: float | None = None) -> CgroupUse:
    """Return the use in version 2's cpu.stat; `memory_peak`: bytes (memory.peak, Linux 5.19)."""
    found = parse_flat_keyed(cpu_stat)
    keys = ("usage_usec", "user_usec", "system_usec", "throttled_usec")
    usage, user, system, throttled = (_scaled(found.get(key), _US) for key in keys)
    return CgroupUse(usage, user, system, throttled, memory_peak)


def parse_flat_keyed(text: str) -> dict[str, float]:
    """Return key -> number of a parse_flat_keyed keyed file; lines other than a word and a whole number are skipped."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _difference(value: float | None, before: float | None) -> float | None:
    return None if value is None or before is None else max(0.0, value - before)
