"""The built-in queue policies in Python, for worlds that compiled kernels do not know."""

from __future__ import annotations

from functools import partial

from .conservative_policy import ConservativeBackfilling
from .easy_policy import Backfilling
from .energy.power_limits import NoLimit, Window, limit_on
from .energy.saving_policy import SavingBackfilling
from .interface import QueuePolicy
from .one_at_a_time import OneAtATime
from .order import Order
from .policy_options import Sharing
from .policy_specs import Conservative, Contending, Easy, OnNodes, Policy, Saving, Strict, base_of
from .sharing_policy import SharedBackfilling, SharedReserving


def uncompiled(
    policy: Policy | Contending, seed: int, *, arranged: bool = False, window: Window | None = None,
    given: NoLimit | None = None,
) -> QueuePolicy:  # fmt: skip
    """Return a new object that decides as a compiled policy does.

    Args:
        policy: the policy.
        seed: of random choices.
        arranged: see `ConservativeBackfilling`.
        window: begin and end of the limit of power or energy, seconds; None: it has no limit.
        given: the limit as it is when the policy is first called; None: it begins in its window.
    """
    part = policy.limit if isinstance(policy, Saving) else None
    limit = partial(limit_on, limit=part, window=window) if given is None else lambda machine: given
    base = base_of(policy)
    if isinstance(base, Contending):
        return OneAtATime(base, seed, limit)
    assert not isinstance(base, OnNodes), "it decides in compiled code"
    queue = Order(base.order, seed)
    if isinstance(base, Easy) and base.share != Sharing():
        return SharedBackfilling(policy if isinstance(policy, Saving) else Saving(base), queue, window, given)
    if isinstance(policy, Saving) and isinstance(base, Easy | Strict):
        return SavingBackfilling(policy, queue, window, given)
    if isinstance(base, Conservative) and base.share != Sharing():
        return SharedReserving(queue, base.share.bound, arranged=arranged, limit=limit)
    if isinstance(base, Conservative):
        return ConservativeBackfilling(queue, arranged=arranged, allocation=base.allocation, limit=limit)
    return Backfilling(queue, fills=base.backfills)
