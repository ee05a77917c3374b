"""The nodes that a job takes below the switches of topology/tree.

Rule: a job stays below one switch of the highest level. Of the nodes there the lightest that suffice are considered,
and those lighter than the heaviest of them are all taken. Leaf switches with nodes of the job are used up first. Then
come others, one after another: of two, the nearer to those in use, unless the farther fits better. That one fits better
which has the fewest free nodes of those with as many as are still wanted; where neither has as many, the switches above
them are compared. CPUs do not matter for that.
Source: topology.conf(5); the order of switches as Slurm 22.05 answered random questions.
Complexity: O(switches x words + leaf switches x leaf switches taken x height).
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .bits import add, contains, drop, empty, has, intersect, next_node, shared_number, subtract
from .node_cpus import choose_node
from .tables import BELOW

#: More than any weight, and more than any two switches are apart.
_NO_WEIGHT, _FAR = int64(1) << 60, int64(1) << 20


@inner
def take_below_switches(world: Block, job: int, words: Array, nodes: int, least: int, cpus: int, most: int) -> bool:
    """Choose below switches until a number of nodes and CPUs are met; return whether they were.

    Args:
        world: the state; the nodes that the job names are chosen.
        job: its row.
        words: nodes that it may use; those without usable CPUs do not count.
        nodes: how many it still wants.
        least: how many it still needs.
        cpus: how many CPUs it still needs.
        most: how many nodes it may have at most.
    """
    rest, required = world.scratch[BELOW], world.jobs[job].required
    empty(rest)
    node = next_node(words, 0)
    while node >= 0:
        if world.usable_cpus[node] > 0:
            add(rest, node)
        node = next_node(words, node + 1)
    top = _top_switch(world, rest, required, least)
    if top < 0 or (required >= 0 and not contains(world.switch_nodes[top], world.allowed_nodes[required])):
        return False
    intersect(rest, world.switch_nodes[top])
    if required >= 0:
        subtract(rest, world.allowed_nodes[required])
    lighter, heaviest, number = _weights(world, rest, least, cpus)
    if number < least or heaviest < 0:
        return False
    nodes = min(nodes, number)
    node = next_node(rest, 0)
    while node >= 0:
        weight = world.nodes[node].weight
        if weight <= lighter:
            if world.count.chosen >= most:
                return False
            cpus -= choose_node(world, job, node, cpus, nodes)
            nodes -= 1
            drop(rest, node)
        elif weight > heaviest:
            drop(rest, node)
        node = next_node(rest, node + 1)
    return _take_leaves(world, job, rest, nodes, cpus, most)


@inner
def _top_switch(world: Block, usable: Array, required: int, least: int) -> int:
    """Return the switch below which the job stays, -1 if none suffices.

    That is the first of the highest level with a node that it names; else the last of the highest level with its
    lightest nodes, of those with enough nodes.
    """
    top, lightest = int64(-1), _NO_WEIGHT
    floor = _lightest(world, usable, usable, int64(-1))
    for switch in range(len(world.switches)):
        level = world.switches[switch].level
        if required >= 0:
            is_used = shared_number(world.switch_nodes[switch], world.allowed_nodes[required]) > 0
            if is_used and (top < 0 or level > world.switches[top].level):
                top = int64(switch)
        elif shared_number(world.switch_nodes[switch], usable) >= least and (
            top < 0 or level >= world.switches[top].level
        ):
            weight = _lightest(world, usable, world.switch_nodes[switch], floor)
            if weight <= lightest and weight < _NO_WEIGHT:
                top, lightest = int64(switch), weight
    return top


@inner
def _lightest(world: Block, usable: Array, below: Array, floor: int) -> int:
    """Return the least weight of the usable nodes below a switch; it is at least `floor`."""
    weight = _NO_WEIGHT
    node = next_node(usable, 0)
    while node >= 0 and weight > floor:
        if has(below, node):
            weight = min(weight, int64(world.nodes[node].weight))
        node = next_node(usable, node + 1)
    return weight


@inner
def _weights(world: Block, usable: Array, least: int, cpus: int) -> tuple[int, int, int]:
    """Return the two greatest weights of the lightest nodes that suffice, and the number of these nodes.

    The first is -1 if they have one weight, the second if all nodes do not suffice.
    """
    lighter, weight = int64(-1), int64(-1)
    while True:
        next_weight, number, total = _NO_WEIGHT, int64(0), int64(0)
        node = next_node(usable, 0)
        while node >= 0:
            other = int64(world.nodes[node].weight)
            if other > weight:
                next_weight = min(next_weight, other)
            node = next_node(usable, node + 1)
        if next_weight == _NO_WEIGHT:
            return int64(-1), int64(-1), int64(0)
        lighter, weight = weight, next_weight
        node = next_node(usable, 0)
        while node >= 0:
            if world.nodes[node].weight <= weight:
                number += 1
                total += world.usable_cpus[node]
            node = next_node(usable, node + 1)
        if number >= least and total >= cpus:
            return lighter, weight, number


@inner
def _take_leaves(world: Block, job: int, rest: Array, nodes: int, cpus: int, most: int) -> bool:
    """Choose from one leaf switch after another until nodes and CPUs are met; return whether they were."""
    for switch in range(len(world.switches)):
        world.switches[switch].used, world.switches[switch].distance = 0, 0
    for place in range(world.count.chosen):
        for switch in range(len(world.switches)):
            node = world.chosen[place]
            if world.switches[switch].level == 0 and has(world.switch_nodes[switch], node):
                world.switches[switch].used = 1
    for switch in range(len(world.switches)):
        if world.switches[switch].used == 1:
            nodes, cpus = _take_leaf(world, job, rest, switch, nodes, cpus, most)
            if (nodes <= 0 and cpus <= 0) or world.count.chosen >= most:
                return nodes <= 0 and cpus <= 0
    for switch in range(len(world.switches)):
        world.switches[switch].free = shared_number(world.switch_nodes[switch], rest)
    for switch in range(len(world.switches)):
        if world.switches[switch].used == 1:
            _use(world, switch)
    while nodes > 0 or cpus > 0:
        best = int64(-1)
        for switch in range(len(world.switches)):
            row = world.switches[switch]
            is_open = row.level == 0 and row.used == 0 and row.free > 0 and row.distance < _FAR
            if is_open and (best < 0 or _is_better(world, switch, best, nodes)):
                best = int64(switch)
        if best < 0 or world.count.chosen >= most:
            return False
        nodes, cpus = _take_leaf(world, job, rest, best, nodes, cpus, most)
        _use(world, best)
    return True


@inner
def _take_leaf(
    world: Block, job: int, rest: Array, leaf: int, nodes: int, cpus: int, most: int
) -> tuple[int, int]:  # fmt: skip
    """Choose nodes of a leaf switch, lowest first; return how many nodes and CPUs the job still wants."""
    below = world.switch_nodes[leaf]
    node = next_node(below, 0)
    while node >= 0 and world.count.chosen < most and (nodes > 0 or cpus > 0):
        if has(rest, node):
            cpus -= choose_node(world, job, node, cpus, nodes)
            nodes -= 1
            drop(rest, node)
        node = next_node(below, node + 1)
    return nodes, cpus


@inner
def _use(world: Block, leaf: int) -> None:
    """Note that a leaf switch is in use, and how far all others are from those in use together."""
    world.switches[leaf].used = 1
    for switch in range(len(world.switches)):
        row = world.switches[switch]
        if row.level == 0 and row.used == 0 and row.free > 0:
            row.distance = min(row.distance + _hops(world, switch, leaf), _FAR)


@inner
def _hops(world: Block, switch: int, other: int) -> int:
    """Return how many links are between two switches, _FAR if they are not connected."""
    first, second, number = int64(switch), int64(other), int64(0)
    while first != second:
        if world.switches[first].level > world.switches[second].level:
            first, second = second, first
        above = int64(world.switches[first].above)
        if above == first:
            return _FAR
        first = above
        number += 1
    return number


@inner
def _is_better(world: Block, leaf: int, best: int, nodes: int) -> bool:
    """Return whether a leaf switch replaces the best one so far."""
    order = _fit_order(world, leaf, best, nodes)
    distance, least = world.switches[leaf].distance, world.switches[best].distance
    return bool(order > 0 and distance <= least) or bool(order == 0 and distance < least)


@inner
def _fit_order(world: Block, leaf: int, other: int, nodes: int) -> int:
    """Return 1 if so many nodes fit better below the first of two switches, -1 below the second, 0: equally well."""
    first, second = int64(leaf), int64(other)
    while True:
        free, others = int64(world.switches[first].free), int64(world.switches[second].free)
        if free >= nodes and others >= nodes:
            return _sign(others - free)
        if free >= nodes or others >= nodes:
            return int64(1) if free >= nodes else int64(-1)
        above, other_above = int64(world.switches[first].above), int64(world.switches[second].above)
        if above == other_above or (above == first and other_above == second):
            return _sign(free - others)
        first, second = above, other_above


@inner
def _sign(number: int) -> int:
    return int64(number > 0) - int64(number < 0)
