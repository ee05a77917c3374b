"""The nodes and CPUs that a job takes: select/cons_tres.

Rule: nodes are considered in runs of consecutive usable nodes of equal weight. The lightest run comes first, then the
tightest that suffices, else the largest; a job of one node takes the node with the fewest CPUs that suffices. The last
node that a job may have is one with all CPUs that it still wants. Nodes that a job names are its first; then a run with
one of them comes before all others, and its nodes up and down from there. With LLN, nodes come by their share of free
CPUs instead, and with bf_busy_nodes those that are in use now come first. With switches, see `switch_choice`.
Complexity: O(candidates + runs x runs taken); for whole nodes that are alike, see `alike_nodes`.
"""

from __future__ import annotations

from ...arrays import Array
from ..block import Block, int64
from ..jit import inner
from .alike_nodes import NOT_ALIKE, alike_cpus, take_alike
from .bits import has, meet, next_node, number_of
from .node_cpus import choose_node, cpus_needed_alone, cpus_on, usable_cpus
from .node_use import free_on
from .switch_choice import take_below_switches
from .tables import FREE, FREE_LATER, IDLE, IDLE_LATER, LATER, NOW, OWN

#: As many nodes as there are.
_NO_BOUND = int64(1) << 60


@inner
def choose_nodes(world: Block, job: int, slot: int, candidates: int, view: int) -> bool:
    """Choose nodes and CPUs for a job; return whether it fits.

    The choice is in `taken_cpus` and the first `count.chosen` cells of `chosen`.

    Args:
        world: the state.
        job: its row.
        slot: the row of its partition in `job_parts`.
        candidates: the row of `scratch` with the nodes that it may use.
        view: what is free: NOW or LATER.
    """
    count, row, part = world.count, world.jobs[job], world.job_parts[slot]
    least, most = max(world.part_least_nodes[slot], row.min_nodes, int64(1)), world.part_most_nodes[slot]
    if row.max_nodes >= 0 and (most < 0 or row.max_nodes < most):
        most = row.max_nodes
    nodes_wanted = max(row.want_nodes, least)
    if most < 0:
        most = _NO_BOUND
    words = world.scratch[OWN]
    is_whole = row.exclusive == 1 or world.partitions[part].exclusive == 1
    if is_whole:
        free = world.node_sets[IDLE if view == NOW else IDLE_LATER]
    else:
        free = world.node_sets[FREE if view == NOW else FREE_LATER]
    count.chosen = 0
    if meet(words, world.scratch[candidates], free) < least:
        return False
    is_packed = world.rules.pack_serial == 1 and row.min_cpus <= 1
    is_by_run = not is_packed and len(world.switches) == 0 and not _is_ranked(world, job, view)
    if is_whole and is_by_run and not _names_some(world, job, words):
        usable = alike_cpus(world, job, part, words)
        if usable != NOT_ALIKE:
            return _choose_alike(world, job, words, usable, least, nodes_wanted, most)
    nodes, cpus, largest = _note_usable(world, job, part, words, view)
    dropped = int64(0)
    while nodes >= least and cpus >= row.min_cpus:
        if _take(world, job, words, min(nodes_wanted, nodes), least, most, view) or (
            nodes_wanted > least and _take(world, job, words, least, least, most, view)
        ):
            if is_whole:
                _take_whole(world)
            else:
                _share_tasks(world, job)
            return True
        dropped += 1
        may_help = most < _NO_BOUND or len(world.switches) > 0
        if dropped >= largest or not may_help or nodes <= least:
            return False
        node = next_node(words, 0)
        while node >= 0 and nodes > least:  # as many are left as the job needs
            if 0 < world.usable_cpus[node] <= dropped and not _is_named(world, job, node):
                nodes -= 1
                cpus -= world.usable_cpus[node]
                world.usable_cpus[node] = 0
            node = next_node(words, node + 1)
    return False


