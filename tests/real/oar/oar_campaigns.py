"""Work that is given to a daemon next to a real OAR, in any size: short in the tests, long in `campaign_oar`."""

from __future__ import annotations

import random
import re
import signal
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

import oar_cluster
from oar_cluster import USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_site import Shim
from real_world import eventually

SMALL = ("-l", "/core=1,walltime=0:02:00")
WIDE = ("-l", "/nodes=2/core=1,walltime=0:02:00")
KINDS = ("plain", "plain", "wide", "besteffort", "other", "after", "array")
#: The jobs, but for those that OAR kills for it, that had cores of a reservation between its time and its start.
IN_THE_WAY = """select distinct j.job_id from jobs j, assigned_resources a, jobs r, assigned_resources b
 where r.job_id = {job} and b.moldable_job_id = r.assigned_moldable_job and a.resource_id = b.resource_id
 and j.assigned_moldable_job = a.moldable_job_id and j.job_id <> r.job_id and j.queue_name <> 'besteffort'
 and j.stop_time > {at} and j.start_time < r.start_time"""


@dataclass
class Mixed:
    """What became of mixed work."""

    placed: int
    moved: int  #: jobs that did not run where they were placed last
    killed: int  #: besteffort jobs that OAR killed
    late_s: float  #: by how much the reservation began late
    seconds: float


def mixed_work(oar: OarCluster, shim: Shim, name: str, size: int, ahead_s: float) -> Mixed:
    """Give a daemon jobs of two users: arrays, dependencies, wide and besteffort ones, others' and a reservation.

    Asserts that each ran once; a besteffort job may have been killed, once it ran.

    Args:
        oar: OAR.
        shim: The shim of the daemon's user.
        name: Name of the work.
        size: Number of its jobs.
        ahead_s: When the reservation begins, seconds from now.
    """
    draw, jobs, killable, ours = random.Random(size), work(oar, name), list[int](), list[int]()
    first, began = list(KINDS), time.time()  # one of each kind, and then by chance
    with closing(OarDaemon(name, oar, shim)) as daemon:
        daemon.start()
        eventually(shim.file.exists, "the first heartbeat")
        at = time.time() + ahead_s
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
        reserved = jobs.add(1, "-l", "/nodes=2/core=2,walltime=0:00:20", "-r", when, user=USERS[1], queue="default")
        while len(jobs.jobs) < size:
            user, seconds = USERS[len(jobs.jobs) % 2], draw.choice((0.5, 1, 3))
            kind = first.pop() if first else draw.choice(KINDS)
            if kind == "besteffort":
                killable.append(
                    jobs.add(seconds, *SMALL, "-t", "besteffort", "-q", "besteffort", user=user, queue="besteffort")
                )
            elif kind == "other":
                jobs.add(seconds, *SMALL, user=user, queue="default")
            elif kind == "array" and size - len(jobs.jobs) >= 3:
                number = jobs.add(seconds, *SMALL, user=user, many=3)
                ours += [number, number + 1, number + 2]
            else:
                after = ("-a", str(ours[-1])) if kind == "after" and ours else ()
                ours.append(jobs.add(seconds, *(WIDE if kind == "wide" else SMALL), *after, user=user))
        jobs.wait(900.0)
        states, runs = oar.jobs(), jobs.runs()
        killed = [job for job in killable if states[job][0] == "Error"]
        assert {job: len(runs[job]) for job in jobs.jobs if job not in killed} == dict.fromkeys(
            set(jobs.jobs) - set(killed), 1
        )
        assert all(len(runs[job]) <= 1 for job in killed)
        placed = {job: eventually(partial(daemon.placed, job), f"the choice for {job}") for job in ours}
        moved = [job for job in ours if states[job] != ("Terminated", tuple(sorted(placed[job])))]
        (reserved_at,) = runs[reserved]
        assert daemon.stop(signal.SIGTERM) == 0
    assert not moved, {job: (states[job], placed[job]) for job in moved}
    assert not oar.sql(IN_THE_WAY.format(job=reserved, at=int(at))), f"{reserved} began {reserved_at - at:.1f} s late"
    return Mixed(len(ours), len(moved), len(killed), reserved_at - at, time.time() - began)


