"""The grid of the piecewise-linear model, measured: one task of a rate beside one to three others of another.

Rule: a task's rate is what it moves alone, on this node, on the same day.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import crew
from .figures import figure
from .piecewise import Sample

#: Steps of computing after each block of a triad: from nothing but memory to hardly any.
EXTRAS = (0, 100, 200, 400, 800, 1600, 3200, 6400)
#: Of them, those of the others.
BESIDE = (0, 200, 800)
MOST_OTHERS = 3
_RUNS = 3
_SHORTEST_S = 0.01


def measure(cpus: Sequence[int], seconds: float, size: int) -> list[Sample]:
    """Return a sample for the one task, and one for each of the others, of every mix.

    Args:
        cpus: of one memory channel, at least 2.
        seconds: for all of it.
        size: elements of each array of a task; one task's arrays are to be larger than the caches.
    """
    most = min(MOST_OTHERS, len(cpus) - 1)
    each = max(_SHORTEST_S, seconds / (_RUNS * (len(EXTRAS) + len(EXTRAS) * len(BESIDE) * most)))

    arrays = [crew.touched_from(cpu, size) for cpu in cpus[: most + 1]]

    def rates(extras: Sequence[int]) -> list[float]:
        """Bytes/s of each task, all of them at once."""
        runs = crew.side_by_side(cpus[: len(extras)], lambda i: crew.streaming(size, extras[i], arrays[i]), each, _RUNS)
        return [figure(task).value for task in zip(*(run.rates for run in crew.undisturbed(runs)), strict=True)]

    alone = {extra: rates([extra])[0] / 1e6 for extra in EXTRAS}
    samples = []
    for others in range(1, most + 1):
        for extra in EXTRAS:
            for beside in BESIDE:
                tasks = [extra, *[beside] * others]
                total = sum(alone[task] for task in tasks)
                for task, rate in zip(tasks, rates(tasks), strict=True):
                    samples.append(Sample(alone[task], total, others, rate / 1e6 / alone[task]))
    return samples
