"""From jobs on a real Slurm with a fast clock, next to a shadow, to the card: its baseline is what Slurm did."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fast_slurm
import guardian
import pytest
from fast_slurm import FastSlurm
from rule_run import SPEED
from rule_sites import PRIORITIES, USERS

pytestmark = pytest.mark.xdist_group("slurm score")
RULES = f"{PRIORITIES}\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
PILOTFISH = (sys.executable, "-m", "pilotfish.cli")
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
    (tmp_path / "cluster.yaml").write_text(slurm.run(*PILOTFISH, "cluster", "--adapter", "slurm"))
    config = tmp_path / "pilotfish.yaml"
    config.write_text(
        f"schema: pilotfish/daemon/v1\ncluster: cluster.yaml\nstate_dir: {tmp_path / 'state'}\nmode: shadow\n"
        f"adapter: {{name: slurm}}\nmetrics: {{enabled: false}}\npolicy: easy:order=sjf\naccess: {{root: true}}\n"
        f"socket: {{path: {tmp_path / 's'}}}\nscore: {{enabled: false}}\n"
    )
    with (tmp_path / "log").open("w") as log:
        argv = [*PILOTFISH, "daemon", "--config", str(config)]
        shadow = subprocess.Popen(argv, env=slurm._surroundings(), stdout=log, stderr=log)
    try:
        slurm.until(lambda: "pilotfish serves" in (tmp_path / "log").read_text(), "the shadow")
        document = card_of_a_morning(slurm, config)
        running = document["cost"]
        assert running["requests"] > 0 and running["cpu_s"] > 0.0, "the journal is read while the shadow writes it"
    finally:
        shadow.terminate()
        assert shadow.wait(60) == 0, (tmp_path / "log").read_text()
    words = ("score", "--config", str(config), "--since", "1d", "--repeat", "1", "--json")
    stopped = json.loads(slurm.run(*PILOTFISH, *words))
    starts = {one["by"]: one["jobs"] for one in stopped["forecasts"]["starts"]}
    assert starts["pilotfish"] > 0, "it notes the forecasts, and its costs, at its stop"
    assert stopped["cost"]["requests"] > running["requests"] and stopped["cost"]["running_s"] > running["running_s"]


def card_of_a_morning(slurm: FastSlurm, config: Path) -> dict[str, Any]:
    """Let jobs run, and check their card against what Slurm did."""
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
    words = ("score", "--config", str(config), "--since", "1d", "--hold", "3600", "--json")
    document = json.loads(slurm.run(*PILOTFISH, *words))
    handed, waiting = document["handed"], document["measures"]["waiting"]
    assert (handed["seen"], handed["compared"], handed["placed"]) == (len(jobs), len(jobs), len(jobs))
    mean = waiting["mean"]
    assert mean["recorded"] > 60.0 and abs(mean["twin"] - mean["recorded"]) <= MOST_ERROR_S
    assert mean["pilotfish"] < mean["twin"], "the shortest jobs first wait less in the mean"
    assert 10 <= document["own_requests"] <= 40, "each question is asked once, accounting a day at a time"
    assert document["later"]["jobs"] > 0
    assert slurm.run(*ended).count("COMPLETED") == len(jobs)
    return dict(document)


def test_where_slurm_counts_no_memory_jobs_without_a_request_share_nodes(slurm: FastSlurm) -> None:
    hold = "--begin=now+3600 --comment=pilotfish:hold=3600 -o /dev/null -D /tmp --wrap='sleep 1'"
    jobs = [slurm.run("sh", "-c", f"sbatch --parsable -n1 -t9 {hold}").strip() for _ in range(NODES * CORES)]
    try:
        plan = json.loads(slurm.run(*PILOTFISH, "plan", "--adapter", "slurm", "--policy", "easy", "--json"))
        assert {start["job"] for start in plan["starts"]} == {f"slurm/{job}" for job in jobs}, plan["waits"]
    finally:
        slurm.run("scancel", *jobs)
