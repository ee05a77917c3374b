"""The workloads with which Batsim was compared to a real cluster: Weibull arrivals, lognormal powers of two.

Rule: times between arrivals are Weibull, sizes 2^floor(u) with u lognormal, given that they fit the machine;
their parameters are the thesis's by default. He ran NAS benchmarks, whose times no formula gives: here they are
lognormal, by default as his published workload had them. Times are whole seconds.
Source: M. Poquet, "Simulation approach for resource management", 2017, 4.7.2: 800 jobs on 32 resources; of the times in
the published workload of seed 1 the logarithms have a mean of 4.18, and they themselves of 151 s.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import ConfigError
from ..workload import Workload
from .draws import generator, instants, span_for
from .walltimes import Walltimes

#: (shape, scale in seconds) of arrivals; (mean, deviation) of the logarithm of u and of the run time in seconds.
GAP, SIZE, RUN_TIME = (2.0, 15.0), (0.25, 0.5), (4.18, 1.3)
#: Their bounds: (least, most) of the first and of the second number.
BOUNDS = {
    "gap": ((0.2, 100.0), (0.1, 1e6)),
    "size": ((-10.0, 10.0), (0.0, 10.0)),
    "run_time": ((-5.0, 12.0), (0.0, 3.0)),
}
#: Of the sizes drawn, what must fit the machine at least.
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
    """A workload of that many jobs for a machine of that many processors. O(jobs).

    Args:
        jobs, machine: 1 or more.
        gap, size, run_time: see GAP, SIZE, RUN_TIME.
        load: work offered until the last arrival / what the machine can do by then; None = as it comes.
        seed: 0 or more.

    Raises:
        ConfigError: a parameter out of its bounds, or next to no size fits the machine; its key is the argument's name.
    """
    for name, pair in (("gap", gap), ("size", size), ("run_time", run_time)):
        _check(name, pair)
    shares = np.array([_share_below(power + 1.0, *size) for power in range(machine.bit_length())])
    if shares[-1] < FITTING:
        problem = f"of the sizes drawn less than {FITTING:.1%} fit a machine of {machine}"
        raise ConfigError("thesis", "size", problem, "a smaller mean, or a larger machine")
    draw = generator(seed)
    submit = instants(draw.weibull(gap[0], jobs) * gap[1])
    sizes = 2 ** np.searchsorted(shares / shares[-1], draw.random(jobs), side="right")
    run = np.maximum(np.rint(draw.lognormal(*run_time, jobs)), 1.0)
    if load is not None and submit[-1] > 0.0:
        submit *= span_for(load, sizes, run, machine) / submit[-1]
    return Workload(
        f"thesis-{machine}",
        np.arange(1, jobs + 1),
        np.floor(submit),
        run,
        walltimes.of(run, draw),
        sizes,
        machine=machine,
    )


def _check(name: str, pair: tuple[float, float]) -> None:
    for value, (least, most) in zip(pair, BOUNDS[name], strict=True):
        if not least <= value <= most:
            allowed = " and ".join(f"{low:g} to {high:g}" for low, high in BOUNDS[name])
            raise ConfigError("thesis", name, f"{value:g}", allowed)


def _share_below(value: float, mean: float, deviation: float) -> float:
    """Probability that a lognormal variate is below `value`."""
    distance = math.log(value) - mean
    if deviation == 0.0:
        return float(distance > 0.0)
    return 0.5 * math.erfc(-distance / (deviation * math.sqrt(2.0)))
