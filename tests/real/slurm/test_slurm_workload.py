"""Sixty jobs of all kinds on eight shared nodes, with profiles: each runs once, where it was planned.

All "nodes" share this machine's CPUs, so that jobs which compute slow each other across nodes, which no forecast knows:
jobs that sleep come true, the error of the others is reported, not asserted.
"""

from __future__ import annotations

import random
import signal
import statistics
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite
from slurm_work import Work

from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.job import Profile, Provenance, ThreadGroup

pytestmark = pytest.mark.xdist_group("site")
NAPS = (1.0, 2.0, 4.0)
SPIN_S = 0.5
SPIN = f"timeout {SPIN_S} sh -c 'while :; do :; done'; true"


@pytest.fixture
def daemon(site: SlurmSite, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as made:
        with closing(ProfileStore(tmp_path / "profiles.sqlite")) as store:
            known = Provenance("given")
            for seconds in NAPS:
                nap = (ThreadGroup(1, 0.001 * seconds, utilisation=0.001),)
                store.put(Profile(nap, name=f"nap-{seconds:g}", provenance=known))
            store.put(Profile((ThreadGroup(1, SPIN_S),), name="spin", provenance=known))
        yield made


def test_sixty_mixed_jobs_run_once_where_they_were_planned(
    site: SlurmSite, daemon: SlurmDaemon, record_property: Callable[[str, object], None]
) -> None:
    daemon.start()
    work, draw = Work.of(site, "sixty"), random.Random(60)
    computes = set[int]()
    for number in range(60):
        spins = number % 5 == 0
        seconds = draw.choice(NAPS)
        options = [f"--cpus-per-task={draw.choice((1, 1, 2, 4))}", f"--mem={draw.choice((128, 256, 1024))}M"]
        options += ["--partition=shared" if number % 3 == 0 else "--partition=main", "--time=1"]
        options += ["--nodes=2"] if number % 10 == 9 else []
        options += [f"--dependency=afterok:{draw.choice(work.jobs)}"] if number % 6 == 5 else []
        tag = "spin" if spins else f"nap-{seconds:g}"
        job = work.add(SPIN if spins else f"sleep {seconds:g}", *options, tags=f";profile={tag}")
        computes |= {job} if spins else set()
    work.wait()
    work.each_ran_once()
    errors: dict[bool, list[float]] = {True: [], False: []}
    for job in work.jobs:
        shown, told = site.show(job), daemon.story(job)
        chosen = [record for record in told["story"] if record["kind"] == "chosen"]
        assert chosen and shown["NodeList"] == shown["ReqNodeList"], f"{job} was not placed"
        assert set(told["job"]["nodes"]) == set(chosen[-1]["data"]["nodes"])
        seen = told["job"]
        took = seen["finish_time"] - seen["start_time"]
        errors[job in computes].append(abs(seen["forecast_run_time"] - took))
    for spins, what in ((False, "sleep"), (True, "compute")):
        found = sorted(errors[spins])
        text = f"{len(found)} jobs that {what}: run time missed by {statistics.median(found):.2f} s in the median"
        record_property("measured", f"{text}, at most {found[-1]:.2f} s (Slurm tells whole seconds)")
    assert "Traceback" not in daemon.log.read_text() and daemon.stop(signal.SIGTERM) == 0
