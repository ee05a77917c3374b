"""Tables of the switches of a site.

Rule: the level of a switch is one more than the highest below it; a leaf switch has none below it. A node below
no switch runs no job.
Source: topology.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..kernels.slurm.tables import SWITCH
from .job_tables import node_words
from .site import Site, SiteSwitch


def switch_tables(site: Site) -> dict[str, Array]:
    """Return the tables of `switch_choice` by name. Raises ConfigError if a switch is below itself."""
    rows, places = np.zeros(len(site.switches), SWITCH), {one.name: row for row, one in enumerate(site.switches)}
    nodes = {node.name: row for row, node in enumerate(site.nodes)}
    below = [{nodes[name] for name in one.nodes if name in nodes} for one in site.switches]
    rows["above"] = range(len(rows))
    order = order_of_levels(site.switches)
    if len(order) < len(rows):
        raise ConfigError("topology.conf", "Switches", "a switch is below itself", "a tree")
    for row in (places[name] for name in order):
        for other in site.switches[row].switches:
            lower = places[other]
            rows["above"][lower] = row
            rows["level"][row] = max(rows["level"][row], rows["level"][lower] + 1)
            below[row] |= below[lower]
    return {"switches": rows, "switch_nodes": node_words(map(sorted, below), -(-len(site.nodes) // 64))}


def without_nodes_below_no_switch(site: Site) -> Site:
    """Return the site with nodes that never work in place of those below no switch, if it has switches."""
    if not site.switches:
        return site
    below = {name for one in site.switches for name in one.nodes}
    nodes = tuple(node if node.name in below else replace(node, works=False) for node in site.nodes)
    return replace(site, nodes=nodes, events=tuple(event for event in site.events if event.node in below))


def order_of_levels(switches: tuple[SiteSwitch, ...]) -> list[str]:
    """Return the names of switches, each after those below it; without those that are below themselves or above such.

    O(switches and the names of switches that they list).

    Args:
        switches: each names only others of them, each once.
    """
    above = defaultdict[str, list[str]](list)
    for one in switches:
        for other in one.switches:
            above[other].append(one.name)
    number_below = {one.name: len(one.switches) for one in switches}
    order = [name for name, number in number_below.items() if not number]
    for name in order:  # which grows
        for higher in above[name]:
            number_below[higher] -= 1
            if not number_below[higher]:
                order.append(higher)
    return order
