"""What `perf stat -x,` prints, as numbers.

Rule: a line is read by its shape, as its fields changed over the years (no unit before Linux 3.14, later a share of
the time, a variance with -r, the control group with -G, and in front a time, a socket or a CPU); a line that has none
of the shapes is no count.

Source: perf-stat(1), "CSV FORMAT".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_NUMBER = re.compile(r"\d+(\.\d+)?")
_EVENT = re.compile(r"[A-Za-z_][\w.:=;@-]*(/[\w.:=;@-]*/\w*)?")
#: An event that is spelt out has commas of its own: cpu/event=0x3c,umask=0x1/.
_SPELT_OUT = re.compile(r"(?<=,)[A-Za-z_]\w*/[^/]*=[^/]*/")
#: What may stand in front: a time (-I), then a socket, die, core, node or CPU, or a thread, and how many there are.
_FRONT = re.compile(r"(\d+\.\d+,)?(([SDNC]\d[\w-]*|CPU\d+|[^,]+-\d+),(\d*,)?)?")
_UNITS = {"": 1.0, "msec": 1e-3, "ns": 1e-9, "MiB": 2.0**20, "Bytes": 1.0, "Joules": 1.0}
_NOT = {"<not counted>": "not counted", "<not supported>": "not supported"}


@dataclass(frozen=True, slots=True)
class Count:
    """One event's count.

    Args:
        value: in counts, seconds, bytes or joules, scaled by perf to the whole time; None = not known.
        share: of the time for which it was counted, [0, 1]; below 1 others used the counters too; None = not said.
        problem: why the value is not known.
        user_only: what happened inside the kernel was left out, as users may have to.
    """

    value: float | None
    share: float | None = None
    problem: str = ""
    user_only: bool = False


def parse(text: str) -> dict[str, Count]:
    """Return event -> count, without PMU and modifiers (`cpu_core/instructions/u` is instructions).

    What shows several times (by socket, CPU, kind of core) is added up.
    """
    lines = [found for line in text.splitlines() if (found := _line(line))]
    grouped: dict[str, dict[str, list[Count]]] = {}
    for pmu, event, count in lines:
        grouped.setdefault(event, {}).setdefault(pmu, []).append(count)
    return {event: _together(by_pmu) for event, by_pmu in grouped.items()}


def _line(line: str) -> tuple[str, str, Count] | None:
    """Return (PMU, event, count) of a line, None if it is none."""
    fields = _SPELT_OUT.sub(lambda match: match[0].replace(",", ";"), line.strip()).split(",")
    for i, field in reversed(list(enumerate(fields[:4]))):
        front = "".join(f"{part}," for part in fields[:i])
        if not _FRONT.fullmatch(front) or len(fields) < i + 2:
            continue
        if field not in _NOT and not _NUMBER.fullmatch(field):
            continue
        if fields[i + 1] in _UNITS and i + 2 < len(fields) and _EVENT.fullmatch(fields[i + 2]):
            return _count(field, _UNITS[fields[i + 1]], fields[i + 2], fields[i + 3 :])
        if _EVENT.fullmatch(fields[i + 1]):
            return _count(field, 1.0, fields[i + 1], fields[i + 2 :])
    return None


def _count(value: str, factor: float, event: str, rest: list[str]) -> tuple[str, str, Count]:
    if rest and (rest[0].endswith("%") or (rest[0] and not _NUMBER.fullmatch(rest[0]))):
        rest = rest[1:]  # a variance, or a control group
    percent = rest[1] if len(rest) > 1 else ""
    share = min(1.0, float(percent) / 100) if _NUMBER.fullmatch(percent) else None
    pmu, slash, inner = event.partition("/")
    name, _, modifiers = inner.partition("/") if slash else event.partition(":")
    number = None if value in _NOT else float(value) * factor
    count = Count(number, share, _NOT.get(value, ""), modifiers == "u")
    return pmu if slash else "", name.replace(";", ","), count


def _together(by_pmu: dict[str, list[Count]]) -> Count:
    """One count of several; the kinds of cores of a hybrid processor each count for a part of the time."""
    counts = [count for several in by_pmu.values() for count in several]
    known = [count.value for count in counts if count.value is not None]
    if not known:
        return replace(counts[0], share=None)
    shares = [[c.share for c in several if c.share is not None and c.value is not None] for several in by_pmu.values()]
    told = [min(several) for several in shares if several]
    hybrid = all(pmu.startswith("cpu_") for pmu in by_pmu)
    share = (min(1.0, sum(told)) if hybrid else min(told)) if told else None
    return Count(sum(known), share, user_only=any(count.user_only for count in counts))
