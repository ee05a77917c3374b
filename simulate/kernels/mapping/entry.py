"""The one compiled entry point: every question to the tables goes through it, so that the first use compiles, and
every later start loads, a single function.
"""

from __future__ import annotations

import math

from numba.core import types

from .component import rerate
from .forecast import forecast, isolated
from .jit import inner
from .layout import ADVANCE, CHOOSE, EVALUATE, FORECAST, ISOLATED, PLACE, RERATE, RUN, SETTLE
from .mapping import choose
from .native import ScratchType, WorldType
from .run import advance, begin, evaluate, simulate, total_energy
from .tables import place, touch


@inner
def call(question, world, scratch, policy, which, number, cutoff):
    """Answer one question in `scratch.answer`.

    RUN: (status, joules), `number` = 1: order by the jobs' keys. EVALUATE: (makespan, joules), see `run.evaluate`.
    ISOLATED: fills world.isolated. FORECAST: (seconds, exact) for class `which` on the first `number` `places`.
    CHOOSE: (found, 0) for job `which`. SETTLE: rates of the present moment. PLACE: starts job `which` on its `placed`
    nodes. ADVANCE: goes on until `cutoff`. RERATE: renews all rates after the tables were changed from outside.
    """
    now, answer = world.clock[0], scratch.answer
    answer[0] = answer[1] = math.nan
    if question == EVALUATE:
        answer[0], answer[1] = evaluate(world, scratch, cutoff)
    elif question == RUN:
        answer[0] = simulate(world, scratch, policy, number, cutoff)
        answer[1] = total_energy(world)
    elif question == ISOLATED:
        isolated(world, scratch)
    elif question == FORECAST:
        value, exact = forecast(world, scratch, scratch.places, number, which, policy, now, cutoff)
        answer[0], answer[1] = value, 1.0 if exact else 0.0
    elif question == CHOOSE:
        answer[0] = 1.0 if choose(world, scratch, which, policy, now) else 0.0
    elif question == SETTLE:
        begin(world, scratch)
        rerate(world, scratch, now)
    elif question == PLACE:
        place(world, scratch, which, now)
        rerate(world, scratch, now)
    elif question == RERATE:
        for n in range(len(world.nodes)):
            touch(world, scratch, n, now)
        rerate(world, scratch, now)
    elif question == ADVANCE:
        advance(world, scratch, cutoff)


SIGNATURE = (types.int64, WorldType(), ScratchType(), types.int64, types.int64, types.int64, types.float64)
