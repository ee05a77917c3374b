"""Profiles, measurements, calibrations, scores and probes for the terminal.

Rule: an unknown value says so or is left out, and is never printed as 0. The word "relative" is next to every score. A
reported value within its noise says so.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from ...formats.documents.quantities import format_size
from ...formats.text import clean, count, percent
from ...profiles.probes.catalogue import BOTH, DAEMON, RUN, ProbeState
from ..streams import show, show_document
from .text import Screen, TextColumn, hanging, numbers

if TYPE_CHECKING:
    from ...profiles.calibration.calibration_records import Change
    from ...profiles.calibration.node_switching import SwitchingResult
    from ...profiles.calibration.report import ReportRow
    from ...profiles.calibration.result import Calibration
    from ...profiles.classes import Classification
    from ...profiles.estimate import Statistics
    from ...profiles.interference.scores import Scores
    from ...profiles.measurement import Measurement
    from ...profiles.prediction.first_runs import FirstRuns
    from ...simulate.model.job import Profile


def show_run(name: str, measured: Measurement, known: Statistics | None) -> None:
    """Print one run, and the profile after it.

    Args:
        name: of the profile.
        measured: the run.
        known: statistics of all its runs; None = no run was successful.
    """
    _print_groups(measured.to_profile(name))
    waiting = "not known" if measured.waiting is None else percent(measured.waiting)
    company = "not known" if measured.company is None else percent(measured.company)
    storage = "not known"
    if measured.read_bytes is not None:
        storage = f"{_size(measured.read_bytes)} read, {_size(measured.written_bytes)} written"
    alone = f"; {measured.isolated_s:.3f} s without the waiting" if (measured.waiting or 0.0) >= 0.01 else ""
    show(
        f"waiting for a core: {waiting}",
        f"other jobs on the other cores: {company}",
        f"memory: {_size(measured.memory_bytes or None) or 'not known'}",
        f"storage: {storage}",
        f"wall time: {measured.wall_s:.3f} s{alone}",
        *([f"held up: {_strain(measured.strain)}"] if measured.strain else []),
        *_counted(measured),
        f"profile: {name}, {_scatter(known)}" if known else f"no profile: no run of {name} has succeeded yet",
    )


def _counted(measured: Measurement) -> list[str]:
    """Return the values of counters with their sources, and why others are missing."""
    facts = (("IPC", "ipc", "{:.2f}"), ("instructions", "instructions", "{:.4g}"), ("power", "power_watts", "{:.1f} W"))
    lines = [
        f"{word}: {form.format(value)} ({measured.sources.get(name, 'source unknown')})"
        for word, name, form in facts
        if (value := getattr(measured, name)) is not None
    ]
    source = measured.sources.get("bandwidth")
    return lines + [f"bandwidth: by {source}"] * bool(source) + [f"counters: {note}" for note in measured.notes]


def show_profile(profile: Profile, known: Statistics | None, classed: Classification, owner: str = "") -> None:
    """Print a profile.

    Args:
        profile: the profile.
        known: statistics of its runs; None = no runs are recorded.
        classed: its class.
        owner: whose runs change it, see `owner_name`; "" = not shown.
    """
    _print_groups(profile)
    about = profile.provenance
    alone = ""
    if about.interval:
        origin = "predicted" if about.source == "predicted" else "measured"
        alone = f"-{percent(1 - about.interval[0])} to +{percent(about.interval[1] - 1)} of what was {origin}"
    facts = {
        "class": str(classed),
        "memory": _size(profile.memory or None),
        "storage": _size(profile.io_bytes),
        "instructions": f"{profile.instructions:.4g}" if profile.instructions else "",
        "IPC": f"{profile.ipc:g}" if profile.ipc else "",
        "power": f"{profile.power_watts:.1f} W{'?' * (about.source == 'predicted')}" if profile.power_watts else "",
        "measured on": profile.measured_on,
        "source": " ".join(filter(None, (about.source, about.date, about.node_type and f"on {about.node_type}"))),
        "note": about.note,
        "owner": owner,
        "held up": _strain(dict(about.strain)),
        "CPU seconds alone": alone,
        "from run to run": "" if about.spread is None else f"+- {percent(about.spread)} of the time alone",
        "runs": _scatter(known) if known else "",
    }
    cells = Screen().cells
    for key, value in facts.items():
        if value:
            show(*hanging("", f"{key}: {value}", cells, 2))


def show_first_runs(found: FirstRuns) -> None:
    """Print how well class and power were guessed before first runs."""
    classes = f"{count(found.classes, 'command')} of {found.commands:,} with a known class"
    f1 = "" if found.f1 is None else f"; {found.guessed:,} guessed; F1 {found.f1:.2f}"
    power = "" if found.power_error is None else f"; median error {percent(found.power_error)}"
    show(f"class: {classes}{f1}", f"power: {count(found.powers, 'command')} measured and guessed{power}")


def show_list(profiles: Mapping[str, tuple[Profile, Classification]], own: Mapping[str, int]) -> None:
    """Print profiles and their classes as a table.

    Args:
        profiles: name -> profile and class.
        own: names in the store, and the uid of the user whose runs change each; the others are of the shipped library.
            There is a column of owners if not all of them are the current user's.
    """
    rows, has_others = [], any(uid != os.geteuid() for uid in own.values())
    for name, (profile, classed) in profiles.items():
        about = profile.provenance
        origin = "library" if name not in own else count(about.runs, "run") if about.runs else about.source
        first = max(profile.groups, key=lambda group: group.count * group.demand)
        more = "+" if len(profile.groups) > 1 else ""
        demand, utilisation = (
            f"{first.count} x {first.demand:.{4 if first.demand >= 1 else 3}g} s{more}",
            f"{first.mean_utilisation:.2f}",
        )
        rate, memory = _size(first.mean_bandwidth or None, rate=True), _size(profile.memory or None)
        owner = [owner_name(own[name]) if name in own else ""] if has_others else []
        rows.append([name, demand, utilisation, rate, memory, f"{classed.name}{'?' * classed.guessed}", origin, *owner])
    heads = [
        TextColumn("PROFILE"),
        *numbers("DEMAND", "USED", "BANDWIDTH", "MEMORY"),
        TextColumn("CLASS"),
        TextColumn("FROM"),
    ]
    Screen().named_table([*heads, TextColumn("OWNER")][: len(heads) + has_others], rows)


def owner_name(uid: int | None) -> str:
    """Return the name of a user, or the uid of one without a name; None = the shipped library."""
    if uid is None:
        return "the library"
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return f"uid {uid}"


def _size(value: float | None, *, rate: bool = False) -> str:
    """Return a size or rate in words, "" for None."""
    return "" if value is None else format_size(value, rate=rate)


def _strain(facts: Mapping[str, float]) -> str:
    """Return the stalls, throttling and memory events of a job in words; a measured zero is included."""
    stalls = []
    for resource, word in (("cpu", "CPU"), ("memory", "memory"), ("io", "I/O")):
        partly, fully = facts.get(f"{resource}_some"), facts.get(f"{resource}_full")
        if partly is not None:
            stalls.append(f"{word} {percent(partly)}" + (f" (all of it {percent(fully)})" if fully else ""))
    parts = [f"stalled for {', '.join(stalls)}"] if stalls else []
    if "throttled_s" in facts:
        parts.append(f"throttled {facts['throttled_s']:.3g} s")
    if "memory_peak" in facts:
        parts.append(f"memory peak {_size(facts['memory_peak'])}, caches included")
    events = {"memory_high": "slowed for memory", "memory_max": "at its memory limit", "oom_kills": "killed for memory"}
    parts += [f"{words} {facts[name]:g} times" for name, words in events.items() if facts.get(name)]
    return "; ".join(parts)


def _scatter(statistics: Statistics) -> str:
    """Return the median and spread of the runs of a profile, in words."""
    spread = f" +- {statistics.spread_cpu_s:.2g}" if statistics.used > 1 else ""
    of_runs = f" of {statistics.runs}" if statistics.runs > statistics.used else ""
    runs = f"{statistics.used}{of_runs} run{'s' * (max(statistics.runs, statistics.used) > 1)}"
    return f"{statistics.median_cpu_s:.4g}{spread} CPU seconds over {runs}"


def _print_groups(profile: Profile) -> None:
    rows = [
        (
            str(group.count),
            f"{group.demand:.4g} s",
            f"{group.mean_utilisation:.2f} +- {group.utilisation_std:.2f}",
            _size(group.mean_bandwidth or None, rate=True) or "not known",
        )
        for group in profile.groups
    ]
    Screen().table(numbers("THREADS", "SERVICE DEMAND", "UTILISATION", "BANDWIDTH"), rows)
    for group in profile.groups:
        of = f" of {group.count} x {group.demand:.4g} s" if len(profile.groups) > 1 else ""
        moving = len({phase.bandwidth for phase in group.phases}) > 1
        parts = [
            f"{percent(phase.share)} at {phase.utilisation:.2f}"
            + (f" and {_size(phase.bandwidth, rate=True)}" if moving else "")
            for phase in group.phases
        ]
        if parts:
            show(f"phases{of}: {', '.join(parts)}")


def show_calibration(found: Calibration) -> None:
    """Print a calibration and its notes."""
    from ...profiles.calibration.report import rows

    size = f"{count(len(found.cpus), 'core')}, {count(found.sockets, 'socket')}"
    screen = _show_numbers(f"{clean(found.host)}: {size}, {clean(found.model)}", rows(found))
    if found.notes:
        screen.put("", *(f"note: {text}" for text in found.notes))


def show_switching(found: SwitchingResult) -> None:
    """Print the times and power of switching a node, as a table and as part of a cluster file."""
    from ...profiles.calibration.report import power_text, switching_rows

    screen = _show_numbers(f"{clean(found.node)}, switched off and on", switching_rows(found))
    lines = [line for line in power_text(found).splitlines() if not line.startswith("#")]
    screen.put("", *(lines or ["note: its power is unknown: no --power-command was given"]))


def _show_numbers(title: str, rows: Iterable[ReportRow]) -> Screen:
    screen = Screen()
    screen.title(title)
    columns = [TextColumn(heading) for heading in ("NODE TYPE", "VALUE", "KNOWN TO", "RESTS ON")]
    screen.table(columns, [(row.key, row.value, row.known, row.rests_on) for row in rows])
    return screen


def show_changes(changes: Sequence[Change], new: str, old: str, bound: float) -> None:
    """Print the changes from an old calibration to a new one.

    Args:
        changes: values that differ by more than `bound`.
        new: name of the new calibration, in words.
        old: name of the old calibration, in words.
        bound: relative change that is reported.
    """
    screen, differs = Screen(), "differs" if changes else "does not differ"
    screen.put("", f"{new} {differs} from {old} by more than {percent(bound)}{':' if changes else ''}")
    for change in changes:
        noise = "" if change.sure or change.noise is None else f", within noise: known to {percent(change.noise)}"
        by = "" if change.ratio is None else f" ({'+' * (change.ratio > 1)}{percent(change.ratio - 1)}{noise})"
        screen.put(f"  {change.key}: {_value(change.key, change.old)} -> {_value(change.key, change.new)}{by}")


def _value(key: str, value: float | str | None) -> str:
    """Return the value of a key of a node type, with its unit."""
    if value is None or isinstance(value, str):
        return "not given" if value is None else clean(value)
    if key == "memory":
        return format_size(value)
    return format_size(float(f"{value:.3g}"), rate=True) if key == "memory_bandwidth" else f"{value:.4g}"


def show_scores(scores: Scores) -> None:
    """Print the effect of each pressure, the scores, and the lines for a node type."""
    rows = [
        (
            percent(level.pressure),
            format_size(level.rate, rate=True),
            f"{level.factor:.3f}x",
            f"{level.least:.3f}-{level.most:.3f}",
            f"{level.slowed:.3f}x",
        )
        for level in scores.levels
    ]
    Screen().table(numbers("STREAMER", "MOVES ALONE", "PROGRAM NEEDS", "RANGE", "STREAMER NEEDS"), rows)
    show(*_score_lines(scores), "")
    show_pairs(scores.co_run_inflation, f"{scores.date}, {scores.rounds} x each")


def show_recorded_scores(scores: Scores) -> None:
    """Print the recorded scores of a program."""
    where = f" on {scores.cpu_model}" if scores.cpu_model else ""
    show(*_score_lines(scores), f"scored: {scores.rounds} x each, {scores.date[:10] or 'date not known'}{where}")


def _score_lines(scores: Scores) -> tuple[str, str]:
    doubt = ", within noise" if scores.levels[-1].least <= 1.0 else ""
    pressing = "unknown: it slows a streamer more than another one"
    if scores.pressure is not None:
        pressing = f"{scores.pressure:.2f} of a streamer"
    return (
        f"sensitivity: {scores.sensitivity:.3f}x next to a whole streamer (relative score{doubt})",
        f"pressure: {pressing} (relative score)",
    )


def show_pairs(pairs: Mapping[str, Mapping[str, float]], about: str) -> None:
    """Print the key co_run_inflation of a node type.

    Args:
        pairs: program -> neighbour -> slowdown factor.
        about: origin of the scores, for a comment.
    """
    import yaml

    show(f"# Relative scores, {about}. The memory model")
    show("# also counts the bandwidth of a profile: give one or the other.")
    show("co_run_inflation:" if pairs else "co_run_inflation: {}")
    for job, neighbours in pairs.items():
        show_document("  " + yaml.safe_dump({job: dict(neighbours)}, default_flow_style=None, width=1000))


#: The users of a probe, in a narrow column.
_SHORT = {(): "-", (RUN,): "run", (DAEMON,): "daemon", BOTH: "both"}
_USED_BY = (
    "run: `pilotfish profile run`. daemon: for jobs on this node (`counters` in its configuration), in turns, so that"
    " all samples of a node take at most 0.5 % of a core."
)


def show_probes(found: Sequence[ProbeState]) -> None:
    """Print the working probes with their costs, then the others with the reasons."""
    screen, form = Screen(), "{:<10}{:<5}{:>7} {:>10} {:<8}"

    def put(head: str, text: str) -> None:
        screen.put(*hanging(head, text, screen.cells))

    screen.put(Text(form.format("PROBE", "OF", "SAMPLE", "START+STOP", "USED BY") + "GIVES", style="bold"))
    missing = [(finding, finding.missing) for finding in found if finding.missing is not None]
    for finding in found:
        if finding.missing is None:
            costs = cost(finding.look_s), cost(finding.begin_s)
            put(form.format(finding.name, finding.of, *costs, _SHORT[finding.used_by]), finding.gives)
    if missing:
        screen.put("", Text("MISSING   WHAT IT MEASURES: WHY IT IS MISSING", style="bold"))
    for finding, reason in missing:
        put(f"{finding.name:<10}", f"{finding.gives}: {reason}")
    screen.put("")
    put("USED BY   ", _USED_BY)


def cost(seconds: float | None) -> str:
    """Return CPU time in words: microseconds, from 10 ms on milliseconds."""
    if seconds is None:
        return "unknown"
    return f"{seconds * 1e6:.0f} us" if seconds < 0.01 else f"{seconds * 1e3:.0f} ms"
