"""What a plan places at once on an empty site is what a real Slurm then starts: whole cores, sockets, nodes, memory."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fast_slurm
import guardian
import pytest
from fast_slurm import FastSlurm
from rule_run import SPEED
from rule_sites import PRIORITIES, USERS

pytestmark = pytest.mark.xdist_group("slurm allocation")
PILOTFISH = (sys.executable, "-m", "pilotfish.cli")
HOLD = "--begin=now+36000 --comment=pilotfish:hold=36000 -t9 -o /dev/null -D /tmp --wrap='sleep 600'"
DEFAULTS = "PartitionName=DEFAULT State=UP MaxTime=1-0 DefaultTime=10\n"
#: Two nodes of four cores with two threads each, in two sockets; two of eight cores without; 4,000 MiB each. A fifth
#: keeps a core and 1,000 MiB for the system.
SHAPES = [
    *["CPUs=8 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=4000"] * 2,
    *["CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000"] * 2,
    "CPUs=8 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=4000 CoreSpecCount=1 MemSpecLimit=1000",
]
PARTITIONS = ("PartitionName=threads Nodes=n[1-2]", "PartitionName=cores Nodes=n[3-4]", "PartitionName=kept Nodes=n5")
RUNS_OR_NO_ROOM = {"R", "Resources", "Priority"}
CONSUMABLE = "SelectType=select/cons_tres\nSelectTypeParameters="


SOCKETS = "PartitionName=sockets Nodes=n[3-4] SelectTypeParameters=CR_Socket"
COUNTED = f"{CONSUMABLE}CR_Core_Memory\nDefMemPerCPU=100\n{SOCKETS}"
UNCOUNTED = f"{CONSUMABLE}CR_Core,CR_ONE_TASK_PER_CORE"
LINEAR = "SelectType=select/linear"
NAMES = {COUNTED: "counted", UNCOUNTED: "uncounted", LINEAR: "linear"}


@pytest.fixture(scope="module")
def slurm(request: pytest.FixtureRequest) -> Iterator[FastSlurm]:
    if why := fast_slurm.missing():
        pytest.skip(f"SKIPPED, no real Slurm with a fast clock: {why}")
    rules = f"{PRIORITIES}\n{DEFAULTS}{request.param}\n"
    with tempfile.TemporaryDirectory(prefix="units-", dir=guardian.folder(), ignore_cleanup_errors=True) as folder:
        started = FastSlurm(Path(folder) / "slurm", rules, PARTITIONS, SHAPES, USERS, SPEED)
        try:
            started.up()
            yield started
        finally:
            started.down()


def states(slurm: FastSlurm) -> list[str]:
    """Return "R" for each job that runs, and the reason of each that waits."""
    rows = (row.split() for row in slurm.run("squeue", "-h", "-o", "%t %r").splitlines())
    return ["R" if state == "R" else reason for state, reason in rows]


def at_once(slurm: FastSlurm, options: str, job_count: int) -> tuple[int, int]:
    """Return how many of equal jobs a plan starts at once, and how many Slurm then runs at once."""
    words = f"for number in $(seq {job_count}); do sbatch --parsable {options} {HOLD}; done"
    jobs = slurm.run("sh", "-c", words).split()
    try:
        plan = json.loads(slurm.run(*PILOTFISH, "plan", "--adapter", "slurm", "--policy", "easy", "--json"))
        slurm.run("scontrol", "update", f"jobid={','.join(jobs)}", "starttime=now")
        slurm.until(lambda: set(states(slurm)) <= RUNS_OR_NO_ROOM, f"a pass over jobs of {options}")
        return len(plan["starts"]), states(slurm).count("R")
    finally:
        slurm.run("scancel", *jobs)
        slurm.until(lambda: not slurm.run("squeue", "-h", "-o", "%i").split(), "an empty queue")


@pytest.mark.parametrize(
    ("slurm", "options", "expected"),
    [
        (COUNTED, "-p threads -n1", 8),
        (COUNTED, "-p threads -n3", 4),
        (COUNTED, "-p threads -N2 -n2", 4),
        (COUNTED, "-p threads -n1 --mem-per-cpu=1500", 2),
        (COUNTED, "-p threads -n2 --hint=nomultithread", 4),
        (COUNTED, "-p threads -n2 -c3 --ntasks-per-core=1", 2),
        (COUNTED, "-p cores -n1 --mem=1000", 8),
        (COUNTED, "-p sockets -n2", 2),
        (COUNTED, "-p kept -n1", 3),
        (COUNTED, "-p kept -n1 --mem-per-cpu=700", 2),
        (UNCOUNTED, "-p threads -n2", 4),
        (UNCOUNTED, "-p cores -n1 --mem=3000", 16),
        (LINEAR, "-p threads -n1", 2),
        (LINEAR, "-p cores -N2", 1),
    ],
    indirect=["slurm"],
    ids=lambda value: NAMES.get(value, str(value)),
)
def test_a_plan_starts_what_slurm_runs(slurm: FastSlurm, options: str, expected: int) -> None:
    assert at_once(slurm, options, expected + 3) == (expected, expected)