@inner
def add_idle_node(world: Block, job: int) -> None:
    """Add an idle node to the last choice if nodes in use sufficed, as Slurm's plans have it with bf_busy_nodes.

    Slurm looks at the idle nodes of the same weight after those in use, and takes the first one before it notices that
    it has enough.
    """
    count, words = world.count, world.scratch[OWN]
    last = int64(world.chosen[count.chosen - 1])
    if has(world.node_sets[IDLE], last) or _is_named(world, job, last) or _is_least_loaded(world, job):
        return
    node = next_node(words, 0)
    while node >= 0:
        is_like_last = world.nodes[node].weight == world.nodes[last].weight and not _is_named(world, job, node)
        if is_like_last and world.usable_cpus[node] > 0 and has(world.node_sets[IDLE], node):
            world.taken_cpus[node] = 0
            world.chosen[count.chosen] = node
            count.chosen += 1
            return
        node = next_node(words, node + 1)


@inner
def _note_usable(world: Block, job: int, part: int, words: Array, view: int) -> tuple[int, int, int]:
    """Note the CPUs that a job could have on each node of a set; return how many have some, how many, and the most."""
    nodes, cpus, largest, needed = int64(0), int64(0), int64(0), cpus_needed_alone(world, job, part)
    node = next_node(words, 0)
    while node >= 0:
        if needed > 0:
            usable = int64(free_on(world, node, view).cores * world.nodes[node].threads)
            if usable < needed:
                usable = int64(0)
        else:
            usable = usable_cpus(world, job, part, node, view)
        world.usable_cpus[node] = usable
        if usable > 0:
            nodes += 1
            cpus += usable
            largest = max(largest, usable)
        node = next_node(words, node + 1)
    return nodes, cpus, largest


@inner
def _choose_alike(
    world: Block, job: int, words: Array, usable: int, least: int, nodes_wanted: int, most: int
) -> bool:  # fmt: skip
    """Choose from nodes that have so many CPUs each for a job; return whether it fits."""
    nodes = number_of(words)
    if usable == 0 or nodes < least or nodes * usable < world.jobs[job].min_cpus:
        return False
    if take_alike(world, job, words, usable, min(nodes_wanted, nodes), most) or (
        nodes_wanted > least and take_alike(world, job, words, usable, least, most)
    ):
        _take_whole(world)
        return True
    return False


@inner
def _take_whole(world: Block) -> None:
    """Give the job all CPUs of the chosen nodes."""
    count = world.count
    count.chosen_cpus = 0
    for i in range(count.chosen):
        cpus = world.nodes[world.chosen[i]].cpus
        world.taken_cpus[world.chosen[i]] = cpus
        count.chosen_cpus += cpus


@inner
def _names_some(world: Block, job: int, words: Array) -> bool:
    """Return whether a job names nodes, and others of a set may be chosen, too."""
    required = world.jobs[job].required
    return bool(required >= 0 and number_of(world.allowed_nodes[required]) < number_of(words))


@inner
def _is_named(world: Block, job: int, node: int) -> bool:
    """Return whether a job names a node."""
    required = world.jobs[job].required
    return bool(required >= 0 and has(world.allowed_nodes[required], node))


@inner
def _find_runs(world: Block, job: int, words: Array) -> int:
    """List the runs of consecutive usable nodes of equal weight; return their number."""
    number, last, weight, names_some = int64(0), int64(-2), int64(0), world.jobs[job].required >= 0
    run_cpus, run_nodes = int64(0), int64(0)
    node = next_node(words, 0)
    while node >= 0:
        cpus = world.usable_cpus[node]
        if cpus > 0:
            if node != last + 1 or world.nodes[node].weight != weight:
                if number > 0:
                    _end_run(world, number - 1, last, run_cpus, run_nodes)
                weight, run_cpus, run_nodes = int64(world.nodes[node].weight), int64(0), int64(0)
                run = world.runs[number]
                run.first, run.weight, run.used, run.named = node, weight, 0, -1
                number += 1
            last = node
            if not (names_some and _is_named(world, job, node)):
                run_cpus += cpus
                run_nodes += 1
            elif world.runs[number - 1].named < 0:
                world.runs[number - 1].named = node
        node = next_node(words, node + 1)
    if number > 0:
        _end_run(world, number - 1, last, run_cpus, run_nodes)
    return number


@inner
def _end_run(world: Block, run: int, last: int, cpus: int, nodes: int) -> None:
    row = world.runs[run]
    row.last, row.cpus, row.nodes = last, cpus, nodes


