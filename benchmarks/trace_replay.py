"""Speed of trace replays in jobs/s: EASY compared with plain Python with the same result; conservative; other orders.

Rule: workloads are synthetic, so no external data is needed; given traces are also measured. The time is that of the
engine alone, the least of several runs; generating, writing and reading workloads are measured separately. The plain
baseline keeps queue and ends in lists and recomputes the reservation in each pass; schedules are compared to the last
bit.
"""

from __future__ import annotations

import gzip
import heapq
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from pilotfish.benchmarks.show import heading, number, simple_policy, table, timed
from pilotfish.formats.replays.swf import dump_swf, read_swf
from pilotfish.simulate.generate.models import lublin
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.policy_specs import Easy
from pilotfish.simulate.replay.node_classes import node_classes
from pilotfish.simulate.replay.replay import Replayed, replay
from pilotfish.simulate.replay.tables import Setting, tables_for

POLICIES = (
    "easy", "easy:order=sjf", "easy:order=wfp3", "strict", "conservative", "conservative:allocation=contiguous",
)  # fmt: skip


def made(jobs: int) -> tuple[Workload, int]:
    """Return a workload of Lublin and Feitelson's model, and its machine; with 1,000,000 jobs, about 5,000 wait."""
    machine, load = (256, 1.06) if jobs <= 10_000 else (1024, 1.02)
    workload = lublin(jobs, machine, kind="untyped", load=load)
    return replace(workload, name=f"lublin-{jobs:,}"), machine


def loads(traces: Path | None) -> list[tuple[Workload, int]]:
    """Return a synthetic workload of 10,000 jobs and the given ones, each with its machine."""
    real = map(read_swf, sorted(traces.glob("*.swf*"))) if traces else ()
    return [made(10_000), *((jobs, jobs.machine or int(jobs.size.max())) for jobs in real)]


