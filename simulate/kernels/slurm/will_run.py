"""The earliest time at which a job could run: Slurm's `_will_run_test`.

It looks at the ends of running jobs in windows that double.

Rule: after each end on the candidates, the next end of any job decides whether the window is over. So an end on other
nodes that is in the window lets the next end on the candidates in, however late it is.
Complexity: O(running + rounds x candidates); copies of the views of nodes whose jobs end.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import add, empty, has
from .node_choice import choose_nodes
from .node_ends import let_nodes_be_idle, may_suffice, next_on, note_ends, note_ends_of
from .node_use import begin_later, give_up
from .tables import LATER, MORE, NOT_AT_ALL, NOW
from .victims import give_up_victims

#: Width of the first window, seconds, and what the first end is rounded up to.
_WINDOW, _ROUND = int64(30), int64(30)
#: Ends that are taken together without a test.
_MOST_TOGETHER = int64(200)
#: A window of this width, seconds, has all ends; no wider one is needed, and its double is still a number.
_WHOLE_WINDOW = int64(2**61)
NO_START = int64(-1)


@inner
def earliest_start(world: Block, job: int, slot: int, candidates: int, now: int, since: int, bound: int) -> int:
    """Return when a job could start on the candidates, NO_START if never; the choice of nodes is in `chosen`.

    Args:
        world: the state.
        job: its row.
        slot: the row of its partition in `job_parts`.
        candidates: the row of `scratch` with the nodes.
        now: the time.
        since: where `searches_from_start` is a rule, no start before it is looked for.
        bound: any time after it may be returned for a start after it, without a choice of nodes; 0: no bound.
    """
    world.count.tests += 1
    first = since if world.rules.searches_from_start == 1 else now
    if first <= now and choose_nodes(world, job, slot, candidates, NOW):
        return now
    running, words = world.running, world.scratch[candidates]
    begin_later(world)
    if world.rules.preempts == NOT_AT_ALL:
        note_ends(world, now)
    else:
        running, number = world.staying, give_up_victims(world, job, slot, candidates, now)
        note_ends_of(world, running, number, now)
    number, ends = world.count.noted, world.latest_ends
    least = max(world.part_least_nodes[slot], world.jobs[job].min_nodes, int64(1))
    is_whole = world.jobs[job].exclusive == 1 or world.partitions[world.job_parts[slot]].exclusive == 1
    ended = _let_end(world, running, int64(0), _number_ended(world, first, now), words, is_whole)
    if (first > now or number < world.count.running) and choose_nodes(world, job, slot, candidates, LATER):
        return max(first, now)
    window, base, i = _WINDOW, int64(0), ended
    while i < number:
        last, latest, together = int64(0), int64(0), int64(0)
        if base > 0:
            i = _last_in_window(world, i, base + window, words)
        while i < number:
            i = next_on(world, i, words)
            if i >= number:
                break
            last, latest = ends[i].until, ends[i].time
            i += 1
            if base == 0:
                base = (last // _ROUND + 1) * _ROUND
            together += 1
            if together > _MOST_TOGETHER or i >= number or ends[i].until > base + window:
                break
        if together == 0:
            return NO_START
        if 0 < bound < last:
            return last
        if i < number:
            window = _next_window(world, window, ends[i].until - base)
        if may_suffice(world, words, is_whole, i, least):
            ended = _let_end(world, running, ended, i, words, is_whole)
            if choose_nodes(world, job, slot, candidates, LATER):
                if world.rules.waits_for_own_nodes == 1:
                    latest = max(_last_end_on_chosen(world, i), now + 1)
                return latest
    return NO_START


@inner
def _last_in_window(world: Block, first: int, end: int, words: Array) -> int:
    """Return a noted end from which on all ends of jobs on a set of nodes decide whether the window is over.

    Args:
        world: the state.
        first: the first noted end that has not been looked at.
        end: of the window, epoch seconds.
        words: the nodes.
    """
    low, high, ends = first, min(first + _MOST_TOGETHER, world.count.noted), world.latest_ends
    while low < high:
        middle = (low + high) // 2
        if ends[middle].until > end:
            high = middle
        else:
            low = middle + 1
    if low - 1 <= first or low == first + _MOST_TOGETHER:
        return first
    place = next_on(world, low - 1, words)
    return place if place < world.count.noted else first


@inner
def _number_ended(world: Block, first: int, now: int) -> int:
    """Return how many of the noted jobs end by a later time."""
    number = int64(0)
    while first > now and number < world.count.noted and world.latest_ends[number].time <= first:
        number += 1
    return number


@inner
def _last_end_on_chosen(world: Block, jobs: int) -> int:
    """Return when the last of the first noted jobs ends that has a chosen node; 0: none has."""
    words, last = world.scratch[MORE], int64(0)
    empty(words)
    for place in range(world.count.chosen):
        add(words, world.chosen[place])
    for place in range(jobs):
        noted = world.latest_ends[place]
        for k in range(noted.piece0, noted.piece0 + noted.pieces):
            if has(words, world.pieces[k].node):
                last = max(last, int64(noted.time))
                break
    return last


@inner
def _let_end(world: Block, running: Array, first: int, jobs: int, words: Array, is_whole: bool) -> int:
    """Free what the first jobs have in the later view; those before `first` have gone before. Return their number."""
    if is_whole and world.count.shared_nodes == 0:
        let_nodes_be_idle(world, jobs)
    else:
        for place in range(first, jobs):
            give_up(world, running[place], words)
    return jobs


@inner
def _next_window(world: Block, window: int, least: int) -> int:
    """Return the width of the window after one, at least `least`, seconds."""
    while True:
        if world.rules.bf_window_linear > 0:
            window += world.rules.bf_window_linear
        elif window < _WHOLE_WINDOW:
            window *= 2
        if window >= least:
            return window
