"""A user's queue policy, the same file in a replay, in a plan and next to a real Slurm: the same order of starts."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from real_world import eventually
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_work import all_ended, hand_over

from pilotfish.formats.user_policy import load_policy
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.loaded_policies import parse_python_policy
from pilotfish.simulate.replay.replay import replay

pytestmark = pytest.mark.xdist_group("slurm 2")
RECIPE = Path(__file__).parents[3] / "docs" / "how-to" / "queue-policy.md"
#: Cores, run time in seconds, walltime in minutes. The wide job waits for the first; `long` must not pass it.
JOBS = {"first": (3, 8, 5), "wide": (4, 2, 2), "short": (1, 2, 1), "second": (1, 2, 1), "long": (1, 2, 60)}


@pytest.fixture
def daemon(slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus, wide_nodes=slurm.nodes)) as made:
        (tmp_path / "mine.py").write_text(RECIPE.read_text().partition("```python\n")[2].partition("```")[0])
        (tmp_path / "mine.py").chmod(0o644)
        yield made


def configure(daemon: SlurmDaemon, **more: Any) -> None:
    daemon.config.write_text(yaml.safe_dump(yaml.safe_load(daemon.config.read_text()) | more))


def replayed(folder: Path) -> list[str]:
    """Return the jobs in the order in which a replay on four processors starts them."""
    cores, runs, walls = (np.array(column) for column in zip(*JOBS.values(), strict=True))
    trace = Workload("w", np.arange(len(JOBS)), np.zeros(len(JOBS)), runs * 1.0, walls * 60.0, size=cores)
    policy = load_policy(parse_python_policy(f"{folder}/mine.py:Easy"), 0).policy
    start = replay(trace, 4, policy).start_time
    return [[*JOBS][i] for i in np.argsort(start, kind="stable")]


@pytest.mark.parametrize("policy", ["./mine.py:Easy", "easy"])
def test_jobs_that_are_handed_over_start_in_the_order_of_the_policy(
    slurm: SlurmCluster, daemon: SlurmDaemon, policy: str
) -> None:
    slurm.run("scontrol", "update", "NodeName=n[2-4]", "State=DRAIN", "Reason=test")
    configure(daemon, policy=policy, without_gain="release")
    trail, jobs = slurm.shared() / "trail", list[int]()
    trail.unlink(missing_ok=True)
    for name, (cores, run, wall) in JOBS.items():
        # On a busy machine `second` starts late: until then the first job runs, as in the replay.
        runs = f"until grep -q second {trail}; do sleep 0.2; done" if name == "first" else f"sleep {run}"
        line = f"echo {name} >> {trail}; {runs}"
        jobs.append(hand_over(slurm, line, f"--cpus-per-task={cores}", f"--time={wall}"))
    daemon.start()
    eventually(lambda: all_ended(slurm, jobs), "the end of all jobs")
    ran, wanted = trail.read_text().split(), replayed(daemon.folder)
    assert wanted == ["first", "short", "second", "wide", "long"]
    assert {*ran[:2]} == {*wanted[:2]} and ran[2:] == wanted[2:]
    for job in jobs:  # pilotfish placed each, although nothing was gained by it
        assert daemon.placed(job) == ("n1",)
    assert daemon.stop(signal.SIGTERM) == 0 and "failed" not in daemon.log.read_text()


def test_a_job_waits_for_the_energy_of_a_budget(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    """What accrues is what the idle nodes and one core draw, so two jobs of one core run one after the other."""
    file = daemon.folder / "cluster.yaml"
    cluster = yaml.safe_load(file.read_text())
    for kind in cluster["node_types"].values():
        kind["power"] = {"idle": 4, "per_core": 10}
    file.write_text(yaml.safe_dump(cluster))
    watts, lasts = 4 * slurm.nodes + 10, 3600
    budget = f"budget={watts * lasts},end={int(time.time()) + lasts}"
    configure(daemon, policy=f"easy+energybud:{budget}", without_gain="release")
    trail = slurm.shared() / "trail"
    trail.unlink(missing_ok=True)
    daemon.start()
    line = f"echo begin >> {trail}; sleep 4; echo end >> {trail}"
    jobs = [hand_over(slurm, line, "--cpus-per-task=1", "--time=1") for _ in range(2)]
    eventually(lambda: all_ended(slurm, jobs), "the end of both jobs")
    assert trail.read_text().split() == ["begin", "end"] * 2 and all(daemon.placed(job) for job in jobs)
    assert daemon.stop(signal.SIGTERM) == 0 and "failed" not in daemon.log.read_text()
