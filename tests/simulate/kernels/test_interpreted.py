"""Kernels as plain Python give the results of the compiled ones, to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from pilotfish.simulate.kernels.interpreted import compare_64, leading_zeros, trailing_zeros
from tests.simulate.kernels.tiny_replays import results


@pytest.mark.real
def test_each_kernel_gives_the_same_without_being_compiled() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulate.kernels.tiny_replays"], capture_output=True, text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert (done.stdout.splitlines(), done.returncode) == ([*results(), "[] were not loaded"], 0), done.stderr


@pytest.mark.parametrize(("bits", "low", "high"), [(0, 64, 64), (1, 0, 63), (0b1100, 2, 60), (1 << 63, 63, 0)])
def test_zero_bits_are_counted(bits: int, low: int, high: int) -> None:
    assert (trailing_zeros(np.uint64(bits)), leading_zeros(np.uint64(bits))) == (low, high)


def test_cells_are_compared_in_their_order() -> None:
    cells = np.zeros(70, np.int32)
    cells[[3, 66]] = 5, 9
    assert int(compare_64(cells, 3, 5)) == 1 | 1 << 63
