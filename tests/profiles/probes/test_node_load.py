"""What others take of a CPU."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pilotfish.profiles.probes.others import Others
from pilotfish.profiles.probes.steal import cpu_times

BURN = "import time\nwhile time.process_time() < 1: pass"


@pytest.mark.skipif(not cpu_times(), reason="there is no /proc/stat here: nothing was tested")
def test_what_our_jobs_used_is_not_of_others():
    others = Others(os.sched_getaffinity(0))
    subprocess.run([sys.executable, "-ISc", BURN], check=True)
    strange, ours = others.share(0.0), others.share(1.0)
    assert 0.0 <= ours < strange <= 1.0


def test_no_cpus_are_never_busy():
    assert Others(()).share(0.0) == 0.0
