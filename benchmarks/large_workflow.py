"""Seconds and peak memory of planning 10,000 jobs on 100 nodes with `mom`, in a separate process.

Rule: oversubscription 1.0. Layered DAGs have 12 distinct profiles, and a job depends on up to three of the previous
level; 1000genome has one profile per category.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

from pilotfish.benchmarks import plain_python
from pilotfish.benchmarks.paper_servers import MODELS, servers
from pilotfish.benchmarks.show import heading, number, table
from pilotfish.simulate.generate.workflows import layered, stream, stream_profiles
from pilotfish.simulate.model.job import Job, Workflow
from pilotfish.simulate.planning.simulation import Simulation

JOBS, NODES = 10_000, 100


def level_workflow(jobs: int, levels: int) -> Workflow:
    """Return a workflow with levels of equal width and 12 profiles."""
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
    """Return the seconds to build and to run (least of three) and the peak memory of this process."""
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
    # Not getrusage: its peak includes the parent's memory at the fork.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(quick: bool) -> None:
    """Print the tables."""
    heading(f"{JOBS:,} jobs on {NODES} nodes, mom, oversubscription 1.0; targets 0.5 s (20 levels), 1.5 s (5), 500 MB")
    rows = []
    for paper in (True, False):
        for kind in ("20", "5", "1000genome"):
            command = [sys.executable, "-m", __name__, kind, "paper" if paper else "ours"]
            figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            rows.append([
                "paper's" if paper else "ours", kind if kind == "1000genome" else f"{kind} levels", figures["jobs"],
                number(figures["build"] + figures["run"]), number(figures["build"]), number(figures["run"]),
                number(figures["before"]), number(figures["peak"]),
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
        compiled_s = time.perf_counter() - began
        began = time.perf_counter()
        makespan, _ = plain_python.simulate(workflow, cluster, "mom")
        plain_s = time.perf_counter() - began
        same = abs(makespan / outcome.makespan - 1.0) < 1e-9
        rows.append(
            [
                f"{kind} levels",
                number(compiled_s),
                number(plain_s),
                number(plain_s / compiled_s),
                "yes" if same else "no",
            ]
        )
    table(("DAG", "ours s", "plain Python s", "ratio", "same makespan"), rows)


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], sys.argv[2] == "paper")))
