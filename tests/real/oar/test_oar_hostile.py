"""What one user writes into a job next to a real OAR is about that job only, and holds up no other user."""

from __future__ import annotations

import signal
from contextlib import closing

import pytest
from oar_cluster import USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_mounts import group
from oar_site import Shim
from real_world import eventually

pytestmark = pytest.mark.xdist_group(group(2))
SMALL = ("-l", "/core=1,walltime=0:02:00")
#: It takes 16 s, but only when `oarnodes` asks for it, so that OAR itself accepts and starts the job at once.
SLOW = """(case when current_query() ~ '^[[:space:]]*SELECT resource_id[[:space:]]'
 then (select 1 from pg_sleep(16)) is not null else true end)"""


def test_slow_properties_of_one_user_hold_up_no_other(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "slow")
    with closing(OarDaemon("slow", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        slow = [jobs.add(0.2, *SMALL, "-p", f"{SLOW} and {number} = {number}", user=USERS[1]) for number in range(3)]
        plain = [jobs.add(0.2, *SMALL, "-p", f"{number} = {number}", user=USERS[0]) for number in range(3)]
        jobs.wait()
        placed = [eventually(lambda job=job: daemon.placed(job), f"the choice for {job}") for job in plain]
        assert [oar.jobs()[job] for job in plain] == [("Terminated", nodes) for nodes in placed]
        assert "OAR cannot evaluate its properties in time" in str(daemon.story(slow[0]))
        name = 'pilotfish_adapter_requests_total{{adapter="oar",call="properties",outcome="{}"}}'
        assert daemon.metric(name.format("timeout")) >= 2 and daemon.metric(name.format("ok")) >= 3
        assert daemon.metric('pilotfish_adapter_breaker{adapter="oar",service="oar",state="closed"}') == 1
        assert daemon.stop(signal.SIGTERM) == 0
    jobs.each_ran_once()
    said = daemon.log.read_text()
    assert "cannot be reached" not in said and "Traceback" not in said
    assert said.count("is left to OAR: OAR cannot evaluate its properties in time") == 1


def test_a_second_daemon_does_not_write_the_same_placement_file(oar: OarCluster, users_shim: Shim) -> None:
    with closing(OarDaemon("first", oar, users_shim)) as first, closing(OarDaemon("second", oar, users_shim)) as second:
        first.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        second.spawn()
        assert second.process is not None and second.process.wait(60) == 64
        assert "another pilotfish daemon" in second.log.read_text() and "Traceback" not in second.log.read_text()
        assert first.stop(signal.SIGTERM) == 0
