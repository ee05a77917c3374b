"""A calibration: the parts measured on this node, their order and their time.

Rule: a part that cannot be measured leaves a note and no number; the others continue.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from ...formats.text import count, percent
from ...simulate.model.cluster import CpuSharing
from . import cpu_sharing, load_generators
from .bandwidth import EVERY, CurveFit, RemoteFit, Sample, fit_curve, fit_remote
from .cpu_sharing import WaitFit, fit_waiting, measure_waits
from .fits import choose, fit_piecewise, samples
from .load_generators import BYTES
from .node_hardware import NodeHardware, read_hardware
from .power_line import fit_power, joules, package_energy
from .result import NOT_IDLE, Calibration, Point
from .statistics import MeasuredNumber, figure

#: Runs of each number; most thread counts of a curve.
RUNS, MOST_POINTS = 5, 12
#: Total size of a curve's arrays: so many times the last-level caches, at most this share of the free memory.
CACHES, OF_FREE = 4, 0.125
_USUAL_CACHE = 64 * 2**20
#: Share of the time for each part.
_CURVE, _SPEED, _SHARING, _REMOTE, _UNBOUND, _POWER = 0.35, 0.15, 0.1, 0.1, 0.1, 0.2
#: Shares of the time for mixes.
_MIXES, _WAITING = 0.6, 0.4
Progress = Callable[[str], None]


@dataclass
class _Bench:
    """State shared by the parts."""

    node: NodeHardware
    seconds: float
    progress: Progress
    notes: list[str] = field(default_factory=list)
    runs: list[load_generators.LoadRun] = field(default_factory=list)

    def load(self, cpus: Sequence[int], prepare: Callable[[int], load_generators.Chunk], seconds: float) -> list[float]:
        runs = load_generators.side_by_side(cpus, prepare, seconds, RUNS)
        self.runs += runs
        return [sum(run.rates) for run in load_generators.undisturbed(runs)]

    def each(self, share: float, parts: int) -> float:
        """Return the seconds of one run, if `parts` numbers share this share of the time."""
        return max(load_generators.SHORTEST_S, self.seconds * share / (RUNS * parts))


def calibrate(seconds: float, *, with_grid: bool = False, progress: Progress = lambda text: None) -> Calibration:
    """Measure this node, on the CPUs that this process may use.

    Args:
        seconds: time of all measurements; setup comes on top, and the shortest run is 10 ms.
        with_grid: also measure mixes of tasks and jobs, for as long again.
        progress: called with a line before each part.
    """
    bench = _Bench(read_hardware(), seconds, progress)
    node, date = bench.node, datetime.now(UTC).isoformat(timespec="seconds")
    load_generators.warm_up()
    curve = _curve(bench)
    bound = [(point.count, rate) for point, rates in curve for rate in rates]
    bandwidth = fit_curve([count for count, _ in bound], [rate for _, rate in bound])
    share = _share(bench)
    energy = _watts(bench)
    watts = [(n, watt) for n, values in energy.items() for watt in values]
    calibration = Calibration(
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
        sharing=None if share is None else cpu_sharing.sharing_of(share),
        remote=_remote(bench),
        unbound=_unbound(bench, bandwidth, bound),
        watts=tuple(Point(count, figure(values)) for count, values in energy.items()),
        power=fit_power([n for n, _ in watts], [watt for _, watt in watts]),
    )
    if with_grid:
        calibration = _with_mixes(bench, calibration)
    _note_limits(bench, calibration)
    return replace(calibration, notes=tuple(bench.notes))


def counts(cpus: int) -> list[int]:
    """Return the thread counts of a curve: 1, 2, 3, 4, 6, 8, 12, ..., and all."""
    usual = [n for power in range(20) for n in (2**power, 3 * 2**power // 2) if n < cpus]
    chosen = sorted({*usual, cpus})
    return chosen if len(chosen) <= MOST_POINTS else sorted({*chosen[:: -(-len(chosen) // (MOST_POINTS - 1))], cpus})


def _curve(bench: _Bench) -> list[tuple[Point, list[float]]]:
    """Return the bandwidth of 1, 2, ... all threads together, run by run."""
    node, curve = bench.node, []
    total, least_size = _elements(node) * BYTES, CACHES * (node.cache or _USUAL_CACHE)
    if total < 0.99 * least_size:
        bench.notes.append(
            f"the arrays took {total / 2**20:.0f} MiB, less than {CACHES} x the last-level caches: "
            "part of the bandwidth may be that of the caches"
        )
    points = counts(len(node.cpus))
    for n in points:
        bench.progress(f"memory bandwidth, {n} of {count(len(node.cpus), 'thread')}")
        rates = bench.load(node.cpus[:n], partial(_stream, node, _elements(node, n)), bench.each(_CURVE, len(points)))
        curve.append((Point(n, figure(rates)), rates))
    return curve


def _compute(_: int) -> load_generators.Chunk:
    return load_generators.compute_chunk


def _elements(node: NodeHardware, threads: int = 1) -> int:
    """Return the elements of each array of a thread, large enough that caches keep hardly any."""
    return max(1, int(min(CACHES * (node.cache or _USUAL_CACHE), OF_FREE * node.free) / BYTES / threads))


def _speed(bench: _Bench) -> MeasuredNumber:
    """Return the steps/s of the reference loop, one core after another; on a large node, for some cores."""
    bench.progress("speed of the cores")
    cpus = bench.node.cpus
    chosen = cpus[:: -(-len(cpus) // MOST_POINTS)]
    seconds = bench.each(_SPEED, len(chosen))
    runs = [run for cpu in chosen for run in load_generators.side_by_side([cpu], _compute, seconds, RUNS)]
    bench.runs += runs
    return figure([run.rates[0] / run.on_core for run in runs])


def _share(bench: _Bench) -> MeasuredNumber | None:
    bench.progress("how jobs share a core")
    try:
        share = figure(cpu_sharing.shares(bench.node.cpus[-1], bench.each(_SHARING, 1), RUNS))
    except OSError as error:
        bench.notes.append(f"how cores are shared is unknown: {error}")
        return None
    if cpu_sharing.sharing_of(share) is None:
        bench.notes.append(
            f"how cores are shared is unclear: next to one of three processes, one got {percent(share.value)} of a core"
        )
    return share


def _remote(bench: _Bench) -> MeasuredNumber | None:
    """Return the time to stream the farthest node's memory / that of its own, both by one thread."""
    nodes = bench.node.memory_nodes
    if len(nodes) < 2:
        return None
    bench.progress("remote memory")
    size = _elements(bench.node)
    near, *others = (cpus[0] for cpus in nodes)
    seconds = bench.each(_REMOTE, len(nodes))

    def rates(home: int) -> list[float]:
        arrays = load_generators.touched_from(home, size)
        return bench.load([near], lambda _: load_generators.streaming(size, arrays=arrays), seconds)

    local = rates(near)
    remote = min((rates(other) for other in others), key=lambda found: figure(found).value)
    return figure([figure(local).value / rate for rate in remote])


