"""The running jobs that a job may preempt, and which of them it chooses (`_run_now` with candidates).

Rule: candidates are taken away one by one, the least important first, until the job fits. Then the last one is tried
first, so that those before it may stay. Victims are the candidates that were taken away and hold a chosen node.
Complexity: O(candidates x log candidates), and one choice of nodes for each candidate on the job's nodes.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import add, empty, has
from .node_choice import choose_nodes
from .node_use import begin_later, give_up, suspend_later
from .running_order import running_jobs
from .tables import BY_TIER, CANDIDATES, IS_SUSPENDED, LATER, MORE, STAYS, SUSPENDED

#: A key before all others, and the weight of a node in one.
_FIRST, _NODE = -(int64(1) << 62), int64(1) << 32
#: Answers of `choose_victims` and of its search: the job does not fit; it fits without another victim.
NO_CHOICE, _AT_ONCE = int64(-1), int64(-2)
#: The most nodes of a job that its rank counts.
_MOST_NODES = int64(65535)


@inner
def outranks(world: Block, qos: int, part: int, priority: float, other_qos: int, other_part: int, other: float) -> bool:
    """Return whether jobs of a QOS, partition and priority preempt those of another one."""
    if world.rules.preempts == BY_TIER:
        rival = world.partitions[other_part]
        return bool(rival.tier < world.partitions[part].tier and rival.preempt_mode != STAYS)
    if qos == other_qos:
        return bool(world.qos[qos].within == 1 and int64(priority) > int64(other))
    return bool(world.preemptible[qos, other_qos] == 1)


@inner
def record_outranks(world: Block, job: int, slot: int, other: int, other_slot: int) -> bool:
    """Return whether the job of a record would preempt the job of another record."""
    parts, priority = world.job_parts, world.part_priority
    return outranks(
        world, world.jobs[job].qos, parts[slot], priority[slot], world.jobs[other].qos, parts[other_slot],
        priority[other_slot],
    )  # fmt: skip


@inner
def fate_of(world: Block, job: int) -> int:
    """Return what becomes of a running job that is preempted: STAYS, IS_CANCELLED, IS_REQUEUED or IS_SUSPENDED."""
    row = world.jobs[job]
    mode = world.qos[row.qos].preempt_mode
    if world.rules.preempts == BY_TIER:
        mode = world.partitions[row.part].preempt_mode
    return int64(mode)


@inner
def is_preemptible(world: Block, job: int, slot: int, other: int, now: int) -> bool:
    """Return whether a job preempts a running one: it has a node of the job's partition, and no exempt time left."""
    row, rival, part = world.jobs[job], world.jobs[other], world.job_parts[slot]
    if fate_of(world, other) == STAYS:
        return False
    priority = world.starts[rival.log].priority
    if not outranks(world, row.qos, part, world.part_priority[slot], rival.qos, rival.part, priority):
        return False
    exempt = world.qos[rival.qos].exempt
    if now < rival.start + (exempt if exempt >= 0 else world.rules.preempt_exempt):
        return False
    return _nodes_in(world, other, world.partition_nodes[part]) > 0


@inner
def _nodes_in(world: Block, job: int, words: Array) -> int:
    """Return how many nodes of a set a running job has."""
    row, number = world.jobs[job], int64(0)
    for k in range(row.piece0, row.piece0 + row.pieces):
        if has(words, world.pieces[k].node):
            number += 1
    return number


@inner
def _give_way(world: Block, job: int, words: Array) -> bool:
    """Free in the later view what a running job that is preempted frees; return whether that is on nodes of a set."""
    if fate_of(world, job) != IS_SUSPENDED:
        return give_up(world, job, words)
    suspend_later(world, job, words)
    return _nodes_in(world, job, words) > 0


@inner
def give_up_victims(world: Block, job: int, slot: int, candidates: int, now: int) -> int:
    """Free in the later view what a job can preempt; return the number of other running jobs, listed in `staying`.

    Args:
        world: the state.
        job: its row.
        slot: the row of its partition in `job_parts`.
        candidates: the row of `scratch` with the nodes that it may use.
        now: the time.
    """
    staying, running = int64(0), running_jobs(world)
    for i in range(world.count.running):
        other = running[i]
        if is_preemptible(world, job, slot, other, now):
            _give_way(world, other, world.scratch[candidates])
        else:
            world.staying[staying] = other
            staying += 1
    return staying


