"""What being profiled costs a program: run time and core time with `profile run` and without, by turns.

Rule: each pair is one run without and one with, in changing order, the least of each kind counts, as other work on the
machine can only add; what the profiler itself used of a core is told besides.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from pilotfish.profiles.measure import measure as profiled

from .show import heading, number, table

#: Run time and core time of the program, seconds; what the profiler took of a core meanwhile, as a share of one.
Cost = tuple[float, float, float]
Run = Callable[[Sequence[str]], Cost]
BURN = "import time\nwhile time.thread_time() < {seconds}: pass"
#: A hundred steps and more of a build: each starts a shell and a short program.
RECIPE = "all: {names}\n{names}:\n\t@{python} -ISc 'sum(range(200000))'; :\n"


def measure(quick: bool) -> None:
    """Print the table."""
    heading("Profiling: what it costs the program, and what the profiler itself takes of a core")
    rows, pairs = [], 3 if quick else 10
    with tempfile.TemporaryDirectory() as folder:
        for name, argv in _programs(Path(folder), 1.0 if quick else 3.0, 40 if quick else 150):
            runs: dict[Run, list[Cost]] = {_plain: [], _watched: []}
            for i in range(pairs):
                for run in (_plain, _watched)[:: 1 if i % 2 else -1]:
                    runs[run].append(run(argv))
            cells = [name, str(pairs)]
            for k in (0, 1):
                before, after = (min(cost[k] for cost in runs[run]) for run in (_plain, _watched))
                cells += [number(before), f"{after / before - 1:+.2%}"]
            rows.append([*cells, f"{median(own for _, _, own in runs[_watched]):.2%}"])
    table(("program", "pairs", "run s", "with", "core s", "with", "profiler"), rows)


def _programs(folder: Path, seconds: float, steps: int) -> list[tuple[str, list[str]]]:
    """A program that only computes, and a build of many short ones."""
    burn = [sys.executable, "-ISc", BURN.format(seconds=seconds)]
    names = " ".join(f"t{i}" for i in range(steps))
    (folder / "Makefile").write_text(RECIPE.format(names=names, python=sys.executable))
    if shutil.which("make"):
        return [("computes", burn), ("make -j2", ["make", "-s", "-j2", "-C", str(folder)])]
    line = f"for i in {names}; do {sys.executable} -ISc 'sum(range(200000))'; done"
    return [("computes", burn), ("a shell's loop", ["/bin/sh", "-c", line])]


def _plain(argv: Sequence[str]) -> Cost:
    """A run that nobody watches."""
    began = time.perf_counter()
    child = subprocess.Popen(argv, start_new_session=True)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, 0.0


def _watched(argv: Sequence[str]) -> Cost:
    """A profiled run."""
    began, before = time.perf_counter(), time.process_time()
    _, found = profiled(argv)
    return found.wall_s, found.cpu_s, (time.process_time() - before) / (time.perf_counter() - began)
