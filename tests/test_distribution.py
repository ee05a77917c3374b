"""With --quick, long tests are left out; every other test runs once, those of a group or file in one worker, one after the
other. Where there are more workers than processors, the last ones begin with the pure tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.distribution import Distribution
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


def run_of(folder: Path, modules: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run tests as the Makefile does, in a folder of their own; they write into its file `record`."""
    (folder / "conftest.py").write_text(
        f"import sys\nsys.path[:0] = ['{ROOT}', '{ROOT}/tests']\nfrom conftests import *\n"
    )
    (folder / "conftests.py").write_text(
        (ROOT / "tests/conftest.py").read_text().replace("__file__", f"'{ROOT}/tests/x'")
    )
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(text)
    usual = (
        "--import-mode=importlib",
        "-p",
        "no:cacheprovider",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "--no-loadscope-reorder",
    )
    argv = [sys.executable, "-m", "pytest", *usual, *options, *(f"test_{name}.py" for name in modules)]
    env = {**os.environ, "RECORD": str(folder / "record"), "PYTHONPATH": str(folder)}
    return subprocess.run(argv, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False)


@pytest.mark.real
def test_a_module_that_is_imported_in_part_is_an_error_or_a_skip(tmp_path: Path) -> None:
    """The workers are forks of a process that imported all tests; what fails there fails in them, too."""
    passing, skip = "def test_it(): pass\n", "import pytest\npytest.skip('no such file', allow_module_level=True)\n"
    run = run_of(
        tmp_path, {"passing": passing, "broken": f"{passing}import nothing_here\n", "part": passing + skip}, "-rs"
    )
    assert run.returncode == 1 and "1 passed, 1 skipped, 1 error" in run.stdout, run.stdout
    assert "No module named 'nothing_here'" in run.stdout and "no such file" in run.stdout


@pytest.mark.real
@pytest.mark.parametrize("quick", [False, True])
def test_every_test_runs_once_and_a_group_in_one_worker(tmp_path: Path, quick: bool) -> None:
    run = run_of(tmp_path, {"some": TESTS}, *(["--quick"] if quick else []))
    assert run.returncode == 0, run.stdout
    rows = [line.split() for line in (tmp_path / "record").read_text().splitlines()]
    kinds = [kind for kind, *_ in rows]
    assert len({name for _, name, _ in rows}) == len(rows)
    assert (kinds.count("alone"), kinds.count("group"), kinds.count("long")) == (40, 12, 0 if quick else 3)
    assert len({worker for kind, _, worker in rows if kind == "group"}) == 1
    assert len({worker for kind, _, worker in rows if kind != "group"}) == 1  # what the file sets up is set up once
    assert ("left out with --quick: 3 long tests" in run.stdout) == quick
    assert bool(re.search(r"::test_long: 3 cases$", run.stdout, re.M)) == quick


class Worker:
    """What the scheduler knows of a worker of pytest-xdist; it keeps the numbers of the tests that it is to run."""

    def __init__(self, number: int) -> None:
        self.gateway, self.shutting_down = SimpleNamespace(id=f"gw{number}"), False
        self.waiting: list[int] = []

    def send_runtest_some(self, numbers: list[int]) -> None:
        """Take more tests."""
        self.waiting += numbers

    def shutdown(self) -> None:
        """Take no more tests."""
        self.shutting_down = True


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_last_workers_begin_at_the_other_end(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    names = [f"test_{file:02}.py::test_{number}" for file in range(20) for number in range(3)]
    options = SimpleNamespace(loadscopereorder=False)
    config: Any = SimpleNamespace(getvalue=lambda option: [f"{workers}*popen"], option=options)
    distribution = Distribution(config)
    nodes: list[Any] = [Worker(number) for number in range(workers)]
    for node in nodes:
        distribution.add_node(node)
        distribution.add_node_collection(node, names)
    distribution.schedule()
    firsts = [names[node.waiting[0]] for node in nodes]
    waiting, computing = (workers, 0) if workers <= 2 else (workers - 2, 2)
    assert firsts == [f"test_{file:02}.py::test_0" for file in (*range(waiting), *range(19, 19 - computing, -1))]
    ended: dict[str, int] = {}
    while running := [node for node in nodes if node.waiting]:
        for node in running:
            number = node.waiting.pop(0)
            assert names[number] not in ended
            ended[names[number]] = nodes.index(node)
            distribution.mark_test_complete(node, number)
    assert {*ended} == {*names} and distribution.tests_finished
    assert len({(name.partition("::")[0], worker) for name, worker in ended.items()}) == 20  # a file in one worker


def test_a_fifth_is_tried_and_all_cases_are_in_one_of_the_fifths(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = (*range(23),)
    monkeypatch.setattr(effort, "share", effort.QUICK)
    assert [effort.of(number) for number in (50, 8, 3, 1)] == [10, 2, 1, 1]
    parts = [effort.some(cases, first) for first in range(5)]
    assert sorted(case for part in parts for case in part) == [*cases] and max(map(len, parts)) == 5
    monkeypatch.setattr(effort, "share", 1.0)
    assert effort.of(8) == 8 and effort.some(cases, 3) == cases == effort.some(dict.fromkeys(cases))
