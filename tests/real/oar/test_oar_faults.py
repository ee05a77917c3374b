"""Faults of OAR in the middle of work: the daemon says so once, recovers without help, and each job runs once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from adapter_contract import ended
from oar_cluster import USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_site import Shim, as_user
from oar_world import OarWorld
from real_world import eventually

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.oar.commands import Commands
from pilotfish.simulate.model.plan import Submit
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.xdist_group("oar")
SMALL = ("-l", "/core=1,walltime=0:02:00")


def test_a_server_and_a_database_that_go_away_lose_and_double_nothing(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "faults")
    with closing(OarDaemon("faults", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        for number in range(8):
            jobs.add(1, *SMALL, user=USERS[number % 2])
        oar.signal("almighty", signal.SIGKILL)
        time.sleep(2)
        oar.start_server()
        oar.signal("postgres", signal.SIGINT)
        time.sleep(3)
        oar.start_database()
        jobs.wait()
        jobs.each_ran_once()
        assert daemon.stop(signal.SIGTERM) == 0
    said = daemon.log.read_text()
    assert "Traceback" not in said
    assert (said.count("the cluster cannot be reached: OAR's database: "), said.count("can be reached again")) == (1, 1)


def test_a_submission_that_said_no_is_found_and_not_repeated(oar: OarCluster, shim: Shim, tmp_path: Path) -> None:
    """With Almighty away `oarsub` fails, and the job runs all the same once it is back."""
    world = OarWorld(tmp_path, oar, shim)
    world.adapter.keep_holding(world.adapter.snapshot().time + 60)
    start = Submit("flow/a", world.job("a", 0.2), oar.nodes[1:2])
    oar.signal("almighty", signal.SIGKILL)
    with pytest.raises(AdapterError) as caught:
        world.adapter.apply(start)
    assert caught.value.transient and "\n" not in str(caught.value)
    oar.start_server()
    world.adapter.apply(start)
    done = ended(world, "flow/a")
    assert (done.state, done.nodes, world.runs("a")) == (JobState.COMPLETED, oar.nodes[1:2], 1)


def test_an_oarsub_that_hangs_and_takes_effect_later_is_no_second_job(
    oar: OarCluster, shim: Shim, tmp_path: Path
) -> None:
    world = OarWorld(tmp_path, oar, shim)
    world.adapter.keep_holding(world.adapter.snapshot().time + 60)
    script = world.notes / "bin" / "oarsub"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\n(sleep 3; exec {shutil.which("oarsub")} "$@") >/dev/null 2>&1 &\nsleep 20\n')
    script.chmod(0o755)
    start = Submit("flow/a", world.job("a", 0.2), oar.nodes[1:2])
    path = f"PATH={script.parent}:{os.environ['PATH']}"
    world.adapter.commands = Commands(1.0, (*as_user(), path), world.notes)
    with pytest.raises(AdapterError, match="did not answer within 1 s") as caught:
        world.adapter.apply(start)
    assert caught.value.transient
    world.adapter.commands = world.commands
    known = f"select count(*) from jobs where job_name = 'flow/a' and job_id >= {world.reader.first}"
    oar.until(lambda: oar.sql(known) == "1", "the submission")
    world.adapter.apply(start)
    done = ended(world, "flow/a")
    assert (done.state, done.nodes, world.runs("a")) == (JobState.COMPLETED, oar.nodes[1:2], 1)
    assert oar.sql(known) == "1"


@contextmanager
def full(folder: Path, owner: str) -> Iterator[None]:
    """A disk at a folder, which is full."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=755", "none", folder], capture_output=True)
    if done.returncode:
        pytest.skip(f"SKIPPED, no full disk: {done.stderr!r}")
    try:
        shutil.chown(folder, owner)
        with suppress(OSError):
            (folder / "much").write_bytes(b"x" * 2**16)
        yield
        (folder / "much").unlink()
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_under_the_placement_file_is_plain_oar(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "unwritten")
    with closing(OarDaemon("unwritten", oar, users_shim)) as daemon:
        with full(users_shim.folder, users_shim.owner):
            daemon.start()
            jobs.add(0.2, *SMALL, user=USERS[0])
            jobs.wait()
        eventually(users_shim.file.exists, "a heartbeat as soon as it can be written")
    jobs.each_ran_once()
    assert daemon.log.read_text().count("cannot be written, so OAR places jobs without us") == 1
