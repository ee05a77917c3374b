"""Preemption: running jobs that make room for one of a higher partition or QOS (PreemptMode CANCEL and REQUEUE).

Rule: a job that preempts does not start: its victims end, and it starts in a pass after their epilogs. Until then it
closes its partition like any job that does not fit.
Complexity: O(running), and a choice of nodes for each victim that is tried.
Source: slurm.conf(5), PreemptType; select_p_job_test of Slurm 22.05.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import add, empty, has
from .job_states import kill
from .node_choice import choose_nodes
from .node_use import begin_later, give_up
from .tables import LATER, MORE, MOST_RESTARTS

#: Values of `rules.preempts`: what decides who preempts whom.
BY_PARTITION, BY_QOS = 1, 2
#: Values of the table `preempts`: what happens to a victim.
CANCEL_VICTIM, REQUEUE_VICTIM = 1, 2


@inner
def has_victims(world: Block, job: int, slot: int, candidates: int, now: int) -> bool:
    """Return whether a job fits if jobs that it may preempt are gone; they are the first `count.victims` of `victims`.

    Args:
        world: the state; the choice of nodes is in `chosen`.
        job: its row.
        slot: the row of its partition in `job_parts`.
        candidates: the row of `scratch` with the nodes that it may use.
        now: the time.
    """
    rules, row = world.rules, world.jobs[job]
    if rules.preempts == 0 or (row.preempted_at > 0 and now < row.preempted_at + rules.preempt_pause):
        return False
    _list_victims(world, job, world.job_parts[slot], world.scratch[candidates], now)
    for turn in range(1 + rules.preempt_reorder_count):
        if turn > 0:
            _reorder(world)
        if not _fits_without(world, job, slot, candidates):
            return False
    return True


@inner
def preempt(world: Block, job: int, part: int, now: int) -> None:
    """Kill the victims that hold nodes that were chosen for a job."""
    words, count = world.scratch[MORE], world.count
    empty(words)
    for place in range(count.chosen):
        add(words, world.chosen[place])
    for place in range(count.victims):
        victim = world.victims[place]
        if _shared_nodes(world, victim, words) > 0:
            kill(world, victim, world.clock.now, _mode_of(world, job, part, victim) == REQUEUE_VICTIM)
    world.jobs[job].preempted_at = now


@inner
def _mode_of(world: Block, job: int, part: int, victim: int) -> int:
    """Return what happens to a running job if another preempts it; 0: it may not."""
    if world.rules.preempts == BY_PARTITION:
        return int64(world.preempts[part, world.jobs[victim].part])
    return int64(world.preempts[world.jobs[job].qos, world.jobs[victim].qos])


@inner
def _list_victims(world: Block, job: int, part: int, words: Array, now: int) -> None:
    """List the running jobs on a set of nodes that a job may preempt, the first to go first."""
    count, victims = world.count, world.victims
    count.victims = 0
    for k in range(count.running):
        other = world.running[k]
        row = world.jobs[other]
        if _mode_of(world, job, part, other) == 0 or row.restarts >= MOST_RESTARTS:
            continue
        if now - row.start < world.rules.preempt_exempt or _shared_nodes(world, other, words) == 0:
            continue
        place = count.victims
        while place > 0 and _goes_before(world, other, victims[place - 1]):
            victims[place] = victims[place - 1]
            place -= 1
        victims[place] = other
        count.victims += 1


@inner
def _goes_before(world: Block, victim: int, other: int) -> bool:
    """Return whether a victim is taken before another: the lower one, then the smaller one."""
    one, two = world.jobs[victim], world.jobs[other]
    if world.rules.preempt_youngest_first == 1:
        return bool(one.start > two.start)
    if world.rules.preempts == BY_PARTITION:
        rank, other_rank = world.partitions[one.part].tier * 1.0, world.partitions[two.part].tier * 1.0
    else:
        rank, other_rank = world.qos[one.qos].factor, world.qos[two.qos].factor
    return bool(rank < other_rank or (rank == other_rank and one.pieces < two.pieces))


@inner
def _fits_without(world: Block, job: int, slot: int, candidates: int) -> bool:
    """Take victims away until a job fits; return whether it does, and forget the victims that are not needed."""
    count, words = world.count, world.scratch[candidates]
    begin_later(world)
    for place in range(count.victims):
        give_up(world, world.victims[place], words)
        if choose_nodes(world, job, slot, candidates, LATER):
            count.victims = place + 1
            return True
    return False


@inner
def _reorder(world: Block) -> None:
    """Put the last victim first; without strict order, then those that hold most of the chosen nodes."""
    count, victims, words = world.count, world.victims, world.scratch[MORE]
    empty(words)
    for place in range(count.chosen):
        add(words, world.chosen[place])
    last = victims[count.victims - 1]
    for k in range(count.victims - 1, 0, -1):
        victims[k] = victims[k - 1]
    victims[0] = last
    if world.rules.preempt_strict_order == 1:
        return
    for k in range(2, count.victims):
        victim, place = victims[k], k
        nodes = _shared_nodes(world, victim, words)
        while place > 1 and _shared_nodes(world, victims[place - 1], words) < nodes:
            victims[place] = victims[place - 1]
            place -= 1
        victims[place] = victim


@inner
def _shared_nodes(world: Block, job: int, words: Array) -> int:
    """Return how many nodes of a set a running job has."""
    number, row = int64(0), world.jobs[job]
    for place in range(row.piece0, row.piece0 + row.pieces):
        if has(words, world.pieces[place].node):
            number += 1
    return number
