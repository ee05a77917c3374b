"""Control groups for jobs: cpuset, cpu and memory where they can be written, version 2 or 1.

Rule: a control group is a help, never a condition: what cannot be had is said once, and jobs run without it.
Formats: cgroups(7), the kernel's cgroup-v2 and cgroup-v1 documents.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

CONTROLLERS = ("cpuset", "cpu", "memory")
FRESH_S = 600.0  #: a group this young may be of a job that is just starting
WITHOUT = {
    "cpuset": "jobs could change their own pinning",
    "cpu": "CPUs are shared as the kernel's sessions do",
    "memory": "memory limits are not enforced",
}


class ControlGroups:
    """The parent groups under which each job gets groups of its own.

    Args:
        mounts: text of /proc/self/mounts; membership: text of /proc/self/cgroup.
    """

    def __init__(self, mounts: str, membership: str) -> None:
        self.parents: dict[str, frozenset[str]] = {}  # directory -> its controllers
        for directory, controllers in _own_groups(mounts, membership):
            parent = os.path.join(directory, f"pilotfish-{os.getuid()}")
            with suppress(OSError):
                if not os.path.isdir(parent):
                    os.mkdir(parent, 0o755)
                usable = _enable(directory, parent) if controllers is None else controllers
                if controllers and "cpuset" in controllers:  # a new v1 cpuset is empty, and would take nobody
                    for name in ("cpuset.cpus", "cpuset.mems"):
                        _write(parent, name, _read(directory, name))
                if os.access(os.path.join(parent, "cgroup.procs"), os.W_OK):
                    self.parents[parent] = usable

    @classmethod
    def of_this_process(cls) -> ControlGroups:
        """Read where this process is; without control groups there are no parents."""
        try:
            with open("/proc/self/mounts") as mounts, open("/proc/self/cgroup") as membership:
                return cls(mounts.read(), membership.read())
        except OSError:
            return cls("", "")

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence on the controllers that cannot be used, if there are such."""
        had = frozenset().union(*self.parents.values())
        missing = [name for name in CONTROLLERS if name not in had]
        if len(missing) == len(CONTROLLERS):
            return ("without control groups pinning and memory limits are not enforced",)
        if not missing:
            return ()
        which = f"{', '.join(missing)} control group{'s' if missing[1:] else ''}"
        return (f"no writable {which}: {', '.join(WITHOUT[name] for name in missing)}",)

    def sweep(self) -> None:
        """Remove what killed keepers left behind: groups without processes that were not just made."""
        for parent in self.parents:
            with suppress(OSError):
                for entry in os.scandir(parent):
                    if entry.is_dir() and entry.stat().st_mtime < time.time() - FRESH_S:
                        remove((entry.path,))

    def make(self, name: str, cpus: tuple[int, ...], memory_bytes: float) -> tuple[str, ...]:
        """Make the groups of one job and return their directories.

        Args:
            name: unique on this machine.
            cpus: CPUs of the job.
            memory_bytes: limit; 0 = none.
        """
        made = []
        for parent, controllers in self.parents.items():
            group = os.path.join(parent, name)
            with suppress(OSError):
                os.makedirs(group, 0o755, exist_ok=True)
                made.append(group)
                if "cpuset" in controllers:
                    _write(group, "cpuset.cpus", ",".join(map(str, cpus)))
                if "memory" in controllers and memory_bytes > 0:
                    v1 = os.path.exists(os.path.join(group, "memory.limit_in_bytes"))
                    _write(group, "memory.limit_in_bytes" if v1 else "memory.max", str(int(memory_bytes)))
                if "cpuset" in controllers and not os.path.exists(os.path.join(group, "cgroup.controllers")):
                    _write(group, "cpuset.mems", _read(parent, "cpuset.mems"))  # v1 takes no process without
        return tuple(made)


def remove(groups: tuple[str, ...]) -> None:
    """Remove the groups of a job; those that still hold a process stay."""
    for group in groups:
        with suppress(OSError):
            os.rmdir(group)


def _own_groups(mounts: str, membership: str) -> Iterator[tuple[str, frozenset[str] | None]]:
    """This process's group in each hierarchy that matters, with its controllers; None for version 2."""
    paths: dict[str, str] = {}
    for line in membership.splitlines():
        controllers, path = line.split(":", 2)[1:]
        paths |= dict.fromkeys(controllers.split(","), path)  # version 2 has no controllers here: ""
    for line in mounts.splitlines():
        _, mount, kind, options = line.split()[:4]
        here = frozenset(CONTROLLERS).intersection(options.split(",")) if kind == "cgroup" else None
        first = "" if here is None else next(iter(here), None)
        if kind in ("cgroup", "cgroup2") and first in paths:
            own = os.path.join(mount, paths[first].strip("/"))
            yield own if os.path.isdir(own) else mount, here  # in a container the path may be the host's


def _enable(directory: str, parent: str) -> frozenset[str]:
    """Hand controllers down to our jobs' groups (version 2), as far as the kernel and the operator let us."""
    for group in (directory, parent):
        for name in set(CONTROLLERS).difference(_read(group, "cgroup.subtree_control").split()):
            with suppress(OSError):
                _write(group, "cgroup.subtree_control", f"+{name}")
    return frozenset(CONTROLLERS).intersection(_read(parent, "cgroup.subtree_control").split())


def _read(group: str, name: str) -> str:
    with open(os.path.join(group, name)) as file:
        return file.read().strip()


def _write(group: str, name: str, value: str) -> None:
    fd = os.open(os.path.join(group, name), os.O_WRONLY)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)
