"""CPU time of other processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pilotfish.profiles.probes.node_load import OtherLoad, cpu_times

BURN = "import time\nwhile time.process_time() < 1: pass"


@pytest.mark.real
@pytest.mark.skipif(not cpu_times(), reason="there is no /proc/stat here: nothing was tested")
def test_our_jobs_are_not_other_load():
    others = OtherLoad(os.sched_getaffinity(0))
    subprocess.run([sys.executable, "-ISc", BURN], check=True)
    strange, ours = others.share(0.0), others.share(1.0)
    assert 0.0 <= ours < strange <= 1.0


def test_no_cpus_are_never_busy():
    assert OtherLoad(()).share(0.0) == 0.0