@inner
def _is_better(world: Block, run: int, best: int, nodes: int, cpus: int) -> bool:
    """Return whether a later run replaces the best one so far."""
    row, old = world.runs[run], world.runs[best]
    if row.named >= 0 and old.named < 0:
        return True
    if row.weight != old.weight:
        return row.weight < old.weight
    suffices = row.cpus >= cpus and row.nodes >= nodes
    if suffices:
        return not (old.cpus >= cpus and old.nodes >= nodes) or row.cpus < old.cpus
    return not (old.cpus >= cpus and old.nodes >= nodes) and row.cpus > old.cpus


@inner
def _take(world: Block, job: int, words: Array, nodes: int, least: int, most: int, view: int) -> bool:
    """Choose nodes until a number of them and the job's CPUs are met; return whether they were."""
    row, count = world.jobs[job], world.count
    count.chosen = 0
    cpus = row.min_cpus
    if row.required >= 0:
        cpus = _take_named(world, job, words, nodes, cpus, most)
        nodes -= count.chosen
        if cpus == _NO_BOUND or (nodes <= 0 and cpus <= 0):
            return cpus != _NO_BOUND
    runs = _find_runs(world, job, words)
    if _is_ranked(world, job, view):
        return _take_ranked(world, job, words, nodes, cpus, most, view)
    if world.rules.pack_serial == 1 and row.required < 0 and nodes <= 1 and cpus <= 1 and runs > 0:
        node = world.runs[runs - 1].last
        world.chosen[0], count.chosen = node, 1
        world.taken_cpus[node] = cpus_on(world, job, node, world.usable_cpus[node], cpus, 1)
        return True
    if len(world.switches) > 0:
        return take_below_switches(world, job, words, nodes, least - count.chosen, cpus, most)
    while True:
        best = int64(-1)
        for run in range(runs):
            if (
                world.runs[run].used == 0
                and world.runs[run].nodes > 0
                and (best < 0 or _is_better(world, run, best, nodes, cpus))
            ):
                best = run
        if best < 0:
            return False
        world.runs[best].used = 1
        if row.contiguous == 1 and (world.runs[best].cpus < cpus or world.runs[best].nodes < nodes):
            continue
        if nodes <= 1 and world.runs[best].named < 0:
            tightest = _tightest(world, words, best, cpus)
            if tightest >= 0:
                world.taken_cpus[tightest] = cpus_on(world, job, tightest, world.usable_cpus[tightest], cpus, 1)
                world.chosen[count.chosen] = tightest
                count.chosen += 1
                return True
        before = count.chosen
        cpus = _take_run(world, job, words, best, nodes, cpus, most)
        nodes -= count.chosen - before
        if nodes <= 0 and cpus <= 0:
            return True
        if count.chosen >= most:
            return False


@inner
def _take_named(world: Block, job: int, words: Array, nodes: int, cpus: int, most: int) -> int:
    """Choose the nodes that a job names; return the CPUs that it still wants, _NO_BOUND if it cannot have them."""
    named = world.allowed_nodes[world.jobs[job].required]
    node = next_node(named, 0)
    while node >= 0:
        if not has(words, node) or world.usable_cpus[node] == 0 or world.count.chosen >= most:
            return _NO_BOUND
        cpus -= choose_node(world, job, node, cpus, nodes)
        nodes -= 1
        node = next_node(named, node + 1)
    return cpus


@inner
def _take_run(world: Block, job: int, words: Array, run: int, nodes: int, cpus: int, most: int) -> int:
    """Choose from a run until a number of nodes and CPUs are met; return the CPUs that the job still wants."""
    node = _next_of_run(world, words, run, int64(-1))
    while node >= 0 and world.count.chosen < most and (nodes > 0 or cpus > 0):
        is_last = world.count.chosen == most - 1
        is_usable = world.usable_cpus[node] > 0 and not _is_named(world, job, node)
        if is_usable and not (is_last and world.usable_cpus[node] < cpus):
            cpus -= choose_node(world, job, node, cpus, nodes)
            nodes -= 1
        node = _next_of_run(world, words, run, node)
    return cpus


@inner
def _next_of_run(world: Block, words: Array, run: int, node: int) -> int:
    """Return the node of a run after one, -1 if it is the last; the first after -1.

    They go up from the first node that the job names, and then down from there; else from the lowest.
    """
    row = world.runs[run]
    named = row.named
    if node < 0:
        return next_node(words, named if named >= 0 else row.first)
    if named < 0 or node >= named:
        after = next_node(words, node + 1)
        if 0 <= after <= row.last:
            return after
        node = named
    while node > row.first:
        node -= 1
        if has(words, node):
            return node
    return int64(-1)


