"""Kernels are compiled in processes of their own, whose progress is counted and which end with the one that waits."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from pilotfish.daemon import compilation
from pilotfish.daemon.compilation import (
    SAY_EVERY_S,
    Announcements,
    CompilationProgress,
    _seconds_left,
    compile_kernels,
    work_of,
)
from pilotfish.simulate.kernels import object_cache
from pilotfish.simulate.kernels.object_cache import KERNELS
from tests.support.clock import Clock

KERNEL = "swf.parser"
pytestmark = pytest.mark.xdist_group("object cache")  # one process compiles what they share


def children(pid: int | str = "self") -> set[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}


@pytest.mark.real
def test_a_kernel_from_another_process_is_kept_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, lines = tmp_path / "kernel.o", list[str]()
    monkeypatch.setattr(object_cache, "object_file", lambda kernel: path)
    monkeypatch.setattr(object_cache, "_loaded", {})
    steps = list(compile_kernels([KERNEL], lines.append))
    assert [step.share for step in steps] == sorted(step.share for step in steps)
    assert (steps[0].finished, steps[-1].finished, steps[-1].share, steps[-1].done) == ((), (KERNEL,), 1.0, True)
    assert lines == [] and object_cache._loaded.keys() == {KERNEL} and object_cache._read(path)


@pytest.mark.real
def test_the_work_of_a_kernel_is_reported_line_by_line() -> None:
    """Progress is measured by it; `test_compile` compares the lines of the other kernels, which take minutes."""
    with closing(Reader()) as worker:
        worker.compile(KERNEL)
        starts = set[int]()
        while worker.code() is None:
            starts.add(worker.start)
            assert worker.read()
        assert worker.lines_read == KERNELS[KERNEL].lines
        assert starts <= {0, compilation.IMPORTS, compilation.STARTED, compilation.WARMED}
        assert worker.work == pytest.approx(compilation.WARMED + work_of(KERNELS[KERNEL]))


class Reader(compilation._Worker):
    """A worker that is closed as a file is, and remembers how many lines it read before the code."""

    lines_read = 0

    def read(self) -> bool:
        more = super().read()
        self.lines_read = self._lines
        return more

    def close(self) -> None:
        self.end()


class Steady(compilation._Worker):
    """A worker without a process that compiles at a steady pace and reports whenever it is looked at."""

    def __init__(self, kernel: str) -> None:
        self.kernel, self.start, self._lines, self._finished = kernel, 0, 0, 0.0
        self.started_at = self.reported_at = 0.0

    def look(self, now: float, pace: float) -> None:
        """Report what is done after `now` seconds at `pace` seconds a line."""
        self.reported_at = now
        self.start = min(compilation.WARMED, int(now / pace))
        kernel = KERNELS[self.kernel]
        self._lines = int((now / pace - self.start) / (compilation.FUNCTIONS * work_of(kernel)) * kernel.lines)


@pytest.mark.parametrize("pace", [0.0005, 0.006, 0.3])
def test_the_remaining_time_is_true_from_the_start_on_a_machine_of_any_speed(pace: float) -> None:
    worker = Steady("mapping.entry")
    total = pace * (compilation.WARMED + work_of(KERNELS["mapping.entry"]))
    for share in (0.075, 0.1, 0.25, 0.5, 0.75):
        worker.look(share * total, pace)
        left_s = _seconds_left([worker], [], share * total)
        assert left_s == pytest.approx((1.0 - share) * total, rel=0.01)


def test_the_remaining_time_is_that_of_the_last_worker() -> None:
    """One worker has a long kernel; the other has a short one and takes those that wait, the largest first."""
    workers, waiting = [Steady("mapping.networked"), Steady("queue.easy")], ["swf.parser", "queue.stepwise"]
    for worker in workers:
        worker.look(2.0, 0.01)
    long, short = (0.01 * (compilation.WARMED + work_of(KERNELS[worker.kernel])) - 2.0 for worker in workers)
    assert _seconds_left(workers, waiting, 2.0) == pytest.approx(long, rel=0.03)
    waiting = ["queue.classed", "mapping.entry"]
    others = (0.01 * work_of(KERNELS[name]) for name in waiting)
    expected = max(end + other for end, other in zip((long, short), others, strict=True))
    assert _seconds_left(workers, waiting, 2.0) == pytest.approx(expected, rel=0.01)


def test_without_a_report_time_goes_on_but_never_to_the_end() -> None:
    worker = Steady("mapping.entry")
    worker.look(10.0, 0.01)
    reported = _seconds_left([worker], [], 10.0)
    assert reported is not None
    assert _seconds_left([worker], [], 13.0) == pytest.approx(reported - 3.0)
    assert _seconds_left([worker], [], 10.0 + 0.75 * reported) == pytest.approx(reported / 2)
    assert _seconds_left([worker], [], 10.0 + 4 * reported) == pytest.approx(2 * reported), "it is slower than thought"
    assert _seconds_left([Steady("mapping.entry")], [], 1.0) is None


def test_imports_alone_give_no_remaining_time() -> None:
    """Modules that lie in memory are imported in no time on a machine whose CPUs are busy."""
    workers = [Steady("mapping.entry"), Steady("queue.easy")]
    for worker in workers:
        worker.look(compilation.STARTED * 0.001, 0.001)
    assert _seconds_left(workers, [], 1.0) is None
    workers[0].look(20.0, 0.01)
    assert _seconds_left(workers, [], 20.0) is not None


@pytest.mark.real
@pytest.mark.parametrize("ended", ["worker", "fork"])
def test_a_kernel_whose_process_is_killed_is_obtained_here(ended: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that imports the compiler, and the one that it forks for the kernel."""
    monkeypatch.setattr("pilotfish.daemon.compilation.load", lambda kernel, say: say(kernel))
    before, loaded, killed = children(), list[str](), set[int]()
    for _ in compile_kernels(["queue.classed"], loaded.append):
        processes = children() - before
        if ended == "fork":
            processes = {pid for worker in processes for pid in children(worker)}
        for pid in processes if not killed else ():
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
    assert killed and loaded == ["queue.classed"] and children() == before


