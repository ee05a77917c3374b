"""Scores of a program from runs beside a streamer of memory: pure arithmetic.

Rule: scores are relative, to this streamer on this machine; each carries what its runs showed at the least and at the
most. Source of the method: bubble-up (Mars et al., MICRO 2011), on core time instead of run time, so that waiting for
a core is not taken for sensitivity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

#: The streamer's name among profiles.
STREAMER = "streamer"


@dataclass(frozen=True, slots=True)
class Beside:
    """One run beside the streamer, and the one alone of the same round.

    Args:
        pressure: share of the time that the streamer copied, (0, 1].
        alone_s, beside_s: CPU seconds of the program.
        rate_alone, rate_beside: what the streamer moved in a second on its core, bytes/s, just before and meanwhile.
    """

    pressure: float
    alone_s: float
    beside_s: float
    rate_alone: float
    rate_beside: float


@dataclass(frozen=True, slots=True)
class Level:
    """What one pressure does: times of core time of the program, and of the streamer, against alone.

    Args:
        pressure: share of the time that the streamer copied, (0, 1].
        rate: what it moves then, alone, bytes/s.
        factor, least, most: of the program: the median over the rounds, and their range.
        slowed: of the streamer, the median.
    """

    pressure: float
    rate: float
    factor: float
    least: float
    most: float
    slowed: float


@dataclass(frozen=True, slots=True)
class Scores:
    """A program's relative scores.

    Args:
        levels: by rising pressure; the last one is the streamer's full pressure.
        pressure: the pressure of a streamer that slows a second one as the program does; None = none does.
        rounds: how often each was run.
        date: ISO 8601; cpu_model: the processor; node_type: the cluster file's name for such nodes, where it was told.
    """

    name: str
    levels: tuple[Level, ...]
    pressure: float | None
    rounds: int
    date: str = ""
    cpu_model: str = ""
    node_type: str | None = None

    @property
    def sensitivity(self) -> float:
        """Times of core time beside the streamer at full pressure."""
        return self.levels[-1].factor

    @property
    def co_run_inflation(self) -> dict[str, dict[str, float]]:
        """The pairs of program and streamer, as a node type has them: never below 1."""
        last = self.levels[-1]
        factor, slowed = (round(max(1.0, value), 3) for value in (last.factor, last.slowed))
        return {self.name: {STREAMER: factor}, STREAMER: {self.name: slowed}}

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        return asdict(self) | {"source": "relative score", "co_run_inflation": self.co_run_inflation}


def levels(runs: Sequence[Beside]) -> tuple[Level, ...]:
    """Return what each pressure does, by rising pressure; at least one run."""
    found = []
    for pressure in sorted({run.pressure for run in runs}):
        same = [run for run in runs if run.pressure == pressure]
        factors = [run.beside_s / run.alone_s for run in same]
        rate = pressure * median(run.rate_alone for run in same)
        slowed = median(run.rate_alone / run.rate_beside for run in same)
        found.append(Level(pressure, rate, median(factors), min(factors), max(factors), slowed))
    return tuple(found)


def pressure_of(slowed: float, calibration: Sequence[tuple[float, float]]) -> float | None:
    """Return the pressure that slows a streamer as much, between the points of the calibration on straight lines.

    Args:
        slowed: times of core time that a streamer needs beside the program.
        calibration: (pressure, times of core time beside a streamer of that pressure), by rising pressure.

    Returns:
        From 0 for what does not slow it; None for what slows it more than the last point.
    """
    before, least = 0.0, 1.0
    for pressure, times in calibration:
        if slowed <= least:
            return before
        if slowed <= times:
            return before + (pressure - before) * (slowed - least) / (times - least)
        before, least = pressure, max(least, times)
    return before if slowed <= least else None
