"""Read the switches of topology/tree from topology.conf and the files that it includes, or from what scontrol shows.

Rule: what keeps slurmctld 22.05 from starting is an error; what it only warns of becomes a sentence for the report.
Nodes that the site does not have are left out.
Source: topology.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from ...simulate.errors import ConfigError, did_you_mean
from ...simulate.slurm.site import SiteSwitch
from ...simulate.slurm.switch_tables import order_of_levels
from ..documents.document_errors import found
from ..hostlist import expand, fold
from .slurm_conf import ConfLine, read_slurm_conf

_KEYS = ("switchname", "switches", "nodes", "linkspeed")


def topology_lines(path: Path) -> list[ConfLine]:
    """Return the lines of switches in topology.conf and the files that it includes, [] without any.

    Raises:
        ConfigError: a line cannot be read, or has a key that topology.conf does not have.
    """
    conf = read_slurm_conf(path)
    lines = conf.lines.pop("switchname", [])
    for line in chain(conf.settings.values(), *conf.lines.values()):
        key = next(iter(line.values))
        raise line.error(f"a line begins with {key!r}{did_you_mean(key, ['switchname'])}", "SwitchName=NAME")
    for line in lines:
        if key := next((key for key in line.values if key not in _KEYS), ""):
            raise line.error(f"unknown key {key!r}{did_you_mean(key, _KEYS)}", "SwitchName, Switches, Nodes, LinkSpeed")
    return lines


def site_switches(shown: Sequence[ConfLine], nodes: Collection[str], unknown: list[str]) -> tuple[SiteSwitch, ...]:
    """Return the switches in the order of their lines.

    Args:
        shown: lines of topology.conf, or of scontrol.
        nodes: names of the site's nodes.
        unknown: receives sentences on nodes and switches that are not below exactly one switch, and on foreign nodes.

    Raises:
        ConfigError: a line cannot be read, or slurmctld would not start: a switch has nodes and switches or neither, is
            there twice, is below itself, or names one that is not there.
    """
    lines = dict[str, ConfLine]()
    for line in shown:
        for name in _names(line, "SwitchName"):
            if name in lines:
                raise line.error(f"{found(name)}, which line {lines[name].line} describes, too", "each switch once")
            lines[name] = line
        if len({"nodes", "switches"} & line.values.keys()) != 1:
            raise line.error(f"{found(name)} without nodes and switches, or with both", "Nodes=... or Switches=...")
    switches = tuple(SiteSwitch(name, _names(line, "Nodes"), _names(line, "Switches")) for name, line in lines.items())
    for switch in switches:
        for other in switch.switches:
            if other not in lines:
                problem = f"{found(other)}, which no line describes{did_you_mean(other, lines)}"
                raise lines[switch.name].error(problem, "", "Switches")
    if circle := _circle(switches):
        raise lines[circle[0]].error(f"a switch is below itself: {', '.join(circle)}", "a tree", "Switches")
    unknown += _doubts(switches, nodes)
    return tuple(replace(one, nodes=tuple(name for name in one.nodes if name in nodes)) for one in switches)


def _circle(switches: tuple[SiteSwitch, ...]) -> list[str]:
    """Return switches that are each above the next, the last above the first; [] in a tree."""
    order = {*order_of_levels(switches)}
    rest = {one.name: one.switches for one in switches if one.name not in order}
    path, name = list[str](), next(iter(rest), "")
    while name and name not in path:
        path.append(name)
        name = next(other for other in rest[name] if other in rest)
    return path[path.index(name) :] if path else []


def _doubts(switches: tuple[SiteSwitch, ...], nodes: Collection[str]) -> Iterator[str]:
    """Yield a sentence on each thing that Slurm only warns of, or says nothing of."""
    above = Counter(name for switch in switches for name in switch.nodes)
    higher = Counter(name for switch in switches for name in switch.switches)
    if foreign := [name for name in above if name not in nodes]:
        yield f"topology.conf: {fold(foreign)}: left out, since slurm.conf has no such nodes"
    if apart := [name for name in nodes if name not in above]:
        yield f"topology.conf: {fold(apart)} below no switch: no job runs there, as in Slurm"
    if shared := [name for name, number in above.items() if number > 1]:
        yield f"topology.conf: {fold(shared)} below several leaf switches: jobs may start on other nodes"
    if shared := [name for name, number in higher.items() if number > 1]:
        yield f"topology.conf: {fold(shared)} below several switches: jobs may start on other nodes"
    if len(_leaf_depths(switches)) > 1:
        yield "topology.conf: leaf switches of different depths: jobs may start on other nodes"


def _leaf_depths(switches: tuple[SiteSwitch, ...]) -> set[int]:
    """Return how many switches are above the leaf switches of a tree."""
    below, depth = {one.name: one.switches for one in switches}, dict.fromkeys((one.name for one in switches), 0)
    for name in reversed(order_of_levels(switches)):
        depth.update(dict.fromkeys(below[name], depth[name] + 1))
    return {depth[name] for name in below if not below[name]}


def _names(line: ConfLine, key: str) -> tuple[str, ...]:
    """Return the names that a key lists; () without the key."""
    if key.lower() not in line.values:
        return ()
    try:
        return tuple(dict.fromkeys(expand(line.values[key.lower()])))
    except ConfigError as error:
        raise line.error(error.problem, error.allowed, key) from None