def killed_work(oar: OarCluster, shim: Shim, name: str, kills: int, *, drain: bool) -> list[float]:
    """Kill a daemon at random moments of its work; return how long each job waited for its first line, seconds.

    Asserts that each job ran once.

    Args:
        oar: OAR.
        shim: The shim of the daemon's user.
        name: Name of the work.
        kills: How often it is killed; each time four jobs are submitted.
        drain: Each third time a node is taken away right after, until the next kill.
    """
    draw, jobs = random.Random(17), work(oar, name)
    with closing(OarDaemon(name, oar, shim)) as daemon:
        daemon.start()
        for number in range(kills):
            for user in USERS:
                jobs.add(1, *SMALL, user=user, many=2)
            time.sleep(draw.uniform(0.0, 2.0))
            daemon.stop(signal.SIGKILL)
            if number % 3 == 0 and number:
                oar.run("oarnodesetting", "-s", "Alive", "--sql", "state = 'Absent'", check=False)
            if drain and number % 3 == 2:
                oar.run("oarnodesetting", "-h", draw.choice(oar.nodes), "-s", "Absent")
            daemon.start()
        oar.run("oarnodesetting", "-s", "Alive", "--sql", "state = 'Absent'", check=False)
        jobs.wait(900.0)
        jobs.each_ran_once()
    submitted = dict(line.split("|") for line in oar.sql("select job_id, submission_time from jobs").splitlines())
    return [began[0] - float(submitted[str(job)]) for job, began in jobs.runs().items()]


def death(oar: OarCluster, shim: Shim, name: str, *, shorten: bool = False) -> float:
    """Kill a daemon for good that keeps jobs; return the seconds from that to the first line of the last job.

    Args:
        oar: OAR.
        shim: The shim of the daemon's user.
        name: Name of the work.
        shorten: Assert how long the last heartbeat counts, and shorten it, instead of waiting for its end.
    """
    jobs = work(oar, name)
    with closing(OarDaemon(name, oar, shim)) as daemon:
        daemon.start()
        eventually(shim.file.exists, "the first heartbeat")
        full = oar.submit("sleep 600", "-l", "/nodes=4,walltime=0:20:00", user=USERS[1])
        oar.until(lambda: oar.jobs()[full][0] == "Running", "a job on all nodes")
        for each in range(3):
            jobs.add(1, *SMALL, user=USERS[each % 2])
        daemon.stop(signal.SIGKILL)
        killed = time.time()
        oar.run("oardel", str(full), user=USERS[1])
        if shorten:
            text = shim.file.read_text()
            (alive,) = re.findall(r"^alive (\d+)$", text, re.MULTILINE)
            assert int(alive) <= killed + 30
            shim.file.write_text(text.replace(alive, str(int(killed) + 5)))
        jobs.wait(240.0)
    jobs.each_ran_once()
    return max(began[0] for began in jobs.runs().values()) - killed


def summary(values: Sequence[float]) -> str:
    """The least, the median and the most of some seconds."""
    least, middle, most = min(values), statistics.median(values), max(values)
    return f"{least:.1f} / {middle:.1f} / {most:.1f} s (min / median / max), {len(values)}"


@contextmanager
def passes_apart(oar: OarCluster, seconds: int) -> Iterator[None]:
    """OAR with at least so many seconds between two scheduling passes."""
    settings = oar_cluster.SETTINGS
    oar_cluster.SETTINGS = settings.replace('2_CALLS="1"', f'2_CALLS="{seconds}"')
    _restart(oar)
    try:
        yield
    finally:
        oar_cluster.SETTINGS = settings
        _restart(oar)


def _restart(oar: OarCluster) -> None:
    """Let Almighty read its configuration, which it does at its start only."""
    oar.configure()
    oar.signal("almighty", signal.SIGKILL)
    oar.start_server()
