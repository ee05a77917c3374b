"""Killed with -9 at twenty moments of one workload: before, between and after the steps of a placement, and at random;
beside it nodes are drained and jobs requeued right after the kill. At the end the daemon stays dead.

Every job starts within its grace and a pass of Slurm's, none runs twice but those that were requeued, and no pin
outlives the reaper, which stands here for its timer. Slurm lets a requeued job wait until its credential has expired
(`cred_expire`, here 10 s); that wait is Slurm's, and counts from the requeue.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from real_world import PATIENCE_S, eventually, pilotfish
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_traps import MOMENTS, Traps
from slurm_work import Work

pytestmark = pytest.mark.xdist_group("slurm 1")
GRACE_S, REQUEUE_S = 8, 11
PASS_S = 40  # a pass of Slurm's, 5 s, and the rest for a busy machine
OLDER_S = 3
KILLS = [*MOMENTS * 2, "requeue", "requeue", *["random"] * 8]


class Reaper:
    """`pilotfish reap` again and again; `outlived` are the pins that two passes in a row left behind."""

    def __init__(self, slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
        self.slurm, self.config = slurm, daemon.config
        self.outlived: set[str] = set()
        self.said: list[str] = []
        self._left: set[str] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(2.0):
            now = time.time()
            done = pilotfish("reap", "--config", self.config, "--older-than", str(OLDER_S))
            self.said += [*done.stdout.splitlines(), *done.stderr.splitlines()]
            left = {pin for pin, since in pins(self.slurm).items() if since < now - OLDER_S - 1}
            self.outlived |= left & self._left
            self._left = left

    def close(self) -> None:
        """Stop."""
        self._end.set()
        self._thread.join()


def pins(slurm: SlurmCluster) -> dict[str, float]:
    """Pins of ours on jobs that wait, and since when each is there."""
    listed = slurm.run("squeue", "-h", "--states=pending", "--Format=JobID:0|,ReqNodes:0|,admin_comment:0|")
    rows = [line.split("|") for line in listed.splitlines()]
    marks = {f"{job} {mark}": mark for job, nodes, mark, *_ in rows if nodes and mark.startswith("pilotfish:pin=")}
    return {pin: float(mark.removeprefix("pilotfish:pin=").split(":")[0]) for pin, mark in marks.items()}


@pytest.fixture
def daemon(slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus)) as made:
        yield made


def test_twenty_kills_in_one_workload_delay_and_duplicate_no_job(
    slurm: SlurmCluster, daemon: SlurmDaemon, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    draw, work, requeued = random.Random(7), Work.of(slurm, "kills"), set[int]()
    traps = Traps(tmp_path)
    daemon.environment = os.environ | {"PATH": f"{traps.path}:{os.environ['PATH']}"}
    kills = draw.sample(KILLS, len(KILLS))
    with closing(Reaper(slurm, daemon)) as reaper:
        for number, moment in enumerate(kills):
            daemon.spawn()
            if moment == "random":
                _submit(work, draw, 3)
                time.sleep(draw.uniform(0.5, 2.5))
                daemon.stop(signal.SIGKILL)
            else:
                _spring(daemon, traps, moment, lambda: _submit(work, draw, 3))
            if moment == "requeue":
                requeued |= _requeue(work, traps.victim())
            if number % 3 == 2:  # so that what is drained stays so for a while
                slurm.resume()
        _submit(work, draw, 4)
        slurm.resume()
        work.wait()
    requeued = {job for job in requeued if slurm.show(job)["Restarts"] != "0"}  # others had ended before
    work.each_ran_once(but=requeued)
    waits = [_wait_s(slurm, work, job, requeued) for job in work.jobs]
    runs = work.runs()
    assert all(len(runs[job]) == int(slurm.show(job)["Restarts"]) + 1 for job in work.jobs)
    assert requeued and not reaper.outlived and not pins(slurm)
    assert "Traceback" not in daemon.log.read_text() + "".join(reaper.said)
    released = sum(line.startswith("release") for line in reaper.said)
    record_property(
        "measured",
        f"{len(kills)} kills, {len(waits)} jobs: started after {sorted(waits)[len(waits) // 2]:.1f} s in the median, "
        f"{max(waits):.1f} s at most (grace {GRACE_S} s); the reaper took back {released} pins",
    )


def _submit(work: Work, draw: random.Random, count: int) -> None:
    for _ in range(count):
        cpus = f"--cpus-per-task={draw.choice((1, 1, 2))}"
        work.add(f"sleep {draw.choice((0.5, 1, 2))}", cpus, "--time=1", grace_s=GRACE_S)


def _spring(daemon: SlurmDaemon, traps: Traps, moment: str, work: Callable[[], None]) -> None:
    """Let the daemon die at that moment of its next placement, for which there is work."""
    assert daemon.process
    eventually(lambda: daemon.ask("status"), "an answer of the daemon")
    traps.set("after" if moment == "requeue" else moment, daemon.process.pid)
    work()
    assert daemon.process.wait(PATIENCE_S) == -signal.SIGKILL
    daemon.process = None
    eventually(traps.victim, f"the trap {moment}")


def _requeue(work: Work, job: int) -> set[int]:
    """Send the job back to the queue once it has begun by its own word; Slurm calls it running before its node does."""
    eventually(lambda: work.runs()[job], f"the first line of {job}")
    work.slurm.run("scontrol", "requeue", str(job), check=False)
    return {job}


def _wait_s(slurm: SlurmCluster, work: Work, job: int, requeued: set[int]) -> float:
    """Seconds from its submission to its first start; the second start is checked, too."""
    runs, shown = work.runs()[job], slurm.show(job)
    waited = runs[0].began - work.submitted[job]
    assert waited <= GRACE_S + PASS_S, f"{job} waited {waited} s"
    if job in requeued:
        again = runs[-1].began - time.mktime(time.strptime(shown["SubmitTime"], "%Y-%m-%dT%H:%M:%S"))
        assert len(runs) == 2 and again <= REQUEUE_S + PASS_S, f"{job} waited {again} s for its second run"
    return waited
