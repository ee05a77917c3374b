"""The replay with contention, one step a call, for decisions that take time and for predicted run times.

Rule: the steps are those of `pairs_loop`, so decisions that take no time give its schedule to the last bit.
"""

from __future__ import annotations

from numba import types

from ...jit import inner
from .pairs_loop import ContendedType, instant, start_jobs
from .placement import place_again
from .tables import DECIDE, STEP, Contended


@inner
def call(world: Contended, question: int, job: int, now: float) -> int:
    """Do one step at `now`.

    STEP: process ends and submissions. DECIDE: start the rule's jobs. START: start `job`, see `place_again`.
    """
    if question == STEP:
        instant(world, now)
    elif question == DECIDE:
        start_jobs(world, now)
    else:
        place_again(world, job, now)
    return 0


SIGNATURES = {"queue.contention.pairs_steps": (ContendedType(), types.int64, types.int64, types.float64)}
