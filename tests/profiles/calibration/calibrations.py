"""Sample calibrations, complete and minimal."""

from __future__ import annotations

from dataclasses import replace

from pilotfish.profiles.calibration.bandwidth import RemoteFit, fit_curve
from pilotfish.profiles.calibration.cpu_sharing import WaitSample, fit_waiting
from pilotfish.profiles.calibration.fits import NAMES, Choice, ModelFit, PiecewiseFit
from pilotfish.profiles.calibration.power_line import fit_power
from pilotfish.profiles.calibration.result import Calibration, Point
from pilotfish.profiles.calibration.statistics import Constant, MeasuredNumber, Quality
from pilotfish.simulate.model.cluster import ContendingThreads, Contention, CpuSharing, PiecewiseLinear

BARE = Calibration(
    date="2026-03-01T12:00:00+00:00",
    model="Some CPU",
    host="n1",
    cpus=(0, 1, 2, 3),
    sockets=1,
    memory=16 * 2**30,
    frequency=None,
    curve=(
        Point(1, MeasuredNumber(12e9, 1e8, 5)),
        Point(2, MeasuredNumber(20e9, 1e8, 5)),
        Point(4, MeasuredNumber(20.1e9, 1e8, 5)),
    ),
    bandwidth=fit_curve([1, 1, 2, 2, 4, 4], [12e9, 12.1e9, 20e9, 20.1e9, 20e9, 20.2e9]),
    speed=MeasuredNumber(5e8, 1e6, 20),
    notes=("power is not known: no counter",),
)
_VALUES = (-1.85e-5, 32000.0, 1.75, 3500.0, 45000.0, 3000.0, 1.0)
GRID = PiecewiseFit(
    PiecewiseLinear(**dict(zip(NAMES, _VALUES, strict=True))),
    {name: Constant(value, value - 1, value + 1) for name, value in zip(NAMES, _VALUES, strict=True)},
    Quality(0.99, 0.01, 0.05, 90),
    (1.0, 0.5),
    (0.99, 0.52),
)
FULL = replace(
    BARE,
    frequency=3.4e9,
    share=MeasuredNumber(0.26, 0.01, 5),
    sharing=CpuSharing.PER_THREAD,
    remote=MeasuredNumber(1.41, 0.02, 5),
    watts=(
        Point(0, MeasuredNumber(3.0, 0.1, 5)),
        Point(1, MeasuredNumber(11.7, 0.1, 5)),
        Point(4, MeasuredNumber(30.1, 0.1, 5)),
    ),
    power=fit_power([0, 1, 1, 4, 4], [3.0, 11.7, 11.8, 30.1, 30.2]),
    piecewise=GRID,
    unbound=RemoteFit(Constant(1.5, 1.45, 1.55), Quality(0.9, 1e8, 2e8, 15)),
    waiting=fit_waiting([WaitSample(0.5, (1.0,), 1.29), WaitSample(0.5, (0.5,), 1.07), WaitSample(0.3, (1.0,), 1.18)]),
    choice=Choice(
        Contention.PIECEWISE_LINEAR,
        ContendingThreads.RUNNING,
        (
            ModelFit(Contention.PIECEWISE_LINEAR, ContendingThreads.RUNNING, 0.01, None),
            ModelFit(Contention.MAX_MIN, ContendingThreads.RUNNING, 0.06, 20e9),
            ModelFit(Contention.NONE, ContendingThreads.RUNNING, 0.3, None),
        ),
        81,
    ),
)
