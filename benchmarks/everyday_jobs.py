"""Forecasts of everyday jobs by a live daemon: error, coverage and width of the intervals, round by round.

Rule: a pipeline of 18 small programs (generate, sort, gzip, sha256sum, xz, numpy) is submitted without profiles to a
daemon that knows nothing at first. Each round is a fresh folder with inputs of the same sizes. All rounds are run on
the machine as it is, and then next to a process of ours on each CPU that computes and sleeps for 1 to 3 s in turns.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pilotfish.benchmarks.daemon_load import PATIENCE_S, ready
from pilotfish.benchmarks.show import heading, table
from pilotfish.daemon.report.accuracy import accuracy, known
from pilotfish.daemon.state.recorded_outcome import ForecastOutcome

ROUNDS, QUICK_ROUNDS = 10, 3
#: Sizes of the generated files, lines of text.
LINES = (200_000, 600_000, 1_200_000)
_GENERATE = """import random, sys
draw = random.Random(1)
with open(sys.argv[2], "w") as out:
    for _ in range(int(sys.argv[1])):
        out.write(f"{draw.randrange(10**9)} {draw.random():.6f}\\n")
"""
_NUMPY = """import sys, numpy
size = int(sys.argv[1])
matrix = numpy.random.default_rng(1).random((size, size))
for _ in range(3):
    matrix = matrix @ matrix / size
"""
_LOAD = """import random, sys, time
draw = random.Random(int(sys.argv[1]))
while True:
    end = time.perf_counter() + draw.uniform(1.0, 3.0)
    while time.perf_counter() < end:
        sum(range(10000))
    time.sleep(draw.uniform(1.0, 3.0))
"""


def pipeline() -> str:
    """Return the workflow as YAML."""
    python, jobs = sys.executable, []
    for i, lines in enumerate(LINES):
        jobs += [
            f"make{i}: {{command: '{python} generate.py {lines} {i}.txt'}}",
            f"sort{i}: {{command: 'sort -o {i}.sorted {i}.txt', after: [make{i}]}}",
            f"zip{i}: {{command: 'gzip -k {i}.txt', after: [make{i}]}}",
            f"sum{i}: {{command: 'sha256sum {i}.txt', after: [make{i}]}}",
            f"xz{i}: {{command: 'xz -k -1 {i}.sorted', after: [sort{i}]}}",
            f"matrix{i}: {{command: '{python} matrix.py {400 * (i + 1)}'}}",
        ]
    return "schema: pilotfish/workflow/v1\nname: everyday\njobs:\n" + "".join(f"  {job}\n" for job in jobs)


def measure(quick: bool) -> None:
    """Print a table for the machine as it is, and one next to a load that varies."""
    for busy in (False, True):
        condition = "next to a load that varies" if busy else f"as the machine is (load {os.getloadavg()[0]:.1f})"
        heading(f"Everyday jobs, {condition}; goals from round 3: median 1.05x quiet, 1.25x busy, 75 to 85 % inside")
        rounds = _rounds(QUICK_ROUNDS if quick else ROUNDS, busy)
        rows = [_row(str(i + 1), jobs) for i, jobs in enumerate(rounds)]
        later = [job for jobs in rounds[2:] for job in jobs]
        table(("round", "jobs", "median", "90 %", "inside", "median width"), [*rows, _row("third and later", later)])


def _row(name: str, jobs: list[ForecastOutcome]) -> list[str]:
    if not jobs:
        return [name, "0", *["-"] * 4]
    summary = accuracy(name, jobs)
    inside = "-" if summary.inside is None else f"{100 * summary.inside:.0f} % of {summary.intervals}"
    width = "-" if summary.width is None else f"{summary.width:.2f}x"
    return [name, str(len(jobs)), f"{summary.median_factor:.2f}x", f"{summary.high_factor:.2f}x", inside, width]


def _rounds(number: int, busy: bool) -> list[list[ForecastOutcome]]:
    """Return the jobs of each round that had a forecast from a profile."""
    with tempfile.TemporaryDirectory(prefix="everyday") as name, ExitStack() as stack:
        folder = Path(name)
        endpoint = _daemon(folder, stack)
        if busy:
            for cpu in sorted(os.sched_getaffinity(0)):
                load = subprocess.Popen([sys.executable, "-c", _LOAD, str(random.Random(cpu).randrange(1000))])
                stack.callback(load.wait)
                stack.callback(load.kill)
        return [_round(folder, endpoint) for _ in range(number)]


def _daemon(folder: Path, stack: ExitStack) -> Path:
    """Start a daemon with a node for each CPU, stopped with the stack; return its socket."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    nodes = "".join(f"  - {{names: cpu{cpu}, type: t, cpus: '{cpu}'}}\n" for cpu in sorted(os.sched_getaffinity(0)))
    (folder / "cluster.yaml").write_text(
        "schema: pilotfish/cluster/v1\nname: here\n"
        f"node_types: {{t: {{cores: 1, memory: 4GiB, memory_bandwidth: 10GB/s}}}}\nnodes:\n{nodes}"
    )
    (folder / "pilotfish.yaml").write_text(
        "schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: state\nprofiles: profiles.sqlite\n"
        f"access: {{root: true}}\nsocket: {{path: '{folder}/s'}}\nmetrics: {{port: {port}}}\n"
        "adapter: {name: local, options: {cgroups: false}}\n"
    )
    log = stack.enter_context((folder / "log").open("w"))
    argv = [str(Path(sys.executable).with_name("pilotfish")), "daemon", "--config", str(folder / "pilotfish.yaml")]
    process = subprocess.Popen(argv, stdout=log, stderr=log)
    stack.callback(process.wait, PATIENCE_S)
    stack.callback(process.send_signal, signal.SIGTERM)
    began = time.perf_counter()
    while not ready(port) and time.perf_counter() - began < PATIENCE_S:
        time.sleep(0.05)
    return folder / "s"


def _round(folder: Path, endpoint: Path) -> list[ForecastOutcome]:
    with tempfile.TemporaryDirectory(prefix="round", dir=folder) as name:
        work = Path(name)
        for file, text in (("generate.py", _GENERATE), ("matrix.py", _NUMPY), ("dag.yaml", pipeline())):
            (work / file).write_text(text)
        workflow = _json(["submit", "dag.yaml", "--wait", "--json"], endpoint, work)["id"]
    fields = [field.name for field in dataclasses.fields(ForecastOutcome)]
    jobs = _json(["accuracy", "--json"], endpoint, folder)["jobs"]
    outcomes = [ForecastOutcome(**{name: job[name] for name in fields}) for job in jobs]
    return known([job for job in outcomes if job.key.startswith(f"{workflow}/")])


def _json(argv: list[str], endpoint: Path, folder: Path) -> Any:
    argv = [str(Path(sys.executable).with_name("pilotfish")), *argv, "--socket", str(endpoint)]
    process = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    if not process.stdout:
        raise SystemExit(f"{' '.join(argv)}: {process.stderr}")
    return json.loads(process.stdout)
