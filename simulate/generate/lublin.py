"""The model of Lublin and Feitelson: rigid jobs as parallel supercomputers saw them.

Rule: constants are those published; what follows the size of the machine does so as its authors say, and a machine of
128 processors has the published numbers. Times are whole seconds from a midnight on; arrivals are summed up before they
are cut to seconds (their program cuts each, and loses half a second a job against its own day).
Source: U. Lublin, D. Feitelson, "The workload on parallel supercomputers: modeling the characteristics of rigid jobs",
JPDC 63(11), 2003; constants and details: the Parallel Workloads Archive, m_lublin99.c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..workload import Workload
from .cycle import Cycle
from .draws import Generator, at_most, generator, instants, span_for
from .walltimes import Walltimes

Array = npt.NDArray[Any]
#: Largest logarithms of a run time and of rush seconds between arrivals; what is above is drawn again.
LONGEST, LONGEST_GAP = 12.0, 13.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of jobs.

    Args:
        queue: its number in a trace (0 is interactive by the format's custom).
        serial, power: shares of jobs with one processor, and of others that are powers of two by intent.
        low: log2 of the smallest parallel job.
        middle, high: the lower stage of log2 sizes ends, and the upper one, so much below log2 of the machine.
        lower: probability of the lower stage.
        short, long: (shape, scale) of the gamma distributions of log run time.
        slope, offset: a job of n processors is short with probability slope * n + offset, cut to [0, 1].
        gap: (shape, scale) of the gamma distribution of log rush seconds between arrivals.
        cycle: of a day.
    """

    queue: int
    serial: float
    power: float
    low: float
    middle: float
    high: float
    lower: float
    short: tuple[float, float]
    long: tuple[float, float]
    slope: float
    offset: float
    gap: tuple[float, float]
    cycle: Cycle


INTERACTIVE = Kind(
    0, 0.1541, 0.625, 1.0, 4.0, 1.5, 0.705, (3.8351, 0.6605), (7.073, 0.6856), -0.0118, 0.9156,
    (6.5510 * 0.9797, 0.6621), Cycle(8.9186, 3.6680),
)  # fmt: skip
BATCH = Kind(
    1, 0.2927, 0.6686, 1.2, 2.0, 0.0, 0.875, (6.57, 0.823), (639.1, 0.0156), -0.003, 0.6986,
    (6.0415 * 1.0519, 0.8531), Cycle(6.1271, 5.2740),
)  # fmt: skip
UNTYPED = Kind(
    0, 0.244, 0.576, 0.8, 2.5, 0.0, 0.86, (4.2, 0.94), (312.0, 0.03), -0.0054, 0.78,
    (10.2303 * 1.0225, 0.4871), Cycle(8.1737, 3.9631),
)  # fmt: skip
#: What `kind` may be; where times are equal the first in the tuple comes first.
KINDS: dict[str, tuple[Kind, ...]] = {
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
    """A workload of that many jobs for a machine of that many processors. O(jobs log jobs).

    Args:
        jobs, machine: 1 or more.
        kind: a key of KINDS.
        load: work offered until the last arrival / what the machine can do by then; None = as the model has it.
            Arrivals come closer or farther apart for it, the days stay days.
        seed: 0 or more.
    """
    draw, kinds = generator(seed), KINDS[kind]
    rushes = [instants(np.exp(_log_gaps(draw, each, jobs))) for each in kinds]
    first = _first(jobs, [each.cycle.clock(rush) for each, rush in zip(kinds, rushes, strict=True)])
    rushes = [rush[:count] for rush, count in zip(rushes, first, strict=True)]
    sizes = [_sizes(draw, each, count, machine) for each, count in zip(kinds, first, strict=True)]
    runs = [_run_times(draw, each, size) for each, size in zip(kinds, sizes, strict=True)]
    size, run_time = np.concatenate(sizes), np.concatenate(runs)
    pace = 1.0 if load is None else _pace(kinds, rushes, span_for(load, size, run_time, machine))
    submit = np.concatenate([_seconds(each, rush * pace) for each, rush in zip(kinds, rushes, strict=True)])
    order = np.argsort(submit, kind="stable")
    queue = np.repeat([float(each.queue) for each in kinds], first)
    run_time = run_time[order]
    return Workload(
        f"lublin-{machine}",
        np.arange(1, jobs + 1),
        submit[order],
        run_time,
        walltimes.of(run_time, draw),
        size[order],
        more={"queue": queue[order]},
        machine=machine,
    )


def _first(jobs: int, clocks: list[Array]) -> list[int]:
    """How many of each kind are among the first `jobs`."""
    whose = np.repeat(np.arange(len(clocks)), jobs)
    order = np.argsort(np.floor(np.concatenate(clocks)), kind="stable")[:jobs]
    return [int(count) for count in np.bincount(whose[order], minlength=len(clocks))]


def _pace(kinds: tuple[Kind, ...], rushes: list[Array], span: float) -> float:
    """What to multiply rush seconds by, so that the last of all arrives after `span` seconds."""
    at_the_end = np.array([span])
    return min(
        float(each.cycle.rush(at_the_end)[0] / rush[-1]) for each, rush in zip(kinds, rushes, strict=True) if len(rush)
    )


def _seconds(kind: Kind, rush: Array) -> Array:
    return np.floor(kind.cycle.clock(rush))


def _log_gaps(draw: Generator, kind: Kind, count: int) -> Array:
    shape, scale = kind.gap
    return at_most(LONGEST_GAP, count, lambda places: draw.standard_gamma(shape, len(places)) * scale)


def _sizes(draw: Generator, kind: Kind, count: int, machine: int) -> Array:
    """Processors of `count` jobs."""
    most = math.log2(machine)
    high = max(most - kind.high, min(most, 1.0))
    low = min(kind.low, high)
    middle = min(max(most - kind.middle, low), high)
    which, stage, place = draw.random((3, count))
    lower = stage <= kind.lower
    begin, end = np.where(lower, low, middle), np.where(lower, middle, high)
    power = place * (end - begin) + begin
    whole = np.minimum(np.floor(power + 0.5), machine.bit_length() - 1)
    size = np.floor(np.exp2(np.where(which <= kind.serial + kind.power, whole, power)) + 0.5)
    return np.where(which <= kind.serial, 1, np.minimum(size, machine)).astype(np.int64)


def _run_times(draw: Generator, kind: Kind, size: Array) -> Array:
    """Whole seconds."""
    short = np.clip(kind.slope * size + kind.offset, 0.0, 1.0)

    def logarithms(places: Array) -> Array:
        chosen = np.where(draw.random(len(places)) <= short[places], 0, 1)
        shape, scale = np.array([kind.short, kind.long]).T
        logarithm: Array = draw.standard_gamma(shape[chosen]) * scale[chosen]
        return logarithm

    return np.floor(np.exp(at_most(LONGEST, len(size), logarithms)))
