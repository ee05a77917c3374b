"""Schedulers that others wrote for Batsim decide next to a real Slurm: the order of starts that ours have in a replay."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import yaml
from real_world import eventually
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_work import all_ended, hand_over

from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.replay import replay

pytestmark = pytest.mark.xdist_group("slurm 2")
FCFS = Path(__file__).parents[2] / "adapters" / "batsim" / "fcfs_component.py"
#: Cores, run time in seconds, walltime in minutes. `wide` waits for `first`; under EASY `short` passes it.
JOBS = {"first": (3, 3, 5), "wide": (4, 1, 2), "short": (1, 1, 1)}


def replayed(policy: str) -> list[set[str]]:
    """Return the jobs in the order in which a replay on four processors starts them, those together that start at once."""
    cores, runs, walls = (np.array(column) for column in zip(*JOBS.values(), strict=True))
    trace = Workload("w", np.arange(len(JOBS)), np.zeros(len(JOBS)), runs * 1.0, walls * 60.0, size=cores)
    start = replay(trace, 4, parse(policy)).start_time
    return [{name for name, at in zip(JOBS, start, strict=True) if at == time} for time in sorted({*start.tolist()})]


@pytest.mark.parametrize(("theirs", "ours"), [("fcfs_component", "strict"), ("easyBackfill", "easy")])
def test_a_component_decides_for_slurm(
    slurm: SlurmCluster, tmp_path: Path, request: pytest.FixtureRequest, theirs: str, ours: str
) -> None:
    slurm.run("scontrol", "update", "NodeName=n[2-4]", "State=DRAIN", "Reason=test")
    endpoint, trail, jobs = f"ipc://{tmp_path}/edc", slurm.shared() / "trail", list[int]()
    argv: list[str | Path] = [sys.executable, FCFS, endpoint]
    if theirs != "fcfs_component":
        argv = [request.getfixturevalue("pybatsim"), theirs, "-s", endpoint, "-t", "0", "-v", "warning"]
    trail.unlink(missing_ok=True)
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus)) as daemon, subprocess.Popen(argv) as component:
        try:
            eventually((tmp_path / "edc").exists, "the component's socket")
            daemon.config.write_text(
                yaml.safe_dump(yaml.safe_load(daemon.config.read_text()) | {"policy": f"batsim:{endpoint}"})
            )
            for name, (cores, run, wall) in JOBS.items():
                line = f"echo {name} >> {trail}; sleep {run}"
                jobs.append(hand_over(slurm, line, f"--cpus-per-task={cores}", f"--time={wall}"))
            daemon.start()
            eventually(lambda: all_ended(slurm, jobs), "the end of all jobs")
            for job in jobs:
                assert daemon.placed(job) == ("n1",)
            assert daemon.stop(signal.SIGTERM) == 0 and "failed" not in daemon.log.read_text()
            assert component.wait(30) == 0  # the session has ended
        finally:
            component.kill()
    ran, wanted = iter(trail.read_text().split()), replayed(ours)
    assert wanted == {
        "strict": [{"first"}, {"wide"}, {"short"}], "easy": [{"first", "short"}, {"wide"}],
    }[ours]  # fmt: skip
    assert [{*islice(ran, len(together))} for together in wanted] == wanted
