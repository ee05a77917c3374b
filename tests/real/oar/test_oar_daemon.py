"""The daemon next to a real OAR: jobs of two users go where it planned, and each runs once, whatever happens to it."""

from __future__ import annotations

import random
import signal
import time
from contextlib import closing

import pytest
from oar_cluster import USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_site import QUEUE, Shim
from real_world import eventually

pytestmark = pytest.mark.xdist_group("oar")
SMALL = ("-l", "/core=1,walltime=0:02:00")


def test_a_dry_run_holds_and_places_nothing(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "dry")
    with closing(OarDaemon("dry", oar, users_shim, dry=True)) as daemon:
        daemon.start()
        jobs.add(1, *SMALL, user=USERS[1])
        jobs.wait()
        assert daemon.stop(signal.SIGTERM) == 0
    jobs.each_ran_once()
    assert not users_shim.file.exists()
    assert "Traceback" not in daemon.log.read_text()


def test_jobs_of_two_users_run_where_they_were_placed(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "placed")
    with closing(OarDaemon("placed", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        for number in range(8):
            wide = ("-l", "/nodes=2/core=1,walltime=0:02:00") if number % 4 == 3 else SMALL
            jobs.add(1, *wide, user=USERS[number % 2])
        not_ours = jobs.add(1, *SMALL, user=USERS[0], queue="default")
        jobs.wait()
        jobs.each_ran_once()
        for job in set(jobs.jobs) - {not_ours}:
            placed = eventually(lambda job=job: daemon.placed(job), f"the choice for {job}")
            assert oar.jobs()[job] == ("Terminated", tuple(sorted(placed)))
        assert daemon.stop(signal.SIGTERM) == 0
        assert "Traceback" not in daemon.log.read_text()


def test_each_job_runs_once_though_the_daemon_is_killed_again_and_again(oar: OarCluster, users_shim: Shim) -> None:
    draw, jobs = random.Random(17), work(oar, "killed")
    with closing(OarDaemon("killed", oar, users_shim)) as daemon:
        daemon.start()
        for number in range(24):
            jobs.add(1, *SMALL, user=USERS[number % 2])
            if number % 4 == 3:
                time.sleep(draw.uniform(0.0, 2.0))
                daemon.stop(signal.SIGKILL)
                daemon.start()
        jobs.wait()
        jobs.each_ran_once()


def test_kept_jobs_start_by_themselves_when_the_daemon_is_gone(oar: OarCluster, users_shim: Shim) -> None:
    """Nobody asks OAR for a pass: it begins one at least every 60 s."""
    jobs = work(oar, "silent")
    with closing(OarDaemon("silent", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        fill = [oar.submit("sleep 8", "-l", "/nodes=4,walltime=0:01:00", user=USERS[1])]
        jobs.add(1, *SMALL, user=USERS[0])
        daemon.stop(signal.SIGKILL)
        killed = time.time()
        jobs.wait()
    jobs.each_ran_once()
    (began,) = jobs.runs()[jobs.jobs[0]]
    assert began - killed < 30 + 60 + 15
    assert QUEUE in oar.sql("select queue_name from queues where state = 'Active'")
    assert oar.jobs()[fill[0]][0] == "Terminated"


def test_a_site_full_of_besteffort_jobs_is_not_full(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "besteffort")
    first = oar.submit("sleep 300", "-q", "besteffort", "-t", "besteffort", "-l", "/core=1,walltime=0:10:00",
                       "--array", "8", user=USERS[1])  # fmt: skip
    fill = range(first, first + 8)
    oar.until(lambda: {oar.jobs()[job][0] for job in fill} == {"Running"}, "the besteffort jobs")
    with closing(OarDaemon("besteffort", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        jobs.add(1, *SMALL, user=USERS[0])
        jobs.wait()
        placed = eventually(lambda: daemon.placed(jobs.jobs[0]), "the choice")
        (chosen,) = [each for each in daemon.story(jobs.jobs[0])["story"] if each["kind"] == "chosen"]
        assert {int(key.partition("/")[2]) for key in chosen["data"]["preempts"]} < set(fill)
        assert "; may end preemptible jobs there: oar/" in chosen["text"]
    jobs.each_ran_once()
    assert oar.jobs()[jobs.jobs[0]] == ("Terminated", placed)
    assert sorted(oar.jobs()[job][0] for job in fill) == ["Error"] + ["Running"] * 7