@inner
def _tightest(world: Block, words: Array, run: int, cpus: int) -> int:
    """Return the node of a run with the fewest CPUs that suffice, -1 if none has as many."""
    tightest = int64(-1)
    node = next_node(words, world.runs[run].first)
    while 0 <= node <= world.runs[run].last:
        usable = world.usable_cpus[node]
        if usable >= cpus and usable > 0 and (tightest < 0 or usable < world.usable_cpus[tightest]):
            tightest = node
            if usable == cpus:
                break
        node = next_node(words, node + 1)
    return tightest


@inner
def _take_ranked(world: Block, job: int, words: Array, nodes: int, cpus: int, most: int, view: int) -> bool:
    """Choose the lightest nodes one after another, of these the highest in rank; return whether they suffice."""
    count, first = world.count, int64(world.count.chosen)
    while nodes > 0 or cpus > 0:
        best, best_rank = int64(-1), -1.0
        node = next_node(words, 0)
        while node >= 0:
            if world.usable_cpus[node] > 0 and not _is_named(world, job, node):
                rank, weight = _rank(world, job, node, view), world.nodes[node].weight
                if (
                    best < 0
                    or weight < world.nodes[best].weight
                    or (weight == world.nodes[best].weight and rank > best_rank)
                ):
                    best, best_rank = node, rank
            node = next_node(words, node + 1)
        if best < 0 or count.chosen >= most:
            for place in range(first, count.chosen):
                world.usable_cpus[world.chosen[place]] *= -1
            return False
        cpus -= choose_node(world, job, best, cpus, nodes)
        world.usable_cpus[best] *= -1  # it is not chosen again, unless this choice fails
        nodes -= 1
    for place in range(first, count.chosen):
        world.usable_cpus[world.chosen[place]] = 0
    return True


@inner
def _rank(world: Block, job: int, node: int, view: int) -> float:
    """Return the share of free cores of a node (CR_LLN), else 1 for a node that is busy now and 0 for an idle one."""
    if not _is_least_loaded(world, job):
        return 0.0 if has(world.node_sets[IDLE], node) else 1.0
    if has(world.node_sets[IDLE if view == NOW else IDLE_LATER], node):
        return 1.0
    return free_on(world, node, view).cores / world.nodes[node].cores


@inner
def _is_ranked(world: Block, job: int, view: int) -> bool:
    """Return whether nodes are chosen by their load: with LLN; with bf_busy_nodes, for starts in the future."""
    return bool((view == LATER and world.rules.bf_busy_nodes == 1) or _is_least_loaded(world, job))


@inner
def _is_least_loaded(world: Block, job: int) -> bool:
    """Return whether nodes are chosen by their free cores, everywhere or in the job's first partition."""
    part = world.job_parts[world.jobs[job].part0]
    return bool(world.rules.least_loaded == 1 or world.partitions[part].least_loaded == 1)


@inner
def _share_tasks(world: Block, job: int) -> None:
    """Give each chosen node the CPUs of its tasks: one task a node, then in turn; what no task uses is given back."""
    row, count = world.jobs[job], world.count
    tasks, task_cpus = max(row.tasks, count.chosen), max(row.cpus_per_task, int64(1))
    count.chosen_cpus = 0
    for i in range(count.chosen):
        node = world.chosen[i]
        world.usable_cpus[node] = world.taken_cpus[node]
        world.taken_cpus[node] = 0
    rest = tasks
    while rest > 0:
        before = rest
        for i in range(count.chosen):
            node = world.chosen[i]
            cpus_here = min(task_cpus, world.usable_cpus[node] - world.taken_cpus[node])
            if rest > 0 and cpus_here > 0:
                world.taken_cpus[node] += cpus_here
                count.chosen_cpus += cpus_here
                rest -= 1
        if rest == before:
            break
    for i in range(count.chosen):  # cores are not shared: a job has all CPUs of each
        node = world.chosen[i]
        idle = -world.taken_cpus[node] % world.nodes[node].threads
        world.taken_cpus[node] += idle
        count.chosen_cpus += idle
