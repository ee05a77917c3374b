"""Kernels are compiled in processes of their own, whose progress is counted and which end with the one that waits."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from pilotfish.daemon import compilation
from pilotfish.daemon.compilation import SAY_EVERY_S, Announcements, CompilationProgress, compile_kernels
from pilotfish.simulate.kernels import KERNELS, object_cache
from tests.support.clock import Clock

KERNEL = "swf.parser"
pytestmark = pytest.mark.xdist_group("object cache")  # one process compiles what they share


def children() -> set[int]:
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_a_kernel_from_another_process_is_kept_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, lines = tmp_path / "kernel.o", list[str]()
    monkeypatch.setattr(object_cache, "object_file", lambda kernel: path)
    monkeypatch.setattr(object_cache, "_loaded", {})
    steps = list(compile_kernels([KERNEL], lines.append))
    assert [step.share for step in steps] == sorted(step.share for step in steps)
    assert (steps[0].finished, steps[-1].finished, steps[-1].share, steps[-1].done) == ((), (KERNEL,), 1.0, True)
    assert lines == [] and object_cache._loaded.keys() == {KERNEL} and object_cache._read(path)


def test_what_is_compiled_is_counted_function_by_function() -> None:
    """The number that progress is measured by; of the other kernels it would take minutes."""
    child = compilation._Child(KERNEL)
    while child.read():
        pass
    assert child._received.index(b"\n") == KERNELS[KERNEL].functions
    child.end()


def test_who_stops_waiting_leaves_no_process_behind() -> None:
    before = children()
    with closing(compile_kernels(["mapping.entry", "queue.classed"], print, workers=2)) as steps:
        next(steps)
        during = children() - before
        assert len(during) == 2
    assert children() == before and not any(os.path.exists(f"/proc/{pid}") for pid in during)


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
