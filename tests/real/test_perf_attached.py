"""The real perf command, attached as the probe attaches it: by software events, which every machine has, and by those
of a PMU where there is one."""

import shutil
import subprocess
import sys
import time

import pytest

from pilotfish.profiles.probes.external_counter import ExternalCounter
from pilotfish.profiles.probes.imc import MemoryControllers
from pilotfish.profiles.probes.perf import Perf, parse
from pilotfish.profiles.probes.process_tree import ProcessTree

#: A tool called perf is seen by all who look whether somebody counts: one such test at a time.
pytestmark = pytest.mark.xdist_group("counters")

BURN = "import time\nwhile time.process_time() < 0.4: pass"
#: Two processes after one another, begun when perf has had time to attach.
JOB = f"sleep 0.5; for i in 1 2; do '{sys.executable}' -ISc '{BURN}'; done"


@pytest.mark.skipif(shutil.which("perf") is None, reason="there is no perf here: nothing was tested")
def test_children_that_come_later_are_counted(record_property):
    for _ in range(3):
        job = subprocess.Popen(["/bin/sh", "-c", JOB], start_new_session=True)
        argv = ["perf", "stat", "-x,", "-e", "task-clock", "-p", str(job.pid), "--"]
        attached = ExternalCounter(argv, ProcessTree(job.pid))
        job.wait()
        began = time.monotonic()
        printed = attached.finish()
        record_property("measured", f"perf ended {time.monotonic() - began:.2f} s after its job")
        found = parse(printed).get("task-clock")
        if found is None and "Access to performance" in printed:
            pytest.skip("perf may not count here: nothing was tested")
        if found is not None and found.value is not None and 0.78 < found.value < 1.0:
            return
    pytest.fail(f"perf did not see 0.8 CPU seconds: {printed}")


PMU = Perf().available()


@pytest.mark.skipif(PMU is not None, reason=f"{PMU}: nothing was tested")
def test_a_real_job_is_counted_with_its_instructions():
    job = subprocess.Popen([sys.executable, "-ISc", BURN.replace("0.4", "1.0")], start_new_session=True)
    probe, tree = Perf(), ProcessTree(job.pid)
    tree.refresh()
    probe.start(tree, 0.0)
    job.wait()
    found = probe.stop()
    if found.problem:
        pytest.skip(f"{found.problem}: nothing was tested")
    assert found.ipc is not None and 0.05 < found.ipc < 10.0


CONTROLLERS = MemoryControllers().available()


@pytest.mark.skipif(CONTROLLERS is not None, reason=f"{CONTROLLERS}: nothing was tested")
def test_real_memory_controllers_move_something():
    probe = MemoryControllers()
    probe.start(ProcessTree(1), 0.0)
    block = bytearray(1 << 28)
    assert len(bytes(block)) == 1 << 28
    found = probe.stop()
    if found.problem:
        pytest.skip(f"{found.problem}: nothing was tested")
    assert found.moved_bytes is not None and found.moved_bytes > 1 << 20
