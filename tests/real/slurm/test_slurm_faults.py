"""What goes wrong around the daemon in the middle of a workload: services that end, freeze and come back, nodes that go
away, users who cancel, a clock that is stepped, a disk that is full.

Each time nothing is lost, nothing is doubled, the log says it in one line, the metrics show it, and all goes on by
itself. Slurm writes its state within five seconds; what a controller that is killed had not written is not its job's.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import psutil
import pytest
from fault_shims import FAKETIME, Shims
from real_world import eventually
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite
from slurm_work import Work, all_ended, states

#: a job that ends by itself only when it runs for the second time
UNTIL_LOST = '[ -n "$SLURM_RESTART_COUNT" ] || sleep 600'
#: The argument of the process of the daemon's that forecasts by Slurm's own rules.
FORECASTS = "pilotfish.daemon.oracle.twin_process"
plain, whole = pytest.mark.xdist_group("slurm 1"), pytest.mark.xdist_group("site 2")


class Watched(SlurmDaemon):
    """The daemon with its metrics."""

    def __init__(self, folder: Path, slurm: SlurmCluster) -> None:
        super().__init__(folder, slurm.nodes, slurm.cpus)
        self.config.write_text(self.config.read_text().replace("enabled: false", "port: 0"))

    def said(self) -> str:
        """Its log."""
        return self.log.read_text()


@pytest.fixture
def daemon(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Watched]:
    with closing(Watched(tmp_path, slurm)) as made:
        made.start()
        yield made


def in_the_middle(work: Work, *, count: int = 16, seconds: float = 1.0) -> None:
    """Hand over more than fits at once, and wait until some run and some have ended."""
    for number in range(count):
        work.add(f"sleep {seconds}", "--cpus-per-task=4", *(["--nodes=2"] if number % 5 == 4 else []))
    eventually(lambda: {"RUNNING", "COMPLETED"} <= states(work.slurm, work.jobs), "the middle of the work")


def went_on(daemon: Watched) -> None:
    """Fail unless it is what it was before."""
    assert "Traceback" not in daemon.said()
    assert daemon.ask("status") and daemon.stop(signal.SIGTERM) == 0


@plain
@pytest.mark.parametrize("who", ["slurmctld", "munged"])
def test_a_service_that_was_stopped(slurm: SlurmCluster, daemon: Watched, who: str) -> None:
    work = Work.of(slurm, f"stopped-{who}")
    in_the_middle(work)
    slurm.signal(who, signal.SIGTERM)
    eventually(lambda: "the cluster cannot be reached" in daemon.said(), "a word about it")
    kinds = ("unreachable", "timeout")
    errors = sum(daemon.metric(f'pilotfish_adapter_errors_total{{kind="{kind}"}}') for kind in kinds)
    time.sleep(3.0)
    slurm.start_munge()
    slurm.start_controller()
    work.add("true")
    work.wait()
    work.each_ran_once()
    eventually(lambda: "the cluster can be reached again" in daemon.said(), "a word about its return")
    assert errors > 0, daemon.said()
    assert daemon.said().count("cannot be reached") == daemon.said().count("can be reached again") == 1
    went_on(daemon)


@plain
def test_a_controller_that_was_killed_and_recovers_its_state(slurm: SlurmCluster, daemon: Watched) -> None:
    """With its state written: what it has not yet written, Slurm itself forgets, starts and ends alike."""
    work = Work.of(slurm, "killed")
    for number in range(12):
        work.add(f"sleep {16 if number < 4 else 1}", "--cpus-per-task=4")
    eventually(lambda: sum(state == "RUNNING" for state, _ in slurm.jobs().values()) == 4, "four jobs to run")
    begun, state = time.time(), slurm.path / "controller" / "job_state"
    eventually(lambda: state.stat().st_mtime > begun, "the state to be written")
    slurm.signal("slurmctld", signal.SIGKILL)
    eventually(lambda: "the cluster cannot be reached" in daemon.said(), "a word about it")
    slurm.start_controller()
    work.wait()
    work.each_ran_once()
    assert daemon.said().count("cannot be reached") == daemon.said().count("can be reached again") == 1
    went_on(daemon)


@plain
def test_a_controller_that_is_frozen_beyond_every_time_limit(slurm: SlurmCluster, daemon: Watched) -> None:
    """Changes that were given up are carried out all the same when it thaws; nothing is started twice for that."""
    work = Work.of(slurm, "frozen")
    in_the_middle(work, count=10)
    slurm.signal("slurmctld", signal.SIGSTOP)
    try:
        eventually(lambda: "the cluster cannot be reached" in daemon.said(), "a word about it")
    finally:
        slurm.signal("slurmctld", signal.SIGCONT)
    work.wait()
    work.each_ran_once()
    eventually(lambda: "the cluster can be reached again" in daemon.said(), "a word about its return")
    assert daemon.said().count("cannot be reached") == 1
    went_on(daemon)


@plain
def test_a_node_that_dies_and_a_node_that_is_drained(slurm: SlurmCluster, daemon: Watched) -> None:
    """The job of the node that died is requeued by Slurm, and runs again elsewhere; the drained one gets no more."""
    config, work = slurm.config.read_text(), Work.of(slurm, "nodes")
    slurm.config.write_text(config.replace("SlurmdTimeout=30", "SlurmdTimeout=5"))
    slurm.run("scontrol", "reconfigure")
    try:
        in_the_middle(work, count=12)
        lost = work.add(UNTIL_LOST, "--cpus-per-task=4")
        (first,) = eventually(lambda: work.runs()[lost], "its first line")
        dead, other = first.node, next(name for name in ("n2", "n3") if name != first.node)
        _die(slurm, dead, lost)
        slurm.run("scontrol", "update", f"NodeName={other}", "State=DRAIN", "Reason=test")
        drained = time.time()
        work.add("true")
        eventually(lambda: daemon.metric("pilotfish_snapshot_age_seconds") < 5.0, "metrics")
        work.wait()
    finally:
        slurm.config.write_text(config)
        slurm.run("scontrol", "reconfigure")
        for number in range(1, slurm.nodes + 1):
            slurm.start_node(f"n{number}")
        slurm.resume()
    again = {job for job in work.jobs if int(slurm.show(job)["Restarts"]) > 0}
    work.each_ran_once(but=again)
    runs = work.runs()
    assert lost in again and states(slurm, again) == {"COMPLETED"}
    assert all(len(runs[job]) == 2 and runs[job][1].node != dead for job in again), {job: runs[job] for job in again}
    assert not [run for each in runs.values() for run in each if run.node == other and run.began > drained + 10.0]
    went_on(daemon)


@plain
def test_users_cancel_waiting_running_and_pinned_jobs(slurm: SlurmCluster, daemon: Watched) -> None:
    work = Work.of(slurm, "cancelled")
    in_the_middle(work, count=20, seconds=2.0)
    waits, runs = eventually(lambda: _one_of_each(slurm, work), "one that waits beside one that runs")
    slurm.run("scancel", str(waits), str(runs), user="games")
    pinned = eventually(lambda: _just_pinned(slurm, {waits, runs}), "a job that is pinned and has not begun")
    slurm.run("scancel", str(pinned), user="games", check=False)
    work.wait()
    after = slurm.jobs()
    assert after[waits][0] == "CANCELLED" and after[runs][0] in ("CANCELLED", "COMPLETED")
    work.each_ran_once(but={waits, runs, pinned})
    assert not work.runs()[waits] and len(work.runs()[pinned]) <= 1 >= len(work.runs()[runs])
    went_on(daemon)


@plain
@pytest.mark.skipif(FAKETIME is None, reason="no libfaketime here (package faketime)")
def test_the_machines_clock_is_stepped_by_an_hour_both_ways(slurm: SlurmCluster, tmp_path: Path) -> None:
    """The clock of the daemon and of its commands; Slurm's stays. A job starts where and when it would have.

    Only while the clock is ahead nothing is placed: `scontrol` takes it for now, and would hold the job for that hour.
    It is stepped between two commands: one that is on its way in that very moment is beyond what anybody can check.
    """
    shims, work = Shims(tmp_path / "shims", "root"), Work.of(slurm, "clock")
    with closing(Watched(tmp_path, slurm)) as daemon:
        daemon.environment |= shims.environment
        daemon.start()
        for step in ("-3600", "+3600", "+0"):
            in_the_middle(work, count=6)
            _step_at_rest(daemon, shims, step)
            jobs = [work.add("sleep 0.5", "--cpus-per-task=4", grace_s=12) for _ in range(4)]
            if step == "+3600":
                eventually(lambda jobs=jobs: all_ended(slurm, jobs), "the jobs whose grace is over")
                _step_at_rest(daemon, shims, "+0")
            work.wait()
        work.each_ran_once()
        assert max(runs[0].began - work.submitted[job] for job, runs in work.runs().items()) < 1800.0
        assert len({line[:13] for line in daemon.said().splitlines()}) > 2, "its clock was not stepped"
        assert re.search(r"3(599|60\d) s ahead of the controller's", daemon.said())
        assert not re.search(r"cannot be reached|Traceback", daemon.said()), daemon.said()
        assert daemon.stop(signal.SIGTERM) == 0


@plain
@pytest.mark.parametrize("room", [True, False], ids=["room", "no room"])
def test_the_next_daemon_goes_on_with_a_job_that_was_held_back_to_be_bound(
    slurm: SlurmCluster, tmp_path: Path, room: bool, record_property: Callable[[str, object], None]
) -> None:
    """It binds the job, or ends the pause once the hold is over, and the job begins before the pause would end."""
    shims, work = Shims(tmp_path / "shims", "root"), Work.of(slurm, "paused")
    with closing(Watched(tmp_path, slurm)) as daemon:
        daemon.environment |= shims.environment
        daemon.start()
        work.add("true")
        work.wait()
        shims.set("scontrol", "kill-held")
        job = work.add("true", "--cpus-per-task=4", grace_s=8)
        eventually(lambda: daemon.process is not None and daemon.process.poll() is not None, "the death of the daemon")
        until = datetime.fromisoformat(slurm.show(job)["EligibleTime"]).timestamp()
        assert until > work.submitted[job] + 20.0, "it is held back"
        blockers = [] if room else [slurm.submit("sleep 8", "--cpus-per-task=4") for _ in range(slurm.nodes)]
        daemon.start()
        work.wait()
        work.each_ran_once()
        late_s = work.runs()[job][0].began - work.submitted[job] - 8.0
        record_property("measured", f"{late_s:.1f} s after the end of its hold, {len(blockers)} nodes busy for 8 s")
        assert work.runs()[job][0].began < until - 1.0
        went_on(daemon)


@plain
def test_a_full_disk_stops_placing_and_nothing_else(slurm: SlurmCluster, tmp_path: Path) -> None:
    """With its journal on a disk that is full the daemon places nothing; jobs start when their grace is over."""
    state = tmp_path / "state"
    state.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", state], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be made here: {mounted.stderr.decode().strip()}")
    try:
        with closing(Watched(tmp_path, slurm)) as daemon:
            daemon.start()
            work = Work.of(slurm, "full")
            in_the_middle(work, count=8)
            filling = state / "filling"
            _fill(filling)
            grace = [work.add("true", grace_s=6) for _ in range(4)]
            eventually(lambda: daemon.metric('pilotfish_mode{mode="blocked"}') == 1.0, "the mode to show it")
            eventually(lambda: states(slurm, grace) == {"COMPLETED"}, "the jobs whose grace is over")
            assert not any(daemon.placed(job) for job in grace)
            filling.unlink()
            last = work.add("true")
            work.wait()
            work.each_ran_once()
            assert daemon.placed(last) and daemon.metric('pilotfish_mode{mode="blocked"}') == 0.0
            said = daemon.said()
            assert said.count("none is started until it can be written") == said.count("can be written again") == 1
            went_on(daemon)
    finally:
        subprocess.run(["umount", "--lazy", state], check=True)


@whole
def test_accounting_is_down_during_a_workload(site: SlurmSite, tmp_path: Path) -> None:
    """Slurm keeps what it has to tell slurmdbd; jobs are placed, run and end as ever."""
    with closing(Watched(tmp_path, site)) as daemon:
        daemon.start()
        work = Work.of(site, "accounting")
        in_the_middle(work, count=20)
        site.signal("slurmdbd", signal.SIGKILL)
        for _ in range(6):
            work.add("sleep 0.5")
        work.wait()
        site.start_accounting()
        work.each_ran_once()
        assert "cannot be reached" not in daemon.said()
        went_on(daemon)


def _step_at_rest(daemon: Watched, shims: Shims, seconds: str) -> None:
    """Set it while the daemon stands still, and no command of its own is on its way.

    A command that has printed more than fits into a pipe ends only when the daemon goes on to read. The process that
    forecasts stays for as long as the daemon does, and asks nothing of Slurm.
    """
    assert daemon.process
    still = psutil.Process(daemon.process.pid)

    def stepped() -> bool:
        still.suspend()
        try:
            time.sleep(0.3)
            children = [child for child in still.children() if child.status() != "zombie"]
            if rests := all(FORECASTS in child.cmdline() for child in children):
                shims.set("clock", seconds)
            return rests
        finally:
            still.resume()

    eventually(stepped, "a moment without a command of the daemon's")


def _die(slurm: SlurmCluster, node: str, job: int) -> None:
    """Let a node die: its slurmd, and the job on it."""
    slurm.signal(f"slurmd.{node}", signal.SIGKILL)
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if f"slurmstepd: [{job}." in words and slurm.is_ours(process.pid):
            children = process.children(recursive=True)
            process.kill()  # first: else it still tells Slurm that the job has failed
            for child in children:
                child.kill()


def _one_of_each(slurm: SlurmCluster, work: Work) -> tuple[int, int] | None:
    """The last job that waits and the first that runs, where there are both."""
    seen = slurm.jobs()
    waiting = [job for job in work.jobs if seen[job][0] == "PENDING"]
    running = [job for job in work.jobs if seen[job][0] == "RUNNING"]
    return (waiting[-1], running[0]) if waiting and running else None


def _just_pinned(slurm: SlurmCluster, but: set[int]) -> int:
    listed = slurm.run("squeue", "-h", "--states=pending", "--Format=JobID:0|,ReqNodes:0|").splitlines()
    found = [int(job) for job, nodes, *_ in (line.split("|") for line in listed) if nodes]
    return next((job for job in found if job not in but), 0)


def _fill(path: Path) -> None:
    """Take what is left of a disk, in ever smaller pieces."""
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096, 512):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    assert shutil.disk_usage(path.parent).free < 4096