def _unbound(bench: _Bench, curve: CurveFit, bound: list[Sample]) -> RemoteFit | None:
    """Return the cost of remote memory under contention, with every fourth thread on another node's memory."""
    node = bench.node
    if len(node.memory_nodes) < 2:
        return None
    points = [n for n in counts(len(node.cpus)) if n >= EVERY and n * curve.per_thread.value > curve.most.value]
    if not curve.saturated or not points:
        return None
    bench.progress("remote memory, under contention")
    unbound_rates = []
    for n in points:
        work = partial(_stream, node, _elements(node, n), unbound=True)
        unbound_rates += [(n, rate) for rate in bench.load(node.cpus[:n], work, bench.each(_UNBOUND, len(points)))]
    return fit_remote(curve, bound, unbound_rates)


def _stream(node: NodeHardware, size: int, number: int, *, unbound: bool = False) -> load_generators.Chunk:
    """Return a stream of a thread's own memory; of unbound ones, every fourth thread's is on the next memory node."""
    if not unbound or number % EVERY != EVERY - 1:
        return load_generators.streaming(size)
    homes = node.memory_nodes
    home = next((i for i, cpus in enumerate(homes) if node.cpus[number] in cpus), 0)
    return load_generators.streaming(size, arrays=load_generators.touched_from(homes[(home + 1) % len(homes)][0], size))


