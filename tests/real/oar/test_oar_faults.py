"""Faults of OAR in the middle of work: the daemon says so once, recovers without help, and each job runs once."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from adapter_contract import ended
from oar_cluster import SCHEDULERS, USERS, OarCluster
from oar_daemon import OarDaemon, work
from oar_mounts import group
from oar_site import QUEUE, STOCK, Shim, as_user
from oar_world import OarWorld
from real_world import CLOCK, eventually

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.oar.commands import OarCommands
from pilotfish.simulate.model.plan import Submit
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.xdist_group(group(2))
SMALL = ("-l", "/core=1,walltime=0:02:00")
#: If Almighty is killed while a job reports its end, OAR may see that end at the walltime only.
BRIEF = ("-l", "/core=1,walltime=0:00:40")


PING = """#!/bin/bash
for n in "$@"; do timeout 2 bash -c "exec 3<>/dev/tcp/$n/{port}" 2>/dev/null || echo $n >&2; done
"""


@contextmanager
def pinged(oar: OarCluster) -> Iterator[None]:
    """OAR looks whether the sshd of a node answers before it launches a job there."""
    script = oar.path / "ping"
    script.write_text(PING.format(port=oar.ssh))
    script.chmod(0o755)
    oar.ping = str(script)
    oar.configure()
    try:
        yield
    finally:
        oar.ping = "/bin/true"
        oar.configure()


@contextmanager
def killed_schedulers(shim: Shim) -> Iterator[None]:
    """The scheduler behind the shim is killed in each pass."""
    program, settings = SCHEDULERS / "oar_sched_killed", shim.config.read_text()
    program.write_text("#!/usr/bin/perl\nkill 9, $$;\n")
    program.chmod(0o755)
    shim.config.write_text(settings.replace(STOCK, program.name))
    try:
        yield
    finally:
        shim.config.write_text(settings)
        program.unlink()


def test_what_goes_away_in_oar_loses_and_doubles_no_job(oar: OarCluster, users_shim: Shim) -> None:
    """Almighty, its database, a node and the scheduler of the queue, one after another in the middle of work."""
    jobs = work(oar, "faults")
    away, back = "the cluster cannot be reached: OAR's database: ", "can be reached again"

    def submit(count: int) -> None:
        for user in USERS:
            jobs.add(1, *BRIEF, user=user, many=count // 2)

    with closing(OarDaemon("faults", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        submit(8)
        oar.signal("almighty", signal.SIGKILL)
        oar.start_server()
        oar.signal("postgres", signal.SIGINT)
        eventually(lambda: away in daemon.log.read_text(), "a database that is away")
        oar.start_database()
        eventually(lambda: back in daemon.log.read_text(), "the database again")
        jobs.wait()
        with pinged(oar):
            oar.signal(f"sshd.{oar.nodes[0]}", signal.SIGKILL)
            submit(8)  # as many as there are cores, so that one goes to that node
            eventually(lambda: sum(map(len, jobs.runs().values())) == len(jobs.jobs), "what OAR submits again")
        oar.start_node(oar.nodes[0])
        oar.run("oarnodesetting", "-h", oar.nodes[0], "-s", "Alive")
        with killed_schedulers(users_shim):
            submit(2)
            eventually(lambda: (daemon.ask("status") or {}).get("closed_queues") == [QUEUE], "a disabled queue")
        oar.run("oarnotify", "-e", QUEUE)
        jobs.wait()
        assert daemon.stop(signal.SIGTERM) == 0
    asked = "select count(*) from event_logs where type = 'RESUBMIT_JOB_AUTOMATICALLY' and job_id >= {}"
    resubmitted = int(oar.sql(asked.format(jobs.jobs[0])))
    said = daemon.log.read_text()
    assert "Traceback" not in said
    for words in (away, back, f"queue {QUEUE} is disabled"):
        assert said.count(words) == 1, words
    again = re.findall(r"could not launch job (\d+), and submits it again: PING_CHECKER_NODE_SUSPECTED: ", said)
    assert len([job for job in again if int(job) >= jobs.jobs[0]]) == resubmitted > 0  # it sees earlier jobs, too
    ran = Counter(map(len, jobs.runs().values()))
    assert set(ran) <= {0, 1} and ran[1] == len(jobs.jobs)


def holds(shim: Shim) -> bool:
    """Return whether jobs are kept now: the heartbeat is neither over nor an hour away."""
    alive = re.search(r"^alive (\d+)$", shim.file.read_text() if shim.file.exists() else "", re.MULTILINE)
    return alive is not None and 0 < int(alive[1]) - time.time() < 600


def test_a_clock_that_is_stepped_is_plain_oar_until_it_is_right(oar: OarCluster, users_shim: Shim) -> None:
    """The clock of the daemon, and not that of OAR."""
    jobs = work(oar, "clock")
    with closing(OarDaemon("clock", oar, users_shim)) as daemon:
        step = daemon.folder / "clock"
        (daemon.folder / "sitecustomize.py").write_text(CLOCK.format(clock=str(step)))
        daemon.environment["PYTHONPATH"] = str(daemon.folder)
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        for seconds, says in (("-3600", "behind"), ("+3600", "ahead of"), ("0", "agrees with")):
            step.write_text(seconds)
            words = rf"this machine's clock .*{says} OAR's"
            eventually(lambda words=words: re.search(words, daemon.log.read_text()), words)
            if says == "agrees with":
                eventually(lambda: holds(users_shim), "a heartbeat by the right clock")
            last = jobs.add(0.1, *SMALL, user=USERS[0])
            jobs.wait()
        placed = eventually(lambda: daemon.placed(last), "the choice")
        assert oar.jobs()[last] == ("Terminated", placed)
        assert daemon.stop(signal.SIGTERM) == 0
    jobs.each_ran_once()
    said = [line for line in daemon.log.read_text().splitlines() if "this machine's clock" in line]
    assert ["behind" in said[0], "ahead" in said[1], "agrees" in said[2], len(said)] == [True, True, True, 3]


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
    script.write_text(f'#!/bin/sh\n(sleep 3; exec {shutil.which("oarsub")} "$@") >/dev/null 2>&1 &\nexec sleep 20\n')
    script.chmod(0o755)
    start = Submit("flow/a", world.job("a", 0.2), oar.nodes[1:2])
    path = f"PATH={script.parent}:{os.environ['PATH']}"
    world.adapter.commands = OarCommands(1.0, (*as_user(), path), world.notes)
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


def test_what_users_delete_or_hold_in_the_middle_of_work_is_theirs(oar: OarCluster, users_shim: Shim) -> None:
    jobs = work(oar, "users")
    with closing(OarDaemon("users", oar, users_shim)) as daemon:
        daemon.start()
        eventually(users_shim.file.exists, "the first heartbeat")
        full = oar.submit("sleep 600", "-l", "/nodes=4/core=2,walltime=0:20:00", user=USERS[1])
        oar.until(lambda: oar.jobs()[full][0] == "Running", "a job on all cores")
        deleted, held, other = (jobs.add(0.1, *SMALL, user=user) for user in (*USERS, USERS[0]))
        oar.run("oardel", str(deleted), user=USERS[0])
        oar.run("oarhold", str(held), user=USERS[1])
        oar.until(lambda: oar.jobs()[held][0] == "Hold" and oar.jobs()[deleted][0] == "Error", "what they did")
        oar.run("oardel", str(full), user=USERS[1])
        eventually(lambda: oar.jobs()[other][0] == "Terminated", "the job that is nobody's to change")
        assert oar.jobs()[held][0] == "Hold"
        oar.run("oarresume", str(held), user=USERS[1])
        jobs.wait()
        gone = eventually(lambda: daemon.story(deleted)["job"], "what became of it")
        assert (gone["state"], gone["start_time"]) == ("cancelled", None)
        assert daemon.stop(signal.SIGTERM) == 0
    assert {job: len(runs) for job, runs in jobs.runs().items()} == {deleted: 0, held: 1, other: 1}


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
