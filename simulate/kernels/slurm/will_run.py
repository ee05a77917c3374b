"""The earliest time at which a job could run: Slurm's `_will_run_test`.

It looks at the ends of running jobs in windows that double.

Rule: after each end on the candidates, the next end of any job decides whether the window is over. So an end on other
nodes that is in the window lets the next end on the candidates in, however late it is.
Complexity: O(running + rounds x candidates); copies of the views of nodes whose jobs end.
"""

from __future__ import annotations

from ..block import Block, int64
from ..jit import inner
from .job_states import expected_end
from .node_choice import choose_nodes
from .node_ends import may_suffice, next_on, note_ends
from .node_use import begin_later, give_up
from .tables import LATER, NOT_AT_ALL, NOW
from .victims import give_up_victims

#: Width of the first window, seconds, and what the first end is rounded up to.
_WINDOW, _ROUND = int64(30), int64(30)
#: Ends that are taken together without a test.
_MOST_TOGETHER = int64(200)
NO_START = int64(-1)


@inner
def earliest_start(world: Block, job: int, slot: int, candidates: int, now: int, bound: int) -> int:
    """Return when a job could start on the candidates, NO_START if never; the choice of nodes is in `chosen`.

    Args:
        world: the state.
        job: its row.
        slot: the row of its partition in `job_parts`.
        candidates: the row of `scratch` with the nodes.
        now: the time.
        bound: any time after it may be returned for a start after it, without a choice of nodes; 0: no bound.
    """
    world.count.tests += 1
    if choose_nodes(world, job, slot, candidates, NOW):
        return now
    number, running = world.count.running, world.running
    words = world.scratch[candidates]
    begin_later(world)
    can_preempt, part = world.rules.preempts != NOT_AT_ALL, world.job_parts[slot]
    if can_preempt:
        number, running = give_up_victims(world, job, slot, candidates, now), world.staying
        if number < world.count.running and choose_nodes(world, job, slot, candidates, LATER):
            return now
    else:
        note_ends(world)
    least = max(world.part_least_nodes[slot], world.jobs[job].min_nodes, int64(1))
    is_whole = world.jobs[job].exclusive == 1 or world.partitions[part].exclusive == 1
    window, base, i, ended = _WINDOW, int64(0), int64(0), int64(0)
    while i < number:
        last, together = int64(0), int64(0)
        while i < number:
            i = next_on(world, running, number, i, words)
            if i >= number:
                break
            last = expected_end(world, running[i], now)
            i += 1
            if base == 0:
                base = (last // _ROUND + 1) * _ROUND
            together += 1
            if together > _MOST_TOGETHER or i >= number:
                break
            if expected_end(world, running[i], now) > base + window:
                break
        if together == 0:
            return NO_START
        if 0 < bound < last:
            return last
        if i < number:
            window = _next_window(world, window, expected_end(world, running[i], now) - base)
        if not can_preempt and not may_suffice(world, words, is_whole, i, least):
            continue
        while ended < i:
            give_up(world, running[ended], words)
            ended += 1
        if choose_nodes(world, job, slot, candidates, LATER):
            return max(last, now + 1)
    return NO_START


@inner
def _next_window(world: Block, window: int, least: int) -> int:
    """Return the width of the window after one, at least `least`, seconds."""
    while True:
        if world.rules.bf_window_linear > 0:
            window += world.rules.bf_window_linear
        else:
            window *= 2
        if window >= least:
            return window
