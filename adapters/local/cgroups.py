"""Control groups of jobs: create them (cpuset, cpu, memory; version 2 or 1) and read what they counted.

Rule: control groups are optional: each missing controller is reported once, and jobs run without it. A value that the
kernel or the hierarchy does not provide is absent, never 0. Standard library only, because the keeper imports this.
In version 2, a group that holds a process (ours does) gives its children no memory controller, and the others only as
threaded groups; the root group gives all.

Source: cgroups(7); Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst, accounting/psi.rst and
scheduler/sched-bwc.rst of Linux.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from .job_files import opened

CONTROLLERS = ("cpuset", "cpu", "memory")
_THREADED = ("cpuset", "cpu")
FRESH_S = 600.0  #: a group this young may belong to a job that is just starting
WITHOUT = {
    "cpuset": "jobs could change their own pinning",
    "cpu": "CPUs are shared as the kernel shares them between sessions",
    "memory": "memory limits are not enforced",
}


class ControlGroups:
    """The parent groups; each job gets groups of its own below them.

    Args:
        mounts: Text of /proc/self/mounts.
        membership: Text of /proc/self/cgroup.
    """

    def __init__(self, mounts: str, membership: str) -> None:
        self.parents: dict[str, frozenset[str]] = {}  # directory -> its controllers
        for directory, controllers in _own_groups(mounts, membership):
            parent = os.path.join(directory, f"pilotfish-{os.getuid()}")
            with suppress(OSError):
                if not os.path.isdir(parent):
                    os.mkdir(parent, 0o755)
                usable = _enable(directory, parent) if controllers is None else controllers
                if controllers and "cpuset" in controllers:  # a new v1 cpuset is empty and admits no process
                    for name in ("cpuset.cpus", "cpuset.mems"):
                        _write(parent, name, _read(directory, name))
                if os.access(os.path.join(parent, "cgroup.procs"), os.W_OK):
                    self.parents[parent] = usable

    @classmethod
    def of_this_process(cls) -> ControlGroups:
        """Return the groups of this process; without control groups there are no parents."""
        try:
            with open("/proc/self/mounts") as mounts, open("/proc/self/cgroup") as membership:
                return cls(mounts.read(), membership.read())
        except OSError:
            return cls("", "")

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence about the controllers that cannot be used, if any."""
        usable = frozenset().union(*self.parents.values())
        missing = [name for name in CONTROLLERS if name not in usable]
        if len(missing) == len(CONTROLLERS):
            return ("without control groups pinning and memory limits are not enforced",)
        if not missing:
            return ()
        groups = f"{', '.join(missing)} control group{'s' if missing[1:] else ''}"
        return (f"no writable {groups}: {', '.join(WITHOUT[name] for name in missing)}",)

    def sweep(self) -> None:
        """Remove the groups that killed keepers left: those without processes that are not new."""
        for parent in self.parents:
            with suppress(OSError):
                for entry in os.scandir(parent):
                    if entry.is_dir() and entry.stat().st_mtime < time.time() - FRESH_S:
                        remove((entry.path,))

    def make(self, name: str, cpus: tuple[int, ...], memory_bytes: float) -> tuple[str, ...]:
        """Create the groups of one job and return their directories.

        Args:
            name: Group name, unique on this machine.
            cpus: CPUs of the job.
            memory_bytes: Memory limit in bytes; 0: none.
        """
        directories = []
        for parent, controllers in self.parents.items():
            group = os.path.join(parent, name)
            with suppress(OSError):
                os.makedirs(group, 0o755, exist_ok=True)
                directories.append(group)
                _thread(group)
                if "cpuset" in controllers:
                    _write(group, "cpuset.cpus", ",".join(map(str, cpus)))
                if "memory" in controllers and memory_bytes > 0:
                    v1 = os.path.exists(os.path.join(group, "memory.limit_in_bytes"))
                    _write(group, "memory.limit_in_bytes" if v1 else "memory.max", str(int(memory_bytes)))
                if "cpuset" in controllers and not os.path.exists(os.path.join(group, "cgroup.controllers")):
                    _write(group, "cpuset.mems", _read(parent, "cpuset.mems"))  # v1 admits no process without it
        return tuple(directories)


def remove(groups: Iterable[str]) -> None:
    """Remove the groups of a job; groups that still hold a process stay."""
    for group in groups:
        with suppress(OSError):
            os.rmdir(group)


