"""Measured mixes of tasks that stream at different rates: one next to a few, all cores busy, more tasks than cores.

Rule: a task's rate is measured alone, on the same node and day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from . import load_generators
from .fits import Mix
from .statistics import figure

#: Computing steps after each block of a triad: from pure streaming to hardly any traffic.
EXTRAS = (0, 100, 200, 400, 800, 1600, 3200, 6400)
#: Those of the other tasks.
BESIDE = (0, 200, 800)
MOST_OTHERS = 3
_RUNS = 3
_SHORTEST_S = 0.01


def mixes(cpus: int) -> Iterator[list[int]]:
    """Yield the mixes for so many cores, as the computing steps of each task.

    The first task next to one to three others; then halves of all cores; then twice as many tasks as cores.
    """
    for others in range(1, min(MOST_OTHERS, cpus - 1) + 1):
        for extra in EXTRAS:
            for beside in BESIDE:
                yield [extra, *[beside] * others]
    if cpus > MOST_OTHERS + 1:
        for extra in EXTRAS:
            yield [EXTRAS[0] if i % 2 else extra for i in range(cpus)]
    yield [EXTRAS[0]] * (2 * cpus)


def measure(cpus: Sequence[int], seconds: float, size: Callable[[int], int]) -> list[Mix]:
    """Return every mix.

    Args:
        cpus: of one memory channel, at least 2.
        seconds: for all mixes.
        size: number of tasks -> elements of each array of one; arrays should be larger than the caches.
    """
    few = min(MOST_OTHERS, len(cpus) - 1) + 1
    plans = list(mixes(len(cpus)))
    each = max(_SHORTEST_S, seconds / (_RUNS * (len(EXTRAS) + len(plans))))
    arrays = [load_generators.touched_from(cpu, size(2)) for cpu in cpus[:few]]

    def rates(extras: Sequence[int]) -> list[float]:
        """Bytes/s of each task, all of them at once."""
        tasks = len(extras)

        def prepare(i: int) -> load_generators.Chunk:
            kept = arrays[i] if tasks <= few else None
            return load_generators.streaming(size(2) if kept else size(tasks), extras[i], kept)

        runs = load_generators.side_by_side([cpus[i % len(cpus)] for i in range(tasks)], prepare, each, _RUNS)
        return [
            figure(task).value for task in zip(*(run.rates for run in load_generators.undisturbed(runs)), strict=True)
        ]

    alone = {extra: rates([extra])[0] / 1e6 for extra in EXTRAS}
    return [
        Mix(len(cpus), tuple(alone[task] for task in tasks),
            tuple(rate / 1e6 / alone[task] for task, rate in zip(tasks, rates(tasks), strict=True)))
        for tasks in plans
    ]  # fmt: skip
