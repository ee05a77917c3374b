"""Long campaigns next to a real OAR, run by hand: `pytest -s tests/real/oar/campaign_oar.py`; each prints its figures.

`make test` runs short versions of them. Here Almighty waits as long as OAR's does.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from contextlib import closing
from pathlib import Path

import oar_cluster
import pytest
import yaml
from oar_campaigns import SMALL, death, killed_work, mixed_work
from oar_cluster import USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_site import QUEUE, Shim
from oar_world import OarWorld
from real_world import eventually, pilotfish

pytestmark = pytest.mark.xdist_group("oar")
oar_cluster.WAITS = {}


def summary(values: list[float]) -> str:
    """The least, the median and the most of some seconds."""
    return (
        f"{min(values):.1f} / {statistics.median(values):.1f} / {max(values):.1f} s (min / median / max), {len(values)}"
    )


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


def _closed(daemon: OarDaemon) -> object:
    return (daemon.ask("status") or {}).get("closed_queues")


def test_status_names_a_disabled_queue(oar: OarCluster, users_shim: Shim) -> None:
    with closing(OarDaemon("disabled", oar, users_shim)) as daemon:
        daemon.start()
        for switch, closed in (("-d", [QUEUE]), ("-e", [])):
            oar.run("oarnotify", switch, QUEUE)
            eventually(lambda closed=closed: _closed(daemon) == closed, "status")


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


def _restart(oar: OarCluster) -> None:
    """Let Almighty read its configuration, which it does at its start only."""
    oar.configure()
    oar.signal("almighty", signal.SIGKILL)
    oar.start_server()


@pytest.mark.parametrize("apart_s", [1, 5])
@pytest.mark.parametrize("pause_s", [8.0, 0.0], ids=["idle", "following"])
def test_latency_against_stock_oar(oar: OarCluster, users_shim: Shim, apart_s: int, pause_s: float) -> None:
    """From the return of `oarsub` to the first line, in turns: on an idle OAR, or right after the end of a job."""
    settings = oar_cluster.SETTINGS
    oar_cluster.SETTINGS = settings.replace('2_CALLS="1"', f'2_CALLS="{apart_s}"')
    _restart(oar)
    took: dict[str, list[float]] = {"default": [], QUEUE: []}
    name, loads = f"latency-{apart_s}-{pause_s:g}", list[float]()
    try:
        with closing(OarDaemon(name, oar, users_shim)) as daemon:
            daemon.start()
            eventually(users_shim.file.exists, "the first heartbeat")
            for number in range(2 * int(os.environ.get("SUBMISSIONS", "10"))):
                time.sleep(pause_s + number % 10 * 0.1)
                queue = (QUEUE, "default")[number % 2]
                jobs = work(oar, f"{name}-{number}")
                job = jobs.add(0, *SMALL, user=USERS[0], queue=queue)
                returned = time.time()
                jobs.wait()
                took[queue].append(jobs.runs()[job][0] - returned)
                loads.append(os.getloadavg()[0])
    finally:
        oar_cluster.SETTINGS = settings
        _restart(oar)
    where = f"minimum pass {apart_s} s, {'idle' if pause_s else 'following'}, load {statistics.median(loads):.1f}"
    for queue, seconds in took.items():
        print(f"{where}, {'stock' if queue == 'default' else 'pilotfish'}: {summary(seconds)}")
        print(" ".join(f"{each:.1f}" for each in seconds))


Dag = dict[str, tuple[list[str], int]]  #: name -> those before it, and seconds


def _dag(size: int) -> Dag:
    """Jobs of 30 to 60 s on one core; two thirds have one or two jobs before them."""
    draw, names = random.Random(17), [f"j{number:02d}" for number in range(size)]
    return {
        name: (sorted(draw.sample(names[:number], min(number, draw.choice((0, 1, 2))))), draw.randint(30, 60))
        for number, name in enumerate(names)
    }


def _line(name: str, seconds: int, trail: Path) -> str:
    return f"echo {name} $(date +%s.%N) >> {trail}; sleep {seconds}; echo {name} $(date +%s.%N) >> {trail}"


def _times(trail: Path) -> dict[str, list[float]]:
    """When each job began and ended, epoch seconds."""
    found: dict[str, list[float]] = {}
    for line in trail.read_text().splitlines():
        name, at = line.split()
        found.setdefault(name, []).append(float(at))
    return found


def _wait(trail: Path, dag: Dag) -> dict[str, list[float]]:
    deadline = time.monotonic() + 1500
    while len([each for each in _times(trail).values() if len(each) == 2]) < len(dag):
        assert time.monotonic() < deadline
        time.sleep(1.0)
    return _times(trail)


def _figures(name: str, began: float, times: dict[str, tuple[float, float]]) -> str:
    waits = [start - began for start, _ in times.values()]
    end = max(finish for _, finish in times.values()) - began
    return f"{name}: makespan {end:.0f} s, mean wait {statistics.mean(waits):.1f} s"


def test_forecast_against_reality(oar: OarCluster, users_shim: Shim, tmp_path: Path) -> None:
    """A workflow through the daemon, the same on plain OAR, and in a replay with conservative backfilling."""
    dag = _dag(int(os.environ.get("JOBS", "32")))
    trails = {name: oar.shared() / f"forecast-{name}" for name in ("ours", "plain")}
    for trail in trails.values():
        trail.write_text("")
        trail.chmod(0o666)
    jobs = {
        name: {"after": after, "command": _line(name, seconds, trails["ours"]), "walltime": 2 * seconds,
               "profile": {"service_demand": seconds / 100, "utilisation": 0.01}}
        for name, (after, seconds) in dag.items()
    }  # fmt: skip
    flow = tmp_path / "dag.yaml"
    flow.write_text(yaml.safe_dump({"schema": "pilotfish/workflow/v1", "name": "dag", "jobs": jobs}, sort_keys=False))
    load = os.getloadavg()[0]
    with closing(OarDaemon("forecast", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        began = time.time()
        done = pilotfish("submit", flow, "--socket", daemon.socket)
        assert done.returncode == 0, done.stderr

        def planned() -> dict[str, float]:
            (shown,) = (daemon.ask("status") or {})["workflows"]
            ends = {job["id"]: job["forecast_finish_time"] for job in shown["jobs"]}
            return ends if all(ends.values()) else {}

        forecast = eventually(planned, "a forecast of each job")
        ours = _wait(trails["ours"], dag)
    errors = [ours[name][1] - forecast[name] for name in dag]
    actual, said = (max(ends) - began for ends in ([end for _, end in ours.values()], forecast.values()))
    print(f"\n{len(dag)} jobs, load {load:.1f} to {os.getloadavg()[0]:.1f}")
    print(f"forecast at the submission: makespan {said:.0f} s, actual {actual:.0f} s ({(actual - said) / actual:+.1%})")
    print("error of each end:", summary(errors))
    print(_figures("pilotfish", began, ours))
    ids: dict[str, int] = {}
    began = time.time()
    for name, (after, seconds) in dag.items():
        options = [word for each in after for word in ("-a", str(ids[each]))]
        limit = time.strftime("%H:%M:%S", time.gmtime(2 * seconds))
        ids[name] = oar.submit(_line(name, seconds, trails["plain"]), "-l", f"/core=1,walltime={limit}", *options)
    plain = _wait(trails["plain"], dag)
    print(_figures("plain OAR", began, plain))
    for how in ("conservative", "easy"):
        out = tmp_path / how
        done = pilotfish("simulate", flow, "--procs", "8", "-p", how, "--out", out)
        assert done.returncode == 0, done.stderr
        print(how, done.stdout)
