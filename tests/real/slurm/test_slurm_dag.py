"""Dependencies of jobs that users submitted by themselves, with every word that Slurm has for them: read back, planned
where they are understood, and never a reason for a job to be stuck."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from pathlib import Path

import pytest
from real_world import eventually, pilotfish
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon

pytestmark = pytest.mark.xdist_group("slurm 3")
HOLD = ("--begin=now+900", "--comment=pilotfish:hold=900")


def states(slurm: SlurmCluster, jobs: list[int]) -> list[str]:
    found = slurm.jobs()
    return [found[job][0] for job in jobs]


def test_every_kind_of_dependency_is_resolved_and_nothing_is_stuck(slurm: SlurmCluster, tmp_path: Path) -> None:
    trail = slurm.shared() / "dag"
    neighbour = slurm.submit("sleep 4")
    later = slurm.submit("true", "--begin=now+12")  # a neighbour that waits
    done = slurm.submit("true")
    failing = slurm.submit("exit 3", *HOLD)
    first = slurm.submit(f"echo first >> {trail}; sleep 1", *HOLD)

    def behind(dependency: str, name: str) -> int:
        return slurm.submit(f"echo {name} >> {trail}", *HOLD, f"--dependency={dependency}")

    eventually(lambda: states(slurm, [done]) == ["COMPLETED"], "the end of a job")
    jobs = [
        behind(f"afterok:{first}", "ok"),
        behind(f"afterany:{failing}", "any"),
        behind(f"afternotok:{failing}", "notok"),
        behind(f"afterok:{neighbour}", "neighbour"),
        behind(f"afterok:{later}", "later"),
        behind(f"afterok:{done}", "done"),
        behind(f"afterok:{failing}?afterok:{first}", "or"),
        behind(f"after:{first}", "after"),
        behind("singleton", "singleton"),
        behind(f"afterok:{first},afterany:{neighbour}", "both"),
    ]
    jobs.append(behind(f"afterok:{jobs[0]}:{jobs[1]}", "chain"))
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus)) as daemon:
        daemon.start()
        eventually(lambda: set(states(slurm, jobs)) == {"COMPLETED"}, "the end of all jobs")
        ran = trail.read_text().split()
        assert sorted(ran) == sorted([
            "first", "ok", "any", "notok", "neighbour", "later", "done", "or", "after", "singleton", "both", "chain",
        ])  # fmt: skip
        assert ran.index("first") < ran.index("ok") < ran.index("chain")
        assert daemon.stop(signal.SIGTERM) == 0


def test_a_plan_looks_ahead_along_the_dependencies(slurm: SlurmCluster) -> None:
    first = slurm.submit("sleep 1", *HOLD, "--time=2")
    second = slurm.submit("sleep 1", *HOLD, "--time=2", f"--dependency=afterok:{first}")
    held = slurm.submit("sleep 1", *HOLD, "--hold", f"--dependency=afterok:{first}")
    told = json.loads(pilotfish("plan", "--adapter", "slurm", "--json").stdout)
    planned = {job["id"]: job for job in told["plan"]["jobs"]}
    assert planned.keys() == {f"slurm/{first}", f"slurm/{second}"}
    assert planned[f"slurm/{second}"]["start_time"] >= planned[f"slurm/{first}"]["finish_time"] > 0
    assert [start["job"] for start in told["starts"]] == [f"slurm/{first}"]
    assert told["waits"].keys() == {f"slurm/{held}"}
