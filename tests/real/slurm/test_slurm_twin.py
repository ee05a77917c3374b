"""The running daemon forecasts a real site's queue by Slurm's own rules, and Slurm then does what it says."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from real_world import eventually
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite

pytestmark = pytest.mark.xdist_group("site 4")
#: How long jobs run, seconds, and how far off a start may be: passes of the scheduler come 30 s apart at most.
RUN_S, OFF_S = 20, 30
#: Jobs that end and start before; after ten of each, run times and errors are known.
BEFORE = 21


def queued(daemon: SlurmDaemon, jobs: list[int]) -> dict[int, dict[str, Any]]:
    """Return the documents of waiting jobs, once all their starts come from Slurm's own rules."""
    reply = daemon.ask("status") or {}
    forecasts = reply.get("forecasts", {})
    documents = {int(job["id"]): job for job in reply.get("queue", ()) if int(job["id"]) in jobs and job["plan"]}
    is_by_rules = forecasts.get("by") == "its own rules" and forecasts["jobs"] >= len(documents) == len(jobs)
    return documents if is_by_rules else {}


def test_a_job_behind_a_limit_starts_when_the_daemon_says(site: SlurmSite, tmp_path: Path) -> None:
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as daemon:
        daemon.start()
        line = f"sleep {RUN_S}"
        before = [site.submit(line, "--exclusive", "--partition=main", "--time=5") for _ in range(BEFORE)]
        status = daemon.ask("status") or {}
        assert status["forecasts"]["by"] == "EASY" and status["forecasts"]["why_not"]
        eventually(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in before), "the end of the first jobs")
        jobs = [site.submit(line, "--partition=main", "--time=5", "--qos=capped") for _ in range(4)]
        waiting = jobs[2:]  # two run at once, longer than it takes to read the site and to forecast
        documents = eventually(lambda: queued(daemon, waiting), "forecasts by Slurm's own rules")
        expected = {job: documents[job]["plan"]["start_time"] for job in waiting}
        story = daemon.story(waiting[-1])
        assert abs(story["job"]["plan"]["start_time"] - expected[waiting[-1]]) <= OFF_S  # it may be a newer forecast
        site.until(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in jobs), "the end of all jobs")
        for job, start in expected.items():
            began = site.run("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%S")
            assert abs(datetime.fromisoformat(began).replace(tzinfo=UTC).timestamp() - start) <= OFF_S
