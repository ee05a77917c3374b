"""What a calibration found, in words: one row for each number, the same on the screen and in the file.

Rule: a number never goes without how well it is known; what is unknown says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...simulate.formats.units import format_size
from .figures import Constant, Figure, Quality
from .result import Calibration


@dataclass(frozen=True, slots=True)
class Row:
    """A number: its key in a node type, its value, its spread or 95 % interval, and what it rests on."""

    key: str
    value: str
    known: str = ""
    rests_on: str = ""


def rows(found: Calibration) -> Iterator[Row]:
    """Yield what was found, in the order of a node type's keys."""
    fit = found.bandwidth
    most = "" if fit.saturated else "at least "
    yield Row("memory_bandwidth", most + _rate(fit.most.value), _between(fit.most, rate=True), _fit(fit.quality))
    yield Row("  of one thread", _rate(fit.per_thread.value), _between(fit.per_thread, rate=True))
    yield Row("speed", f"{found.speed.value:.4g} steps/s", _spread(found.speed), f"{found.speed.runs} runs")
    sharing = "unknown" if found.sharing is None else str(found.sharing)
    if found.share is None:
        yield Row("cpu_sharing", sharing)
    else:
        yield Row("cpu_sharing", sharing, f"{found.share.value:.3f} of a core", f"{found.share.runs} runs")
    if found.remote is None:
        yield Row("remote access", "none", "", "one memory node")
    else:
        remote = found.remote
        yield Row("remote access", f"{remote.value:.3g}", _spread(remote), f"{remote.runs} runs")
    if found.power is None:
        yield Row("power", "unknown")
    else:
        power = found.power
        yield Row("power per_core", f"{power.per_core.value:.4g} W", _between(power.per_core), _fit(power.quality))
        yield Row("power, all sockets", f"{power.base.value:.4g} W", _between(power.base))
    if found.piecewise is not None:
        for name, constant in found.piecewise.intervals.items():
            last = _fit(found.piecewise.quality) if name == "b" else ""
            yield Row(f"piecewise {name}", f"{constant.value:.4g}", _between(constant), last)


def _rate(value: float) -> str:
    return format_size(float(f"{value:.3g}"), rate=True)


def _spread(figure: Figure) -> str:
    return f"+- {figure.spread / figure.value:.1%}" if figure.value else ""


def _between(constant: Constant, *, rate: bool = False) -> str:
    if constant.low is None or constant.high is None:
        return "interval unknown"
    if rate:
        return f"{_rate(max(0.0, constant.low))} to {_rate(constant.high)}"
    return f"{constant.low:.4g} to {constant.high:.4g}"


def _fit(quality: Quality) -> str:
    r2 = "" if quality.r2 is None else f"R2 {quality.r2:.3f}, "
    return f"{r2}{quality.samples} samples"
