"""Long campaigns next to a real OAR, run by hand: `pytest -s tests/real/oar/campaign_oar.py`; each prints its figures.

`make test` runs short versions of them. Here Almighty waits as long as OAR's does.
"""

from __future__ import annotations

import os
import resource
import signal
import statistics
import time
from contextlib import closing
from pathlib import Path

import oar_cluster
import pytest
from oar_campaigns import SMALL, death, killed_work, mixed_work, passes_apart, summary
from oar_cluster import CONFIG, LIBRARY, USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_site import PROGRAM, QUEUE, STOCK, Shim
from oar_world import OarWorld
from real_world import eventually

pytestmark = pytest.mark.xdist_group("oar")
oar_cluster.CHANGED = {}


def test_sixty_mixed_jobs(oar: OarCluster, users_shim: Shim) -> None:
    print(mixed_work(oar, users_shim, "sixty", 60, 60.0))


def test_twenty_kills(oar: OarCluster, users_shim: Shim) -> None:
    print("waits to first line:", summary(killed_work(oar, users_shim, "twenty", 20, drain=True)))


def test_deaths(oar: OarCluster, users_shim: Shim) -> None:
    took = []
    for number in range(int(os.environ.get("DEATHS", "20"))):
        took.append(death(oar, users_shim, f"death-{number}"))
        print(f"from death to the last start: {took[-1]:.1f} s", flush=True)
    print("from death to the last start:", summary(took))
    assert max(took) < 30 + 60 + 15


def test_a_snapshot_of_many_waiting_jobs(oar: OarCluster, shim: Shim, tmp_path: Path) -> None:
    world = OarWorld(tmp_path, oar, shim)
    world.hold_s = 86400
    world.restart()
    world.adapter.keep_holding(world.adapter.snapshot().time + 110)
    for many in (1000, 4000):
        oar.submit("true", "-q", QUEUE, "-l", "/core=1,walltime=0:01:00", "--array", str(many))
        for _ in range(4):
            began, cpu = time.monotonic(), time.process_time()
            jobs = len(world.adapter.snapshot().jobs)
            print(f"{jobs} jobs: {time.monotonic() - began:.2f} s, of these {time.process_time() - cpu:.2f} CPU s here")
            world.adapter.keep_holding(world.adapter.snapshot().time + 110)
    oar.sql("update jobs set state = 'Error' where state = 'Waiting'")  # oardel takes 20 minutes for so many


def test_a_pass_with_and_without_the_shim(oar: OarCluster, shim: Shim, tmp_path: Path) -> None:
    """With 1,000 waiting jobs while all cores are busy, so that no pass starts one. Almighty is away meanwhile."""
    oar.submit("sleep 600", "-l", "/nodes=4/core=2,walltime=0:20:00")
    oar.until(lambda: [state for state, _ in oar.jobs().values()][-1] == "Running", "a job on all cores")
    world = OarWorld(tmp_path, oar, shim)
    world.hold_s = 86400
    world.restart()
    world.adapter.keep_holding(world.adapter.snapshot().time + 110)
    oar.submit("true", "-q", QUEUE, "-l", "/core=1,walltime=0:01:00", "--array", "1000")
    oar.signal("almighty", signal.SIGKILL)
    took: dict[str, list[float]] = {"kept by the shim": [], "no file": [], "stock": []}
    cpu: dict[str, list[float]] = {what: [] for what in took}
    known = {"OARDIR": str(LIBRARY), "OARUSER": "oar", "OARCONFFILE": str(CONFIG)}
    try:
        for _ in range(8):
            for what, seconds in took.items():
                program = STOCK if what == "stock" else PROGRAM
                oar.sql(f"update queues set scheduler_policy = '{program}' where queue_name = '{QUEUE}'")
                shim.file.unlink(missing_ok=True)
                if what == "kept by the shim":
                    world.adapter.keep_holding(world.adapter.snapshot().time + 110)
                began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
                oar.run(str(LIBRARY / "oar_meta_sched"), user="oar", environment=known)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                seconds.append(time.monotonic() - began)
                cpu[what].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        kept = oar.sql("select count(*) from jobs where message like 'Kept by pilotfish%' and state = 'Waiting'")
        assert int(kept) > 500 and "toLaunch" not in {state for state, _ in oar.jobs().values()}
    finally:
        oar.sql(f"update queues set scheduler_policy = '{PROGRAM}' where queue_name = '{QUEUE}'")
        oar.sql("update jobs set state = 'Error' where state = 'Waiting'")
    for what, seconds in took.items():
        print(
            f"a pass, {what}, load {os.getloadavg()[0]:.1f}: {summary(seconds)}; CPU {summary(cpu[what])}", flush=True
        )


@pytest.mark.parametrize("apart_s", [1, 5])
@pytest.mark.parametrize("pause_s", [8.0, 0.0], ids=["idle", "following"])
def test_latency_against_stock_oar(oar: OarCluster, users_shim: Shim, apart_s: int, pause_s: float) -> None:
    """From the return of `oarsub` to the first line, in turns: on an idle OAR, or right after the end of a job."""
    took: dict[str, list[float]] = {"default": [], QUEUE: []}
    name, loads = f"latency-{apart_s}-{pause_s:g}", list[float]()
    with passes_apart(oar, apart_s), closing(OarDaemon(name, oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        for number in range(2 * int(os.environ.get("SUBMISSIONS", "10"))):
            time.sleep((pause_s + number % 10 * 0.1) if number else 0.0)  # the first one right after the daemon's start
            queue = (QUEUE, "default")[number % 2]
            jobs = work(oar, f"{name}-{number}")
            job = jobs.add(0, *SMALL, user=USERS[0], queue=queue)
            returned = time.time()
            jobs.wait()
            took[queue].append(jobs.runs()[job][0] - returned)
            loads.append(os.getloadavg()[0])
    where = f"minimum pass {apart_s} s, {'idle' if pause_s else 'following'}, load {statistics.median(loads):.1f}"
    for queue, seconds in took.items():
        print(f"{where}, {'stock' if queue == 'default' else 'pilotfish'}: {summary(seconds)}")
        print(" ".join(f"{each:.1f}" for each in seconds))  # in turns with the other
