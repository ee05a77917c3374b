"""The share of this machine that this process may use: CPUs, CPU time and memory.

Rule: whatever asks how many CPUs or how much memory there is asks here. CPUs are those of the affinity mask, which is
within every cpuset, at most as many as the CPU quota, rounded up; memory is at most the limit. A quota or limit of the
own control group or of any above it counts, in version 1 and 2. A limit above which the kernel only slows a group
(memory.high) is a limit. Cached contents of files are free: the kernel drops them first. What cannot be read limits
nothing.

Every room may import this module. It imports the standard library only.
Source: cgroups(7), proc_pid_mountinfo(5); Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and
scheduler/sched-bwc.rst of Linux.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path("/")
#: Version 1 writes no memory limit as a number of about 2**63 bytes.
UNLIMITED = 2**62
#: The file of a limit above which the kernel slows a group; above those of the others it kills.
SLOWING = "memory.high"
_CONTROLLERS = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class Limits:
    """The share that control groups leave to this process; inf = no limit.

    Args:
        cpus: CPU time, in CPUs.
        memory: bytes.
        free: bytes that are left of the memory.
        cpus_file: that has the CPU quota; "" = none.
        memory_file: that has the memory limit; "" = none.
    """

    cpus: float = math.inf
    memory: float = math.inf
    free: float = math.inf
    cpus_file: str = ""
    memory_file: str = ""


def control_group_limits(root: Path = ROOT) -> Limits:
    """Return the limits of this process's control groups and of all above them; `root` holds proc and sys."""
    groups = dict.fromkeys(_groups(root))
    cpus, cpus_file = min(map(_quota, groups), default=(math.inf, None))
    memory, memory_file = min(map(_memory, groups), default=(math.inf, None))
    shown = (f"/{file.relative_to(root)}" if file else "" for file in (cpus_file, memory_file))
    return Limits(cpus, memory, min(map(_free, groups), default=math.inf), *shown)


def affinity() -> list[int]:
    """Return the CPUs on which this process may run."""
    return sorted(os.sched_getaffinity(0))


def usable_cpus(limits: Limits | None = None) -> list[int]:
    """Return the CPUs to use: no more of the affinity mask than the quota, rounded up; at least one.

    Args:
        limits: of the control groups; None = read them now.
    """
    quota = (control_group_limits() if limits is None else limits).cpus
    cpus = affinity()
    return cpus if quota >= len(cpus) else cpus[: max(1, math.ceil(quota))]


def machine_cpus() -> int:
    """Return how many CPUs the machine has, whether this process may use them or not."""
    return os.cpu_count() or len(affinity())


def machine_memory() -> int:
    """Return the bytes of the machine's memory, whether this process may use them or not."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def usable_memory(limits: Limits | None = None) -> int:
    """Return the bytes of memory to use: the machine's, at most the limit.

    Args:
        limits: of the control groups; None = read them now.
    """
    return int(min(machine_memory(), (control_group_limits() if limits is None else limits).memory))


def free_memory(limits: Limits, root: Path = ROOT) -> int:
    """Return the bytes of memory that are free now, on the machine and within the limits.

    Args:
        limits: of the control groups.
        root: holds proc.
    """
    lines = _text(root / "proc/meminfo").splitlines()
    sizes = {line.partition(":")[0]: line.split()[1] for line in lines if len(line.split()) > 1}
    available = sizes.get("MemAvailable", "")
    free = int(available) * 1024 if available.isdecimal() else usable_memory(limits)
    return int(min(free, limits.free))


def _groups(root: Path) -> Iterator[Path]:
    """Yield the directories of this process's groups and of all groups above, as far as they are mounted."""
    paths: dict[str, str] = {}
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, group_text = line.partition(":")
        controllers, colon, path = group_text.partition(":")
        if number.isdecimal() and colon and path.startswith("/"):
            paths |= dict.fromkeys(controllers.split(","), path)  # version 2 has no controllers here: ""
    for line in _text(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kind, options = before.split(), after.partition(" ")[0], after.rpartition(" ")[2].split(",")
        names = [""] if kind == "cgroup2" else [name for name in _CONTROLLERS if kind == "cgroup" and name in options]
        for path in {paths[name] for name in names if name in paths} if len(fields) > 4 else ():
            mount = root / fields[4].replace("\\040", " ").lstrip("/")
            with suppress(ValueError):  # else the group is not below what is mounted: that of the host, in a container
                steps = PurePosixPath(path).relative_to(fields[3]).parts
                if ".." not in steps and mount.joinpath(*steps).is_dir():
                    yield from (mount.joinpath(*steps[:depth]) for depth in range(len(steps), 0, -1))
            yield mount


def _quota(group: Path) -> tuple[float, Path | None]:
    """Return the CPU time of a group, in CPUs, and the file that says so; inf, None = no quota."""
    for file, words in (
        (group / "cpu.max", _text(group / "cpu.max").split()),
        (group / "cpu.cfs_quota_us", [_text(group / f"cpu.cfs_{part}_us") for part in ("quota", "period")]),
    ):
        if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]) > 0:
            return int(words[0]) / int(words[1]), file
    return math.inf, None


def _memory(group: Path) -> tuple[float, Path | None]:
    """Return the bytes of a group, and the file that says so; inf, None = no limit."""
    files = (group / name for name in ("memory.max", SLOWING, "memory.limit_in_bytes"))
    limits = [(float(text), file) for file in files if (text := _text(file)).isdecimal() and int(text) < UNLIMITED]
    return min(limits, default=(math.inf, None))


def _free(group: Path) -> float:
    used = [_text(group / name) for name in ("memory.current", "memory.usage_in_bytes")]
    lines = [line.split() for line in _text(group / "memory.stat").splitlines()]
    sizes = {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal()}
    prefix = "total_" if "total_inactive_file" in sizes else ""  # version 1 counts the groups below apart
    cached = sum(sizes.get(f"{prefix}{part}_file", 0) for part in ("active", "inactive"))
    used_bytes = max((int(text) for text in used if text.isdecimal()), default=0)
    return max(0.0, _memory(group)[0] - max(0, used_bytes - cached))


def _text(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError), path.open() as file:
        return file.read(1 << 20).strip()
    return ""
