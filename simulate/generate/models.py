"""The workload model of Lublin and Feitelson: rigid jobs of parallel supercomputers; and what all models share.

Rule: constants are the published ones; those that depend on the machine's size scale as the authors say, and a machine
of 128 processors has the published numbers. Times are whole seconds from a midnight on; arrivals are summed before they
are cut to seconds (the authors' program cuts each, and loses half a second a job against its own day).
The daily cycle counts time twice, by the clock and in rush seconds: a day has as many of both, but most rush seconds
pass in working hours, so a process that is steady in rush seconds follows the cycle. Both conversions are exact
inverses.
A workload has one random generator, and sums are of exact numbers, so the same seed gives the same workload everywhere.
Walltimes are whole seconds, 1 or more, and drawn last, so that their options change no job.
Source: U. Lublin, D. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
JPDC 63(11), 2003 (the cycle: section 5); constants and details: the Parallel Workloads Archive, m_lublin99.c (half
hours; the n-th since midnight weighs what a gamma distribution, in half hours, has between n - 1/2 and n + 1/2; the day
runs from 5:00 to 5:00).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Array
from ..errors import ConfigError
from ..model.workload import Workload

SLOTS, DAY_S = 48, 86400.0
_FIRST = 11  # the slot from which a day is taken, counted from 1


@dataclass(frozen=True)
class DailyCycle:
    """A daily cycle whose half hours weigh as the gamma distribution of this shape and scale (half hours)."""

    shape: float
    scale: float

    @cached_property
    def weights(self) -> Array:
        """Weight of each half hour from midnight on; the mean is 1."""
        ends = _FIRST - 0.5 + np.arange(SLOTS + 1)
        shares = np.roll(np.diff([gamma_cdf(end / self.scale, self.shape) for end in ends.tolist()]), _FIRST - 1)
        return np.asarray(shares * (SLOTS / shares.sum()))

    @cached_property
    def _rush(self) -> Array:
        """Rush seconds from midnight to the ends of the half hours, rounded to microseconds."""
        sums = np.concatenate(([0.0], np.cumsum(self.weights))) * (DAY_S / SLOTS)
        return np.append(np.round(sums[:-1], 6), DAY_S)

    def clock(self, rush: Array) -> Array:
        """Return the clock seconds since the first midnight after so many rush seconds."""
        return _interpolated(rush, self._rush, _ENDS)

    def rush(self, clock: Array) -> Array:
        """Return the rush seconds after so many clock seconds; the inverse of `clock`."""
        return _interpolated(clock, _ENDS, self._rush)


_ENDS = np.linspace(0.0, DAY_S, SLOTS + 1)


def _interpolated(times: Array, positions: Array, values: Array) -> Array:
    days, rest = np.divmod(times, DAY_S)
    return days * DAY_S + np.interp(rest, positions, values)


def gamma_cdf(x: float, shape: float) -> float:
    """Return the gamma distribution function (scale 1) at `x` >= 0, up to about 100, by its series."""
    if x <= 0.0:
        return 0.0
    n, term = shape, 1.0 / shape
    total = term
    while term > total * 1e-17:
        n += 1.0
        term *= x / n
        total += term
    return total * math.exp(shape * math.log(x) - x - math.lgamma(shape))


Generator = np.random.Generator
#: Gaps between arrivals are multiples of 1 / TICKS s, so that their sums are exact on any machine.
TICKS = 1024.0


def generator(seed: int) -> Generator:
    """Return the random generator of a seed, 0 or above (PCG64, independent of numpy's default)."""
    return np.random.Generator(np.random.PCG64(seed))


def at_most(most: float, count: int, draw_for: Callable[[Array], Array]) -> Array:
    """Return `count` values of at most `most`; larger ones are drawn again.

    Args:
        most: the largest value.
        count: number of values.
        draw_for: returns a value for each of the given indices.
    """
    values, places = np.empty(count), np.arange(count)
    while len(places):
        drawn = draw_for(places)
        values[places] = drawn
        places = places[drawn > most]
    return values


def instants(gaps: Array) -> Array:
    """Return arrival times in seconds from the gaps between them, the first gap starting at 0."""
    return np.cumsum(np.rint(gaps * TICKS)) / TICKS


def span_for(load: float, size: Array, run_time: Array, machine: int) -> float:
    """Return the seconds in which these jobs must arrive to offer that load: work / (machine x load).

    Source: the Parallel Workloads Archive, m_lublin99.c, "load".

    Args:
        load: offered load, above 0.
        size: processors [jobs].
        run_time: seconds [jobs].
        machine: processors.
    """
    return float((size * run_time).sum()) / (machine * load)


ALLOWED = "exact, factor:A:B with 0 < A <= B <= 1000, or round"
MOST_FACTOR = 1000.0
#: Usual walltimes, seconds; beyond a day, whole days.
USUAL = 60.0 * np.array([5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080, 1440])
#: Least share of its walltime that a job uses, in `round`.
LEAST_USE = 0.1


@dataclass(frozen=True, slots=True)
class Walltimes:
    """Model of walltimes, given run times.

    Source: of `round`: run time over walltime is spread evenly (Mu'alem and Feitelson 2001), and most users type one of
    some twenty round values (Tsafrir, Etsion and Feitelson 2005).
    """

    #: Exact: the run time. factor: the run time times a factor that is uniform in [least, most]. round: a job uses a
    #: uniform share, LEAST_USE to 1, of its walltime, which is rounded up to a usual value.
    kind: str = "round"
    least: float = 1.0
    most: float = 1.0

    def of(self, run_time: Array, draw: Generator) -> Array:
        """Return a walltime for each run time, seconds."""
        if self.kind == "round":
            return rounded(run_time / draw.uniform(LEAST_USE, 1.0, len(run_time)))
        if self.kind == "factor":
            run_time = run_time * draw.uniform(self.least, self.most, len(run_time))
        return np.maximum(np.ceil(run_time), 1.0)

    def __str__(self) -> str:
        return f"factor:{self.least!r}:{self.most!r}" if self.kind == "factor" else self.kind


def rounded(times: Array) -> Array:
    """Return each time rounded up to a usual value. O(times)."""
    place = np.searchsorted(USUAL, times)
    days = np.ceil(times / DAY_S) * DAY_S
    return np.where(place < len(USUAL), USUAL[np.minimum(place, len(USUAL) - 1)], days)


def parse_walltimes(text: str) -> Walltimes:
    """Parse `exact`, `factor:A:B` or `round`. Raises ConfigError."""
    kind, *numbers = text.split(":")
    if kind in ("exact", "round") and not numbers:
        return Walltimes(kind)
    if kind == "factor" and len(numbers) == 2:
        try:
            least, most = (float(number) for number in numbers)
        except ValueError:
            least = most = math.nan
        if 0.0 < least <= most <= MOST_FACTOR:
            return Walltimes(kind, least, most)
    raise ConfigError("walltime", "", f"found {text!r}", ALLOWED)


#: Largest logarithms of a run time and of rush seconds between arrivals; larger ones are drawn again.
LONGEST, LONGEST_GAP = 12.0, 13.0


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of jobs."""

    queue: int  # its number in a trace (0 is interactive by the format's custom)
    serial: float  # share of jobs with one processor
    power: float  # share of other jobs whose size is a power of two by intent
    low: float  # log2 of the smallest parallel job
    middle: float  # log2 of the machine minus the end of the lower stage of log2 sizes
    high: float  # log2 of the machine minus the end of the upper stage
    lower: float  # probability of the lower stage
    short: tuple[float, float]  # (shape, scale) of the gamma distribution of log run time of short jobs
    long: tuple[float, float]  # the same of long jobs
    slope: float  # a job of n processors is short with probability slope * n + offset, cut to [0, 1]
    offset: float  # see `slope`
    gap: tuple[float, float]  # (shape, scale) of the gamma distribution of log rush seconds between arrivals
    cycle: DailyCycle  # daily cycle of arrivals


INTERACTIVE = JobKind(
    0, 0.1541, 0.625, 1.0, 4.0, 1.5, 0.705, (3.8351, 0.6605), (7.073, 0.6856), -0.0118, 0.9156,
    (6.5510 * 0.9797, 0.6621), DailyCycle(8.9186, 3.6680),
)  # fmt: skip
BATCH = JobKind(
    1, 0.2927, 0.6686, 1.2, 2.0, 0.0, 0.875, (6.57, 0.823), (639.1, 0.0156), -0.003, 0.6986,
    (6.0415 * 1.0519, 0.8531), DailyCycle(6.1271, 5.2740),
)  # fmt: skip
UNTYPED = JobKind(
    0, 0.244, 0.576, 0.8, 2.5, 0.0, 0.86, (4.2, 0.94), (312.0, 0.03), -0.0054, 0.78,
    (10.2303 * 1.0225, 0.4871), DailyCycle(8.1737, 3.9631),
)  # fmt: skip
#: Values of `kind`; at equal times, jobs of the first kind in the tuple come first.
KINDS: dict[str, tuple[JobKind, ...]] = {
    "both": (INTERACTIVE, BATCH),
    "batch": (BATCH,),
    "interactive": (INTERACTIVE,),
    "untyped": (UNTYPED,),
}


def lublin(
    jobs: int,
    machine: int,
    *,
    kind: str = "both",
    load: float | None = None,
    walltimes: Walltimes = Walltimes(),
    seed: int = 0,
) -> Workload:
    """Return a workload of `jobs` jobs for a machine of `machine` processors. O(jobs log jobs).

    Args:
        jobs: 1 or more.
        machine: processors, 1 or more.
        kind: a key of KINDS.
        load: work offered until the last arrival / what the machine can do until then; None = that of the model. It
            changes the gaps between arrivals, not the length of a day.
        walltimes: how walltimes follow from run times.
        seed: 0 or more.
    """
    draw, kinds = generator(seed), KINDS[kind]
    rushes = [instants(np.exp(_log_gaps(draw, job_kind, jobs))) for job_kind in kinds]
    first = _first(jobs, [job_kind.cycle.clock(rush) for job_kind, rush in zip(kinds, rushes, strict=True)])
    rushes = [rush[:count] for rush, count in zip(rushes, first, strict=True)]
    sizes = [_sizes(draw, job_kind, count, machine) for job_kind, count in zip(kinds, first, strict=True)]
    runs = [_run_times(draw, job_kind, size) for job_kind, size in zip(kinds, sizes, strict=True)]
    size, run_time = np.concatenate(sizes), np.concatenate(runs)
    pace = 1.0 if load is None else _pace(kinds, rushes, span_for(load, size, run_time, machine))
    submit = np.concatenate(
        [np.floor(job_kind.cycle.clock(rush * pace)) for job_kind, rush in zip(kinds, rushes, strict=True)]
    )
    order = np.argsort(submit, kind="stable")
    queue = np.repeat([float(job_kind.queue) for job_kind in kinds], first)
    run_time = run_time[order]
    columns = np.arange(1, jobs + 1), submit[order], run_time, walltimes.of(run_time, draw), size[order]
    return Workload(f"lublin-{machine}", *columns, more={"queue": queue[order]}, machine=machine)


def _first(jobs: int, clocks: list[Array]) -> list[int]:
    """Return how many of each kind are among the first `jobs`."""
    kind_indices = np.repeat(np.arange(len(clocks)), jobs)
    order = np.argsort(np.floor(np.concatenate(clocks)), kind="stable")[:jobs]
    return [int(count) for count in np.bincount(kind_indices[order], minlength=len(clocks))]


def _pace(kinds: tuple[JobKind, ...], rushes: list[Array], span: float) -> float:
    """Return the factor on rush seconds with which the last job arrives after `span` seconds."""
    ends = [(kind.cycle.rush(np.array([span]))[0], rush) for kind, rush in zip(kinds, rushes, strict=True)]
    return min(float(end / rush[-1]) for end, rush in ends if len(rush))


def _log_gaps(draw: Generator, kind: JobKind, count: int) -> Array:
    shape, scale = kind.gap
    return at_most(LONGEST_GAP, count, lambda places: draw.standard_gamma(shape, len(places)) * scale)


def _sizes(draw: Generator, kind: JobKind, count: int, machine: int) -> Array:
    """Return the processors of `count` jobs."""
    most = math.log2(machine)
    high = max(most - kind.high, min(most, 1.0))
    low = min(kind.low, high)
    middle = min(max(most - kind.middle, low), high)
    branch, stage, place = draw.random((3, count))
    lower = stage <= kind.lower
    begin, end = np.where(lower, low, middle), np.where(lower, middle, high)
    power = place * (end - begin) + begin
    exponent = np.minimum(np.floor(power + 0.5), machine.bit_length() - 1)
    size = np.floor(np.exp2(np.where(branch <= kind.serial + kind.power, exponent, power)) + 0.5)
    return np.where(branch <= kind.serial, 1, np.minimum(size, machine)).astype(np.int64)


def _run_times(draw: Generator, kind: JobKind, size: Array) -> Array:
    """Return run times in whole seconds."""
    short = np.clip(kind.slope * size + kind.offset, 0.0, 1.0)

    def logarithms(places: Array) -> Array:
        chosen = np.where(draw.random(len(places)) <= short[places], 0, 1)
        shape, scale = np.array([kind.short, kind.long]).T
        return np.asarray(draw.standard_gamma(shape[chosen]) * scale[chosen])

    return np.floor(np.exp(at_most(LONGEST, len(size), logarithms)))
