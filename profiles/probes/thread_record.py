"""A thread of a job as a probe saw it, with its readings."""

from __future__ import annotations

from dataclasses import dataclass, field

from .thread_history import ThreadHistory


@dataclass(slots=True)
class RunningVariance:
    """Running mean and variance (Welford, Technometrics 1962)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        self.count += 1
        delta = value - self.mean
        self.mean += delta / self.count
        self.squares += delta * (value - self.mean)

    @property
    def variance(self) -> float:
        """Variance of the values, 0 for fewer than two."""
        return self.squares / self.count if self.count > 1 else 0.0


@dataclass(slots=True)
class ThreadRecord:
    """A thread as a probe saw it; times in seconds since the job began.

    Args:
        begin, end: first and last time at which it used a core.
        on_s, wait_s: core time and waiting time at the last reading.
        gap_s: unobserved time after the last reading, which was at `read_at`.
        readings: number of readings that found it at work.
        steps: its utilisation between readings.
        history: its readings.
    """

    begin: float
    end: float
    on_s: float = 0.0
    wait_s: float = 0.0
    gap_s: float = 0.0
    readings: int = 1
    steps: RunningVariance = field(default_factory=RunningVariance)
    history: ThreadHistory = field(default_factory=ThreadHistory)
    read_at: float = 0.0