def plain(jobs: Workload, machine: int) -> tuple[np.ndarray, float]:
    """Return start times under EASY and the seconds it took, in plain Python with counted resources."""
    submit, wall, size = jobs.submit_time.tolist(), jobs.walltime.tolist(), jobs.size.tolist()
    run, count = np.minimum(jobs.run_time, jobs.walltime).tolist(), len(jobs)
    start, free, ending, queue, upcoming = [math.nan] * count, machine, list[tuple[float, int]](), list[int](), 0
    began = time.perf_counter()
    while upcoming < count or ending:
        now = min(submit[upcoming] if upcoming < count else math.inf, ending[0][0] if ending else math.inf)
        while ending and ending[0][0] == now:
            free += size[heapq.heappop(ending)[1]]
        while upcoming < count and submit[upcoming] == now:
            if size[upcoming] <= machine:
                queue.append(upcoming)
            upcoming += 1
        waiting, reservation, spare = list[int](), math.inf, 0
        for i in queue:
            fits = size[i] <= free
            if waiting and fits:
                late = now + wall[i] > reservation
                fits = not late or size[i] <= spare
                spare -= size[i] if fits and late else 0
            if fits:
                start[i], free = now, free - size[i]
                heapq.heappush(ending, (now + run[i], i))
                continue
            if not waiting:
                then = free
                for end, width in sorted((start[k] + wall[k], size[k]) for _, k in ending):
                    if then >= size[i] and end > reservation:
                        break
                    then += width
                    reservation = end
                spare = then - size[i]
            waiting.append(i)
        queue = waiting
    return np.array(start), time.perf_counter() - began


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the tables."""
    heading("Traces replayed under EASY, lowest processors first; jobs/s in the engine")
    rows, recorded = [], loads(traces)
    for jobs, machine in (*recorded, made(100_000 if quick else 1_000_000)):
        results = [replay(jobs, machine, clock=time.perf_counter) for _ in range(3 if len(jobs) > 500_000 else 15)]
        best = min(result.simulation_time for result in results)
        row = [jobs.name, f"{len(jobs):,}", f"{machine:,}", number(len(jobs) / best), f"{_mean_queue(results[0]):,.0f}"]
        if len(jobs) <= 20_000:
            start, spent = plain(jobs, machine)
            same = np.array_equal(start, results[0].start_time, equal_nan=True)
            row += [number(len(jobs) / spent), f"{spent / best:,.0f}", "yes" if same else "NO"]
        else:
            row += ["-"] * 3
        rows.append(row)
    table(("trace", "jobs", "processors", "jobs/s", "mean queue", "plain Python", "ratio", "same"), rows)
    for jobs, machine in recorded:
        _policies(jobs.take(np.arange(min(len(jobs), 50_000))), machine)
    _growth(quick)
    _classes(quick)
    _files(100_000 if quick else 1_000_000)


def _growth(quick: bool) -> None:
    """Print the speed for 10,000 to 1,000,000 jobs on 100 to 100,000 processors, at the same load."""
    rows = []
    for machine in (100, 1_000, 10_000, 100_000):
        for count in (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000):
            jobs = lublin(count, machine, kind="untyped", load=0.8)
            results = [replay(jobs, machine, clock=time.perf_counter) for _ in range(3)]
            best = min(result.simulation_time for result in results)
            tables = tables_for(Setting(jobs, machine), Easy())
            size = tables.buffer.nbytes + sum(array.nbytes for array in tables.fixed.values())
            speed = number(count / best), number(best / count * 1e9)
            rows.append([f"{machine:,}", f"{count:,}", *speed, f"{size / count:,.0f}"])
    table(("processors", "jobs", "jobs/s", "ns a job", "bytes a job"), rows)


def _classes(quick: bool) -> None:
    """Print the speed of EASY for jobs that may run on some of the nodes only, all submitted at once."""
    rows = []
    for jobs in (100, 1_000) if quick else (100, 1_000, 10_000):
        rng, names = np.random.default_rng(0), [f"n{i}" for i in range(1_000)]
        sets = [frozenset(rng.choice(names, 500, replace=False).tolist()) for _ in range(4)]
        allowed = [sets[kind] for kind in rng.integers(4, size=jobs)]
        classes = node_classes(dict.fromkeys(names, 16), (), allowed)
        size, run = rng.integers(1, 500, size=jobs).tolist(), rng.exponential(3600.0, jobs)
        wall, none = run * rng.uniform(1.0, 10.0, jobs), np.empty(0, np.int64)
        call = partial(classes.start_times, size, np.zeros(jobs), run, wall, Dependencies(none, none))
        rows.append([f"{jobs:,}", len(classes), number(jobs / min(timed(call, 3)))])
    table(("jobs, on classes of 1,000 nodes", "classes", "jobs/s"), rows)


def _mean_queue(result: Replayed) -> float:
    """Return the mean number of waiting jobs over time."""
    waits = result.start_time - result.workload.submit_time
    span = np.nanmax(result.finish_time) - result.workload.submit_time[0]
    return float(np.nansum(waits) / span)


def _policies(jobs: Workload, machine: int) -> None:
    """Print the speed of all policies. Walltimes equal to run times are replaced by up to ten times as long ones."""
    if np.array_equal(jobs.walltime, jobs.run_time):
        jobs = replace(jobs, walltime=jobs.walltime * np.random.default_rng(0).uniform(1, 10, len(jobs)))
    rows = []
    for text in POLICIES if len(jobs) < 12_000 else POLICIES[:-1]:
        spent, results = 0.0, list[float]()
        while spent < 1.0:
            results.append(replay(jobs, machine, simple_policy(text), clock=time.perf_counter).simulation_time)
            spent += results[-1]
        rows.append([text, number(len(jobs) / min(results))])
    table((f"policy, on {jobs.name}", "jobs/s"), rows)


def _files(jobs: int) -> None:
    """Print the speed of generating, writing and reading a workload."""
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder) / "trace.swf", Path(folder) / "trace.swf.gz"
        text = dump_swf(lublin(jobs, 1024))
        plain.write_text(text)
        packed.write_bytes(gzip.compress(text.encode(), 6))
        calls: dict[str, Callable[[], object]] = {
            "generate, lublin": lambda: lublin(jobs, 1024),
            "to text": partial(dump_swf, lublin(jobs, 1024)),
            "read, .swf": lambda: read_swf(plain),
            "read, .swf.gz": lambda: read_swf(packed),
        }
        rows = [[name, number(jobs / min(timed(call, 3)))] for name, call in calls.items()]
    table((f"{jobs:,} jobs", "jobs/s"), rows)
