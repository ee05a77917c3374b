"""Run time of commands as whole processes.

Rule: the compiled kernels are cached on disk; the baseline is an interpreter that does nothing.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from pilotfish.benchmarks.paper_servers import servers
from pilotfish.benchmarks.show import heading, number, table, timed
from pilotfish.formats.cluster import dump_cluster
from pilotfish.formats.workflows.workflow import dump_workflow
from pilotfish.simulate.generate.workflows import stream


def measure(quick: bool) -> None:
    """Print the table."""
    heading("Commands as processes; targets: --help 0.3 s, plan of the STREAM input 0.9 s")
    program = [sys.executable, "-m", "pilotfish.cli"]
    installed = Path(sys.executable).with_name("pilotfish")
    program = [str(installed)] if installed.exists() else program
    with tempfile.TemporaryDirectory() as folder:
        lab, files = Path(folder) / "cluster.yaml", dict[int, Path]()
        lab.write_text(yaml.safe_dump(dump_cluster(servers(4, paper=True))))
        for jobs in (50, 100):
            files[jobs] = Path(folder) / f"dag-{jobs}.yaml"
            files[jobs].write_text(dump_workflow(stream(jobs, seed=1)))
        plan = [*program, "plan", "--cluster", str(lab)]
        cases = {
            "python -c pass (baseline)": [sys.executable, "-c", "pass"],
            "python -c 'import numba' (baseline)": [sys.executable, "-c", "import numba"],
            "pilotfish --help": [*program, "--help"],
            "pilotfish plan --policy mom, 50 jobs": [*plan, "--policy", "mom", str(files[50])],
            "pilotfish plan --policy mom, 100 jobs": [*plan, "--policy", "mom", str(files[100])],
            "pilotfish plan (lookahead), 100 jobs": [*plan, str(files[100])],
        }
        rows = [_row(name, command, folder, 3 if quick else 7) for name, command in cases.items()]
    table(("command", "median s", "least s", "exit code"), rows)


def _row(name: str, command: list[str], folder: str, repeats: int) -> list[object]:
    codes = []

    def run() -> None:
        codes.append(subprocess.run(command, cwd=folder, capture_output=True, env=os.environ).returncode)

    run()
    seconds = timed(run, repeats)
    return [name, number(statistics.median(seconds)), number(min(seconds)), codes[-1]]
