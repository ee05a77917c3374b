"""What a job's control groups say held it up: throttling, stalls (PSI), memory events, and the peak of its memory.

Rule: it is read when nothing of the job is left, just before the groups go; what a kernel or a hierarchy does not tell
is absent, never 0. Standard library only: the keeper uses it.

Source: Documentation/admin-guide/cgroup-v2.rst, accounting/psi.rst, cgroup-v1/memory.rst, scheduler/sched-bwc.rst of
Linux.
"""

from __future__ import annotations

import contextlib
import os

#: File of a group -> key in it ("" = the file is one number) -> (name, factor to its unit). Version 2, then version 1.
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
    """Return what the groups of one job tell, in seconds, bytes and numbers of events.

    stalled_cpu_some_seconds and its like: for so long some of its tasks (full: all of them) waited for that resource.
    """
    use: dict[str, float] = {}
    for group in groups:
        for name, keys in _FILES.items():
            for key, value in _flat(_text(group, name)).items():
                if key in keys:
                    known, factor = keys[key]
                    use[known] = value * factor
        for resource in _STALLS:
            for kind, stalled_s in _stalls(_text(group, f"{resource}.pressure")).items():
                use[f"stalled_{resource}_{kind}_seconds"] = stalled_s
    return use


def _flat(text: str) -> dict[str, float]:
    """Key -> number of a flat keyed file, "" of one that is a number alone; other lines are left out."""
    lines = [line.split() for line in text.splitlines()]
    found = {words[0]: float(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal()}
    return found | ({"": float(lines[0][0])} if len(lines) == 1 == len(lines[0]) and lines[0][0].isdecimal() else {})


def _stalls(text: str) -> dict[str, float]:
    """some, full -> seconds, of lines `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`."""
    found = {}
    for line in text.splitlines():
        kind, *words = line.split() or [""]
        total = next((word[6:] for word in words if word.startswith("total=")), "")
        if kind in ("some", "full") and total.isdecimal():
            found[kind] = int(total) * 1e-6
    return found


def _text(group: str, name: str) -> str:
    with contextlib.suppress(OSError, ValueError), open(os.path.join(group, name)) as file:
        return file.read(1 << 16)
    return ""
