"""Profiles and measurements as a person reads them.

Rule: what is not known says so, or is left out; it is never printed as 0.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...simulate.formats.units import format_size
from .text import clean, count, percent

if TYPE_CHECKING:
    from ...profiles.classes import Classed
    from ...profiles.estimate import Statistics
    from ...profiles.measurement import Measurement
    from ...simulate.job import Profile, ThreadGroup

_HEADINGS = ("profile", "demand", "used", "bandwidth", "memory", "class", "from")


def show_run(name: str, measured: Measurement, known: Statistics | None) -> None:
    """Print what one run showed, and what is known of the profile by now."""
    _print_groups(measured.to_profile(name))
    waiting = "not known" if measured.waiting is None else f"{measured.waiting:.1%}"
    storage = "not known"
    if measured.read_bytes is not None:
        storage = f"{size(measured.read_bytes)} read, {size(measured.written_bytes)} written"
    wall = f"{measured.wall_s:.3f} s"
    if measured.waiting and measured.waiting >= 0.01:
        wall += f"; {measured.isolated_s:.3f} s without the waiting"
    lines(
        f"waiting for a core: {waiting}",
        f"others on the other cores: {'not known' if measured.company is None else f'{measured.company:.0%}'}",
        f"memory: {size(measured.memory_bytes or None) or 'not known'}",
        f"storage: {storage}",
        f"wall time: {wall}",
        *([f"held up: {_strain(measured.strain)}"] if measured.strain else []),
        *_counted(measured),
        f"profile: {name}, {_scatter(known)}" if known else f"no profile: {name} has not ended well yet",
    )


def _counted(measured: Measurement) -> list[str]:
    """What counters said, with what counted it, and why they did not say more."""
    facts = {
        "IPC": (measured.ipc, "ipc", "{:.2f}"),
        "instructions": (measured.instructions, "instructions", "{:.4g}"),
        "power": (measured.power_watts, "power_watts", "{:.1f} W"),
    }
    said = [
        f"{word}: {form.format(value)} ({measured.sources.get(name, 'not told')})"
        for word, (value, name, form) in facts.items()
        if value is not None
    ]
    source = measured.sources.get("bandwidth")
    return said + [f"bandwidth: by {source}"] * bool(source) + [f"counters: {note}" for note in measured.notes]


def show_profile(profile: Profile, known: Statistics | None, classed: Classed) -> None:
    """Print all that is known of one profile."""
    _print_groups(profile)
    about = profile.provenance
    facts = {
        "class": str(classed),
        "memory": size(profile.memory or None),
        "storage": size(profile.io_bytes),
        "instructions": f"{profile.instructions:.4g}" if profile.instructions else "",
        "IPC": f"{profile.ipc:g}" if profile.ipc else "",
        "power": f"{profile.power_watts:.1f} W" if profile.power_watts else "",
        "measured on": profile.measured_on or "",
        "source": " ".join(
            filter(None, (about.source, about.date, about.node_type and f"on {about.node_type}"))
        ),
        "note": about.note,
        "held up": _strain(dict(about.strain)),
        "CPU seconds alone": _bounds(about.interval),
        "from run to run": "" if about.spread is None else f"+- {percent(about.spread)} of the time alone",
        "runs": _scatter(known) if known else "",
    }
    from .screen import Screen

    cells = Screen().cells
    for key, value in facts.items():
        if value:
            lines(*textwrap.wrap(f"{key}: {value}", cells, subsequent_indent="  ", break_on_hyphens=False))


def show_list(profiles: Mapping[str, tuple[Profile, Classed]], own: set[str]) -> None:
    """Print profiles and their classes as a table; those that are not the store's own are the library's."""
    rows = []
    for name, (profile, classed) in profiles.items():
        about = profile.provenance
        origin = "library" if name not in own else count(about.runs, "run") if about.runs else about.source
        first = max(profile.groups, key=lambda group: group.count * group.demand)
        more = "+" if len(profile.groups) > 1 else ""
        demand, utilisation = f"{first.count} x {first.demand:.4g} s{more}", f"{first.mean_utilisation:.2f}"
        rate = size(first.mean_bandwidth or None, rate=True)
        memory = size(profile.memory or None)
        rows.append((name, demand, utilisation, rate, memory, classed.name, origin))
    print_grid(_HEADINGS, rows, left=(0, 5, 6))


def lines(*texts: str) -> None:
    """Print lines, names in them made harmless."""
    for text in texts:
        print(clean(text))


def size(value: float | None, *, rate: bool = False) -> str:
    """A size or rate for a person, nothing for one that is not known."""
    return "" if value is None else format_size(value, rate=rate)


def _strain(facts: Mapping[str, float]) -> str:
    """What held the job up, in words; what was told and is nothing is said as well."""
    stalls = []
    for resource, word in (("cpu", "CPU"), ("memory", "memory"), ("io", "I/O")):
        some, full = facts.get(f"{resource}_some"), facts.get(f"{resource}_full")
        if some is not None:
            stalls.append(f"{word} {some:.0%}" + (f" (all of it {full:.0%})" if full else ""))
    parts = [f"stalled for {', '.join(stalls)}"] if stalls else []
    if "throttled_s" in facts:
        parts.append(f"throttled {facts['throttled_s']:.3g} s")
    if "memory_peak" in facts:
        parts.append(f"memory peak {size(facts['memory_peak'])}, caches included")
    events = {"memory_high": "slowed for memory", "memory_max": "at its memory limit", "oom_kills": "killed for memory"}
    parts += [f"{words} {facts[name]:g} times" for name, words in events.items() if facts.get(name)]
    return "; ".join(parts)


def _bounds(interval: tuple[float, float] | None) -> str:
    """By how much less or more than measured the service demand may be, in words."""
    return f"{interval[0] - 1:+.0%} to {interval[1] - 1:+.0%} of what was measured" if interval else ""


def _scatter(known: Statistics) -> str:
    """How the runs of a profile scatter, in words."""
    spread = f" +- {known.spread_cpu_s:.2g}" if known.used > 1 else ""
    others = f" of {known.runs}" if known.runs > known.used else ""
    runs = f"{known.used}{others} run{'s' * (max(known.runs, known.used) > 1)}"
    return f"{known.median_cpu_s:.4g}{spread} CPU seconds over {runs}"


def _print_groups(profile: Profile) -> None:
    rows = [
        (
            str(group.count),
            f"{group.demand:.4g} s",
            f"{group.mean_utilisation:.2f} +- {group.utilisation_std:.2f}",
            size(group.mean_bandwidth or None, rate=True) or "not known",
        )
        for group in profile.groups
    ]
    print_grid(("threads", "service demand", "utilisation", "bandwidth"), rows, left=())
    for group in profile.groups:
        if group.phases:
            moving = len({phase.bandwidth for phase in group.phases}) > 1
            parts = (
                f"{phase.share:.0%} at {phase.utilisation:.2f}"
                + (f" and {size(phase.bandwidth, rate=True)}" if moving else "")
                for phase in group.phases
            )
            lines(f"phases{_of(group, profile)}: {', '.join(parts)}")


def _of(group: ThreadGroup, profile: Profile) -> str:
    """Which group it is, where there are several."""
    return f" of {group.count} x {group.demand:.4g} s" if len(profile.groups) > 1 else ""


def print_grid(headings: tuple[str, ...], rows: Sequence[Sequence[str]], left: tuple[int, ...]) -> None:
    """Print a table; the columns in `left` begin at the left."""
    from .screen import Screen
    from .tables import Column, grid

    screen = Screen()
    columns = [Column(heading, right=i not in left) for i, heading in enumerate(headings)]
    screen.put(grid(columns, rows, screen.cells, ascii_only=screen.ascii_only))
