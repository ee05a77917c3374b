"""The score of a waiting job under a learned order: a weighted sum of ten features, or a small network of them.

Rule: the smallest score comes first, ties by submission; `queue_policies.learned_order` and `order_score` compute the
same in Python, to the bit. A job that has waited for longer than the bound goes before all others. The expected run
time of a job is its prediction if run times are predicted, else the mean of its user's last two, at most its limit. The
jobs behind the reservation may have an order of their own, by the same features at the beginning of the pass.
Complexity: O(1) a job and pass, three logarithms.
"""

from __future__ import annotations

import math

from ...arrays import Array
from ..block import Block
from ..jit import inner
from .running import has_predictions
from .tables import FEATURE_COUNT, HIDDEN, ROUND, STEEP, UNIT

#: Code of the order.
LEARNED = 5
#: Times below count as this long where a wait is divided by them, seconds.
LEAST_S = 60.0


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
def note_learned_scores(world: Block, job: int, now: float) -> None:
    """Note the scores of a waiting job: its place in the queue, and behind a reservation; the largest comes first."""
    wait, bound = now - world.jobs[job].submit, world.learned[len(world.learned) - 1]
    if wait > bound:
        world.scores[job] = math.inf
    else:
        _observe(world, job, wait)
        world.scores[job] = -_score(world.learned, world.features)
    if len(world.filling) > 0:
        world.fill_scores[job] = math.inf if wait > bound else -_score(world.filling, world.features)


@inner
def _observe(world: Block, job: int, wait: float) -> None:
    """Write the features of a waiting job."""
    row, trait, features = world.jobs[job], world.traits[job], world.features
    patience = math.log1p(wait / trait.wall_floor) / 3.0
    features[0], features[1], features[2] = trait.wall, trait.size, trait.expected
    features[3], features[4] = math.log1p(wait) / 10.0, patience
    features[5] = math.log1p(wait / trait.expected_floor) / 3.0
    features[6] = row.size / world.count.machine
    features[7] = 1.0 if row.size <= world.count.free else 0.0
    features[8], features[9] = trait.wall * trait.size, trait.expected * patience


@inner
def _score(weights: Array, features: Array) -> float:
    """Return the score of a job; the last of the weights is none, see the table `learned`."""
    score = 0.0
    if len(weights) == FEATURE_COUNT + 1:
        for feature in range(FEATURE_COUNT):
            score += weights[feature] * features[feature]
    else:
        for unit in range(HIDDEN):
            first = unit * UNIT
            total = weights[first]
            for feature in range(FEATURE_COUNT):
                total += weights[first + 1 + feature] * features[feature]
            total = min(max(total, -STEEP), STEEP)
            square = total * total
            score += weights[first + UNIT - 1] * (total * (27.0 + square) / (27.0 + 9.0 * square))
    large = score * ROUND
    return large - (large - score)
