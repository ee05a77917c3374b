"""Schedulers that others wrote for Batsim, over our engine and on this machine, each with the starts of ours.

Rule: pybatsim's schedulers want neighbouring resources, and decide after each of several events of one instant. Where
jobs take a half or all of the machine, and no two events have the same time, their schedules equal ours job by job.
"""

from __future__ import annotations

import csv
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import pytest
import yaml
from real_world import CPUS, Served, eventually

from pilotfish.cli.__main__ import main
from pilotfish.daemon.state.codec import encode
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow

pytestmark = pytest.mark.xdist_group("batsim")
OWN = Path(__file__).parents[1] / "adapters" / "batsim"
#: With this seed, no two jobs of the trace are submitted or end at the same time, under each of our policies.
JOBS, SEED = 120, 149


def halves(path: Path) -> None:
    """Write jobs on a half or all of 16 processors."""
    draw, time, lines = random.Random(SEED), 0, ["; MaxProcs: 16"]
    for i in range(1, JOBS + 1):
        time += draw.randint(0, 120)
        run, size = draw.randint(10, 200), draw.choice((8, 8, 8, 16))
        wall = run + draw.choice((0, 7, 60, 400))
        lines.append(f"{i} {time} -1 {run} {size} -1 -1 {size} {wall} -1 1 1 1 1 1 1 -1 -1")
    path.write_text("\n".join(lines) + "\n")


def schedule(folder: Path, *argv: str) -> dict[str, dict[str, str]]:
    """Return the times of each job."""
    command = "batsim" if "--endpoint" in argv else "simulate"
    assert main([command, str(folder / "halves.swf"), "--out", str(folder / "run"), *argv]) == 0
    with (folder / "run" / "jobs.csv").open() as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    assert len(rows) == JOBS
    keys = ("submission_time", "starting_time", "finish_time")
    return {job: {key: row[key] for key in keys} for job, row in rows.items()}


@pytest.mark.parametrize(("theirs", "ours"), [("schedFcfs", "strict"), ("easyBackfill", "easy")])
def test_schedulers_of_pybatsim_schedule_as_ours(tmp_path: Path, pybatsim: str, theirs: str, ours: str) -> None:
    halves(tmp_path / "halves.swf")
    endpoint = f"ipc://{tmp_path}/edc"
    command = f"{pybatsim} {theirs} -s {endpoint} -t 0 -v warning"
    wanted = schedule(tmp_path, "-p", ours)
    times = [time for row in wanted.values() for time in (row["submission_time"], row["finish_time"])]
    assert len(set(times)) == 2 * JOBS, "no two events have the same time"
    assert schedule(tmp_path, "--endpoint", endpoint, "--command", command) == wanted


