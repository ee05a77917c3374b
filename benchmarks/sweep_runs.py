"""Sweeps of many short runs: runs a second with one process and with two, against the same replays in a plain loop.

Rule: a sweep is timed whole, its processes, its journal and its tables included; the loop reads the trace once, keeps
nothing and measures the engine by itself.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pilotfish.daemon.sweep.conduct import conduct
from pilotfish.daemon.sweep.crew import Processes
from pilotfish.daemon.sweep.journal import Journal
from pilotfish.daemon.sweep.prepared import Prepared, check, prepare
from pilotfish.daemon.sweep.table import Table
from pilotfish.daemon.sweep.task import carry_out
from pilotfish.simulate.formats.swf_write import dump_swf
from pilotfish.simulate.kernels import load

from .show import heading, number, table
from .trace_replay import made as workload_of

STUDY = """
schema: pilotfish/sweep/v1
workloads: [%s]
policies: [{policy: easy, order: [fcfs, sjf, smallest]}]
seeds: %d
"""


def measure(quick: bool) -> None:
    """Print the table."""
    heading("Sweeps under EASY, three orders: runs/s, and milliseconds of a run beside the engine's own")
    for kernel in ("batch.swf", "batch.easy"):
        load(kernel)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for jobs, seeds in ((200, 100 if quick else 1000), (10_000, 20 if quick else 200)):
            path = Path(folder) / f"study-{jobs}.yaml"
            path.write_text(STUDY % (_trace(Path(folder), jobs), seeds))
            made = prepare(path)
            alone, engine = _loop(made)
            for workers in range(1, 1 + min(2, os.cpu_count() or 1)):
                spent = _sweep(made, Path(folder) / f"{jobs}-{workers}", workers) / len(made.runs)
                beside = spent * workers - engine
                rows.append([f"{jobs:,}", workers, f"{len(made.runs):,}", number(1 / spent), number(1 / alone),
                             number(engine * 1e3), number(beside * 1e3)])  # fmt: skip
    table(("jobs", "processes", "runs", "runs/s", "plain loop", "engine ms", "beside it ms"), rows)


def _trace(folder: Path, jobs: int) -> str:
    """The name of a trace that is written there."""
    workload, machine = workload_of(jobs)
    path = folder / f"{jobs}.swf"
    path.write_text(dump_swf(replace(workload, machine=machine)))
    return path.name


def _loop(made: Prepared) -> tuple[float, float]:
    """Seconds of a run, and those of them in the engine, in the mean."""
    carry_out(made.tasks[0])
    began = time.perf_counter()
    engine = sum(carry_out(task)["simulation_time"] for task in made.tasks)
    return (time.perf_counter() - began) / len(made.tasks), engine / len(made.tasks)


def _sweep(made: Prepared, folder: Path, workers: int) -> float:
    """Seconds of a whole sweep."""
    began = time.perf_counter()
    with Processes(workers) as crew:
        check(made, made.tasks, crew)
        with Journal(folder / "journal.jsonl") as journal:
            rows = Table(folder / "results.csv", made.columns)
            conduct(made, crew, journal, rows, lambda ended: None)
            rows.write()
    return time.perf_counter() - began