@pytest.mark.real
def test_who_stops_waiting_leaves_no_process_behind() -> None:
    before = children()
    with closing(compile_kernels(["mapping.entry", "queue.classed"], print, workers=2)) as steps:
        next(steps)
        during = children() - before
        assert len(during) == 2
    assert children() == before and not any(os.path.exists(f"/proc/{pid}") for pid in during)


@pytest.mark.real
@pytest.mark.parametrize("python", ["/bin/false", "/nowhere/python"])
def test_a_kernel_whose_process_fails_is_obtained_here(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", python)
    monkeypatch.setattr("pilotfish.daemon.compilation.load", lambda kernel, say: say(kernel))
    loaded = list[str]()
    *_, last = compile_kernels([KERNEL, "queue.easy"], loaded.append)
    assert last.done and sorted(loaded) == ["queue.easy", KERNEL]


def test_the_first_line_the_first_time_and_then_one_now_and_then() -> None:
    clock = Clock(0.0)
    due, kernels = Announcements(clock), ["mapping.entry", KERNEL]

    def progress(share: float, left_s: float | None, *finished: str) -> CompilationProgress:
        return CompilationProgress(kernels, finished, share, left_s)

    assert due(progress(0.0, None)) and not due(progress(0.01, None))
    clock.now += 2.0
    assert due(progress(0.1, 18.0)) and not due(progress(0.2, 16.0))
    clock.now += SAY_EVERY_S
    assert due(progress(0.9, 2.0, "mapping.entry"))
    clock.now += SAY_EVERY_S
    assert not due(progress(1.0, 0.0, *kernels))


@pytest.mark.parametrize(
    ("kernels", "finished", "left_s", "text"),
    [
        ([KERNEL], [], None, "compiling the reader of SWF files for this machine"),
        ([KERNEL], [], 0.2, "compiling the reader of SWF files for this machine: 50 %, about 1 s left"),
        ([KERNEL, "queue.easy", "queue.classed"], [KERNEL], 71.4,
         "compiling 2 of 3 kernels for this machine: 50 %, about 71 s left"),
    ],
)  # fmt: skip
def test_progress_is_one_clause(kernels: list[str], finished: list[str], left_s: float | None, text: str) -> None:
    assert str(CompilationProgress(kernels, finished, 0.5, left_s)) == text
