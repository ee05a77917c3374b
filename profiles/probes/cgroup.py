"""The control group of a job: whether its CPU time, throttling and memory can be read, and which groups are its own.

Rule: a group is the job's only if we are not in it ourselves. The numbers reach a measurement through the adapter that
made the group (see `stall_facts`); the probe reads the same files, so that its cost is known.

Source: cgroups(7); Documentation/admin-guide/cgroup-v2.rst, and cgroup-v1/cpuacct.rst and memory.rst of Linux.
"""

from __future__ import annotations

from pathlib import Path

from .probe import ROOT, Probe, read_number, read_text
from .process_tree import ProcessTree


class Cgroup(Probe):
    """The control group of the tree's root, version 2 or 1."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._files: list[Path] = []

    def available(self) -> str | None:
        """Return why no group can be read here, or None."""
        paths = parse_membership(read_text(self._root / "proc/self/cgroup") or "")
        if not paths:
            return "this kernel has no /proc/PID/cgroup"
        return None if self._found(paths) else "no cgroup with CPU accounting is mounted under /sys/fs/cgroup for us"

    def start(self, tree: ProcessTree, now: float) -> None:
        """Begin on the group of the tree's root."""
        self._files = self._found(parse_membership(read_text(self._root / f"proc/{tree.root}/cgroup") or ""))
        self.sample(now)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Read the group's counters once. O(1)."""
        for file in self._files:
            read_text(file)

    def stop(self) -> None:
        """End: the adapter reports the numbers."""

    def _found(self, paths: dict[str, str]) -> list[Path]:
        """Return the files with a group's counters; empty without its CPU time."""
        mounts = self._root / "sys/fs/cgroup"
        for mount in (mounts, mounts / "unified"):
            folder = mount / paths.get("", "/").lstrip("/")
            if "usage_usec" in (read_text(folder / "cpu.stat") or "").split():
                return [folder / "cpu.stat", folder / "memory.peak"]

        def version1(controller: str) -> Path:
            names = (controller, "cpu,cpuacct", "cpuacct,cpu")
            mount = next((mounts / name for name in names if (mounts / name).is_dir()), mounts / controller)
            return mount / paths.get(controller, "/").lstrip("/")

        usage, stat = version1("cpuacct") / "cpuacct.usage", version1("cpuacct") / "cpuacct.stat"
        if read_number(usage) is None:
            return []
        return [usage, stat, version1("cpu") / "cpu.stat", version1("memory") / "memory.max_usage_in_bytes"]


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
    own_paths = parse_membership(read_text(root / "proc/self/cgroup") or "")
    theirs = parse_membership(read_text(root / f"proc/{pid}/cgroup") or "")
    return {controller: path for controller, path in theirs.items() if own_paths.get(controller) != path}
