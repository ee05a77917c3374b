"""The choice among whole nodes that are alike: what `node_choice` chooses, found by words instead of nodes.

Rule: nodes of one *kind* have the same size and weight. If a job could have equally many CPUs on all nodes that it may
use, then only the weights and the lengths of runs decide.
Complexity: O(kinds x kinds x words + runs x runs taken).
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import are_shared, copy, intersect, next_missing, next_node, subtract, unite
from .node_cpus import cpus_on, usable_cpus
from .tables import ALIKE, NOW

#: The nodes differ, or their kinds are not known.
NOT_ALIKE = int64(-1)


@inner
def alike_cpus(world: Block, job: int, part: int, words: Array) -> int:
    """Return how many CPUs a job that takes whole nodes could have on each node of a set, NOT_ALIKE if they differ.

    Nodes that it cannot use leave the set; 0: it can use none.
    """
    cpus, first = int64(0), int64(-1)
    if len(world.kinds) == 0:
        return NOT_ALIKE
    for kind in range(len(world.kinds)):
        if not are_shared(words, world.kind_nodes[kind]):
            continue
        node = world.kinds[kind]
        usable = usable_cpus(world, job, part, node, NOW)
        if usable == 0:
            subtract(words, world.kind_nodes[kind])
            continue
        if first >= 0:
            row, other = world.nodes[node], world.nodes[first]
            if usable != cpus or row.threads != other.threads:
                return NOT_ALIKE
        cpus, first = usable, node
    return cpus


@inner
def list_alike_runs(world: Block, words: Array) -> int:
    """List the runs of consecutive nodes of a set that have one weight, lightest first; return their number."""
    number, of_weight = int64(0), world.scratch[ALIKE]
    for kind in range(len(world.kinds)):
        if not _find_weight(world, kind, of_weight):
            continue
        intersect(of_weight, words)
        node = next_node(of_weight, 0)
        while node >= 0:
            end, run = next_missing(of_weight, node), world.runs[number]
            run.first, run.weight = node, world.nodes[node].weight
            world.run_sizes[number] = end - node
            number += 1
            node = next_node(of_weight, end)
    return number


@inner
def _find_weight(world: Block, kind: int, words: Array) -> bool:
    """Put all nodes with the weight of a kind into a set; return False if a kind before it has that weight."""
    weight = world.nodes[world.kinds[kind]].weight
    copy(words, world.kind_nodes[kind])
    for other in range(len(world.kinds)):
        if other != kind and world.nodes[world.kinds[other]].weight == weight:
            if other < kind:
                return False
            unite(words, world.kind_nodes[other])
    return True


@inner
def take_alike(world: Block, job: int, words: Array, usable: int, nodes: int, most: int) -> bool:
    """Choose from runs until a number of nodes and the job's CPUs are met; return whether they were.

    Args:
        world: the state.
        job: its row.
        words: the nodes.
        usable: CPUs that the job could have on each.
        nodes: how many it wants.
        most: how many it may have at most.
    """
    row, count = world.jobs[job], world.count
    count.chosen = 0
    runs, cpus = list_alike_runs(world, words), row.min_cpus
    first, end_of_weight = int64(0), _end_of_weight(world, int64(0), runs)
    while first < runs:
        needed = max(nodes, -(-cpus // usable))
        best = _best_run(world, first, end_of_weight, needed)
        if best < 0:
            first, end_of_weight = end_of_weight, _end_of_weight(world, end_of_weight, runs)
            continue
        size, node = world.run_sizes[best], world.runs[best].first
        world.run_sizes[best] = 0
        if row.contiguous == 1 and size < needed:
            continue
        if nodes <= 1 and usable >= cpus:
            world.chosen[count.chosen] = node
            count.chosen += 1
            return True
        end = node + min(size, most - count.chosen)
        while node < end:
            if count.chosen == most - 1 and usable < cpus:  # the last node has all CPUs that are still wanted
                return False
            cpus -= cpus_on(world, job, node, usable, cpus, nodes)
            nodes -= 1
            world.chosen[count.chosen] = node
            count.chosen += 1
            node += 1
            if nodes <= 0 and cpus <= 0:
                return True
        if count.chosen >= most:
            return False
    return False


@inner
def _end_of_weight(world: Block, first: int, runs: int) -> int:
    """Return the number of the first run after one that has another weight, or the number of runs."""
    end = first
    while end < runs and world.runs[end].weight == world.runs[first].weight:
        end += 1
    return end


@inner
def _best_run(world: Block, first: int, end: int, needed: int) -> int:
    """Return the best of some runs of one weight, -1: none is left.

    That is the shortest of at least `needed` nodes, else the longest; the first of equals. Each loop but the last is
    one that the compiler takes many runs at once in.

    Args:
        world: the state.
        first: the first of the runs.
        end: the number after the last one.
        needed: a number of nodes, at least 1.
    """
    sizes, longest = world.run_sizes, int64(0)
    for run in range(first, end):
        longest = max(longest, sizes[run])
    size = longest
    if longest > needed:
        for run in range(first, end):
            size = min(size, sizes[run] if sizes[run] >= needed else longest)
    for run in range(first, end if size > 0 else first):
        if sizes[run] == size:
            return int64(run)
    return int64(-1)
