"""What a test or a fixture of its module registers is unknown to the tests of the next module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FIRST = """
import pytest
from pilotfish.simulate.planning.mapping_policies import POLICIES

@pytest.fixture(autouse=True, scope="module")
def registered():
    POLICIES["module's"] = print

def test_registers():
    POLICIES["test's"] = print

def test_knows_what_its_module_registers():
    assert "module's" in POLICIES and "test's" not in POLICIES
"""
SECOND = """
def test_knows_the_built_in_policies_alone():
    from pilotfish.simulate.planning.mapping_policies import POLICIES, POLICY_CODES
    assert {*POLICIES} == {*POLICY_CODES, "lookahead"}
"""


@pytest.mark.real
def test_policies_are_forgotten_with_the_test_and_with_the_module(tmp_path: Path) -> None:
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_second.py").write_text(SECOND)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "known_policies"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    run = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "3 passed" in run.stdout, run.stdout + run.stderr
