"""A run whose counts of lines cannot be joined ends as its tests do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BROKEN = """
import pytest
from coverage.exceptions import DataError

@pytest.hookimpl(wrapper=True)
def pytest_runtestloop():
    yield
    raise DataError("no such table: file")
"""


@pytest.mark.real
@pytest.mark.parametrize(("result", "code"), [("pass", 0), ("assert False", 1)])
def test_counts_that_cannot_be_joined_do_not_fail_a_run(tmp_path: Path, result: str, code: int) -> None:
    (tmp_path / "conftest.py").write_text(BROKEN)
    (tmp_path / "test_one.py").write_text(f"def test_one(): {result}\n")
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "line_counts", "--cov", "test_one.py"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    run = subprocess.run(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True, check=False)
    assert run.returncode == code, run.stdout
    assert "lines are not counted: no such table: file" in run.stdout
