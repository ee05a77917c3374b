"""Traces replayed under EASY, exact resources: jobs a second in the engine, against plain Python with the same result.

Rule: the time is the engine's alone, the least of several runs; reading is measured by itself. The plain one keeps its
queue and its ends in lists and re-reserves in each pass; both schedules are compared to the last bit.
"""

from __future__ import annotations

import gzip
import heapq
import math
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from pilotfish.simulate.batch.replay import Replayed, replay
from pilotfish.simulate.batch.spec import parse
from pilotfish.simulate.formats.swf import read_swf
from pilotfish.simulate.workload import Workload

from .show import heading, number, table

POLICIES = (
    "easy", "easy:order=sjf", "easy:order=wfp3", "strict", "conservative", "conservative:allocation=contiguous",
)  # fmt: skip


def saturated(jobs: int, seed: int = 3) -> tuple[Workload, int]:
    """A trace under which thousands wait: arrivals a little faster than the machine can serve, in bursts."""
    draw, machine = np.random.default_rng(seed), 1024
    size = np.minimum(2 ** draw.integers(0, 9, jobs), machine)
    run = np.ceil(draw.lognormal(6.0, 1.5, jobs))
    wall = np.ceil(run * draw.uniform(1.0, 4.0, jobs))
    span = float((size * run).sum()) / machine
    submit = np.sort(np.floor(draw.uniform(0.0, span * 0.99, jobs)))
    return Workload("saturated", np.arange(1, jobs + 1), submit, run, wall, size.astype(np.int64)), machine


def plain(jobs: Workload, machine: int) -> tuple[np.ndarray, float]:
    """Starts under EASY, and seconds, in plain Python; counts resources only."""
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
        left, reservation, spare = list[int](), math.inf, 0
        for i in queue:
            fits = size[i] <= free
            if left and fits:
                late = now + wall[i] > reservation
                fits = not late or size[i] <= spare
                spare -= size[i] if fits and late else 0
            if fits:
                start[i], free = now, free - size[i]
                heapq.heappush(ending, (now + run[i], i))
                continue
            if not left:
                then = free
                for end, width in sorted((start[k] + wall[k], size[k]) for _, k in ending):
                    if then >= size[i] and end > reservation:
                        break
                    then += width
                    reservation = end
                spare = then - size[i]
            left.append(i)
        queue = left
    return np.array(start), time.perf_counter() - began


def measure(quick: bool, traces: Path | None = None) -> None:
    """Print the tables."""
    heading("Traces replayed under EASY, lowest processors first; jobs/s in the engine")
    found = [(path, read_swf(path)) for path in sorted(traces.glob("*.swf*"))] if traces else []
    loads = [(jobs, jobs.machine or int(jobs.size.max())) for _, jobs in found]
    loads += [saturated(20_000 if quick else 100_000), saturated(100_000 if quick else 1_000_000)]
    rows = []
    for jobs, machine in loads:
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
    for load in loads[: max(1, len(found))]:
        _policies(load if len(load[0]) <= 50_000 else saturated(5_000))
    _reading([path for path, _ in found])


def _mean_queue(result: Replayed) -> float:
    """Jobs that wait, in the mean over time."""
    waits = result.start_time - result.workload.submit_time
    span = np.nanmax(result.finish_time) - result.workload.submit_time[0]
    return float(np.nansum(waits) / span)


def _policies(load: tuple[Workload, int]) -> None:
    """Walltimes are the trace's; where it knows none (they are the run times), drawn: up to ten times as long."""
    jobs, machine = load
    if np.array_equal(jobs.walltime, jobs.run_time):
        jobs = replace(jobs, walltime=jobs.walltime * np.random.default_rng(0).uniform(1, 10, len(jobs)))
    rows = []
    for text in POLICIES if len(jobs) < 12_000 else POLICIES[:-1]:
        spent, results = 0.0, list[float]()
        while spent < 1.0:
            results.append(replay(jobs, machine, parse(text), clock=time.perf_counter).simulation_time)
            spent += results[-1]
        rows.append([text, number(len(jobs) / min(results))])
    table((f"policy, on {jobs.name}", "jobs/s"), rows)


def _reading(paths: list[Path]) -> None:
    """Lines a second of SWF, as one large file."""
    text = gzip.decompress(paths[0].read_bytes()) if paths and paths[0].suffix == ".gz" else None
    line = b"17 1234 -1 5678 16 -1 -1 16 7200 -1 1 42 7 -1 1 1 -1 -1\n"
    data = text * (64_000_000 // len(text)) if text else line * 1_000_000
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("trace.swf", data), ("trace.swf.gz", gzip.compress(data, 6))):
            path = Path(folder) / name
            path.write_bytes(content)
            spent = []
            for _ in range(3):
                began = time.perf_counter()
                read_swf(path)
                spent.append(time.perf_counter() - began)
            lines = data.count(b"\n")
            rows.append([name, f"{lines:,}", number(lines / min(spent))])
    table(("reading", "lines", "lines/s"), rows)
