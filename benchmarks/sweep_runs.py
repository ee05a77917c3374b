"""Speed of sweeps of many short runs with one and two processes, compared with the same replays in a plain loop.

Rule: the time of a sweep includes its processes, journal and tables; the loop reads the trace once, stores nothing, and
measures the engine separately.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pilotfish.benchmarks.show import heading, number, table
from pilotfish.benchmarks.trace_replay import made as workload_of
from pilotfish.cli.sweeps.prepare import Prepared, check, prepare
from pilotfish.cli.sweeps.results import ResultsTable, conduct
from pilotfish.cli.sweeps.run_journal import RunJournal
from pilotfish.cli.sweeps.tasks import carry_out
from pilotfish.cli.sweeps.workers import Processes
from pilotfish.formats.replays.swf import dump_swf
from pilotfish.simulate.kernels.object_cache import load

STUDY = """
schema: pilotfish/sweep/v1
workloads: [%s]
policies: [{policy: easy, order: [fcfs, sjf, smallest]}]
seeds: %d
"""


def measure(quick: bool) -> None:
    """Print the table."""
    heading("Sweeps under EASY, three orders: runs/s, and milliseconds per run in the engine and outside")
    for kernel in ("swf.parser", "queue.easy"):
        load(kernel)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for jobs, seeds in ((200, 100 if quick else 1000), (10_000, 20 if quick else 200)):
            path = Path(folder) / f"study-{jobs}.yaml"
            path.write_text(STUDY % (_trace(Path(folder), jobs), seeds))
            prepared = prepare(path)
            alone, engine = _loop(prepared)
            for workers in range(1, 1 + min(2, os.cpu_count() or 1)):
                spent = _sweep(prepared, Path(folder) / f"{jobs}-{workers}", workers) / len(prepared.runs)
                overhead = spent * workers - engine
                rows.append([f"{jobs:,}", workers, f"{len(prepared.runs):,}", number(1 / spent), number(1 / alone),
                             number(engine * 1e3), number(overhead * 1e3)])  # fmt: skip
    table(("jobs", "processes", "runs", "runs/s", "plain loop", "engine ms", "other ms"), rows)


def _trace(folder: Path, jobs: int) -> str:
    """Write a trace and return its name."""
    workload, machine = workload_of(jobs)
    path = folder / f"{jobs}.swf"
    path.write_text(dump_swf(replace(workload, machine=machine)))
    return path.name


def _loop(prepared: Prepared) -> tuple[float, float]:
    """Return the mean seconds of a run, and of its part in the engine."""
    carry_out(prepared.tasks[0])
    began = time.perf_counter()
    engine = sum(carry_out(task)["simulation_time"] for task in prepared.tasks)
    return (time.perf_counter() - began) / len(prepared.tasks), engine / len(prepared.tasks)


def _sweep(prepared: Prepared, folder: Path, workers: int) -> float:
    """Return the seconds of a whole sweep."""
    began = time.perf_counter()
    with Processes(workers) as pool:
        check(prepared, prepared.tasks, pool)
        with RunJournal(folder / "journal.jsonl") as journal:
            rows = ResultsTable(folder / "results.csv", prepared.columns)
            conduct(prepared, pool, journal, rows, lambda ended: None)
            rows.write()
    return time.perf_counter() - began
