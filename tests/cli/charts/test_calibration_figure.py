"""Pictures of calibrations: data as points, fits as lines, the chosen model marked."""

from __future__ import annotations

import numpy as np

from pilotfish.cli.charts.calibration_figure import calibration
from pilotfish.cli.charts.figure import Bars, Line, Points
from tests.profiles.calibration.calibrations import BARE, FULL


def test_unmeasured_parts_have_no_panel():
    assert len(list(calibration(BARE).panels())) == 1 and len(list(calibration(FULL).panels())) == 5


def test_bandwidth_as_measured_and_as_fitted():
    panel = next(calibration(FULL).panels())
    (points,), (line,) = panel.of(Points), panel.of(Line)
    assert points.x.tolist() == [1.0, 2.0, 4.0] and np.allclose(points.y, [12.0, 20.0, 20.1])
    assert line.y.max() == FULL.bandwidth.most.value / 1e9 and panel.y.label == "memory bandwidth (GB/s)"


def test_the_chosen_model_is_marked():
    *_, panel = calibration(FULL).panels()
    (bars,) = panel.of(Bars)
    assert [("(chosen)" in words) for words in bars.words] == [True, False, False]
    assert bars.colours[0] != bars.colours[1] == bars.colours[2] and np.allclose(bars.values[0], 1.005, atol=1e-2)