@inner
def choose_victims(world: Block, job: int, slot: int, now: int) -> int:
    """Choose nodes for a job that fits nowhere now, and the jobs that it preempts there.

    The choice of nodes is as `choose_nodes` leaves it, among those of the row CANDIDATES; the victims are in the first
    cells of `victims`.

    Returns:
        Number of victims, 0 if suspended jobs alone are in the way; NO_CHOICE if it would not fit.
    """
    number, rounds = _list_victims(world, job, slot, now), int64(0)
    if number == 0 and world.count.suspended == 0:
        return int64(NO_CHOICE)
    victims, chosen = world.victims, world.scratch[MORE]
    last = int64(-1)
    while True:
        last = _free_until_it_fits(world, job, slot, number, now)
        if last == _AT_ONCE:
            return int64(0)
        if last < 0:
            return int64(NO_CHOICE)
        empty(chosen)
        for i in range(world.count.chosen):
            add(chosen, world.chosen[i])
        rounds += 1
        if rounds > world.rules.preempt_reorder_count or rounds >= number:
            break
        _bring_to_front(world, number, last, chosen)
    holders = int64(0)
    for place in range(last + 1):
        if _nodes_in(world, victims[place], chosen) > 0:
            victims[holders] = victims[place]
            holders += 1
    return holders


@inner
def _list_victims(world: Block, job: int, slot: int, now: int) -> int:
    """List the running jobs that a job can preempt, the least important and smallest first; return their number."""
    number, running = int64(0), running_jobs(world)
    for i in range(world.count.running):
        other = running[i]
        if world.jobs[other].state != SUSPENDED and is_preemptible(world, job, slot, other, now):
            world.victims[number] = other
            world.victim_keys[other] = _rank(world, other)
            number += 1
    _sort_victims(world, number)
    return number


@inner
def _rank(world: Block, job: int) -> int:
    """Return by what candidates are ordered, ascending."""
    row = world.jobs[job]
    if world.rules.preempt_youngest_first == 1:
        return int64(-row.start)
    rank = world.qos[row.qos].priority
    if world.rules.preempts == BY_TIER:
        rank = world.partitions[row.part].tier
    return int64(rank * (_MOST_NODES + 1) + min(row.pieces, _MOST_NODES))


@inner
def _sort_victims(world: Block, number: int) -> None:
    """Sort the candidates by their keys, then as they were submitted: Shell's sort."""
    victims, keys, gap = world.victims, world.victim_keys, number // 2
    while gap > 0:
        for i in range(gap, number):
            job, place = victims[i], i
            while place >= gap:
                other = victims[place - gap]
                if keys[other] < keys[job] or (keys[other] == keys[job] and other < job):
                    break
                victims[place] = other
                place -= gap
            victims[place] = job
        gap //= 2


@inner
def _free_until_it_fits(world: Block, job: int, slot: int, number: int, now: int) -> int:
    """Take candidates away until a job fits; return the place of the last one, -1 if it never fits.

    Suspended jobs that it could preempt are not in its way; _AT_ONCE if it fits without a candidate.
    """
    begin_later(world)
    words, running = world.scratch[CANDIDATES], running_jobs(world)
    for i in range(world.count.running if world.count.suspended > 0 else int64(0)):
        other = running[i]
        if world.jobs[other].state == SUSPENDED and is_preemptible(world, job, slot, other, now):
            suspend_later(world, other, words)
    if world.count.suspended > 0 and choose_nodes(world, job, slot, int64(CANDIDATES), int64(LATER)):
        return _AT_ONCE
    for place in range(number):
        other = world.victims[place]
        if _give_way(world, other, words) and choose_nodes(world, job, slot, int64(CANDIDATES), int64(LATER)):
            return int64(place)
    return int64(-1)


@inner
def _bring_to_front(world: Block, number: int, last: int, chosen: Array) -> None:
    """Put the candidate that made a job fit first, and behind it those that hold the most chosen nodes."""
    victims, keys = world.victims, world.victim_keys
    for place in range(number):
        nodes = int64(0)
        if place < last and world.rules.preempt_strict_order == 0:
            nodes = _nodes_in(world, victims[place], chosen)
        keys[victims[place]] = place - nodes * _NODE
    keys[victims[last]] = _FIRST
    _sort_victims(world, number)
