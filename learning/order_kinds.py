"""The kinds of learned orders: where a search begins, and which order a point of it is.

Rule: the first point of each kind gives the schedules of a simple rule, so no kind begins behind another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..simulate.arrays import Array
from ..simulate.kernels.queue.tables import HIDDEN, UNIT
from ..simulate.queue_policies.learned_order import LearnedOrder

#: What the first unit of a network takes of the rule: little enough that no job is where `bend` is flat.
_SHARE = 0.5
#: Spread of the first weights of the other units, whose outputs have no weight yet.
_SPREAD = 0.5


@dataclass(frozen=True, slots=True)
class OrderKind:
    """A kind.

    Args:
        words: what it is, for people.
        first: returns the first point of a search [dimensions], from the weights of a rule and a seed.
        order: returns the order of a point, from its numbers, the weights of the rule, and the bound on waits, seconds.
    """

    words: str
    first: Callable[[Sequence[float], int], Array]
    order: Callable[[Sequence[float], Sequence[float], float], LearnedOrder]


def _network_of(rule: Sequence[float], seed: int) -> Array:
    """Return a network whose first unit is the rule; the others have no say yet."""
    units: Array = np.random.default_rng([seed, NETWORK_STREAM]).normal(0.0, _SPREAD, (HIDDEN, UNIT))
    units[:, -1] = 0.0
    units[0] = 0.0, *(_SHARE * weight for weight in rule), 1.0
    return units.ravel()


def _of_queue(point: Sequence[float], rule: Sequence[float], max_wait: float) -> LearnedOrder:
    return LearnedOrder("learned", tuple(point), max_wait)


def _behind_reservation(point: Sequence[float], rule: Sequence[float], max_wait: float) -> LearnedOrder:
    return LearnedOrder("learned", tuple(rule), max_wait, tuple(point))


#: Sets the draws of first weights apart from those of a search with the same seed.
NETWORK_STREAM = 72
#: The kinds by name; they are those of `order_model.ORDER_KINDS`.
KINDS = {
    "linear": OrderKind("ten weights of an order", lambda rule, seed: np.array(rule), _of_queue),
    "tanh": OrderKind("a network of six units that orders the queue", _network_of, _of_queue),
    "fill": OrderKind(
        "ten weights of the order behind the reservation", lambda rule, seed: np.array(rule), _behind_reservation
    ),
}  # fmt: skip
