"""Worker processes: every task has one answer, also if workers die."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from pilotfish.cli.sweeps.tasks import Failure, SweepTask, TraceFile
from pilotfish.cli.sweeps.workers import Processes, _Unassigned
from pilotfish.simulate.replay.select import Select

pytestmark = pytest.mark.real

#: What the processes are asked; they find it as a module, as they find our own.
DEEDS = '''
import os, signal
from pathlib import Path
from pilotfish.simulate.errors import ConfigError

def told(task):
    return (task.identity, task.seed)

def once(task):
    """The first that is asked for number 3 dies of it."""
    mark = Path(task.policy)
    if task.seed == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return (task.identity, os.getpid())

def always(task):
    if task.seed == 3:
        os._exit(7)
    return task.identity

def wrong(task):
    if task.seed == 0:
        raise ConfigError("a.swf", "line 3", "no job")
    if task.seed == 1:
        raise MemoryError
    if task.seed == 2:
        open("/nowhere/at/all")
    if task.seed == 3:
        return 1 // 0
    return "right"

def group(task):
    return (task.trace.path, os.getpid())
'''


@pytest.fixture
def deeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "sweep_deeds.py").write_text(DEEDS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import sweep_deeds  # type: ignore[import-not-found]

    return sweep_deeds


def tasks(count: int, mark: Path = Path("mark"), traces: int = 1) -> list[SweepTask]:
    return [
        SweepTask(f"t{i}", TraceFile(f"{i * traces // count}.swf", ""), Select(), None, str(mark), i)
        for i in range(count)
    ]


def answers(crew: Processes, deed: Any, wanted: list[SweepTask]) -> dict[str, Any]:
    pairs = [pair for ended in crew.each(deed, wanted) for pair in ended]
    assert Counter(task.identity for task, _ in pairs) == Counter(task.identity for task in wanted)
    return {task.identity: answer for task, answer in pairs}


@pytest.mark.parametrize("workers", [1, 3])
def test_every_task_is_answered_once(deeds: Any, workers: int) -> None:
    with Processes(workers) as crew:
        for count in (0, 1, 20):
            assert answers(crew, deeds.told, tasks(count)) == {f"t{i}": (f"t{i}", i) for i in range(count)}


def test_a_killed_worker_loses_no_task(deeds: Any, tmp_path: Path) -> None:
    with Processes(2) as crew:
        results = answers(crew, deeds.once, tasks(12, tmp_path / "mark"))
    assert (tmp_path / "mark").exists() and all(answer[0] == name for name, answer in results.items())


def test_a_task_that_kills_two_workers_is_a_failure(deeds: Any) -> None:
    with Processes(2) as crew:
        results = answers(crew, deeds.always, tasks(8))
    assert results.pop("t3") == Failure("two workers died of it, the last with exit code 7")
    assert all(name == answer for name, answer in results.items())


def test_errors_are_answers(deeds: Any) -> None:
    with Processes(1) as crew:
        results = answers(crew, deeds.wrong, tasks(5))
    assert results == {
        "t0": Failure("a.swf: line 3: no job"),
        "t1": Failure("there is not enough memory"),
        "t2": Failure("/nowhere/at/all: No such file or directory"),
        "t3": Failure("unexpected ZeroDivisionError: integer division or modulo by zero"),
        "t4": "right",
    }


def test_workers_end_with_their_pool(deeds: Any) -> None:
    with Processes(2) as crew:
        next(crew.each(deeds.told, tasks(8)))
        ours = [child for child in psutil.Process().children() if "pilotfish.cli.sweeps" in " ".join(child.cmdline())]
        assert len(ours) == 2
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in ours)


def test_a_worker_keeps_tasks_of_the_trace_that_it_has_read(deeds: Any) -> None:
    with Processes(1) as crew:
        order = [task.trace.path for ended in crew.each(deeds.told, tasks(9, traces=3)) for task, _ in ended]
    assert order == sorted(order)
    unassigned = _Unassigned(tasks(9, traces=3))
    first = unassigned.group(unassigned.pop(None, Counter()))
    second = unassigned.group(unassigned.pop(None, Counter([first])))
    assert first != second
    assert [unassigned.group(unassigned.pop(first, Counter([second]))) for _ in range(2)] == [first, first]
    assert unassigned.group(unassigned.pop(first, Counter([second]))) not in (first, second)
