"""Overhead of profiling: run time and core time with and without `profile run`, and the CPU time of local job keepers.

Rule: each pair is one run without and one with the profiler, in alternating order. The median of the pairs' ratios is
reported, because the load of the machine changes. The profiler's own share of a core includes its start and end.
Keepers are measured while no job starts or ends.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

from pilotfish.adapters.local import create
from pilotfish.benchmarks.show import heading, number, table
from pilotfish.profiles.measure.command import measure as profiled
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.model.plan import Cancel, Submit

#: Run time and core time of the program, seconds; share of a core that the profiler used meanwhile.
Cost = tuple[float, float, float]
Run = Callable[[Sequence[str]], Cost]
BURN = "import time\nwhile time.thread_time() < {seconds}: pass"
#: A build of many steps; each starts a shell and a short program.
RECIPE = "all: {names}\n{names}:\n\t@{python} -ISc 'sum(range(200000))'; :\n"


def measure(quick: bool) -> None:
    """Print the table."""
    heading("Profiling: overhead of the program, and share of a core that the profiler uses")
    rows, pairs = [], 3 if quick else 10
    with tempfile.TemporaryDirectory() as folder:
        for name, argv in _programs(Path(folder), 1.0 if quick else 3.0, 40 if quick else 150):
            runs: dict[Run, list[Cost]] = {_plain: [], _watched: []}
            for i in range(pairs):
                for run in (_plain, _watched)[:: 1 if i % 2 else -1]:
                    runs[run].append(run(argv))
            cells = [name, str(pairs)]
            for k in (0, 1):
                pairs_of = zip(runs[_plain], runs[_watched], strict=True)
                ratio = median(after[k] / before[k] for before, after in pairs_of)
                cells += [number(median(cost[k] for cost in runs[_plain])), f"{ratio - 1:+.2%}"]
            rows.append([*cells, f"{median(profiler_share for _, _, profiler_share in runs[_watched]):.2%}"])
    table(("program", "pairs", "run s", "with", "core s", "with", "profiler"), rows)
    span_s = 5.0 if quick else 15.0
    shares = [(jobs, _keepers(jobs, span_s)) for jobs in (1, 4, 16)]
    table(("running jobs", "their keepers"), [[str(jobs), f"{share:.2%}"] for jobs, share in shares])


def _keepers(count: int, span_s: float) -> float:
    """Return the share of a core that the keepers of `count` jobs use together, over `span_s` seconds."""
    sleeper = Job("j", DEFAULT_PROFILE, command=("/bin/sleep", str(span_s + 600.0)))
    node = Node("a", NodeType("t", 1, 1e9, 1e10), "host", (min(os.sched_getaffinity(0)),))
    with tempfile.TemporaryDirectory() as folder, closing(create(Cluster("here", (node,)), folder)) as adapter:
        keys = [f"j{i}" for i in range(count)]
        try:
            for key in keys:
                adapter.apply(Submit(key, sleeper, ("a",)))
            while any(view.pid is None for view in adapter.snapshot().jobs):
                time.sleep(0.05)
            time.sleep(2.0)
            records = [Path(folder, "jobs", key, "begin.json") for key in keys]
            keepers = [json.loads(record.read_text())["keeper_pid"] for record in records]
            began, before = time.monotonic(), sum(map(_on_core, keepers))
            time.sleep(span_s)
            return (sum(map(_on_core, keepers)) - before) / (time.monotonic() - began)
        finally:
            for key in keys:
                adapter.apply(Cancel(key))
            while not all(view.state.ended for view in adapter.snapshot().jobs):
                time.sleep(0.05)


def _on_core(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9


def _programs(folder: Path, seconds: float, steps: int) -> list[tuple[str, list[str]]]:
    """Return a program that only computes, and a build of many short ones."""
    burn = [sys.executable, "-ISc", BURN.format(seconds=seconds)]
    names = " ".join(f"t{i}" for i in range(steps))
    (folder / "Makefile").write_text(RECIPE.format(names=names, python=sys.executable))
    if shutil.which("make"):
        return [("computes", burn), ("make -j2", ["make", "-s", "-j2", "-C", str(folder)])]
    line = f"for i in {names}; do {sys.executable} -ISc 'sum(range(200000))'; done"
    return [("computes", burn), ("a shell's loop", ["/bin/sh", "-c", line])]


def _plain(argv: Sequence[str]) -> Cost:
    """Run the program without the profiler."""
    began = time.perf_counter()
    child = subprocess.Popen(argv, start_new_session=True)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, 0.0


def _watched(argv: Sequence[str]) -> Cost:
    """Run the program with the profiler."""
    began, before = time.perf_counter(), time.process_time()
    _, cost = profiled(argv)
    return cost.wall_s, cost.cpu_s, (time.process_time() - before) / (time.perf_counter() - began)
