"""Compiled kernels on disk: whole or not there at all, one function whatever is asked, nothing lost without a disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from instances import PAPER, flow, make_cluster, make_job

from pilotfish.simulate.engine import Simulation
from pilotfish.simulate.kernels import library, load
from pilotfish.simulate.platform import Contention


def test_a_damaged_file_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kernel.o"
    assert library._read(path) is None
    library._write(path, b"code")
    assert library._read(path) == b"code"
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", whole[:-1] + b"x", b"x" + whole[1:]):
        path.write_bytes(damaged)
        assert library._read(path) is None
    assert [p.name for p in path.parent.iterdir()] == ["kernel.o"]


def test_where_nothing_can_be_written_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    library._write(tmp_path / "file" / "kernel.o", b"code")
    assert (tmp_path / "file").read_text() == "not a directory"


def test_the_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert library.cache_directory().parent == tmp_path / "kernels"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert library.cache_root() == Path.home() / ".cache" / "pilotfish" / "kernels"


def test_one_function_serves_every_question() -> None:
    """There is no second specialisation to compile, whatever types Python hands in."""
    kernel = load()
    for policy in PAPER:
        for contention in (Contention.NONE, Contention.MAX_MIN):
            simulation = Simulation(flow(make_job("a"), make_job("b")), make_cluster(2, contention=contention))
            simulation.run(policy, keys=np.array([1.0, 0.0], np.float32), caps=np.array([1, 2]), explain=True)
            simulation.run(policy, keys=np.arange(2), caps=None)
            simulation.follow(np.array([0, 1], np.int32), np.arange(2), np.array([-1, -1], np.int8), np.full(2, 4))
            simulation.reset()
            simulation.settle()
            assert simulation.forecast("a", ("n1",)) == simulation.forecast("a", ["n1"]) == pytest.approx(10.0)
    assert load() is kernel


def test_planning_needs_no_compiler_once_the_kernel_is_there() -> None:
    load()
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from instances import flow, make_cluster, make_job\n"
        "from pilotfish.simulate.engine import Simulation\n"
        "assert Simulation(flow(make_job('a')), make_cluster()).run('mom').makespan == 10.0\n"
        "print('numba' in sys.modules, 'networkx' in sys.modules)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "False"]
