"""The twin as a kernel: let time pass, or carry out one pass."""

from __future__ import annotations

import math

from numba import types

from ..block import Block, int64
from ..jit import inner
from .backfill_pass import backfill_pass
from .clocks import SlurmType, advance, repeat
from .main_pass import main_pass

ADVANCE, MAIN, FULL_MAIN, BACKFILL, REPEAT = range(5)


@inner
def call(world: Block, request: int, until: float) -> int:
    """Let time pass until `until`, carry out a pass at the present time, or repeat a recorded start, the row `until`.

    Returns:
        The number of starts so far.
    """
    now = int64(math.floor(world.clock.now))
    if request == ADVANCE:
        advance(world, until)
    elif request == BACKFILL:
        backfill_pass(world, now)
    elif request == REPEAT:
        repeat(world, int64(until), now)
    else:
        main_pass(world, now, request == FULL_MAIN)
    return int64(world.count.starts)


SIGNATURES = {"slurm.site_requests": (SlurmType(), types.int64, types.float64)}
