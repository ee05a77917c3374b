"""TimeMin on a real Slurm before 23.11: backfill cuts the time limit for good, so pilotfish does not write it there."""

from __future__ import annotations

import pytest
from real_world import eventually
from slurm_cluster import SlurmCluster

from pilotfish.adapters.slurm import create
from pilotfish.adapters.slurm.handed_over.job_update import command, let_go_fields
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.transport.scontrol import Configuration, hard_time_min
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.xdist_group("slurm 2")


@pytest.fixture(autouse=True)
def _hard(slurm: SlurmCluster) -> None:
    if not hard_time_min(Configuration(slurm.run("scontrol", "show", "config"))):
        pytest.skip("NOT TESTED: this Slurm takes TimeMin for a soft limit")


def test_the_option_is_refused_and_nothing_else(slurm: SlurmCluster) -> None:
    kind = NodeType("box", slurm.cpus, 4 * 2.0**30, 1e10)
    cluster = Cluster("real", tuple(Node(f"n{number}", kind) for number in range(1, slurm.nodes + 1)))
    with pytest.raises(ConfigError, match=r"time_min: Slurm 2\d\.\d\d.* cuts the time limits of such jobs for good"):
        create(cluster, time_min=True)
    create(cluster).close()


def test_what_it_would_write_cuts_the_limit_of_the_job(slurm: SlurmCluster) -> None:
    slurm.submit("sleep 40", f"--nodes={slurm.nodes - 1}", "--exclusive", "--time=2")
    wide = slurm.submit("true", f"--nodes={slurm.nodes}", "--exclusive", "--time=2")
    job = slurm.submit("sleep 5", "--nodes=1", "--time=60", "--begin=now+1hour")
    fields = let_go_fields(SlurmJob(job, JobState.PENDING, time_limit=3600.0), 30.0)
    assert fields == {"StartTime": "now", "TimeMin": "1"}
    slurm.run(*command(job, fields))
    eventually(lambda: slurm.show(job)["JobState"] in ("RUNNING", "COMPLETED"), "the job to start in the gap")
    assert slurm.show(job)["TimeLimit"] < "00:05:00" and slurm.show(job)["TimeMin"] == "00:01:00"
    assert slurm.show(wide)["JobState"] == "PENDING"