def _watts(bench: _Bench) -> dict[int, list[float]]:
    """Return busy cores -> watts of the processors, run by run; empty without a readable counter."""
    if not package_energy():
        bench.notes.append("power is unknown: no energy counter can be read (RAPL is mostly readable by root only)")
        return {}
    busy = [0, *counts(len(bench.node.cpus))]
    seconds, watts = bench.each(_POWER, len(busy)), dict[int, list[float]]()
    for n in busy:
        bench.progress(f"power, {count(n, 'core')} busy")
        for _ in range(RUNS):
            before, begin = package_energy(), time.perf_counter()
            if n:
                load_generators.side_by_side(bench.node.cpus[:n], _compute, seconds, 1)
            else:
                time.sleep(seconds)
            used = joules(before, package_energy())
            if used is not None:
                watts.setdefault(n, []).append(used / (time.perf_counter() - begin))
    return watts


def _with_mixes(bench: _Bench, calibration: Calibration) -> Calibration:
    """Return the calibration with the best contention model of task mixes, and the waiting of sleeping jobs."""
    cpus = bench.node.sockets[0]
    if len(cpus) < 2:
        bench.notes.append("no mixes of tasks were measured: a socket has one core")
    else:
        bench.progress("mixes of tasks")
        mixes = load_generators.measure_mixes(cpus, _MIXES * bench.seconds, partial(_elements, bench.node))
        fitted = fit_piecewise(samples(mixes))
        if fitted is None:
            bench.notes.append(
                f"no piecewise-linear model: a socket has {count(len(cpus), 'core')}, and it needs three tasks"
            )
        elif not fitted.trusted:
            bench.notes.append("no piecewise-linear model: the mixes do not determine its constants (see the JSON)")
        calibration = replace(calibration, piecewise=fitted, choice=choose(mixes, fitted))
    return replace(calibration, waiting=_waiting(bench)) if calibration.sharing is CpuSharing.PER_JOB else calibration


def _waiting(bench: _Bench) -> WaitFit | None:
    bench.progress("how long sleeping jobs wait for a core")
    try:
        fitted = fit_waiting(measure_waits(bench.node.cpus[-1], _WAITING * bench.seconds))
    except OSError as error:
        bench.notes.append(f"how long sleeping jobs wait for a core is unknown: {error}")
        return None
    if fitted is None or not fitted.trusted:
        bench.notes.append(
            "how long sleeping jobs wait is unclear, or others used their core: queueing keeps its default"
        )
    return fitted


def _note_limits(bench: _Bench, calibration: Calibration) -> None:
    if not calibration.bandwidth.saturated:
        bench.notes.append("all threads together do not saturate the memory: memory_bandwidth is a lower bound")
    if bench.node.hardware_threads > 1:
        bench.notes.append(f"{bench.node.hardware_threads} hardware threads of a core count as cores of their own")
    disturbed = [run.on_core for run in bench.runs if run.on_core < load_generators.ALONE]
    if len(disturbed) > len(bench.runs) / 10:
        bench.notes.append(
            f"{NOT_IDLE}: in {len(disturbed)} of {count(len(bench.runs), 'run')} other programs used the cores, for "
            f"up to {percent(1 - min(disturbed))} of the time; calibrate again when it is idle"
        )
