"""From jobs on a real Slurm with a fast clock to the card: its baseline is what Slurm did, and nothing was changed."""

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

pytestmark = pytest.mark.xdist_group("slurm score")
RULES = f"{PRIORITIES}\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
#: Nodes, and their cores; run times of the jobs, seconds of the fast clock: long ones come first.
NODES, CORES = 2, 4
RUNS_S = (*[120] * 2, *[120, 30] * 4, *[30] * 2)
#: The twin may be so far from the record, in the mean, seconds of the fast clock: launches take long by it.
MOST_ERROR_S = 120.0


@pytest.fixture(scope="module")
def slurm() -> Iterator[FastSlurm]:
    if why := fast_slurm.missing():
        pytest.skip(f"SKIPPED, no real Slurm with a fast clock: {why}")
    shapes = [f"CPUs={CORES} Sockets=1 CoresPerSocket={CORES} RealMemory=4000"] * NODES
    with tempfile.TemporaryDirectory(prefix="score-", dir=guardian.folder(), ignore_cleanup_errors=True) as folder:
        started = FastSlurm(Path(folder) / "slurm", RULES, (), shapes, USERS, SPEED)
        try:
            started.up()
            yield started
        finally:
            started.down()


def test_a_morning_of_jobs_becomes_a_card(slurm: FastSlurm, tmp_path: Path) -> None:
    lines = [
        f"sbatch --parsable -n{CORES} -t{run // 60 + 1} --uid={('games', 'news')[number % 2]} -o /dev/null -D /tmp "
        f"--wrap='sleep {run}'"
        for number, run in enumerate(RUNS_S)
    ]
    jobs = slurm.run("sh", "-c", "\n".join(lines)).split()
    assert len(jobs) == len(RUNS_S)
    slurm.until(lambda: not slurm.run("squeue", "--noheader"), "the jobs")
    ended = ("sacct", "-a", "-X", "-n", "-P", "--format=JobID,State", "-S", "now-1day")
    slurm.until(lambda: slurm.run(*ended).count("COMPLETED") == len(jobs), "accounting")
    (tmp_path / "cluster.yaml").write_text("schema: pilotfish/cluster/v1\n")
    config = tmp_path / "pilotfish.yaml"
    config.write_text(
        f"schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: {tmp_path / 'state'}\n"
        "adapter: {name: slurm}\nmetrics: {port: 0}\npolicy: easy:order=sjf\n"
    )
    pilotfish = (sys.executable, "-m", "pilotfish.cli")
    words = ("score", "--config", str(config), "--since", "1d", "--hold", "3600", "--json")
    document = json.loads(slurm.run(*pilotfish, *words))
    handed, waiting = document["handed"], document["measures"]["waiting"]
    assert (handed["seen"], handed["compared"], handed["placed"]) == (len(jobs), len(jobs), len(jobs))
    mean = waiting["mean"]
    assert mean["recorded"] > 60.0 and abs(mean["twin"] - mean["recorded"]) <= MOST_ERROR_S
    assert mean["pilotfish"] < mean["twin"], "the shortest jobs first wait less in the mean"
    assert 10 <= document["own_requests"] <= 40, "each question is asked once, accounting a day at a time"
    assert document["later"]["jobs"] > 0 and document["forecasts"] is None
    assert slurm.run(*ended).count("COMPLETED") == len(jobs)
