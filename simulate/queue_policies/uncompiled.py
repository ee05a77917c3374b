"""The built-in queue policies in Python, for worlds that compiled kernels do not know."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ..errors import ConfigError
from .conservative_policy import ConservativeBackfilling
from .easy_policy import Backfilling
from .energy.power_limits import NoLimit, Window, limit_on
from .energy.saving_policy import SavingBackfilling
from .interface import QueuePolicy
from .learned_order import LearnedOrder, LearnedQueue
from .mapping_in_python import StartsWhatFits
from .one_at_a_time import OneAtATime
from .order import Order
from .policy_facts import PolicySpec
from .policy_specs import text_of
from .sharing_policy import SharedBackfilling, SharedReserving


def uncompiled(
    policy: PolicySpec, seed: int, *, arranged: bool = False, window: Window | None = None,
    given: NoLimit | None = None, began: float = math.inf,
) -> QueuePolicy:  # fmt: skip
    """Return a new object that decides as a compiled policy does.

    Args:
        policy: the policy.
        seed: of random choices.
        arranged: see `ConservativeBackfilling`.
        window: begin and end of the limit of power or energy, seconds; None: it has no limit.
        given: the limit as it is when the policy is first called; None: it begins in its window.
        began: see `Order`.
    """
    limit = partial(limit_on, limit=policy.limit, window=window) if given is None else lambda machine: given
    base = policy.plain
    if base.family == "contending":
        return OneAtATime(base, seed, limit)
    if base.family == "mapping":
        return StartsWhatFits(text_of(base), limit)
    if isinstance(base.order, LearnedOrder):
        if base.order.fill and (base.needs_nodes or policy.saves):
            problem = "an order behind the reservation, in a policy with further parts"
            raise ConfigError("policy", base.order.text, problem, "easy without further parts")
        queue: Any = LearnedQueue(base.order)
    else:
        queue = Order(base.order, seed, began)
    if base.family == "easy" and base.needs_nodes:
        return SharedBackfilling(policy, queue, window, given)
    if base.family == "easy" and policy.saves:
        return SavingBackfilling(policy, queue, window, given)
    if base.family == "conservative" and base.needs_nodes:
        return SharedReserving(queue, base.share.bound, arranged=arranged, limit=limit)
    if base.family == "conservative":
        return ConservativeBackfilling(queue, arranged=arranged, allocation=base.allocation, limit=limit)
    return Backfilling(queue, fills=base.backfills)
