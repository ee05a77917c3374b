"""The built-in queue policies in Python, for worlds that compiled kernels do not know."""

from __future__ import annotations

from functools import partial

from .conservative_policy import Reserving
from .easy_policy import Backfilling
from .energy.power_limits import Window, limit_on
from .energy.saving_policy import SavingBackfilling
from .interface import QueuePolicy
from .one_at_a_time import OneAtATime
from .order import Order
from .order_ranks import CHANGING
from .policy_options import Sharing
from .policy_specs import Conservative, Contending, Easy, Policy, Saving
from .sharing_policy import SharedBackfilling, SharedReserving


def uncompiled(
    policy: Policy | Contending, seed: int, *, arranged: bool = False, window: Window | None = None
) -> QueuePolicy:
    """Return a new object that decides as a compiled policy does.

    Args:
        policy: the policy.
        seed: of random choices.
        arranged: see `Reserving`.
        window: begin and end of the limit of power or energy, seconds; None: it has no limit.
    """
    if isinstance(policy, Saving) and not isinstance(policy.base, Conservative):
        return SavingBackfilling(policy, Order(policy.base.order, seed), window)
    limit = None
    if isinstance(policy, Saving):
        limit = partial(limit_on, limit=policy.limit, window=window)
        policy = policy.base
    if isinstance(policy, Contending):
        return OneAtATime(policy, seed)
    queue = Order(policy.order, seed)
    if isinstance(policy, Conservative) and policy.share != Sharing():
        return SharedReserving(queue, policy.share.bound, arranged=arranged)
    if isinstance(policy, Conservative):
        return Reserving(queue, arranged=arranged, allocation=policy.allocation, limit=limit)
    if isinstance(policy, Easy) and policy.share != Sharing():
        return SharedBackfilling(queue, policy.share.bound, steady=policy.order not in CHANGING)
    return Backfilling(queue, fills=policy.backfills)
