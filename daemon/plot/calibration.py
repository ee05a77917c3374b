"""A calibration as a picture: what was measured as points, what was fitted as lines.

Rule: the scatter of the runs is seen, and so is what the fit says where nothing was measured in between.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..render.figure import save
from ..render.text import clean, count
from .palette import GRID, INK, LINES, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ...profiles.calibration.result import Calibration
    from ...profiles.calibration.switching import Switching

_DPI, _WIDE, _HIGH = 150, 5.2, 4.2
#: Panels beside each other.
_ACROSS = 3


def draw(found: Calibration, path: Path) -> None:
    """Draw a calibration into a file, .svg or .png. Raises OSError."""
    title = f"{clean(found.host)}, {count(len(found.cpus), 'core')}, {found.date[:10]}"
    _draw([partial(panel, found=found) for panel in _panels(found)], title, path)


def draw_switching(found: Switching, path: Path) -> None:
    """Draw the power of a node that was switched off and on into a file, .svg or .png. Raises OSError."""
    _draw([partial(_trace, found=found)], f"{clean(found.node)}, switched off and on, {found.date[:10]}", path, wide=2)


def _draw(panels: Sequence[Callable[[Axes], None]], title: str, path: Path, wide: int = 1) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = {"font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": QUIET,
                  "svg.fonttype": "none", "svg.hashsalt": "pilotfish", "text.parse_math": False}  # fmt: skip
    across = min(len(panels), _ACROSS)
    down = -(-len(panels) // across)
    with rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a font without some glyph of a name
        figure = Figure(figsize=(_WIDE * wide * across, _HIGH * down), dpi=_DPI, layout="constrained")
        figure.suptitle(title, fontsize=12)
        for number, panel in enumerate(panels, 1):
            axes = figure.add_subplot(down, across, number)
            panel(axes)
            axes.grid(color=GRID, linewidth=0.7)
            axes.set_axisbelow(True)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
        save(figure, path)


def _panels(found: Calibration) -> list[Callable[..., None]]:
    parts = ((_power, found.power), (_models, found.choice), (_grid, found.piecewise), (_waiting, found.waiting))
    return [_curve, *(panel for panel, part in parts if part is not None)]


def _curve(axes: Axes, found: Calibration) -> None:
    counts = np.array([point.count for point in found.curve], float)
    _points(axes, counts, [point.figure.value / 1e9 for point in found.curve],
            [point.figure.spread / 1e9 for point in found.curve])  # fmt: skip
    fit, at = found.bandwidth, np.linspace(0.0, counts.max(), 200)
    fitted = np.minimum(at * fit.per_thread.value, fit.most.value) / 1e9
    axes.plot(at, fitted, color=LINES[1], label="fitted: min(n x one thread, BW_max)")
    axes.set(xlabel="threads that stream", ylabel="memory bandwidth, GB/s", xlim=(0, None), ylim=(0, None))
    _whole(axes)


def _power(axes: Axes, found: Calibration) -> None:
    assert found.power is not None
    counts = np.array([point.count for point in found.watts], float)
    _points(axes, counts, [point.figure.value for point in found.watts],
            [point.figure.spread for point in found.watts])  # fmt: skip
    at = np.array([1.0, counts.max()])
    axes.plot(at, found.power.base.value + at * found.power.per_core.value, color=LINES[1], label="fitted: pb + pa x n")
    axes.set(xlabel="busy cores", ylabel="power of the processors, W", xlim=(0, None), ylim=(0, None))
    _whole(axes)


def _models(axes: Axes, found: Calibration) -> None:
    """The error of each contention model; that which is taken stands out."""
    from ...profiles.calibration.words import model

    choice = found.choice
    assert choice is not None
    taken = (choice.contention, choice.contending_threads)
    for row, each in enumerate(choice.candidates):
        mine = (each.contention, each.contending_threads) == taken
        axes.barh(row, 100 * np.expm1(each.error), color=LINES[1 if mine else 0], label="taken" if mine else None)
    names = [model(each.contention, each.contending_threads) for each in choice.candidates]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel=f"error of speeds in {choice.mixes} mixes, each unseen, %", xlim=(0, None))
    axes.legend(frameon=False, fontsize=9, loc="upper right")


def _grid(axes: Axes, found: Calibration) -> None:
    assert found.piecewise is not None
    _against(axes, found.piecewise.measured, found.piecewise.fitted, "tasks in company")
    axes.set(xlabel="speed in company, measured", ylabel="fitted (piecewise-linear)", xlim=(0, 1.1), ylim=(0, 1.1))


def _waiting(axes: Axes, found: Calibration) -> None:
    assert found.waiting is not None
    measured = [wait.slowdown for wait in found.waiting.waits]
    _against(axes, measured, found.waiting.fitted, "jobs that sleep, on one core")
    most = 1.1 * max(*measured, *found.waiting.fitted)
    strength = found.waiting.strength.value
    axes.set(xlabel="slowdown in company, measured", ylabel=f"fitted (queueing {strength:.2g})", xlim=(0.5, most),
             ylim=(0.5, most))  # fmt: skip


def _trace(axes: Axes, found: Switching) -> None:
    """The power over time; what is held to be its mean while the node is at rest, off, or on its way."""
    axes.plot([t for t, _, _ in found.trace], [watts for _, watts, _ in found.trace], color=LINES[0], marker=".",
              markersize=4, linewidth=0.8, label="measured")  # fmt: skip
    means = {"idle": found.idle, "off": found.off, "switch_off": found.switch_off.watts,
             "switch_on": found.switch_on.watts}  # fmt: skip
    for state, span in itertools.groupby(found.trace, key=lambda sample: sample[2]):
        times, mean = [t for t, _, _ in span], means[state]
        if mean is not None:
            axes.plot([times[0], times[-1]], [mean.value] * 2, color=LINES[1], linewidth=2)
            axes.annotate(f"{state.replace('_', ' ')} {mean.value:.4g} W", (times[0], mean.value), (0, 7),
                          textcoords="offset points", fontsize=9)  # fmt: skip
    axes.plot([], [], color=LINES[1], linewidth=2, label="mean")
    axes.set(xlabel="seconds", ylabel="power, W", xlim=(0, None), ylim=(0, None))
    axes.legend(frameon=False, fontsize=9, loc="lower right")


def _points(axes: Axes, x: Any, y: list[float], spread: list[float]) -> None:
    axes.errorbar(x, y, yerr=spread, fmt="o", color=LINES[0], capsize=3, label="measured: median and spread")


def _against(axes: Axes, measured: Sequence[float], fitted: Sequence[float], what: str) -> None:
    axes.plot(measured, fitted, "o", color=LINES[0], markersize=3, alpha=0.6, label=what)
    most = max(*measured, *fitted)
    axes.plot([0, most], [0, most], color=LINES[1], label="fitted = measured")
    axes.legend(frameon=False, fontsize=9, loc="lower right")


def _whole(axes: Axes) -> None:
    """Ticks at whole numbers of threads or cores."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.legend(frameon=False, fontsize=9, loc="lower right")
