"""Which nodes topology/tree gives a job, in plain Python with sets of nodes.

Rule: the job stays below one switch. Of its lightest nodes that suffice, all but the heaviest are taken; then come the
leaf switches of nodes that the job has, and then others, by how near they are and how well the rest of the job fits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property

from pilotfish.simulate.slurm.site import Site


class Switches:
    """The switches of a site by name, and the nodes below each as rows."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.rank = {node.name: row for row, node in enumerate(site.nodes)}
        self.by_name = {switch.name: switch for switch in site.switches}
        self.nodes = {name: self._below(name) for name in self.by_name}
        self.level = {name: self._level(name) for name in self.by_name}

    def _below(self, name: str) -> set[int]:
        switch = self.by_name[name]
        nodes = {self.rank[node] for node in switch.nodes if node in self.rank}
        return nodes.union(*(self._below(other) for other in switch.switches))

    def _level(self, name: str) -> int:
        return max((1 + self._level(other) for other in self.by_name[name].switches), default=0)

    @cached_property
    def leaves(self) -> list[str]:
        """The switches without others below them."""
        return [name for name in self.by_name if self.level[name] == 0]

    def path(self, name: str) -> list[str]:
        """Return a switch and those above it, up to the root."""
        above = [other.name for other in self.by_name.values() if name in other.switches]
        return [name, *(self.path(above[0]) if above else ())]

    def distance(self, first: str, second: str) -> float:
        """Return the links between two switches; infinite if they are not connected."""
        one, other = self.path(first), self.path(second)
        shared = [name for name in one if name in other]
        return one.index(shared[0]) + other.index(shared[0]) if shared else float("inf")

    def top(self, cpus: Collection[int], named: set[int], least: int) -> str | None:
        """Return the switch below which a job stays whose usable nodes are known."""
        weight = {row: node.weight for row, node in enumerate(self.site.nodes)}
        if named:
            able = [name for name in self.by_name if self.nodes[name] & named]
            return max(able, key=lambda name: self.level[name]) if able else None
        able = [name for name in self.by_name if len(self.nodes[name] & {*cpus}) >= least]
        best, lightest = None, float("inf")
        for name in able:
            mine = min(weight[node] for node in self.nodes[name] & {*cpus})
            if best is None or (self.level[name] >= self.level[best] and mine <= lightest):
                best, lightest = name, mine
        return best


def take_below(
    site: Site, cpus: Mapping[int, int], amounts: dict[int, int], take: Callable[[int, int, int], int], need: tuple[int, int, int],
    most: int,
) -> bool:  # fmt: skip
    """Take nodes for a job until it has enough; return whether it has.

    Args:
        site: with switches.
        cpus: what the job could have on each node that it may use.
        amounts: what it has: the nodes that it names.
        take: takes a node while so many nodes and CPUs are still wanted, and returns its CPUs.
        need: nodes that it still wants, nodes that it still needs, and CPUs.
        most: nodes that it may have.
    """
    tree, named, (want, least, need_cpus) = Switches(site), set(amounts), need
    weight = {row: node.weight for row, node in enumerate(site.nodes)}
    top = tree.top(cpus, named, least)
    if top is None or not named <= tree.nodes[top]:
        return False
    rest = {node for node in cpus if node in tree.nodes[top]} - named
    for bound in sorted({weight[node] for node in rest}):
        light = {node for node in rest if weight[node] <= bound}
        if len(light) >= least and sum(cpus[node] for node in light) >= need_cpus:
            break
    else:
        return False
    want = min(want, len(light))

    def use(nodes: set[int]) -> bool:
        nonlocal want, need_cpus
        for node in sorted(nodes):
            if (want > 0 or need_cpus > 0) and len(amounts) < most:
                need_cpus -= take(node, want, need_cpus)
                want -= 1
        return len(amounts) >= most or (want <= 0 and need_cpus <= 0)

    lighter = {node for node in light if weight[node] < bound}
    for node in sorted(lighter):
        if len(amounts) == most:
            return False
        need_cpus -= take(node, want, need_cpus)
        want -= 1
    used = [leaf for leaf in tree.leaves if tree.nodes[leaf] & amounts.keys()]
    for leaf in used:
        if use(tree.nodes[leaf] & light - amounts.keys()):
            return want <= 0 and need_cpus <= 0
    free = {name: len(nodes & light - amounts.keys()) for name, nodes in tree.nodes.items()}

    def order(leaf: str, other: str) -> int:
        """Return 1 if the job fits better below the first, -1 below the second, else 0."""
        first, second = tree.path(leaf), tree.path(other)
        while True:
            one, two = free[first[0]], free[second[0]]
            if one >= want and two >= want:
                return (two > one) - (two < one)
            if one >= want or two >= want:
                return 1 if one >= want else -1
            above, other_above = (path[1:] or path for path in (first, second))
            if above[0] == other_above[0] or (above == first and other_above == second):
                return (one > two) - (one < two)
            first, second = above, other_above

    while want > 0 or need_cpus > 0:
        far = {leaf: sum(tree.distance(leaf, other) for other in used) for leaf in tree.leaves}
        best = None
        for leaf in tree.leaves:
            if leaf in used or free[leaf] == 0 or far[leaf] == float("inf"):
                continue
            fit = 1 if best is None else order(leaf, best)
            if best is None or (fit > 0 and far[leaf] <= far[best]) or (fit == 0 and far[leaf] < far[best]):
                best = leaf
        if best is None or len(amounts) >= most:
            return False
        used.append(best)
        use(tree.nodes[best] & light - amounts.keys())
    return True
