"""The workloads of the thesis that compared Batsim with a real cluster: Weibull arrivals, lognormal powers of two.

Rule: gaps between arrivals are Weibull, sizes are 2^floor(u) with u lognormal, given that they fit the machine; the
default parameters are those of the thesis. The thesis ran NAS benchmarks, whose times have no formula; here run times
are lognormal, by default as in its published workload. Times are whole seconds.
Source: M. Poquet, "Simulation approach for resource management", 2017, 4.7.2: 800 jobs on 32 resources; in the
published workload of seed 1, run times have a mean of 151 s and their logarithms a mean of 4.18.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import ConfigError
from ..model.workload import Workload
from .models import Walltimes, generator, instants, span_for

#: (shape, scale in seconds) of arrivals; (mean, deviation) of the logarithm of u and of the run time in seconds.
GAP, SIZE, RUN_TIME = (2.0, 15.0), (0.25, 0.5), (4.18, 1.3)
#: Bounds of the parameters: (least, most) of the first and of the second number.
BOUNDS = {
    "gap": ((0.2, 100.0), (0.1, 1e6)),
    "size": ((-10.0, 10.0), (0.0, 10.0)),
    "run_time": ((-5.0, 12.0), (0.0, 3.0)),
}
#: Least share of the drawn sizes that must fit the machine.
FITTING = 0.001


def thesis(
    jobs: int = 800,
    machine: int = 32,
    *,
    gap: tuple[float, float] = GAP,
    size: tuple[float, float] = SIZE,
    run_time: tuple[float, float] = RUN_TIME,
    load: float | None = None,
    walltimes: Walltimes = Walltimes(),
    seed: int = 0,
) -> Workload:
    """Return a workload of `jobs` jobs for a machine of `machine` processors. O(jobs).

    Args:
        jobs: 1 or more.
        machine: processors, 1 or more.
        gap: (shape, scale in seconds) of the Weibull gaps between arrivals.
        size: (mean, deviation) of the logarithm of u.
        run_time: (mean, deviation) of the logarithm of the run time in seconds.
        load: work offered until the last arrival / what the machine can do until then; None = that of the parameters.
        walltimes: how walltimes follow from run times.
        seed: 0 or more.

    Raises:
        ConfigError: a parameter out of its bounds, or almost no size fits the machine; the key is the argument's name.
    """
    for name, pair in (("gap", gap), ("size", size), ("run_time", run_time)):
        for value, (least, most) in zip(pair, BOUNDS[name], strict=True):
            if not least <= value <= most:
                allowed = " and ".join(f"{low:g} to {high:g}" for low, high in BOUNDS[name])
                raise ConfigError("thesis", name, f"found {value:g}", allowed)
    shares = np.array([_share_below(power + 1.0, *size) for power in range(machine.bit_length())])
    if shares[-1] < FITTING:
        problem = f"less than {100 * FITTING:g} % of the sizes fit a machine of {machine}"
        raise ConfigError("thesis", "size", problem, "a smaller mean, or a larger machine")
    draw = generator(seed)
    submit = instants(draw.weibull(gap[0], jobs) * gap[1])
    sizes = 2 ** np.searchsorted(shares / shares[-1], draw.random(jobs), side="right")
    run = np.maximum(np.rint(draw.lognormal(*run_time, jobs)), 1.0)
    if load is not None and submit[-1] > 0.0:
        submit *= span_for(load, sizes, run, machine) / submit[-1]
    columns = np.arange(1, jobs + 1), np.floor(submit), run, walltimes.of(run, draw), sizes
    return Workload(f"thesis-{machine}", *columns, machine=machine)


def _share_below(value: float, mean: float, deviation: float) -> float:
    """Return the probability that a lognormal variate is below `value`."""
    distance = math.log(value) - mean
    if deviation == 0.0:
        return float(distance > 0.0)
    return 0.5 * math.erfc(-distance / (deviation * math.sqrt(2.0)))
