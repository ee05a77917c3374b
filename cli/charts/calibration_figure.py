"""Figures of a calibration: measurements as points, fits as lines."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...formats.text import clean, count
from .colours import DASHES, SERIES
from .figure import Axis, Bars, Figure, Line, Panel, Points, Series, bars_panel

if TYPE_CHECKING:
    from ...profiles.calibration.cpu_sharing import WaitFit
    from ...profiles.calibration.fits import Choice, PiecewiseFit
    from ...profiles.calibration.node_switching import SwitchingResult
    from ...profiles.calibration.power_line import PowerFit
    from ...profiles.calibration.result import Calibration, Point

_ACROSS = 2
_DATA, _FIT = SERIES[0], SERIES[3]


def calibration(found: Calibration) -> Figure:
    """Return a panel for each part of a calibration: bandwidth, power, contention models, waiting times."""
    panels = [_bandwidth(found)]
    panels += [_power(found.power, found.watts)] if found.power else []
    panels += [_piecewise(found.piecewise)] if found.piecewise else []
    panels += [_waiting(found.waiting)] if found.waiting else []
    rows = [panels[i : i + _ACROSS] for i in range(0, len(panels), _ACROSS)]
    rows += [[_models(found.choice)]] if found.choice else []
    about = f"{clean(found.host)}, {count(len(found.cpus), 'core')}, {found.date[:10]}"
    return Figure("Calibration", rows, about, shared=False, height=1.0 + 2.6 * len(rows))


def switching(found: SwitchingResult) -> Figure:
    """Return the power of a node that was switched off and on, with the mean power of each state."""
    time, watts = (np.array([sample[i] for sample in found.trace], float) for i in (0, 1))
    series: list[Series] = [Line("measured", _DATA, time, watts)]
    means = {"idle": found.idle, "off": found.off, "switch_off": found.switch_off.watts,
             "switch_on": found.switch_on.watts}  # fmt: skip
    for state, samples in itertools.groupby(found.trace, key=lambda sample: sample[2]):
        times, mean = [sample[0] for sample in samples], means[state]
        if mean is not None:
            label, number = f"mean, {state.replace('_', ' ')}: {mean.value:.4g} W", list(means).index(state) + 1
            span = np.array([times[0], times[-1]])
            series.append(Line(label, SERIES[number], span, np.full(2, mean.value), number % len(DASHES)))
    panel = Panel(Axis("time (s)"), Axis("power (W)"), series)
    return Figure("Power while switching", [[panel]], f"{clean(found.node)}, {found.date[:10]}", height=3.6)


def _measured(points: Sequence[Point], unit: float) -> Points:
    return Points(
        "measured: median and spread", _DATA, np.array([point.count for point in points], float),
        np.array([point.figure.value for point in points]) / unit,
        np.array([point.figure.spread for point in points]) / unit,
    )  # fmt: skip


def _bandwidth(calibrated: Calibration) -> Panel:
    data, fit = _measured(calibrated.curve, 1e9), calibrated.bandwidth
    at = np.linspace(0.0, data.x.max(), 200)
    line = np.minimum(at * fit.per_thread.value, fit.most.value) / 1e9
    series: list[Series] = [data, Line("fit: min(n x one thread, maximum)", _FIT, at, line)]
    return Panel(Axis("threads that stream", whole=True), Axis("memory bandwidth (GB/s)"), series)


def _power(fit: PowerFit, measured: Sequence[Point]) -> Panel:
    data = _measured(measured, 1.0)
    at = np.array([1.0, data.x.max()])
    line = fit.base.value + at * fit.per_core.value
    series: list[Series] = [data, Line("fit: base + per core x n", _FIT, at, line, 1)]
    return Panel(Axis("busy cores", whole=True), Axis("power of the processors (W)"), series)


def _models(choice: Choice) -> Panel:
    """The error of each contention model; the chosen one has another colour."""
    from ...profiles.calibration.report import model

    chosen = (choice.contention, choice.contending_threads)
    errors = [float(100 * np.expm1(candidate.error)) for candidate in choice.candidates]
    is_chosen = [(candidate.contention, candidate.contending_threads) == chosen for candidate in choice.candidates]
    names = [model(candidate.contention, candidate.contending_threads) for candidate in choice.candidates]
    words = [f"{error:.3g} %{' (chosen)' if is_best else ''}" for error, is_best in zip(errors, is_chosen, strict=True)]
    bars = Bars(names, [_FIT if is_best else _DATA for is_best in is_chosen], errors, words)
    title = f"cross-validated error of speeds in {count(choice.mixes, 'mix')}, by contention model"
    return bars_panel(bars, title, 0.1)


def _piecewise(fit: PiecewiseFit) -> Panel:
    return Panel(
        Axis("measured speed of shared cores", 0.0, 1.1), Axis("fitted speed (piecewise-linear)", 0.0, 1.1),
        _against(fit.measured, fit.fitted, "co-running tasks"),
    )  # fmt: skip


def _waiting(fit: WaitFit) -> Panel:
    measured = [wait.slowdown for wait in fit.waits]
    most = 1.1 * max(*measured, *fit.fitted)
    return Panel(
        Axis("measured slowdown", 0.5, most), Axis(f"fitted slowdown (queueing {fit.strength.value:.2g})", 0.5, most),
        _against(measured, fit.fitted, "jobs that sleep, on one core"),
    )  # fmt: skip


def _against(measured: Sequence[float], fitted: Sequence[float], label: str) -> list[Series]:
    most = max(*measured, *fitted)
    return [Points(label, _DATA, np.array(measured), np.array(fitted)),
            Line("fit = measurement", _FIT, np.array([0.0, most]), np.array([0.0, most]), 1)]  # fmt: skip
