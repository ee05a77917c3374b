"""Sixty mixed jobs on eight shared nodes: each runs once, where it was planned; forecasts stand beside what came.

All eight "nodes" are this machine with its few CPUs: jobs that sleep are forecast exactly, those that compute take each
other's time across nodes, of which a simulation of eight machines can know nothing. So errors are reported by kind, and
not asserted.
"""

from __future__ import annotations

import random
import signal
import statistics
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from real_world import eventually
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite
from slurm_work import Work

from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.job import Profile, ThreadGroup

pytestmark = pytest.mark.xdist_group("site 5")
SPIN = "timeout {seconds} sh -c 'while :; do :; done'; true"


def teach(store: Path, seconds: tuple[float, ...]) -> None:
    """Store what the jobs need, by name: one thread that sleeps, or computes, for so long."""
    with closing(ProfileStore(store)) as profiles:
        for each in seconds:
            profiles.put(Profile((ThreadGroup(1, each / 100, 0.01),), name=f"nap-{each:g}"))
            profiles.put(Profile((ThreadGroup(1, each),), name=f"spin-{each:g}"))


def test_sixty_mixed_jobs_run_once_each_where_they_were_planned(
    site: SlurmSite, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    draw, work, kinds = random.Random(11), Work.of(site, "workload"), dict[int, str]()
    teach(tmp_path / "profiles.sqlite", (1, 2, 4))
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as daemon:
        daemon.start()
        for number in range(60):
            seconds, kind = (1, "spin") if number % 12 == 11 else (draw.choice((1, 2, 4)), "nap")
            options = [
                f"--partition={draw.choice(('shared', 'shared', 'main'))}", f"--nodes={2 if number % 12 == 7 else 1}",
                f"--cpus-per-task={draw.choice((1, 1, 2, 4))}", f"--mem={draw.choice((64, 256, 1024))}M", "--time=2",
            ]  # fmt: skip
            if number % 7 == 6:
                options.append(f"--dependency=afterok:{draw.choice(work.jobs)}")
            line = SPIN.format(seconds=seconds) if kind == "spin" else f"sleep {seconds}"
            kinds[work.add(line, *options, tags=f";profile={kind}-{seconds}")] = kind
        work.wait()
        work.each_ran_once()
        stories = {job: eventually(lambda job=job: _whole(daemon, job), f"the end of {job}") for job in work.jobs}
        assert daemon.stop(signal.SIGTERM) == 0
    for job in work.jobs:
        shown, (chosen, *_) = site.show(job), [r for r in reversed(stories[job]["story"]) if r["kind"] == "chosen"]
        assert shown["NodeList"] == shown["ReqNodeList"]
        assert set(stories[job]["job"]["nodes"]) == set(chosen["data"]["nodes"])
    for kind in ("nap", "spin"):
        record_property("measured", _errors(kind, [stories[job]["job"] for job in work.jobs if kinds[job] == kind]))


def _whole(daemon: SlurmDaemon, job: int) -> dict[str, Any] | None:
    told = daemon.story(job)
    return told if told["job"]["state"] == "completed" else None


def _errors(kind: str, jobs: list[dict[str, Any]]) -> str:
    """Report how far run times were from the forecasts at the start; Slurm gives both in whole seconds."""
    errors = [job["finish_time"] - job["start_time"] - job["forecast_run_time"] for job in jobs]
    shares = [abs(error) / max(job["forecast_run_time"], 1.0) for error, job in zip(errors, jobs, strict=True)]
    return (
        f"{len(jobs)} of kind {kind}: run time minus forecast {statistics.median(errors):+.2f} s in the median, from "
        f"{min(errors):+.2f} to {max(errors):+.2f} s; {statistics.median(shares):.0%} in the median"
    )
