"""A learned order that ranks the worst first, live on a real Slurm: the guard rail by outcome catches it, and no job is
lost or waits beyond the bound."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import eventually
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_work import Work

from tests.support.learned_models import LIAR, model_file

pytestmark = pytest.mark.xdist_group("slurm 3")
#: Long and short jobs; what each takes, seconds; and after how long a job goes first.
LONG, SHORT, LONG_S, SHORT_S, MAX_WAIT_S = 12, 24, 20.0, 0.5, 150.0
PATIENCE_S = 240.0


@pytest.fixture
def daemon(slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmDaemon]:
    """One that takes the model although nothing proves it."""
    model = model_file(tmp_path, LIAR, processors=slurm.nodes * slurm.cpus, max_wait=MAX_WAIT_S)
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus)) as service:
        config = yaml.safe_load(service.config.read_text())
        service.config.write_text(yaml.safe_dump(config | {"policy": f"learned:{model}", "allow_unproven": True}))
        service.start()
        yield service


def submit(work: Work, slurm: SlurmCluster, number: int, seconds: float, limit_min: int) -> list[int]:
    """Hand over jobs that are as large as a node."""
    size = f"--cpus-per-task={slurm.cpus}"
    return [work.add(f"sleep {seconds}", size, f"--time={limit_min}") for _ in range(number)]


def reasons(daemon: SlurmDaemon) -> list[str]:
    """Return why the mode changed."""
    lines: list[dict[str, Any]] = (daemon.ask("log") or {})["lines"]
    return [str(line["why"]) for line in lines if line["kind"] == "mode"]


def test_it_is_caught_and_no_job_is_lost_or_late(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    work = Work.of(slurm, "liar")
    submit(work, slurm, LONG, LONG_S, 10)  # they come first, so that the short ones find a queue
    short = submit(work, slurm, SHORT, SHORT_S, 1)
    eventually(lambda: any("under its order" in why for why in reasons(daemon)), "the end of trust", PATIENCE_S)
    assert "easy:order=sjf decides in place of learned:" in daemon.log.read_text()
    assert (daemon.ask("status") or {})["mode"] == "fallback"
    eventually(work.ended, "the end of all jobs", PATIENCE_S)
    under_model = {job: runs[0].began for job, runs in work.runs().items()}
    first_wave = len(under_model)
    assert sum(under_model[job] > min(under_model.values()) + LONG_S for job in short) > SHORT // 2  # it did lie
    submit(work, slurm, 2 * slurm.nodes, LONG_S, 10)  # they fill all nodes, and as many wait
    later = submit(work, slurm, slurm.nodes, SHORT_S, 1)
    eventually(work.ended, "the end of the jobs that the baseline orders", PATIENCE_S)
    began = {job: runs[0].began for job, runs in work.runs().items()}
    last_long = sorted(began[job] for job in work.jobs[first_wave:] if job not in later)[slurm.nodes :]
    assert sum(began[job] < max(last_long) for job in later) > slurm.nodes // 2  # shorter limits go first now
    work.each_ran_once()
    waits = [began[job] - submitted for job, submitted in work.submitted.items()]
    assert max(waits) < MAX_WAIT_S + 2 * LONG_S
    assert daemon.stop(signal.SIGTERM) == 0
