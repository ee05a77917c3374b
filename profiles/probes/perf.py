"""Instructions, cycles and cache misses of a job, counted by the perf command.

Rule: a job is counted by its own control group if it has one, else by its processes. The probe steps back when others
use the counters: before the start, when the job itself begins to count, and when the kernel had to multiplex. CPU time
before the command attached is not counted; task-clock shows how much was. A CSV line is read by its shape, because its
fields changed over the years (no unit before Linux 3.14, later a share of time, a variance with -r, the control group
with -G, and a time, socket or CPU in front); a line of another shape is not a count.

Source: perf-stat(1), "CSV FORMAT"; kernel.perf_event_paranoid in Documentation/admin-guide/sysctl/kernel.rst of Linux.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from ...formats.text import percent
from .cgroup import own_groups
from .external_counter import EventCounts, ExternalCounterProbe, counter_user, first_message
from .probe import ROOT, read_number, read_text
from .process_tree import ProcessTree

EVENTS = ("task-clock", "instructions", "cycles", "LLC-load-misses", "LLC-store-misses")
#: HardwareCounts for a smaller share of time than this, the counters were shared.
WHOLE = 0.95
CACHE_LINE = 64
#: CAP_PERFMON and CAP_SYS_ADMIN, capabilities(7).
_CAPABILITIES = 1 << 38 | 1 << 21
#: PMUs of cores: x86, POWER and others (cpu), hybrid x86, Arm, s390.
_CORES = ("cpu", "cpu_core", "cpu_atom", "armv8*", "armv9*", "cpum_cf")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_EVENT = re.compile(r"[A-Za-z_][\w.:=;@-]*(/[\w.:=;@-]*/\w*)?")
#: A spelled-out event contains commas: cpu/event=0x3c,umask=0x1/.
_SPELLED_OUT = re.compile(r"(?<=,)[A-Za-z_]\w*/[^/]*=[^/]*/")
#: Optional front: a time (-I), then a socket, die, core, node, CPU or thread, and their number.
FRONT = re.compile(r"(\d+\.\d+,)?([SDNC]\d[\w-]*,(\d*,)?|CPU\d+,|[^,]+-\d+,)?")
UNITS = {"": 1.0, "msec": 1e-3, "ns": 1e-9, "MiB": 2.0**20, "Bytes": 1.0, "Joules": 1.0}
NOT_COUNTED = {"<not counted>": "not counted", "<not supported>": "not supported"}


class Perf(ExternalCounterProbe):
    """Counts of the whole tree, or of its control group, from start to stop."""

    def __init__(self, root: Path = ROOT) -> None:
        super().__init__(root)
        self._counted_tids: set[int] = set()

    def available(self) -> str | None:
        """Return why perf cannot count here, or None."""
        if shutil.which("perf") is None:
            return "there is no perf command (Debian: linux-perf)"
        devices = self._root / "sys/bus/event_source/devices"
        if not any(next(devices.glob(name), None) for name in _CORES):
            return "this machine has no counters of its cores (a virtual machine without a PMU?)"
        return refused(2, self._root)

    def start(self, tree: ProcessTree, now: float) -> None:
        """Attach to the job's group or processes, unless another process uses the counters; children are counted."""
        super().start(tree, now)
        if user := counter_user(root=self._root):
            self._problem = f"stepped back: {user}"
            return
        groups, events = own_groups(tree.root, self._root), ["-e", ",".join(EVENTS)]
        group = groups.get("perf_event", groups.get("", "")).strip("/")  # of version 1 if mounted, else version 2
        by_group = group and refused(0, self._root) is None
        targets = ["-a", *events, "-G", group] if by_group else [*events, "-p", ",".join(map(str, tree.threads))]
        self._start_command(["perf", "stat", "-x,", *targets], tree)

    def sample(self, now: float, *, last: bool = False) -> None:
        """Step back if a new process of the job uses the counters. O(new processes)."""
        if self._command is None:
            return
        new = self._tree.threads.keys() - self._counted_tids
        self._counted_tids |= new
        if user := counter_user(new, self._root):
            self.kill(f"stepped back: {user}")

    def _conclude(self, printed: str) -> EventCounts:
        return conclude(printed)


def refused(most: int, root: Path = ROOT) -> str | None:
    """Return why we may not count, None if we may.

    Args:
        most: highest kernel.perf_event_paranoid that allows it: 2 for own processes, 0 for the node.
        root: directory that holds /proc.
    """
    setting = read_number(root / "proc/sys/kernel/perf_event_paranoid")
    if setting is None or setting <= most:
        return None
    status = (read_text(root / "proc/self/status") or "").partition("CapEff:")[2].split()
    if status and int(status[0], 16) & _CAPABILITIES:
        return None
    return f"kernel.perf_event_paranoid is {setting:.0f}: without CAP_PERFMON it must be at most {most}"


