"""What company does to a measured run: pure arithmetic.

Rule: waiting for a core is measured, and taken out; inflated time on a core cannot be told from work without counters,
so that only its bound is known: it widens the interval and does not move the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

#: Below this share of the other cores kept busy by others, a run counts as made alone.
ALONE = 0.10
#: Time on a core by that alone, at the most: two programs that stream from memory side by side (models, section 8).
MOST_INFLATION = 1.45
#: What one measurement of a known program's service demand is off by at the most.
ERROR = 0.01
#: The standard deviation of a normal distribution by its median absolute deviation.
MAD_TO_SIGMA = 1.4826


def company(others: float, cpus: int, own_cores: float) -> float:
    """Return the share of the cores that a run left free which others kept busy, [0, 1].

    Args:
        others: share of all CPUs' time that others had, [0, 1].
        cpus: CPUs of the machine, >= 1.
        own_cores: cores that the run itself kept busy in the mean, >= 0.
    """
    return min(1.0, max(0.0, others) * cpus / max(1.0, cpus - own_cores))


def inflation(seen: float | None) -> float:
    """Return by how much time on a core may be inflated in such company, >= 1; the most where nobody knows."""
    share = 1.0 if seen is None else seen
    return 1.0 if share < ALONE else 1.0 + (MOST_INFLATION - 1.0) * share


def deviation(values: Sequence[float]) -> float:
    """Return the robust standard deviation of values about their median, at least one, as a share of it."""
    centre = median(values)
    return MAD_TO_SIGMA * median(abs(value - centre) for value in values) / max(centre, 1e-6)


def interval(demands: Sequence[float], companies: Sequence[float | None]) -> tuple[float, float]:
    """Return between which times its median the service demand in isolation is: (low <= 1, high >= 1).

    Twice the deviation of the median over the runs, or the error of one measurement where that is larger; below, also
    what company may have added.

    Args:
        demands: CPU seconds of each run, at least one, >= 0.
        companies: of each run; None = not known.
    """
    half = max(ERROR, 2.0 * deviation(demands) / len(demands) ** 0.5)
    return max(0.0, 1.0 - half) / median(inflation(seen) for seen in companies), 1.0 + half
