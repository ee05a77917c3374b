"""Which nodes and CPUs Slurm's select/cons_tres gives a job, in plain Python.

Rule: of the runs of consecutive usable nodes of one weight the best-fitting one is used up first; where that fails, the
nodes with the fewest CPUs are dropped, while more than the job needs are left. Nodes that the job names come first, and
then those next to them. With bf_busy_nodes, a plan for later takes the lightest nodes, of these the ones that are in use
now, by their number; and if these suffice, an idle one of the same weight besides. With switches, see
`slurm_switches`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pilotfish.simulate.slurm.site import SitePartition
from tests.reference.slurm_machine import Job, Machine, Share
from tests.reference.slurm_switches import take_below


def choose(
    machine: Machine,
    job: Job,
    part: SitePartition,
    nodes: Collection[int],
    present: Sequence[Job],
    *,
    later: bool = False,
) -> dict[int, Share] | None:
    """Return what a job gets on which of these nodes while the jobs `present` run, None if it does not fit.

    `later`: whether that is in the future.
    """
    least, want, most = wanted_nodes(job, part)
    cpus = {node: machine.usable_cpus(job, part, node, present) for node in sorted(nodes)}
    cpus = {node: number for node, number in cpus.items() if number > 0}
    named, dropped = machine.named_nodes(job), 0
    while len(cpus) >= least and named <= cpus.keys():
        for number in dict.fromkeys((min(want, len(cpus)), least)):
            amounts = _taken(machine, job, part, cpus, (number, least), most, later=later)
            if amounts is not None:
                shares = {node: machine.share(job, part, node, count) for node, count in _spread(job, amounts).items()}
                return shares | _idle_share(machine, job, cpus, [*amounts]) if later else shares
        dropped = min((number for number in cpus.values() if number > dropped), default=0)
        small = [node for node, number in cpus.items() if number <= dropped and node not in named]
        small = small[: len(cpus) - least]
        if not small:
            return None
        cpus = {node: number for node, number in cpus.items() if node not in small}
    return None


def _idle_share(machine: Machine, job: Job, cpus: Collection[int], chosen: Sequence[int]) -> dict[int, Share]:
    """Return the idle node that a plan with bf_busy_nodes has besides if nodes in use suffice; no CPU of it is taken."""
    used = {node for other in machine.running() for node in other.shares}
    named, nodes = machine.named_nodes(job), machine.site.nodes
    if not machine.site.rules.scheduler.bf_busy_nodes or chosen[-1] not in used or chosen[-1] in named:
        return {}
    alike = [node for node in cpus if node not in used | named and nodes[node].weight == nodes[chosen[-1]].weight]
    memory = 0 if job.is_per_cpu else job.memory or nodes[alike[0]].memory_mib if alike else 0
    share = Share(0, 0, memory if machine.site.rules.counts_memory else 0, job.asked.gpus_per_node)
    return dict.fromkeys(alike[:1], share)


def wanted_nodes(job: Job, part: SitePartition) -> tuple[int, int, int]:
    """Return the least, the wanted and the largest number of nodes of a job in a partition."""
    least = max(job.asked.min_nodes, part.min_nodes)
    most = min(
        job.asked.max_nodes or 10**9, part.max_nodes if part.max_nodes is not None else 10**9, job.most_nodes or 10**9
    )
    return least, max(least, min(job.want_nodes, most)), most


def _taken(
    machine: Machine, job: Job, part: SitePartition, cpus: dict[int, int], numbers: tuple[int, int], most: int, *,
    later: bool,
) -> dict[int, int] | None:  # fmt: skip
    """Return the CPUs taken on each node by using up one run of nodes after another, None if they do not suffice."""
    amounts, need_cpus, named = dict[int, int](), job.cpus, machine.named_nodes(job)
    need_nodes, least = numbers

    def take(node: int, nodes: int, need: int) -> int:
        part_of_it = need - max(nodes - 1, 0) * machine.site.nodes[node].threads
        number = min(cpus[node], max(part_of_it, job.least_cpus))
        amounts[node] = cpus[node] if machine.is_whole(job, part) else number
        return amounts[node]

    for node in sorted(named):
        if len(amounts) == most:
            return None
        need_cpus -= take(node, need_nodes, need_cpus)
        need_nodes -= 1
    if named and need_nodes <= 0 and need_cpus <= 0:
        return amounts
    runs = _runs(machine, cpus)
    others = {node: number for node, number in cpus.items() if node not in named}
    if machine.site.rules.scheduler.pack_serial_at_end and need_nodes == need_cpus == 1 and not named:
        take(max(cpus), need_nodes, need_cpus)
        return amounts
    by_use = later and machine.site.rules.scheduler.bf_busy_nodes
    if machine.site.switches and not by_use:
        need = (need_nodes, least - len(amounts), need_cpus)
        return amounts if take_below(machine.site, cpus, amounts, take, need, most) else None
    if by_use:
        used = {node for other in machine.running() for node in other.shares}
        runs = [sorted(cpus, key=lambda node: (machine.site.nodes[node].weight, node not in used, node))]
    while runs := [run for run in runs if others.keys() & set(run)]:
        run = _best(machine, runs, others, need_nodes, need_cpus, named)
        runs.remove(run)
        if not by_use and (middle := min(named & set(run), default=None)) is not None:
            run = [*(node for node in run if node > middle), *(node for node in reversed(run) if node < middle)]
        elif need_nodes <= 1 and not by_use:
            enough = [node for node in run if cpus[node] >= need_cpus]
            if enough:
                run = [min(enough, key=lambda node: (cpus[node], node))]
        for node in (node for node in run if node not in named):
            if len(amounts) == most:
                return None
            if len(amounts) == most - 1 and cpus[node] < need_cpus and not by_use:
                continue  # the last node that it may have must suffice
            need_cpus -= take(node, need_nodes, need_cpus)
            need_nodes -= 1
            if need_nodes <= 0 and need_cpus <= 0:
                return amounts
    return None


def _runs(machine: Machine, cpus: dict[int, int]) -> list[list[int]]:
    """Return the maximal runs of consecutive nodes of equal weight."""
    weight, runs = [node.weight for node in machine.site.nodes], list[list[int]]()
    for node in sorted(cpus):
        if runs and runs[-1][-1] == node - 1 and weight[node - 1] == weight[node]:
            runs[-1].append(node)
        else:
            runs.append([node])
    return runs


def _best(
    machine: Machine, runs: list[list[int]], cpus: dict[int, int], need_nodes: int, need_cpus: int, named: set[int]
) -> list[int]:
    """Return the run to use up next; `cpus` has none of the nodes that the job names."""

    def count(run: list[int]) -> int:
        return sum(cpus.get(node, 0) for node in run)

    def suffices(run: list[int]) -> bool:
        return count(run) >= need_cpus and len(cpus.keys() & set(run)) >= need_nodes

    best = runs[0]
    for run in runs[1:]:
        weight, best_weight = (machine.site.nodes[one[0]].weight for one in (run, best))
        if named & set(run) and not named & set(best):
            is_better = True
        elif weight != best_weight:
            is_better = weight < best_weight
        elif suffices(run):
            is_better = not suffices(best) or count(run) < count(best)
        else:
            is_better = not suffices(best) and count(run) > count(best)
        best = run if is_better else best
    return best


def _spread(job: Job, amounts: dict[int, int]) -> dict[int, int]:
    """Return the CPUs of each node after its tasks were dealt out: one to each node, then in turn to those with room.

    The last task of a node may have fewer CPUs than it asks for, and no node is without a task.
    """
    cpus, tasks = dict.fromkeys(amounts, 0), max(job.asked.tasks, len(amounts))
    while tasks > 0 and cpus != amounts:
        for node in sorted(amounts):
            if tasks > 0 and cpus[node] < amounts[node]:
                cpus[node] = min(cpus[node] + job.asked.cpus_per_task, amounts[node])
                tasks -= 1
    return cpus
