"""Each benchmark can be imported, and takes what the runner gives it: `make bench` ends with none of them missing."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from benchmarks import __main__ as runner

HELPERS = {"prediction_constants", "synthetic_users", "paper_servers", "plain_python", "show", "slurm_records"}


@pytest.mark.parametrize("name", runner.BENCHMARKS)
def test_a_benchmark_has_what_the_runner_calls(name: str) -> None:
    module = importlib.import_module(f"{runner.__package__}.{name}")
    extra = {"traces": None} if name in runner.TRACED else {}
    inspect.signature(module.measure).bind(True, **extra)
    assert ("traces" in inspect.signature(module.measure).parameters) == (name in runner.TRACED)
    assert module.__doc__


def test_every_benchmark_is_in_the_list() -> None:
    there = {path.stem for path in Path(runner.__file__).parent.glob("*.py")} - {"__main__"}
    assert there - HELPERS == set(runner.BENCHMARKS) >= set(runner.TRACED)
