"""The event loop of the compiled replays, into which each policy puts its own steps.

Rule: at each instant all ends are processed, then all submissions, then one pass of the policy. Between instants only
time passes and jobs progress. A policy's steps are compiled into the loop, so a step that does nothing costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..block import Block
from ..jit import inlined, inner
from . import running
from .dependencies import next_release, next_submitted
from .tables import GOES_ON, PAUSED

_nothing_planned = inlined(lambda world: math.inf)
_nothing_changes = inlined(lambda world, now: False)
_always = inlined(lambda world: True)


def replay_loop(
    status: Callable[[Any], int],
    end: Callable[[Any, float], None],
    submit: Callable[[Any, int, float, bool], bool],
    decide: Callable[[Any, float, bool], None],
    *,
    planned: Callable[[Any], float] = _nothing_planned,
    begin: Callable[[Any, float], bool] = _nothing_changes,
    settle: Callable[[Any, float], bool] = _nothing_changes,
    next_end: Callable[[Any, float], float] = running.next_end,
    has_room: Callable[[Any], bool] = _always,
) -> Callable[[Any, int], int]:
    """Return a function that is compiled with a policy's steps.

    run(world, instants): run the replay for a number of instants. Return DONE, GROW or PAUSED.

    Args:
        status: returns GOES_ON; or DONE, GROW or PAUSED, if the next instant must not begin now.
        end: ends what ends first.
        submit: submits a job at a time; the last argument says that it may start without regard to other submissions
            of this instant. Returns whether a pass is needed.
        decide: runs the pass. Takes the time, and whether one is needed.
        planned: returns the time of the next event that is neither an end nor a submission; infinity if none.
        begin: begins an instant; `clock.now` is still the one before. Returns whether a pass is needed.
        settle: comes between ends and submissions. Returns whether a pass is needed.
        next_end: see `running.next_end`.
        has_room: returns whether the tables have room for one more job; if not, `decide` must plan the rest of the
            submissions for the same time.
    """

    @inlined
    def instant(world: Block, now: float) -> bool:
        """Process all ends and submissions. Return whether a pass is needed."""
        jobs, count = world.jobs, world.count
        count.instants += 1
        changed = begin(world, now)
        world.clock.now = now
        while next_end(world, now) == now:
            end(world, now)
            changed = True
        if settle(world, now):
            changed = True
        first, total = count.next, count.total
        while has_room(world):
            job = next_submitted(world, total, now)
            if job < 0:
                break
            alone = job == first and (job + 1 == total or jobs[job + 1].submit != now)
            if submit(world, job, now, alone):
                changed = True
        return changed

    @inner
    def run(world: Block, instants: int) -> int:
        jobs, count = world.jobs, world.count
        while True:
            answer = status(world)
            if answer != GOES_ON:
                return answer
            if instants == 0:
                return PAUSED
            now = planned(world)
            if count.next < count.total:
                now = min(now, jobs[count.next].submit)
            now = min(now, next_release(world))
            now = min(now, next_end(world, now))
            if running.must_pause(world):
                return PAUSED
            instants -= 1
            decide(world, now, instant(world, now))

    return run
