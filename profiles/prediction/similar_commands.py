"""The profile of a command that never ran, from runs of the same program with other arguments.

Rule: the answer is the profile of one such command, at the quantile of their isolated times, never a blend. It stays
within the user's limits, is labelled as predicted, and names its source and its bounds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ...simulate.model.job import Profile, Provenance, ThreadGroup
from .predictors import QUANTILE, WEIGHTS

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
#: The end of a command's name with its variables for threads, and its nodes.
_EXTENT = re.compile(r"(?: [A-Z_]+=\S*)*(?: on [0-9]+ nodes)?$")
_LOW, _HIGH = 0.1, 0.9
#: From those quantiles to the two standard deviations (normal distribution) of an interval.
_TO_INTERVAL = 2.0 / 1.2816


def program(name: str) -> str | None:
    """Return the first words of a command's name (see `signature`): `cmd: align.sh`; None if it names no program."""
    words = name.split(" ")[:2]
    return " ".join(words) if len(words) == 2 else None


def shape(name: str) -> str:
    """Return a command's name with its numbers replaced, except those that give threads and nodes."""
    extent = _extent(name)
    return _NUMBER.sub("#", name[: len(name) - len(extent)]) + extent


def chosen(name: str, relatives: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return what the chosen relatives have in common with the command, and their names, at most `WEIGHTS.latest`.

    Args:
        name: of the command.
        relatives: names of commands of the same program, the one that ran last first.
    """
    alike = [other for other in relatives if shape(other) == shape(name)][: WEIGHTS.latest]
    if len(alike) >= WEIGHTS.enough(QUANTILE):
        return "program and options", alike
    others = [other for other in relatives if _extent(other) == _extent(name)][: WEIGHTS.latest]
    return ("program and options", alike) if len(alike) == len(others) else ("program", others)


def predicted(
    name: str, common: str, profiles: Sequence[Profile], walltime: float | None = None, memory: float = 0.0
) -> Profile | None:
    """Return a command's profile from those of its relatives, None without any.

    Args:
        name: of the command.
        common: what they have in common with it, in words.
        profiles: the one that ran last first; those of other node types than its are ignored.
        walltime: the user's limit, s; None = none.
        memory: the user's limit, bytes; 0 = none.
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
            f"from {commands} of the same {common}; isolated run times {low:.4g} to {high:.4g} s",
            interval if len(used) > 1 else None,
            model.provenance.spread or 0.0,
        ),
    )


def _within(group: ThreadGroup, isolated_s: float, walltime: float | None) -> ThreadGroup:
    """Return the group with its work reduced so that the whole ends within the walltime."""
    if walltime is None or isolated_s <= walltime:
        return group
    return replace(group, service_demand=group.demand * walltime / isolated_s)


def _extent(name: str) -> str:
    found = _EXTENT.search(name)
    return found.group() if found else ""
