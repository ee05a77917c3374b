"""A calibration as a picture: what was measured as points, what was fitted as lines.

Rule: the scatter of the runs is seen, and so is what the fit says where nothing was measured in between.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..render.figure import save
from ..render.text import clean, count
from .palette import GRID, INK, LINES, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...profiles.calibration.result import Calibration

_DPI, _WIDE, _HIGH = 150, 5.2, 4.2


def draw(found: Calibration, path: Path) -> None:
    """Draw a calibration into a file, .svg or .png. Raises OSError."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    panels = _panels(found)
    style: Any = {"font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": QUIET,
                  "svg.fonttype": "none", "svg.hashsalt": "pilotfish", "text.parse_math": False}  # fmt: skip
    with rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a font without some glyph of a name
        figure = Figure(figsize=(_WIDE * len(panels), _HIGH), dpi=_DPI, layout="constrained")
        figure.suptitle(f"{clean(found.host)}, {count(len(found.cpus), 'core')}, {found.date[:10]}", fontsize=12)
        for axes, panel in zip(np.ravel(figure.subplots(1, len(panels))), panels, strict=True):
            panel(axes, found)
            axes.grid(color=GRID, linewidth=0.7)
            axes.set_axisbelow(True)
            axes.legend(frameon=False, fontsize=9, loc="lower right")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=panel is not _grid))
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        save(figure, path)


def _panels(found: Calibration) -> list[Callable[[Axes, Calibration], None]]:
    panels: list[Callable[[Axes, Calibration], None]] = [_curve]
    if found.power is not None:
        panels.append(_power)
    if found.piecewise is not None:
        panels.append(_grid)
    return panels


def _curve(axes: Axes, found: Calibration) -> None:
    counts = np.array([point.count for point in found.curve], float)
    _points(axes, counts, [point.figure.value / 1e9 for point in found.curve],
            [point.figure.spread / 1e9 for point in found.curve])  # fmt: skip
    fit, at = found.bandwidth, np.linspace(0.0, counts.max(), 200)
    fitted = np.minimum(at * fit.per_thread.value, fit.most.value) / 1e9
    axes.plot(at, fitted, color=LINES[1], label="fitted: min(n x one thread, BW_max)")
    axes.set(xlabel="threads that stream", ylabel="memory bandwidth, GB/s", xlim=(0, None), ylim=(0, None))


def _power(axes: Axes, found: Calibration) -> None:
    assert found.power is not None
    counts = np.array([point.count for point in found.watts], float)
    _points(axes, counts, [point.figure.value for point in found.watts],
            [point.figure.spread for point in found.watts])  # fmt: skip
    at = np.array([1.0, counts.max()])
    axes.plot(at, found.power.base.value + at * found.power.per_core.value, color=LINES[1], label="fitted: pb + pa x n")
    axes.set(xlabel="busy cores", ylabel="power of the processors, W", xlim=(0, None), ylim=(0, None))


def _grid(axes: Axes, found: Calibration) -> None:
    assert found.piecewise is not None
    measured, fitted = found.piecewise.measured, found.piecewise.fitted
    axes.plot(measured, fitted, "o", color=LINES[0], markersize=3, alpha=0.6, label="tasks of the grid")
    axes.plot([0, 1], [0, 1], color=LINES[1], label="fitted = measured")
    axes.set(xlabel="speed in company, measured", ylabel="fitted (piecewise-linear)", xlim=(0, 1.1), ylim=(0, 1.1))


def _points(axes: Axes, x: Any, y: list[float], spread: list[float]) -> None:
    axes.errorbar(x, y, yerr=spread, fmt="o", color=LINES[0], capsize=3, label="measured: median and spread")
