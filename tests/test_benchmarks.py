"""Each benchmark can be imported, and takes what the runner gives it: `make bench` ends with none of them missing."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as runner

HELPERS = {
    "prediction_constants",
    "synthetic_users",
    "paper_servers",
    "plain_python",
    "show",
    "slurm_records",
    "oar_records",
}


@pytest.mark.parametrize("name", runner.BENCHMARKS)
def test_a_benchmark_has_what_the_runner_calls(name: str) -> None:
    module = importlib.import_module(f"{runner.__package__}.{name}")
    extra = {"traces": None} if name in runner.TRACED else {}
    inspect.signature(module.measure).bind(True, **extra)
    assert ("traces" in inspect.signature(module.measure).parameters) == (name in runner.TRACED)
    assert module.__doc__


@pytest.mark.real
@pytest.mark.parametrize("name", [name for name in runner.BENCHMARKS if name.startswith("slurm")])
def test_it_finds_the_real_slurm_of_the_tests_by_itself(name: str, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", f"import pilotfish.benchmarks.{name}"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-500:]


def test_every_benchmark_is_in_the_list() -> None:
    there = {path.stem for path in Path(runner.__file__).parent.glob("*.py")} - {"__main__"}
    assert there - HELPERS == set(runner.BENCHMARKS) >= set(runner.TRACED)
