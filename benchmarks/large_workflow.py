"""A workflow of 10,000 jobs on 100 nodes, planned with `mom`: seconds and peak memory, in a process of its own.

Rule: oversubscription 1.0, 12 distinct profiles in a layered DAG, where a job waits for up to three of the level
before; one for each category in a 1000genome.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from pilotfish.simulate.engine import Simulation
from pilotfish.simulate.generate.stream import layered, stream, stream_profiles
from pilotfish.simulate.job import Job, Workflow

from . import plain_python
from .instances import MODELS, servers
from .show import heading, number, table

JOBS, NODES = 10_000, 100


def level_workflow(jobs: int, levels: int) -> Workflow:
    """Levels of equal width, 12 profiles."""
    draw, profiles = random.Random(levels), stream_profiles()[:12]
    return Workflow(
        f"{levels} levels",
        tuple(
            Job(f"j{i}", draw.choice(profiles), tuple(f"j{p}" for p in before))
            for i, before in enumerate(layered(jobs, draw, levels))
        ),
    )


def _workflow(kind: str, jobs: int) -> Workflow:
    return stream(jobs, shape="1000genome", seed=1) if kind == "1000genome" else level_workflow(jobs, int(kind))


def _measured(kind: str, paper: bool) -> dict[str, float]:
    """What a process of its own finds: seconds to build and to run, the least of three, and peak memory."""
    workflow, cluster = _workflow(kind, JOBS), servers(NODES, paper, oversubscription=1.0)
    Simulation(_workflow(kind, 200), cluster).run("mom")
    before = _peak_mb()
    build, run = [], []
    for _ in range(3):
        began = time.perf_counter()
        simulation = Simulation(workflow, cluster)
        built = time.perf_counter()
        outcome = simulation.run("mom")
        build.append(built - began)
        run.append(time.perf_counter() - built)
    return {
        "jobs": len(workflow.jobs), "build": min(build), "run": min(run), "makespan": outcome.makespan,
        "before": before, "peak": _peak_mb(),
    }  # fmt: skip


def _peak_mb() -> float:
    # Not getrusage: its peak counts what the parent had when it forked.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(quick: bool) -> None:
    """Print the tables."""
    heading(f"{JOBS:,} jobs on {NODES} nodes, mom, oversubscription 1.0; targets 0.5 s (20 levels), 1.5 s (5), 500 MB")
    rows = []
    for paper in (True, False):
        for kind in ("20", "5", "1000genome"):
            command = [sys.executable, "-m", __name__, kind, "paper" if paper else "ours"]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            rows.append([
                "paper's" if paper else "ours", kind if kind == "1000genome" else f"{kind} levels", found["jobs"],
                number(found["build"] + found["run"]), number(found["build"]), number(found["run"]),
                number(found["before"]), number(found["peak"]),
            ])  # fmt: skip
    table(("model", "DAG", "jobs", "plan s", "build s", "run s", "MB before", "peak MB"), rows)
    print(f"paper's: {MODELS[True].replace('unlimited', '1.0')}; ours: {MODELS[False]}. The least of three plans.")
    _baseline(200 if quick else 1000)


def _baseline(jobs: int) -> None:
    heading(f"The same with {jobs:,} jobs under the paper's model, against plain Python")
    rows = []
    cluster = servers(NODES, paper=True, oversubscription=1.0)
    Simulation(_workflow("5", 100), cluster).run("mom")
    for kind in ("20", "5"):
        workflow = _workflow(kind, jobs)
        began = time.perf_counter()
        outcome = Simulation(workflow, cluster).run("mom")
        ours = time.perf_counter() - began
        began = time.perf_counter()
        makespan, _ = plain_python.simulate(workflow, cluster, "mom")
        plain = time.perf_counter() - began
        same = abs(makespan / outcome.makespan - 1.0) < 1e-9
        rows.append([f"{kind} levels", number(ours), number(plain), number(plain / ours), "yes" if same else "no"])
    table(("DAG", "ours s", "plain Python s", "ratio", "same makespan"), rows)


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], sys.argv[2] == "paper")))
