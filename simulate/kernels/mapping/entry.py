"""The compiled entry point of all mapping kernels, so that one function is compiled once and loaded afterwards."""

from __future__ import annotations

from numba import types

from ..compile import ScratchType, WorldType
from ..jit import inner
from .choose import choose
from .component import rerate
from .fluid_loop import ALL, advance, begin, decide, evaluate, simulate, start, step, total_energy
from .forecast import forecast, isolated, what_if
from .layout import (
    ADVANCE,
    CHOOSE,
    DECIDE,
    EVALUATE,
    FORECAST,
    ISOLATED,
    PLACE,
    REPLAY,
    RERATE,
    RUN,
    SETTLE,
    START,
    STEP,
    WHAT_IF,
    WITHDRAW,
    Scratch,
    World,
)
from .program_phases import NetworkedNodesType
from .tables import place, touch, withdraw


@inner
def _within_instant(question: int, world: World, scratch: Scratch, policy: int, which: int, cutoff: float) -> None:
    """Run an operation for callers that go from one instant to the next."""
    now = world.clock.now
    if question == STEP:
        step(world, scratch, cutoff)
    elif question == DECIDE:
        decide(world, scratch, policy, now)
    elif question == START:
        start(world, scratch, now)
    elif question == WITHDRAW:
        withdraw(world, scratch, which, now)
        rerate(world, scratch, now)


@inner
def call(question: int, world: World, scratch: Scratch, policy: int, which: int, number: int, cutoff: float) -> int:
    """Run one operation and store its result in `scratch.answer`.

    RUN: run to the end: `status`, `joules`; `number` = 1 orders jobs by their keys. EVALUATE: `makespan`, `joules`,
    `wrong`, `status`, for `number` instants, see `fluid_loop.evaluate`. ISOLATED: fill world.isolated, and with
    `number` = 1 what `crowding` needs. FORECAST: `seconds`, `exact` for class `which` on the first
    `number` entries of `places`. CHOOSE: `found` for job `which`. SETTLE: compute the present rates. PLACE: start
    job `which` on its `placed` nodes. ADVANCE: run until `cutoff`. RERATE: update all rates after changes from outside.
    WHAT_IF: fill `scratch.effect`, for class `which` on the first `number` entries of `places`.
    STEP: process the ends and submissions of `cutoff`. DECIDE: choose what starts now. START: start these.
    WITHDRAW: take job `which` off its nodes; it waits again.
    REPLAY: as RUN, for `number` instants; `which` = 1 orders jobs by their keys.
    """
    now, answer = world.clock.now, scratch.answer
    if question == EVALUATE:
        answer.makespan, answer.joules, answer.wrong = evaluate(world, scratch, cutoff, number)
    elif question == RUN:
        answer.status = simulate(world, scratch, policy, number, cutoff, ALL)
        answer.joules = total_energy(world)
    elif question == REPLAY:
        answer.status = simulate(world, scratch, policy, which, cutoff, number)
        answer.joules = total_energy(world)
    elif question == WHAT_IF:
        what_if(world, scratch, scratch.places, number, which, now)
    elif question == ISOLATED:
        isolated(world, scratch, number)
    elif question == FORECAST:
        answer.seconds, answer.exact = forecast(world, scratch, scratch.places, number, which, policy, now, cutoff)
    elif question == CHOOSE:
        answer.found = choose(world, scratch, which, policy, now)
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
    elif question >= STEP:
        _within_instant(question, world, scratch, policy, which, cutoff)
    return 0


_OTHERS = ScratchType(), types.int64, types.int64, types.int64, types.float64
SIGNATURES = {
    "mapping.entry": (types.int64, WorldType(), *_OTHERS),
    "mapping.networked": (types.int64, NetworkedNodesType(), *_OTHERS),
}