@pytest.mark.parametrize("theirs", ["easyBackfill", "schedFcfs"])
def test_a_scheduler_of_pybatsim_in_this_process_decides_the_same(
    tmp_path: Path, pybatsim: str, theirs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (packages,) = Path(pybatsim).parents[1].glob("lib/python*/site-packages")
    monkeypatch.syspath_prepend(packages)
    halves(tmp_path / "halves.swf")
    endpoint = f"ipc://{tmp_path}/edc"
    wanted = schedule(
        tmp_path, "--endpoint", endpoint, "--command", f"{pybatsim} {theirs} -s {endpoint} -t 0 -v warning"
    )
    assert schedule(tmp_path, "--endpoint", f"pybatsim:{theirs}") == wanted


def test_a_scheduler_in_this_process_that_fails_is_one_line(
    tmp_path: Path, pybatsim: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (packages,) = Path(pybatsim).parents[1].glob("lib/python*/site-packages")
    monkeypatch.syspath_prepend(packages)
    halves(tmp_path / "halves.swf")
    (tmp_path / "fails.py").write_text(
        "from batsim.batsim import BatsimScheduler\n"
        "class Fails(BatsimScheduler):\n    def onJobSubmission(self, job):\n        1 / 0\n"
    )
    for name, says in (("fails", "ZeroDivisionError: division by zero"), ("nothing", "there is no such scheduler")):
        name = f"{tmp_path}/fails.py" if name == "fails" else name
        assert main(["batsim", str(tmp_path / "halves.swf"), "--endpoint", f"pybatsim:{name}"]) == 1
        assert f"pybatsim:{name}" in (said := capsys.readouterr().err) and says in said


@pytest.mark.parametrize("theirs", ["schedEasySjfBackfill", "schedFiller"])
def test_other_schedulers_of_pybatsim_run_every_job(tmp_path: Path, pybatsim: str, theirs: str) -> None:
    halves(tmp_path / "halves.swf")
    endpoint = f"ipc://{tmp_path}/edc"
    command = f"{pybatsim} {theirs} -s {endpoint} -t 0 -v warning"
    schedule(tmp_path, "--endpoint", endpoint, "--command", command)


@contextmanager
def component(folder: Path, *argv: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a component, and wait until it listens."""
    with subprocess.Popen([*map(str, argv)], stdout=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: (folder / "edc").exists(), "the component's socket")
            yield process
        finally:
            process.kill()


def job(name: str, threads: int, seconds: float, walltime: float) -> Job:
    profile = Profile((ThreadGroup(threads, seconds),))
    return Job(name, profile, walltime=walltime, command=("/bin/sh", "-c", f"echo {name} >> trail; sleep {seconds}"))


#: `second` waits for `first`, and `short` may pass it under EASY.
WORK = Workflow("w", (job("first", 1, 2.5, 30.0), job("second", 2, 0.5, 5.0), job("short", 1, 0.5, 5.0)))
STARTS = {
    "fcfs_component": [{"first"}, {"second"}, {"short"}],
    "fcfs_component_5": [{"first"}, {"second"}, {"short"}],
    "easyBackfill": [{"first", "short"}, {"second"}],  # those together that start at once
}


@pytest.mark.parametrize("theirs", STARTS)
def test_they_decide_in_the_daemon_on_this_machine(tmp_path: Path, theirs: str, request: pytest.FixtureRequest) -> None:
    if len(CPUS) < 2:
        pytest.skip("there is one CPU that we may use: no component decided on this machine")
    endpoint = f"ipc://{tmp_path}/edc"
    if theirs.startswith("fcfs_component"):
        argv: list[str | Path] = [sys.executable, OWN / f"{theirs}.py", endpoint]
    else:
        argv = [request.getfixturevalue("pybatsim"), theirs, "-s", endpoint, "-t", "0", "-v", "warning"]
    with closing(Served(tmp_path)) as served, component(tmp_path, *argv) as process:
        kind = {"cores": 2, "memory": "1GiB", "memory_bandwidth": "1GB/s"}
        node = {"names": "a", "type": "t", "cpus": f"{CPUS[0]},{CPUS[1]}"}
        cluster = {"schema": "pilotfish/cluster/v1", "name": "here", "node_types": {"t": kind}, "nodes": [node]}
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(cluster))
        config = {
            "schema": "pilotfish/daemon/v1", "cluster": "cluster.yaml", "state_dir": "state", "cycle_seconds": 0.2,
            "policy": f"batsim{'5' if theirs.endswith('_5') else ''}:{endpoint}", "access": {"root": True}, "profiles": "profiles.sqlite",
            "socket": {"path": str(served.socket)}, "metrics": {"enabled": False},
            "adapter": {"name": "local", "options": {"cgroups": False}},
        }  # fmt: skip
        served.config.write_text(yaml.safe_dump(config))
        served.start()
        flow = served.ask("submit", workflow=encode(WORK), directory=str(tmp_path))
        assert flow is not None

        def ended() -> bool:
            found = served.ask("status", workflow=flow["id"])
            return found is not None and found["workflows"][0]["exit_code"] == 0

        eventually(ended, "the end of all jobs")
        assert served.stop(signal.SIGTERM) == 0
        assert process.wait(30) == 0  # the session has ended
    ran = iter((tmp_path / "trail").read_text().split())
    assert [{*islice(ran, len(together))} for together in STARTS[theirs]] == STARTS[theirs]
    assert "failed" not in served.log.read_text()
