"""What a command needs that never ran, from runs of the same program with other arguments.

Rule: the answer is the profile of one such command, the one at the quantile of their isolated times, never a blend of
several; it is within the user's limits, is labelled as predicted, and says from which commands and within which bounds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ...simulate.job import Profile, Provenance, ThreadGroup
from .history import QUANTILE, WEIGHTS

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
#: The end of a command's name that says on how much of the machine it ran: variables for threads, nodes.
_EXTENT = re.compile(r"(?: [A-Z_]+=\S*)*(?: on [0-9]+ nodes)?$")
_LOW, _HIGH = 0.1, 0.9
#: From those quantiles to two standard deviations of a normal distribution, which is what an interval is.
_TO_INTERVAL = 2.0 / 1.2816


def program(name: str) -> str | None:
    """The first words of a command's name (see `signature`): `cmd: align.sh`; None where it names no program."""
    words = name.split(" ")[:2]
    return " ".join(words) if len(words) == 2 else None


def shape(name: str) -> str:
    """A command's name with its numbers made alike, but for those that say how many threads and nodes it uses."""
    extent = _extent(name)
    return _NUMBER.sub("#", name[: len(name) - len(extent)]) + extent


def chosen(name: str, relatives: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Those of the relatives to go by, at most `WEIGHTS.latest`, and what they have in common with the command.

    Args:
        relatives: names of commands of the same program, that which ran last first.
    """
    alike = [other for other in relatives if shape(other) == shape(name)][: WEIGHTS.latest]
    if len(alike) >= WEIGHTS.enough(QUANTILE):
        return "program and options", alike
    others = [other for other in relatives if _extent(other) == _extent(name)][: WEIGHTS.latest]
    return ("program and options", alike) if len(alike) == len(others) else ("program", others)


def predicted(
    name: str, common: str, profiles: Sequence[Profile], walltime: float | None = None, memory: float = 0.0
) -> Profile | None:
    """The profile of a command from those of its relatives, None if there are none.

    Args:
        common: what they have in common with it, in words.
        profiles: that of the one which ran last first; those of other kinds of nodes than its are left out.
        walltime: the user's limit, s; memory: the user's limit, bytes; None and 0: no limit.
    """
    used = [one for one in profiles if one.measured_on == profiles[0].measured_on][: WEIGHTS.latest]
    if not used:
        return None
    times = [one.isolated_time for one in used]
    middle, low, high = WEIGHTS.quantiles(times, (QUANTILE, _LOW, _HIGH))
    model = used[times.index(middle)]
    most = WEIGHTS.quantiles([one.memory for one in used if one.memory] or [0.0], (_HIGH,))[0]
    interval = max(0.0, 1.0 - _TO_INTERVAL * (1.0 - low / middle)), 1.0 + _TO_INTERVAL * (high / middle - 1.0)
    dates = [one.provenance.date for one in used if one.provenance.date]
    commands = f"{len(used)} commands" if len(used) > 1 else "1 command"
    return replace(
        model,
        name=name,
        groups=tuple(_within(group, middle, walltime) for group in model.groups),
        memory=min(most, memory) if memory > 0 else most,
        provenance=Provenance(
            "predicted",
            max(dates, default=None),
            sum(one.provenance.runs for one in used),
            model.provenance.node_type,
            f"from {commands} of the same {common}; alone they took {low:.4g} to {high:.4g} s",
            interval if len(used) > 1 else None,
            model.provenance.spread or 0.0,
        ),
    )


def _within(group: ThreadGroup, isolated_s: float, walltime: float | None) -> ThreadGroup:
    """The group with so much less to do that the whole ends within the walltime."""
    if walltime is None or isolated_s <= walltime:
        return group
    return replace(group, service_demand=group.demand * walltime / isolated_s)


def _extent(name: str) -> str:
    found = _EXTENT.search(name)
    return found.group() if found else ""
