"""Power and energy over time, and the states of the machines that it goes into.

Rule: only what the files of a run say is shown; a run that says nothing of either is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...simulate.errors import ConfigError
from ...simulate.series import steps
from ...simulate.series.figures import figures
from ...simulate.series.power import joules_at, watts_over
from ...simulate.series.run import STATES as NAMES
from ...simulate.series.run import span
from ..render.text import joules as joules_of
from .load import edges
from .palette import STATES
from .panels import Array, Curve, Panel, Part, Picture, Stack
from .panels import Steps as Drawn
from .units import of_amount
from .views import Shown, View, headline

_WORDS = tuple(name.replace("_", " ") for name in NAMES)


def energy(view: View) -> Picture:
    """Power, energy from the beginning of the time shown, and for each run its machines' states."""
    measured = [each for each in view.shown if each.run.energy is not None]
    stated = [each for each in view.shown if each.run.states is not None]
    rows = _measured(measured, view) if measured else []
    rows += [[_states(each, view, titled=len(view.shown) > 1)] for each in stated]
    used = [_used(each, view) for each in measured]
    notes = f"consumed in this time: {', '.join(used)}" if used else ""
    return Picture(headline("Energy", view.shown), rows, notes, height=2.6 + 2.2 * max(len(rows), 2))


def demand(view: View, folders: Sequence[object]) -> None:
    """Raise ConfigError where a run says nothing of energy or states."""
    for each, folder in zip(view.shown, folders, strict=True):
        if each.run.energy is None and each.run.states is None:
            raise ConfigError(str(folder), "", "no consumed_energy.csv and no machine_states.csv in it",
                              "the results of machines whose power is known")  # fmt: skip


def _measured(shown: Sequence[Shown], view: View) -> list[list[Panel]]:
    power: list[Part] = []
    total: list[Part] = []
    drawn = []
    for each in shown:
        found = each.run.energy
        assert found is not None
        columns = edges(np.unique(found.time), view)
        drawn.append((each, columns, watts_over(found, columns), _since(joules_at(found, columns))))
    watts = of_amount(max(np.nanmax(row[2], initial=0.0) for row in drawn), "W")
    joules = of_amount(max(np.nanmax(row[3], initial=0.0) for row in drawn), "J")
    for each, columns, by_column, until in drawn:
        power.append(Drawn(each.label, each.colour, columns, by_column / watts.size))
        total.append(Curve("", each.colour, columns, until / joules.size))
    return [
        [Panel("", f"power, {watts.name}", power, view.x, view.x_title, (0.0, None), view.unit)],
        [Panel("", f"energy, {joules.name}", total, view.x, view.x_title, (0.0, None), view.unit)],
    ]


def _used(shown: Shown, view: View) -> str:
    """Energy in the time shown, in words."""
    used = figures(shown.run, view.x).joules
    return ("unknown" if used is None else joules_of(used)) + (f" {shown.label}" if len(view.shown) > 1 else "")


def _since(joules: Array) -> Array:
    """From the first that is known."""
    known = joules[~np.isnan(joules)]
    return joules - (known[0] if len(known) else 0.0)


def _states(shown: Shown, view: View, *, titled: bool) -> Panel:
    assert shown.run.states is not None
    found = steps.states(shown.run.states)
    until = min(view.end, max(span([shown.run])[1], shown.run.states.time.max(initial=view.begin)))
    layers, columns = [], np.array(view.x)
    if until > view.begin:
        columns = edges(found[0].times, replace(view, end=until))
        means = [function.mean_over(columns) for function in found]
        layers = [layer for layer in zip(_WORDS, STATES, means, strict=True) if layer[2].any()][::-1]
    return Panel(
        shown.label if titled else "", "machines", [Stack(columns, layers)], view.x, view.x_title, (0.0, None),
        view.unit, whole=True, empty="" if layers else "nothing is known of this time",
    )  # fmt: skip
