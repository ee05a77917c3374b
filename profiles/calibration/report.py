"""A calibration as rows, one for each number, and as a cluster file with the same rows in comments.

Rule: every number comes with its accuracy; an unknown one says so. The written file is what `read_cluster` reads back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...formats.cluster import dump_cluster
from ...formats.documents.quantities import format_size
from ...formats.documents.schema import dump
from ...formats.text import count, percent
from ...simulate.model.cluster import ContendingThreads, Contention
from .node_switching import SwitchingResult
from .result import Calibration, cluster
from .statistics import Constant, MeasuredNumber, Quality


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A number: its key in a node type, its value, its spread or 95 % interval, and its data."""

    key: str
    value: str
    known: str = ""
    rests_on: str = ""


def rows(found: Calibration) -> Iterator[ReportRow]:
    """Yield the results, in the order of a node type's keys."""
    curve = found.bandwidth
    most = "" if curve.saturated else "at least "
    yield ReportRow(
        "memory_bandwidth", most + _rate(curve.most.value), _between(curve.most, rate=True), _fit(curve.quality)
    )
    yield ReportRow("  of one thread", _rate(curve.per_thread.value), _between(curve.per_thread, rate=True))
    yield ReportRow(
        "loop_speed", f"{found.speed.value:.4g} steps/s", _spread(found.speed), count(found.speed.runs, "run")
    )
    share = () if (got := found.share) is None else (f"{got.value:.3f} of a core", count(got.runs, "run"))
    yield ReportRow("cpu_sharing", str(found.sharing or "unknown"), *share)
    if (remote := found.remote) is None:
        yield ReportRow("remote access", "none", "", "one memory node")
    else:
        yield ReportRow("remote access", f"{remote.value:.3g}", _spread(remote), count(remote.runs, "run"))
    if (unbound := found.unbound) is not None:
        penalty = unbound.penalty
        yield ReportRow("  under contention", f"{penalty.value:.3g}", _between(penalty), _fit(unbound.quality))
    if (waiting := found.waiting) is not None:
        doubt = "" if waiting.trusted else "not clear: "
        yield ReportRow(
            "queueing", f"{doubt}{waiting.strength.value:.3g}", _between(waiting.strength), _fit(waiting.quality)
        )
    if (power := found.power) is None:
        yield ReportRow("power", "unknown")
    else:
        yield ReportRow(
            "power per_core", f"{power.per_core.value:.4g} W", _between(power.per_core), _fit(power.quality)
        )
        yield ReportRow("power, all sockets", f"{power.base.value:.4g} W", _between(power.base))
    if (choice := found.choice) is not None:
        chosen = model(choice.contention, choice.contending_threads)
        yield ReportRow(
            "contention", chosen, "", "none clearly better" if choice.default else f"{count(choice.mixes, 'mix')}"
        )
        for candidate in choice.candidates:
            off = f"off by {percent(math.expm1(candidate.error))}"
            yield ReportRow(f"  {model(candidate.contention, candidate.contending_threads)}", off, "", "unseen mixes")
    if found.piecewise is not None:
        for name, constant in found.piecewise.intervals.items():
            last = _fit(found.piecewise.quality) if name == "b" else ""
            yield ReportRow(f"piecewise {name}", f"{constant.value:.4g}", _between(constant), last)


def switching_rows(found: SwitchingResult) -> Iterator[ReportRow]:
    """Yield the results of switching, in the order of a node type's keys."""
    yield _watts("power idle", found.idle)
    yield _watts("power off", found.off)
    for key, way in (("switch_off", found.switch_off), ("switch_on", found.switch_on)):
        seconds = way.seconds
        detail = ", ".join(filter(None, (_spread(seconds), f"checks {way.step_s:.2g} s apart")))
        yield ReportRow(f"{key} seconds", f"{seconds.value:.4g} s", detail, count(seconds.runs, "run"))
        yield _watts(f"{key} watts", way.watts)


def _watts(key: str, figure: MeasuredNumber | None) -> ReportRow:
    if figure is None:
        return ReportRow(key, "unknown")
    return ReportRow(key, f"{figure.value:.4g} W", _spread(figure), count(figure.runs, "reading"))


def model(contention: Contention, contending: ContendingThreads) -> str:
    """Return the display name of a contention model."""
    return f"{contention}, all" if contending is ContendingThreads.ALL else str(contention)


def _rate(value: float) -> str:
    return format_size(float(f"{value:.3g}"), rate=True)


def _spread(figure: MeasuredNumber) -> str:
    return f"+- {percent(figure.spread / figure.value)}" if figure.value and figure.runs > 1 else ""


def _between(constant: Constant, *, rate: bool = False) -> str:
    if constant.low is None or constant.high is None:
        return "interval unknown"
    low, high = (_rate(max(0.0, end)) if rate else f"{end:.4g}" for end in (constant.low, constant.high))
    return f"{low} to {high}"


def _fit(quality: Quality) -> str:
    r2 = "" if quality.r2 is None else f"R2 {quality.r2:.3f}, "
    return r2 + count(quality.samples, "sample")


def cluster_text(found: Calibration, name: str) -> str:
    """Return the text of a cluster file.

    Args:
        found: the calibration.
        name: of the node type and of the node.
    """
    import yaml

    about = [
        f"Calibrated on {found.date}: {found.model or 'a processor without a name'}, host {found.host}.",
        "Bandwidth as STREAM counts it (triad). loop_speed, in steps/s of a reference loop, scales profiles between",
        "calibrated types. The key speed, in flop/s, is not measured.",
        *map(_line, rows(found)),
    ]
    if found.power is not None:
        about.append("Power is that of the processors, without the rest of the node (idle: 0).")
    if found.remote is not None:
        about.append("remote_access_penalty holds for jobs that are not bound to their memory; 1 where all are.")
    about += [f"Note: {note}." for note in found.notes]
    data = dump_cluster(cluster(found, name))
    return _comments(about) + str(yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True))


def power_text(found: SwitchingResult) -> str:
    """Return the results of switching as the `power` of a node type in a cluster file."""
    import yaml

    about = [f"Node {found.node} was switched off and on, {found.date}.", *map(_line, switching_rows(found))]
    power = found.power()
    if power is None:
        about.append("Its power is not known, because no command printed it: there are no keys to write.")
        data = ""
    else:
        about.append("idle is that of the whole node: with per_socket, subtract that of its sockets.")
        data = yaml.safe_dump({"power": dump(power)}, sort_keys=False)
    return _comments(about) + data


def _line(row: ReportRow) -> str:
    aside = ", ".join(filter(None, (row.known, row.rests_on)))
    return f"{row.key.strip()}: {row.value}" + (f" ({aside})" if aside else "")


def _comments(lines: Iterable[str]) -> str:
    plain = ("".join(letter if letter.isprintable() else " " for letter in line) for line in lines)
    return "".join(f"# {' '.join(line.split())}\n" for line in plain)
