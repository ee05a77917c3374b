"""What the local adapter can use on this machine: CPUs, memory, control groups, a folder for its jobs.

Rule: it reads and tries access rights; it creates and changes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...formats.hostlist import fold_cpus
from ...formats.quantities import format_size
from ...simulate.model.cluster import Cluster
from ..findings import NOTE, OK, PROBLEM, WARNING, Finding
from .cgroups import CONTROLLERS, WITHOUT, _own_groups


def examine(cluster: Cluster | None, state_dir: Path) -> list[Finding]:
    """Return what the local adapter finds here.

    Args:
        cluster: nodes that it would have; None = not known.
        state_dir: folder of its jobs.
    """
    return [*_cpus(cluster), _memory(), _control_groups(), _folder(state_dir)]


def _cpus(cluster: Cluster | None) -> list[Finding]:
    usable = sorted(os.sched_getaffinity(0))
    total = os.cpu_count() or len(usable)
    words = f"{len(usable)} of {total} CPUs are usable: {fold_cpus(usable)}"
    found = [Finding(OK if len(usable) == total else NOTE, "cpus", words)]
    for node in cluster.nodes if cluster else ():
        if not node.cpus:
            found.append(Finding(PROBLEM, "nodes", f"node {node.name} names no CPUs of this machine (key cpus)"))
        elif foreign := set(node.cpus).difference(usable):
            words = f"node {node.name} has CPUs that are not usable: {fold_cpus(foreign)}"
            found.append(Finding(PROBLEM, "nodes", words))
    return found


def _memory() -> Finding:
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Finding(OK, "memory", f"{format_size(size // 2**20 * 2**20)} of memory")


def _control_groups() -> Finding:
    usable: set[str] = set()
    try:
        mounts, membership = Path("/proc/self/mounts").read_text(), Path("/proc/self/cgroup").read_text()
        for directory, controllers in _own_groups(mounts, membership):
            if os.access(directory, os.W_OK):
                unified = Path(directory, "cgroup.controllers")
                usable.update(unified.read_text().split() if controllers is None else controllers)
    except OSError:
        usable = set()
    missing = [name for name in CONTROLLERS if name not in usable]
    if not missing:
        return Finding(OK, "cgroups", f"control groups are writable: {', '.join(CONTROLLERS)}")
    words = f"no writable control groups for {', '.join(missing)}: {'; '.join(WITHOUT[name] for name in missing)}"
    return Finding(NOTE, "cgroups", words, ("systemd-run --user --scope -p Delegate=yes pilotfish ...",))


def _folder(state_dir: Path) -> Finding:
    there = next(path for path in (state_dir, *state_dir.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return Finding(PROBLEM, "state", f"the folder {state_dir} cannot be written: {there} does not allow it")
    free = os.statvfs(there).f_bavail * os.statvfs(there).f_frsize
    level = WARNING if free < 100e6 else OK
    return Finding(level, "state", f"{state_dir} can be written, {format_size(float(f'{free:.3g}'))} free")
