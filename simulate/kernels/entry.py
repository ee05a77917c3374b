"""The one compiled entry point: every question to the tables goes through it, so that the first use compiles, and
every later start loads, a single function.
"""

from __future__ import annotations

import math

import numpy as np
from numba import typeof
from numba.core import types

from .forecast import forecast, isolated
from .jit import entry, optimise_once
from .layout import Scratch, World
from .mapping import choose
from .run import advance, begin, evaluate, simulate, total_energy
from .tables import place, rerate, touch

RUN, EVALUATE, ISOLATED, FORECAST, CHOOSE, SETTLE, PLACE, ADVANCE, RERATE = range(9)


@entry
def call(question, world, scratch, policy, which, by_key, cutoff, keys, queue_of, places, wait_for, caps):
    """Answer one question; returns two numbers.

    RUN: (status, joules); EVALUATE: (makespan, joules), see `run.evaluate`; ISOLATED: fills world.isolated;
    FORECAST: (seconds, exact) for class `which` on the nodes `places`; CHOOSE: (found, 0) for job `which`;
    SETTLE: rates of the present moment; PLACE: starts job `which` on its `placed` nodes; ADVANCE: goes on until `cutoff`;
    RERATE: renews all rates after the tables were changed from outside.
    """
    now = world.clock[0]
    if question == EVALUATE:
        return evaluate(world, scratch, keys, queue_of, places, wait_for, caps, cutoff)
    if question == RUN:
        status = simulate(world, scratch, policy, by_key, cutoff)
        return float(status), total_energy(world)
    if question == ISOLATED:
        isolated(world, scratch)
    elif question == FORECAST:
        value, exact = forecast(world, scratch, places, len(places), which, policy, now, cutoff)
        return value, 1.0 if exact else 0.0
    elif question == CHOOSE:
        return (1.0 if choose(world, scratch, which, policy, now) else 0.0), 0.0
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
    return math.nan, math.nan


_INTS, _FLOATS = typeof(np.zeros(0, np.int64)), typeof(np.zeros(0))
SIGNATURE = (
    types.int64, World.numba_type, Scratch.numba_type, types.int64, types.int64, types.int64, types.float64,
    _FLOATS, _INTS, _INTS, _INTS, _FLOATS,
)  # fmt: skip


def prepare() -> None:
    """Load the compiled kernel, or compile it (seconds, once for these sources and this processor).

    Afterwards no other specialisation can be compiled: wrong argument types are an error at once.
    """
    if not call.signatures:
        with optimise_once(call.py_func.__name__):
            call.compile(SIGNATURE)
        call.disable_compile()
