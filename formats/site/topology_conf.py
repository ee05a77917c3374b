"""Read the switches of topology/tree from topology.conf and the files that it includes.

Rule: a switch names nodes or other switches. A name must be that of one switch, and a switch is below one at most.
Nodes that the site does not have are left out.
Source: topology.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ...simulate.errors import ConfigError, did_you_mean
from ...simulate.slurm.site import SiteSwitch
from ...simulate.slurm.switch_tables import order_of_levels
from ..documents.document_errors import found
from ..hostlist import expand, fold
from .slurm_conf import ConfLine, read_slurm_conf


def read_switches(path: Path, nodes: Collection[str], unknown: list[str]) -> tuple[SiteSwitch, ...]:
    """Return the switches in the order of the file.

    Args:
        path: topology.conf.
        nodes: names of the site's nodes.
        unknown: receives a sentence on nodes that are below no switch.

    Raises:
        ConfigError: a line cannot be read, a switch is not there or is there twice, or switches form no tree.
    """
    lines = dict[str, ConfLine]()
    for line in read_slurm_conf(path).lines.get("switchname", []):
        for name in _names(line, "SwitchName"):
            if name in lines:
                raise line.error(f"{found(name)}, which line {lines[name].line} describes, too", "each switch once")
            lines[name] = line
    if not lines:
        raise ConfigError(str(path), "line 1", "no switches in this file", "lines SwitchName=NAME Nodes=NODES")
    above = dict[str, str]()
    for name, line in lines.items():
        for other in _names(line, "Switches"):
            if other not in lines:
                raise line.error(f"{found(other)}, which no line describes{did_you_mean(other, lines)}", "", "Switches")
            if above.setdefault(other, name) != name:
                raise line.error(f"{found(other)}, which is below {above[other]}, too", "one switch above", "Switches")
    switches = tuple(
        SiteSwitch(name, tuple(one for one in _names(line, "Nodes") if one in nodes), _names(line, "Switches"))
        for name, line in lines.items()
    )
    try:
        order_of_levels(switches)
    except ConfigError as error:
        raise ConfigError(str(path), error.key, error.problem, error.allowed) from None
    below = {node for switch in switches for node in switch.nodes}
    if apart := [name for name in nodes if name not in below]:
        unknown.append(f"topology.conf: {fold(apart)} below no switch: no job runs there, as in Slurm")
    return switches


def _names(line: ConfLine, key: str) -> tuple[str, ...]:
    """Return the names that a key lists; () without the key."""
    if key.lower() not in line.values:
        return ()
    try:
        return tuple(dict.fromkeys(expand(line.values[key.lower()])))
    except ConfigError as error:
        raise line.error(error.problem, error.allowed, key) from None
