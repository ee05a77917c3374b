"""Kernels that were compiled before run in a process that compiles nothing: all that they call is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pilotfish.simulate.batch.replay import kernel_of
from pilotfish.simulate.batch.spec import parse
from pilotfish.simulate.kernels import load

RUN = """
import sys
import numpy as np
from pilotfish.simulate.batch.replay import replay
from pilotfish.simulate.batch.spec import parse
from pilotfish.simulate.workload import Workload

times = np.arange(40.0)
jobs = Workload("w", np.arange(40), times // 3, times % 7, times % 5, np.arange(40) % 9 + 1)
done = replay(jobs, 9, parse(sys.argv[1]))
assert "numba" not in sys.modules
print(int(np.isfinite(done.start_time).sum()))
"""


@pytest.mark.parametrize(
    "text", ["easy", "easy:order=unicep", "strict:order=wfp3", "conservative", "conservative:allocation=contiguous",
     "easy+opportunistic+energybud:budget=70%+inertial", "easy+reducepc+proportional", "easy+powercap:cap=60%"]
)
def test_a_kernel_needs_nothing_of_its_compiler(text: str) -> None:
    load(kernel_of(parse(text)))
    done = subprocess.run([sys.executable, "-c", RUN, text], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "40\n"), done.stderr
