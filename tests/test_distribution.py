"""With --quick, long tests are left out; every other test runs once, those of a group in one worker, one after the other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import effort

ROOT = Path(__file__).parents[1]
TESTS = """
import os
import pytest
from hypothesis import given, settings, strategies as st

@pytest.mark.parametrize("number", range(40))
def test_alone(number, record): record("alone")

@pytest.mark.parametrize("number", range(12))
@pytest.mark.xdist_group("one")
def test_group(number, record): record("group")

@pytest.mark.long
@pytest.mark.parametrize("number", range(3))
def test_long(number, record): record("long")

examples = []

@given(st.integers())
@settings(max_examples=30)
def test_examples(number): examples.append(number)

def test_their_number(record): record(f"examples:{len(examples)}")

@pytest.fixture
def record(request):
    def write(kind):
        with open(os.environ["RECORD"], "a") as file:
            file.write(f"{kind} {request.node.name} {os.getpid()}\\n")
    return write
"""


@pytest.mark.real
@pytest.mark.parametrize("quick", [False, True])
def test_every_test_runs_once_and_a_group_in_one_worker(tmp_path: Path, quick: bool) -> None:
    record, path = tmp_path / "record", tmp_path / "test_some.py"
    path.write_text(TESTS)
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path[:0] = ['{ROOT}', '{ROOT}/tests']\nfrom conftests import *\n"
    )
    (tmp_path / "conftests.py").write_text(
        (ROOT / "tests/conftest.py").read_text().replace("__file__", f"'{ROOT}/tests/x'")
    )
    options = ["-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", *(["--quick"] if quick else [])]
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(path)]
    env = {**os.environ, "RECORD": str(record), "PYTHONPATH": str(tmp_path)}
    run = subprocess.run(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 0, run.stdout
    rows = [line.split() for line in record.read_text().splitlines()]
    kinds = [kind for kind, *_ in rows]
    assert len({name for _, name, _ in rows}) == len(rows)
    assert (kinds.count("alone"), kinds.count("group"), kinds.count("long")) == (40, 12, 0 if quick else 3)
    assert len({worker for kind, _, worker in rows if kind == "group"}) == 1
    assert ("left out with --quick: 3 long tests" in run.stdout) == quick
    assert bool(re.search(r"::test_long: 3 cases$", run.stdout, re.M)) == quick


def test_a_fifth_is_tried_and_all_cases_are_in_one_of_the_fifths(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [*range(23)]
    monkeypatch.setattr(effort, "share", effort.QUICK)
    assert [effort.of(number) for number in (50, 8, 3, 1)] == [10, 2, 1, 1]
    parts = [effort.some(cases, first) for first in range(5)]
    assert sorted(case for part in parts for case in part) == cases and max(map(len, parts)) == 5
    monkeypatch.setattr(effort, "share", 1.0)
    assert effort.of(8) == 8 and effort.some(cases, 3) == cases
