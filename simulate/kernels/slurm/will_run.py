"""The earliest time at which a job could run: Slurm's `_will_run_test`.

It looks at the ends of running jobs in windows that double.

Rule: after each end on the candidates, the next end of any job decides whether the window is over. So an end on other
nodes that is in the window lets the next end on the candidates in, however late it is.
Complexity: O(running + rounds x candidates); copies of the views of nodes whose jobs end. On shared nodes, no choice is
tried before a node may have room, see `later_room`.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import add, empty, has
from .later_room import ends_until_room, let_end
from .node_choice import add_idle_node, choose_nodes
from .node_ends import is_on, let_nodes_be_idle, may_suffice, next_on, note_ends, note_ends_of
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
        bound: any time after it, or NO_START, may be returned for a start after it, without a choice of nodes; 0: no
            bound.
    """
    world.count.tests += 1
    first = since if world.rules.searches_from_start == 1 else now
    if first <= now and choose_nodes(world, job, slot, candidates, NOW):
        return now
    words = world.scratch[candidates]
    least = max(world.part_least_nodes[slot], world.jobs[job].min_nodes, int64(1))
    is_whole = bool(world.jobs[job].exclusive == 1 or world.partitions[world.job_parts[slot]].exclusive == 1)
    _note_later(world, job, slot, candidates, now, is_whole)
    number, ends, ended = world.count.noted, world.latest_ends, _number_ended(world, first, now)
    begin = ends_until_room(world, job, words, least) if _is_kept(world, is_whole) else int64(-1)
    if ended < begin and _is_beyond(world, begin, bound):
        return NO_START
    if first > now or number < world.count.running:
        ended = _let_end(world, int64(0), ended, words, is_whole)
        if _fits_later(world, job, slot, candidates):
            return max(first, now)
    window, base, i = _WINDOW, int64(0), ended
    while i < number:
        if base > 0:
            i = _last_in_window(world, i, base + window, words)
        i, final, base = _take_ends(world, i, base, window, words)
        if final < 0:
            return NO_START
        last, latest = ends[final].until, ends[final].time
        if 0 < bound < last:
            return last
        if i < number:
            window = _next_window(world, window, ends[i].until - base)
        if i >= begin and (begin >= 0 or may_suffice(world, words, is_whole, i, least)):
            ended = _let_end(world, ended, i, words, is_whole)
            if _fits_later(world, job, slot, candidates):
                return _start_after(world, i, latest, now)
    return NO_START


@inner
def _fits_later(world: Block, job: int, slot: int, candidates: int) -> bool:
    """Choose nodes and CPUs for a job in the later view; return whether it fits."""
    if not choose_nodes(world, job, slot, candidates, LATER):
        return False
    if world.rules.bf_busy_nodes == 1:
        add_idle_node(world, job)
    return True


@inner
def _take_ends(world: Block, i: int, base: int, window: int, words: Array) -> tuple[int, int, int]:
    """Take noted ends of jobs on a set of nodes until one of any job is beyond a window, or too many are taken.

    Args:
        world: the state.
        i: the first noted end.
        base: begin of the window, epoch seconds; 0: just after the first end that is taken.
        window: its width, seconds.
        words: the nodes.

    Returns:
        The end after them, the last that was taken, -1 for none, and the begin of the window.
    """
    ends, number, shift = world.latest_ends, world.count.noted, world.count.block_shift
    together, final = int64(0), int64(-1)
    while i < number:
        i = next_on(world, i, words)
        if i < number and base == 0:
            base = (ends[i].until // _ROUND + 1) * _ROUND
        after = min(((i >> shift) + 1) << shift, number)
        while i < after:
            if is_on(world, i, words):
                final = i
                together += 1
                if together > _MOST_TOGETHER or i + 1 >= number or ends[i + 1].until > base + window:
                    return i + 1, final, base
            i += 1
    return i, final, base


@inner
def _is_beyond(world: Block, jobs: int, bound: int) -> bool:
    """Return whether so many noted jobs never end, or not all up to a time; 0: no bound."""
    return bool(jobs > world.count.noted or 0 < bound < world.latest_ends[jobs - 1].until)


@inner
def _start_after(world: Block, jobs: int, latest: int, now: int) -> int:
    """Return when a job starts that fits once the first noted jobs have ended, the last of them at a time."""
    if world.rules.waits_for_own_nodes == 1:
        return max(_last_end_on_chosen(world, jobs), now + 1)
    return int64(latest)


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
def _is_kept(world: Block, is_whole: bool) -> bool:
    """Return whether the later view is kept from search to search."""
    return bool(world.rules.preempts == NOT_AT_ALL and not is_whole)


@inner
def _note_later(world: Block, job: int, slot: int, candidates: int, now: int, is_whole: bool) -> None:
    """Note the ends of jobs, and begin a later view unless it is kept; what the job preempts is free in it."""
    if not _is_kept(world, is_whole):
        begin_later(world)
    if world.rules.preempts == NOT_AT_ALL:
        note_ends(world, now)
    else:
        note_ends_of(world, world.staying, give_up_victims(world, job, slot, candidates, now), now)


@inner
def _let_end(world: Block, first: int, jobs: int, words: Array, is_whole: bool) -> int:
    """Free what the first jobs have in the later view; those before `first` have gone before. Return their number."""
    running = world.running if world.rules.preempts == NOT_AT_ALL else world.staying
    if _is_kept(world, is_whole):
        let_end(world, jobs)
    elif is_whole and world.count.shared_nodes == 0:
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