def conclude(printed: str) -> EventCounts:
    """Return the counts of `EVENTS` in perf's output; unknown if the counters were shared."""
    counts = parse(printed)
    if not counts:
        return EventCounts(problem=f"it did not count: {first_message(printed)}")
    shares = [count.share for count in counts.values() if count.share is not None and count.value is not None]
    if min(shares, default=1.0) < WHOLE:
        return EventCounts(problem=f"stepped back: the counters were shared for {percent(1 - min(shares))} of the time")
    task, instructions, cycles, loads, stores = (counts[e].value if e in counts else None for e in EVENTS)
    misses = None if loads is None or stores is None else (loads + stores) * CACHE_LINE
    unknown = [f"{event} is {counts[event].problem}" for event in EVENTS if event in counts and counts[event].problem]
    user_only = any(count.user_only for count in counts.values())
    return EventCounts(task, instructions, cycles, None, misses, "; ".join(unknown), user_only)


@dataclass(frozen=True, slots=True)
class PerfCount:
    """One event's count.

    Args:
        value: counts, seconds, bytes or joules, scaled by perf to the whole time; None = unknown.
        share: share of time for which it was counted, [0, 1]; below 1 the counters were shared; None = not given.
        problem: why the value is unknown.
        user_only: events inside the kernel were excluded.
    """

    value: float | None
    share: float | None = None
    problem: str = ""
    user_only: bool = False


def parse(text: str) -> dict[str, PerfCount]:
    """Return event -> count, without PMU and modifiers (`cpu_core/instructions/u` is instructions).

    Several lines of an event (by socket, CPU, kind of core) are added up.
    """
    grouped: dict[str, dict[str, list[PerfCount]]] = {}
    for pmu, event, count in filter(None, map(_line, text.splitlines())):
        grouped.setdefault(event, {}).setdefault(pmu, []).append(count)
    return {event: _sum(by_pmu) for event, by_pmu in grouped.items()}


def _line(line: str) -> tuple[str, str, PerfCount] | None:
    """Return (PMU, event, count) of a line, None if it is not a count."""
    fields = _SPELLED_OUT.sub(lambda match: match[0].replace(",", ";"), line.strip()).split(",")
    for i, field in reversed(list(enumerate(fields[:4]))):
        front = "".join(f"{part}," for part in fields[:i])
        if not FRONT.fullmatch(front) or len(fields) < i + 2:
            continue
        if field not in NOT_COUNTED and not _NUMBER.fullmatch(field):
            continue
        if fields[i + 1] in UNITS and i + 2 < len(fields) and _EVENT.fullmatch(fields[i + 2]):
            return _count(field, UNITS[fields[i + 1]], fields[i + 2], fields[i + 3 :])
        if _EVENT.fullmatch(fields[i + 1]):
            return _count(field, 1.0, fields[i + 1], fields[i + 2 :])
    return None


def _count(value: str, factor: float, event: str, fields: list[str]) -> tuple[str, str, PerfCount]:
    if fields and (fields[0].endswith("%") or (fields[0] and not _NUMBER.fullmatch(fields[0]))):
        fields = fields[1:]  # a variance or a control group
    percent = fields[1] if len(fields) > 1 else ""
    share = min(1.0, float(percent) / 100) if _NUMBER.fullmatch(percent) else None
    pmu, slash, inner = event.partition("/")
    name, _, modifiers = inner.partition("/") if slash else event.partition(":")
    number = None if value in NOT_COUNTED else float(value) * factor
    count = PerfCount(number, share, NOT_COUNTED.get(value, ""), modifiers == "u")
    return pmu if slash else "", name.replace(";", ","), count


def _sum(by_pmu: dict[str, list[PerfCount]]) -> PerfCount:
    """Sum counts; the kinds of cores of a hybrid processor each count part of the time."""
    counts = [count for several in by_pmu.values() for count in several]
    values = [count.value for count in counts if count.value is not None]
    if not values:
        return replace(counts[0], share=None)
    shares = [[c.share for c in several if c.share is not None and c.value is not None] for several in by_pmu.values()]
    known_shares = [min(several) for several in shares if several]
    hybrid = all(pmu.startswith("cpu_") for pmu in by_pmu)
    share = (min(1.0, sum(known_shares)) if hybrid else min(known_shares)) if known_shares else None
    return PerfCount(sum(values), share, user_only=any(count.user_only for count in counts))
