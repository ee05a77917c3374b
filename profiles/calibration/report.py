"""A calibration as rows, one for each number, and as a cluster file with the same rows in comments.

Rule: every number comes with its accuracy; an unknown one says so. The written file is what `read_cluster` reads back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...formats.cluster import dump_cluster
from ...formats.quantities import format_size
from ...formats.schema import dump
from ...simulate.model.cluster import ContendingThreads, Contention
from .fits import Choice
from .node_switching import Switching
from .result import Calibration, cluster
from .statistics import Constant, Figure, Quality


@dataclass(frozen=True, slots=True)
class Row:
    """A number: its key in a node type, its value, its spread or 95 % interval, and its data."""

    key: str
    value: str
    known: str = ""
    rests_on: str = ""


def rows(found: Calibration) -> Iterator[Row]:
    """Yield the results, in the order of a node type's keys."""
    curve = found.bandwidth
    most = "" if curve.saturated else "at least "
    yield Row("memory_bandwidth", most + _rate(curve.most.value), _between(curve.most, rate=True), _fit(curve.quality))
    yield Row("  of one thread", _rate(curve.per_thread.value), _between(curve.per_thread, rate=True))
    yield Row("speed", f"{found.speed.value:.4g} steps/s", _spread(found.speed), _count(found.speed.runs, "run"))
    sharing = "unknown" if found.sharing is None else str(found.sharing)
    if found.share is None:
        yield Row("cpu_sharing", sharing)
    else:
        yield Row("cpu_sharing", sharing, f"{found.share.value:.3f} of a core", _count(found.share.runs, "run"))
    if found.remote is None:
        yield Row("remote access", "none", "", "one memory node")
    else:
        remote = found.remote
        yield Row("remote access", f"{remote.value:.3g}", _spread(remote), _count(remote.runs, "run"))
    if found.unbound is not None:
        much, fit = found.unbound.penalty, found.unbound.quality
        yield Row("  under contention", f"{much.value:.3g}", _between(much), _fit(fit))
    if found.waiting is not None:
        waiting = found.waiting
        doubt = "" if waiting.trusted else "not clear: "
        yield Row("queueing", f"{doubt}{waiting.strength.value:.3g}", _between(waiting.strength), _fit(waiting.quality))
    if found.power is None:
        yield Row("power", "unknown")
    else:
        power = found.power
        yield Row("power per_core", f"{power.per_core.value:.4g} W", _between(power.per_core), _fit(power.quality))
        yield Row("power, all sockets", f"{power.base.value:.4g} W", _between(power.base))
    if found.choice is not None:
        yield from _models(found.choice)
    if found.piecewise is not None:
        for name, constant in found.piecewise.intervals.items():
            last = _fit(found.piecewise.quality) if name == "b" else ""
            yield Row(f"piecewise {name}", f"{constant.value:.4g}", _between(constant), last)


def switching_rows(found: Switching) -> Iterator[Row]:
    """Yield the results of switching, in the order of a node type's keys."""
    for key, watts in (("power idle", found.idle), ("power off", found.off)):
        yield Row(key, *_watts(watts))
    for key, way in (("switch_off", found.switch_off), ("switch_on", found.switch_on)):
        seconds = way.seconds
        known = ", ".join(filter(None, (_spread(seconds), f"checks {way.step_s:.2g} s apart")))
        yield Row(f"{key} seconds", f"{seconds.value:.4g} s", known, _count(seconds.runs, "run"))
        yield Row(f"{key} watts", *_watts(way.watts))


def _watts(known: Figure | None) -> tuple[str, str, str]:
    if known is None:
        return "unknown", "", ""
    return f"{known.value:.4g} W", _spread(known), _count(known.runs, "reading")


def _models(choice: Choice) -> Iterator[Row]:
    """Yield the chosen model, and the error of each model."""
    taken = (choice.contention, choice.contending_threads)
    rests = "none clearly better" if choice.default else f"{choice.mixes} mixes"
    yield Row("contention", model(*taken), "", rests)
    for each in choice.candidates:
        off = f"off by {math.expm1(each.error):.1%}"
        yield Row(f"  {model(each.contention, each.contending_threads)}", off, "", "unseen mixes")


def model(contention: Contention, contending: ContendingThreads) -> str:
    """Return the display name of a contention model."""
    return f"{contention}, all" if contending is ContendingThreads.ALL else str(contention)


def _rate(value: float) -> str:
    return format_size(float(f"{value:.3g}"), rate=True)


def _spread(figure: Figure) -> str:
    return f"+- {figure.spread / figure.value:.1%}" if figure.value and figure.runs > 1 else ""


def _between(constant: Constant, *, rate: bool = False) -> str:
    if constant.low is None or constant.high is None:
        return "interval unknown"
    if rate:
        return f"{_rate(max(0.0, constant.low))} to {_rate(constant.high)}"
    return f"{constant.low:.4g} to {constant.high:.4g}"


def _fit(quality: Quality) -> str:
    r2 = "" if quality.r2 is None else f"R2 {quality.r2:.3f}, "
    return r2 + _count(quality.samples, "sample")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def cluster_text(found: Calibration, name: str) -> str:
    """Return the text of a cluster file.

    Args:
        found: the calibration.
        name: of the node type and of the node.
    """
    import yaml

    about = [
        f"Calibrated on {found.date}: {found.model or 'a processor without a name'}, host {found.host}.",
        "Bandwidth as STREAM counts it (triad). Speed is in steps/s of a reference loop: compare it only with that of",
        "other calibrated types.",
        *(f"{row.key.strip()}: {row.value} {_aside(row.known, row.rests_on)}" for row in rows(found)),
    ]
    if found.power is not None:
        about.append("Power is that of the processors, without the rest of the node (idle: 0).")
    if found.remote is not None:
        about.append("remote_access_penalty holds for jobs that are not bound to their memory; 1 where all are.")
    about += [f"Note: {note}." for note in found.notes]
    data = dump_cluster(cluster(found, name))
    return _comments(about) + str(yaml.safe_dump(data, sort_keys=False, width=110, allow_unicode=True))


def power_text(found: Switching) -> str:
    """Return the results of switching as the `power` of a node type in a cluster file."""
    import yaml

    about = [
        f"Node {found.node} was switched off and on, {found.date}.",
        *(f"{row.key}: {row.value} {_aside(row.known, row.rests_on)}" for row in switching_rows(found)),
    ]
    power = found.power()
    if power is None:
        about.append("Its power is not known, because no command printed it: there are no keys to write.")
        data = ""
    else:
        about.append("idle is that of the whole node: with per_socket, subtract that of its sockets.")
        data = yaml.safe_dump({"power": dump(power)}, sort_keys=False)
    return _comments(about) + data


def _comments(lines: Iterable[str]) -> str:
    return "".join(f"# {' '.join(_plain(line).split())}\n" for line in lines)


def _aside(*parts: str) -> str:
    return f"({', '.join(filter(None, parts))})" if any(parts) else ""


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
