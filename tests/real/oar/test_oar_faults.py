"""Faults of OAR in the middle of work: the daemon says so once, recovers without help, and each job runs once."""

from __future__ import annotations

import signal
import time
from contextlib import closing
from pathlib import Path

import pytest
from adapter_contract import ended
from oar_cluster import USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_site import Shim
from oar_world import OarWorld
from real_world import eventually

from pilotfish.adapters.base import AdapterError
from pilotfish.simulate.model.plan import Submit
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.xdist_group("oar")
SMALL = ("-l", "/core=1,walltime=0:02:00")


def test_a_server_and_a_database_that_go_away_lose_and_double_nothing(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "faults")
    with closing(OarDaemon("faults", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        for number in range(12):
            jobs.add(2, *SMALL, user=USERS[number % 2])
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


def test_a_placement_file_that_cannot_be_written_is_plain_oar(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "unwritten")
    with closing(OarDaemon("unwritten", oar, users_shim)) as daemon:
        users_shim.folder.chmod(0o555)
        try:
            daemon.start()
            jobs.add(0.2, *SMALL, user=USERS[0])
            jobs.wait()
        finally:
            users_shim.folder.chmod(0o755)
        eventually(users_shim.file.exists, "a heartbeat as soon as it can be written")
    jobs.each_ran_once()
    assert daemon.log.read_text().count("cannot be written, so OAR places jobs without us") == 1
