"""Measure how often a canary steps back in 90 days with planted effects: by intervals of one look, and of all looks.

The looks are those of the daemon: when the jobs or the time have grown by a tenth, and every six hours. Waits have a
long tail, and two in five are 0. The error of a difference is that of two means with variances of their own.
"""

from __future__ import annotations

import numpy as np

from pilotfish.benchmarks.show import heading, table
from pilotfish.daemon.canary.canary_watch import LONGEST_S, LOOK
from pilotfish.simulate.arrays import Array
from pilotfish.simulate.results.group_contrast import LEAST, widening

DAYS, DAY_S, NORMAL = 90, 86_400.0, 1.959964
EFFECTS, JOBS_A_DAY = (0.0, -0.2, 0.2, 0.5), (20, 200)


def looks_of(jobs_a_day: int) -> Array:
    """Return the numbers of jobs at which the daemon looks, ascending."""
    counts, time, jobs, last_s = [], 0.0, 0, 0.0
    while time < DAYS * DAY_S:
        time += DAY_S / 100
        number = int(time / DAY_S * jobs_a_day)
        if number > jobs * LOOK or time - last_s > min((LOOK - 1.0) * last_s, LONGEST_S):
            counts.append(number)
            jobs, last_s = number, time
    return np.unique([number for number in counts if 2 * LEAST + 5 <= number <= DAYS * jobs_a_day])


def step_backs(effect: float, jobs_a_day: int, canaries: int) -> tuple[float, float]:
    """Return the shares of canaries that step back, by the bound of one look and by that of all looks."""
    draw, looks = np.random.default_rng(1), looks_of(jobs_a_day)
    widenings = np.array([widening(number) for number in looks])
    by_one_look = by_all = 0
    for _ in range(canaries):
        number = DAYS * jobs_a_day
        waits = np.where(draw.random(number) < 0.4, 0.0, np.exp(draw.normal(0.0, 1.2, number)))
        canary = draw.random(number) < 0.5
        waits[canary] *= 1.0 + effect
        means, errors = zip(*(_mean_at(waits, side, looks) for side in (canary, ~canary)), strict=True)
        ratios = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
        by_one_look += bool((ratios > NORMAL).any())
        by_all += bool((ratios > NORMAL * widenings).any())
    return by_one_look / canaries, by_all / canaries


def _mean_at(waits: Array, side: Array, looks: Array) -> tuple[Array, Array]:
    """Return the mean of a group at each look, and the square of its error."""
    count, total, squares = (np.cumsum(side * power)[looks - 1] for power in (np.ones(len(waits)), waits, waits**2))
    mean = total / count
    return mean, (squares / count - mean**2) / (count - 1)


def measure(quick: bool) -> None:
    """Print the table."""
    heading("Canaries that step back within 90 days")
    rows = []
    for effect in EFFECTS:
        for jobs in JOBS_A_DAY:
            shares = step_backs(effect, jobs, 100 if quick else 1000)
            rows.append([f"{effect:+.0%}", f"{jobs}", *(f"{share:.1%}" for share in shares)])
    table(["effect on waits", "jobs a day", "bound of one look", "of all looks"], rows)
