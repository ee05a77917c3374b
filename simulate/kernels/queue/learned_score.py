"""The score of a waiting job under a learned order: a weighted sum of ten features.

Rule: the smallest sum comes first, ties by submission. Sums are rounded to 40 bits, so that the last bits of a
logarithm decide nothing; `queue_policies.learned_order` computes the same in Python. A job that has waited for longer
than the bound goes before all others. The expected run time of a job is its prediction if run times are predicted,
else the mean of its user's last two, at most its limit. Complexity: O(1) a job and pass, three logarithms.
"""

from __future__ import annotations

import math

from ..block import Block
from ..jit import inner
from .running import has_predictions

#: Code of the order.
LEARNED = 5
#: Number of features; the table `learned` has one weight for each, then the longest wait.
FEATURES = 10
#: Times below count as this long where a wait is divided by them, seconds.
LEAST_S = 60.0
#: x * ROUND - (x * ROUND - x) is x rounded to 40 bits (Veltkamp's splitting).
ROUND = 8193.0


@inner
def describe(world: Block, job: int) -> None:
    """Note what the score of a submitted job rests on that does not change while it waits."""
    if len(world.learned) == 0:
        return
    row, trait = world.jobs[job], world.traits[job]
    limit, expected = row.wall, row.wall
    if has_predictions(world):
        limit = world.expected[job].limit
    elif trait.user >= 0:
        lately = world.lately[trait.user]
        if lately.ended > 0:
            expected = min(0.5 * (lately.last + lately.before), row.wall)
    trait.wall, trait.expected = math.log1p(limit) / 10.0, math.log1p(expected) / 10.0
    trait.size = math.log2(row.size) / 10.0
    trait.wall_floor, trait.expected_floor = max(limit, LEAST_S), max(expected, LEAST_S)


@inner
def learn_run_time(world: Block, job: int) -> None:
    """Note the run time of an ended job for the next jobs of its user."""
    if len(world.learned) == 0 or world.traits[job].user < 0:
        return
    lately, run = world.lately[world.traits[job].user], world.jobs[job].finish - world.jobs[job].start
    lately.before = run if lately.ended == 0 else lately.last
    lately.last = run
    lately.ended += 1


@inner
def learned_score(world: Block, job: int, now: float) -> float:
    """Return the score of a waiting job; the largest comes first."""
    weights, row, trait = world.learned, world.jobs[job], world.traits[job]
    wait = now - row.submit
    if wait > weights[FEATURES]:
        return math.inf
    patience = math.log1p(wait / trait.wall_floor) / 3.0
    value = weights[0] * trait.wall + weights[1] * trait.size + weights[2] * trait.expected
    value += weights[3] * (math.log1p(wait) / 10.0) + weights[4] * patience
    value += weights[5] * (math.log1p(wait / trait.expected_floor) / 3.0)
    value += weights[6] * (row.size / world.count.machine)
    if row.size <= world.count.free:
        value += weights[7]
    value += weights[8] * (trait.wall * trait.size) + weights[9] * (trait.expected * patience)
    large = value * ROUND
    return -(large - (large - value))
