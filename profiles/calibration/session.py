"""A calibration from beginning to end: what is measured on this node, in which order, for how long.

Rule: a part that cannot be measured here leaves a note and no number; the others go on.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from ...simulate.platform import CpuSharing
from . import crew, grid, sharing, sleepers, watts
from .choice import choose
from .curve import CurveFit, fit_curve
from .figures import Figure, figure
from .kernels import BYTES
from .line import fit_power
from .machine import Machine, machine
from .mixes import samples
from .piecewise import fit_piecewise
from .result import Calibration, Point
from .unbound import EVERY, RemoteFit, Sample, fit_remote
from .waiting import WaitFit, fit_waiting

#: Runs of each number; thread counts of a curve at the most.
RUNS, MOST_POINTS = 5, 12
#: What the arrays of a curve take together: so many times the last-level caches, but not more than so much of the
#: free memory.
CACHES, OF_FREE = 4, 0.125
_USUAL_CACHE = 64 * 2**20
_SHORTEST_S = 0.01
#: Shares of the time that each part may take.
_CURVE, _SPEED, _SHARING, _REMOTE, _UNBOUND, _POWER = 0.35, 0.15, 0.1, 0.1, 0.1, 0.2
#: And of the time of jobs in company.
_MIXES, _WAITING = 0.6, 0.4
Tell = Callable[[str], None]


@dataclass
class _Bench:
    """What the parts have in common."""

    node: Machine
    seconds: float
    tell: Tell
    notes: list[str] = field(default_factory=list)
    runs: list[crew.Run] = field(default_factory=list)

    def load(self, cpus: Sequence[int], prepare: Callable[[int], crew.Chunk], seconds: float) -> list[float]:
        """Return what threads did a second together, in the runs in which they were alone."""
        runs = crew.side_by_side(cpus, prepare, seconds, RUNS)
        self.runs += runs
        return [sum(run.rates) for run in crew.undisturbed(runs)]

    def each(self, share: float, parts: int) -> float:
        """Seconds of one run, where `parts` numbers share a share of the time."""
        return max(_SHORTEST_S, self.seconds * share / (RUNS * parts))


def calibrate(seconds: float, *, with_grid: bool = False, tell: Tell = lambda text: None) -> Calibration:
    """Measure this node, on the CPUs that this process may use.

    Args:
        seconds: that measuring takes; touching memory and starting come on top, and the shortest run is 10 ms.
        with_grid: also measure tasks and jobs in company, for as long again.
        tell: called with a line before each part.
    """
    bench = _Bench(machine(), seconds, tell)
    node, date = bench.node, datetime.now(UTC).isoformat(timespec="seconds")
    crew.warm_up()
    curve = _curve(bench)
    bound = [(point.count, rate) for point, rates in curve for rate in rates]
    bandwidth = fit_curve([count for count, _ in bound], [rate for _, rate in bound])
    share = _share(bench)
    energy = _watts(bench)
    found = Calibration(
        date=date,
        model=node.model,
        host=platform.node(),
        cpus=tuple(sorted(node.cpus)),
        sockets=len(node.sockets),
        memory=node.memory,
        frequency=node.frequency,
        curve=tuple(point for point, _ in curve),
        bandwidth=bandwidth,
        speed=_speed(bench),
        share=share,
        sharing=None if share is None else sharing.kind(share),
        remote=_remote(bench),
        unbound=_unbound(bench, bandwidth, bound),
        watts=tuple(Point(count, figure(values)) for count, values in energy.items()),
        power=fit_power(
            [n for n, values in energy.items() for _ in values], [watt for values in energy.values() for watt in values]
        ),
    )
    if with_grid:
        found = _in_company(bench, found)
    _remark(bench, found)
    return replace(found, notes=tuple(bench.notes))


def counts(cpus: int) -> list[int]:
    """Numbers of threads that a curve is measured at: 1, 2, 3, 4, 6, 8, 12, ..., and all."""
    usual = [n for power in range(20) for n in (2**power, 3 * 2**power // 2) if n < cpus]
    chosen = sorted({*usual, cpus})
    return chosen if len(chosen) <= MOST_POINTS else sorted({*chosen[:: -(-len(chosen) // (MOST_POINTS - 1))], cpus})


def _curve(bench: _Bench) -> list[tuple[Point, list[float]]]:
    """Bandwidth of 1, 2, ... all threads together, run by run."""
    node, found = bench.node, []
    total, wanted = _elements(node) * BYTES, CACHES * (node.cache or _USUAL_CACHE)
    if total < 0.99 * wanted:
        bench.notes.append(
            f"the arrays took {total / 2**20:.0f} MiB, less than {CACHES} x the last-level caches: "
            "part of the bandwidth may be theirs"
        )
    points = counts(len(node.cpus))
    for n in points:
        bench.tell(f"memory bandwidth, {n} of {len(node.cpus)} threads")
        work = partial(_stream, _elements(node, n))
        rates = bench.load(node.cpus[:n], work, bench.each(_CURVE, len(points)))
        found.append((Point(n, figure(rates)), rates))
    return found


def _stream(size: int, _: int) -> crew.Chunk:
    return crew.streaming(size)


def _compute(_: int) -> crew.Chunk:
    return crew.computing()


def _elements(node: Machine, threads: int = 1) -> int:
    """Elements of each array of a thread, such that the caches keep hardly any of them."""
    return max(1, int(min(CACHES * (node.cache or _USUAL_CACHE), OF_FREE * node.free) / BYTES / threads))


def _speed(bench: _Bench) -> Figure:
    """Steps of the reference loop in a second on a core, one core after the other; of a large node, of some cores."""
    bench.tell("speed of the cores")
    cpus = bench.node.cpus
    chosen = cpus[:: -(-len(cpus) // MOST_POINTS)]
    seconds = bench.each(_SPEED, len(chosen))
    runs = [run for cpu in chosen for run in crew.side_by_side([cpu], _compute, seconds, RUNS)]
    bench.runs += runs
    return figure([run.rates[0] / run.on_core for run in runs])


def _share(bench: _Bench) -> Figure | None:
    bench.tell("how jobs share a core")
    try:
        share = figure(sharing.shares(bench.node.cpus[-1], bench.each(_SHARING, 1), RUNS))
    except OSError as error:
        bench.notes.append(f"how cores are shared is not known: {error}")
        return None
    if sharing.kind(share) is None:
        bench.notes.append(
            f"how cores are shared is not clear: a job beside one of three processes got {share.value:.0%} of a core"
        )
    return share


def _remote(bench: _Bench) -> Figure | None:
    """Time to stream the memory of the farthest node by that of its own, both by one thread."""
    nodes = bench.node.memory_nodes
    if len(nodes) < 2:
        return None
    bench.tell("remote memory")
    size = _elements(bench.node)
    near, *others = (cpus[0] for cpus in nodes)
    seconds = bench.each(_REMOTE, len(nodes))

    def rates(home: int) -> list[float]:
        arrays = crew.touched_from(home, size)
        return bench.load([near], lambda _: crew.streaming(size, arrays=arrays), seconds)

    local = rates(near)
    remote = min((rates(other) for other in others), key=lambda found: figure(found).value)
    return figure([figure(local).value / rate for rate in remote])


def _unbound(bench: _Bench, curve: CurveFit, bound: list[Sample]) -> RemoteFit | None:
    """What it costs all that every fourth thread streams the memory of another node."""
    node = bench.node
    if len(node.memory_nodes) < 2:
        return None
    points = [n for n in counts(len(node.cpus)) if n >= EVERY and n * curve.per_thread.value > curve.most.value]
    if not curve.saturated or not points:
        return None
    bench.tell("remote memory, under contention")
    found = []
    for n in points:
        work = partial(_stream_away, node, _elements(node, n))
        found += [(n, rate) for rate in bench.load(node.cpus[:n], work, bench.each(_UNBOUND, len(points)))]
    return fit_remote(curve, bound, found)


def _stream_away(node: Machine, size: int, number: int) -> crew.Chunk:
    """A stream of a thread's own memory; every fourth thread's is on the next memory node."""
    if number % EVERY != EVERY - 1:
        return crew.streaming(size)
    homes = node.memory_nodes
    own = next((i for i, cpus in enumerate(homes) if node.cpus[number] in cpus), 0)
    return crew.streaming(size, arrays=crew.touched_from(homes[(own + 1) % len(homes)][0], size))


def _watts(bench: _Bench) -> dict[int, list[float]]:
    """Busy cores -> watts of the processors, run by run; empty where no counter can be read."""
    if not watts.read_counters():
        bench.notes.append("power is not known: no energy counter can be read (RAPL: root may, most users may not)")
        return {}
    busy = [0, *counts(len(bench.node.cpus))]
    seconds, found = bench.each(_POWER, len(busy)), dict[int, list[float]]()
    for n in busy:
        bench.tell(f"power, {n} cores busy")
        for _ in range(RUNS):
            before, begin = watts.read_counters(), time.perf_counter()
            if n:
                crew.side_by_side(bench.node.cpus[:n], _compute, seconds, 1)
            else:
                time.sleep(seconds)
            used = watts.joules(before, watts.read_counters())
            if used is not None:
                found.setdefault(n, []).append(used / (time.perf_counter() - begin))
    return found


def _in_company(bench: _Bench, found: Calibration) -> Calibration:
    """With the contention model that describes mixes of tasks best, and how long jobs that sleep wait for a core."""
    cpus = bench.node.sockets[0]
    if len(cpus) < 2:
        bench.notes.append("no tasks in company were measured: a socket has one core")
    else:
        bench.tell("tasks in company")
        mixes = grid.measure(cpus, _MIXES * bench.seconds, partial(_elements, bench.node))
        fitted = fit_piecewise(samples(mixes))
        if fitted is None:
            bench.notes.append(
                f"no piecewise-linear model: it needs two others beside a task, and a socket has {len(cpus)} cores"
            )
        elif not fitted.trusted:
            bench.notes.append("no piecewise-linear model: the mixes do not determine its constants (see the JSON)")
        found = replace(found, piecewise=fitted, choice=choose(mixes, fitted))
    return replace(found, waiting=_waiting(bench)) if found.sharing is CpuSharing.PER_JOB else found


def _waiting(bench: _Bench) -> WaitFit | None:
    bench.tell("how long jobs that sleep wait for a core")
    try:
        fitted = fit_waiting(sleepers.measure(bench.node.cpus[-1], _WAITING * bench.seconds))
    except OSError as error:
        bench.notes.append(f"how long jobs that sleep wait for a core is not known: {error}")
        return None
    if fitted is None or not fitted.trusted:
        bench.notes.append(
            "how long jobs that sleep wait is not clear, or others were on their core: queueing is left to its default"
        )
    return fitted


def _remark(bench: _Bench, found: Calibration) -> None:
    """Say what limits the numbers."""
    if not found.bandwidth.saturated:
        bench.notes.append("all threads together do not saturate the memory: memory_bandwidth is a lower bound")
    if bench.node.hardware_threads > 1:
        bench.notes.append(f"{bench.node.hardware_threads} hardware threads of a core count as cores of their own")
    crowded = [run.on_core for run in bench.runs if run.on_core < crew.ALONE]
    if len(crowded) > len(bench.runs) / 10:
        bench.notes.append(
            f"the node was not idle: in {len(crowded)} of {len(bench.runs)} runs other programs were on the cores, for "
            f"{1 - min(crowded):.0%} of the time at worst; calibrate again when it is"
        )