def _own_groups(mounts: str, membership: str) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Yield this process's group in each relevant hierarchy, with its controllers; None for version 2."""
    paths: dict[str, str] = {}
    for line in membership.splitlines():
        controllers, path = line.split(":", 2)[1:]
        paths |= dict.fromkeys(controllers.split(","), path)  # version 2 has no controllers here: ""
    for line in mounts.splitlines():
        _, mount, kind, options = line.split()[:4]
        named_controllers = frozenset(CONTROLLERS).intersection(options.split(",")) if kind == "cgroup" else None
        first = "" if named_controllers is None else next(iter(named_controllers), None)
        if kind in ("cgroup", "cgroup2") and first in paths:
            group = os.path.join(mount, paths[first].strip("/"))
            yield (
                group if os.path.isdir(group) else mount,
                named_controllers,
            )  # in a container the path may be the host's


def controllers_below(group: str) -> frozenset[str]:
    """Return the controllers that a version 2 group, which holds this process, can give to the groups of jobs.

    Raises:
        OSError: the group cannot be read.
    """
    root = not os.path.exists(os.path.join(group, "cgroup.type"))
    return frozenset(CONTROLLERS if root else _THREADED).intersection(_read(group, "cgroup.controllers").split())


def members(group: str) -> set[int]:
    """Return the processes of a group; a thread other than the first of its process counts as one. Raises OSError."""
    try:
        return set(map(int, _read(group, "cgroup.procs").split()))
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return set(map(int, _read(group, "cgroup.threads").split()))  # a threaded group lists no processes


def _thread(group: str) -> None:
    """Let a version 2 group admit processes although the group above it holds some."""
    with suppress(OSError):
        if _read(group, "cgroup.type") == "domain invalid":
            _write(group, "cgroup.type", "threaded")


def _enable(directory: str, parent: str) -> frozenset[str]:
    """Delegate controllers to our jobs' groups (version 2), as far as the kernel and the operator allow."""
    for group in (directory, parent):
        _thread(group)
        for name in set(CONTROLLERS).difference(_read(group, "cgroup.subtree_control").split()):
            with suppress(OSError):
                _write(group, "cgroup.subtree_control", f"+{name}")
    return frozenset(CONTROLLERS).intersection(_read(parent, "cgroup.subtree_control").split())


def _read(group: str, name: str) -> str:
    with open(os.path.join(group, name)) as file:
        return file.read().strip()


def _write(group: str, name: str, value: str) -> None:
    with opened(os.path.join(group, name), os.O_WRONLY) as fd:
        os.write(fd, value.encode())


#: File of a group -> key in it ("": the file is one number) -> (name, factor to its unit); version 2, then version 1.
_FILES = {
    "cpu.stat": {"throttled_usec": ("throttled_seconds", 1e-6), "throttled_time": ("throttled_seconds", 1e-9)},
    "memory.events": {
        "high": ("memory_high_events", 1.0),
        "max": ("memory_max_events", 1.0),
        "oom_kill": ("oom_kill_events", 1.0),
    },
    "memory.peak": {"": ("group_memory_bytes", 1.0)},
    "memory.max_usage_in_bytes": {"": ("group_memory_bytes", 1.0)},
    "memory.failcnt": {"": ("memory_max_events", 1.0)},
    "memory.oom_control": {"oom_kill": ("oom_kill_events", 1.0)},
}
_STALLS = ("cpu", "memory", "io")


def group_use(groups: list[str]) -> dict[str, float]:
    """Return what the groups of one job counted: seconds, bytes and numbers of events.

    `stalled_cpu_some_seconds` and the like: time in which some (`full`: all) of its tasks waited for that resource.
    """
    use: dict[str, float] = {}
    for group in groups:
        for name, keys in _FILES.items():
            for key, value in _flat(_text(group, name)).items():
                if key in keys:
                    quantity, factor = keys[key]
                    use[quantity] = value * factor
        for resource in _STALLS:
            for kind, stalled_s in _stalls(_text(group, f"{resource}.pressure")).items():
                use[f"stalled_{resource}_{kind}_seconds"] = stalled_s
    return use


def _flat(text: str) -> dict[str, float]:
    """Return key -> number of a flat keyed file, "" -> number of a file that is one number; skip other lines."""
    lines = [line.split() for line in text.splitlines()]
    values = {words[0]: float(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal()}
    return values | ({"": float(lines[0][0])} if len(lines) == 1 == len(lines[0]) and lines[0][0].isdecimal() else {})


def _stalls(text: str) -> dict[str, float]:
    """Return some, full -> seconds, from lines `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`."""
    stalled_s = {}
    for line in text.splitlines():
        kind, *words = line.split() or [""]
        total = next((word[6:] for word in words if word.startswith("total=")), "")
        if kind in ("some", "full") and total.isdecimal():
            stalled_s[kind] = int(total) * 1e-6
    return stalled_s


def _text(group: str, name: str) -> str:
    with suppress(OSError, ValueError), open(os.path.join(group, name)) as file:
        return file.read(1 << 16)
    return ""
