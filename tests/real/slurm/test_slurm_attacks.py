"""Users who write what they may on jobs of their own: daemon and reaper go on, see all others, and believe no forgery."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from real_world import eventually, pilotfish
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_work import all_ended, hand_over

from pilotfish.adapters.slurm.transport.runner import CommandRunner

pytestmark = pytest.mark.xdist_group("slurm 2")


@pytest.fixture
def daemon(slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus, wide_nodes=slurm.nodes)) as made:
        yield made


def attack(slurm: SlurmCluster) -> dict[str, int]:
    """Submit jobs of another user with texts against us; return them by what each is for."""

    def held(*options: str) -> int:
        return slurm.submit("true", "--hold", *options, user="news")

    def update(job: int, *fields: str) -> None:
        slurm.run("scontrol", "update", f"JobId={job}", *fields, user="news")

    jobs = {name: held() for name in ("long", "forged", "old", "bomb")}
    uid, far = slurm.uid("news"), int(time.time()) + 10**9
    mark = "Comment=pilotfish:pin={}:job={}:uid={}:was={}"
    update(jobs["long"], mark.format("9" * 400, jobs["long"], uid, ""))
    update(jobs["forged"], "ReqNodeList=n[1-4]", mark.format(far, jobs["forged"], uid, ""))
    update(jobs["old"], "ReqNodeList=n1", mark.format(1000, jobs["old"], uid, "n2"))
    update(jobs["bomb"], "ReqNodeList=n1", mark.format(1000, jobs["bomb"], uid, "n[0-199999]"))
    jobs["begin"] = slurm.submit("true", "--begin=now+3000000days", "--comment=pilotfish", user="news")
    jobs["bytes"] = held("--comment=pilotfish \x1b]0;x\x07", "--job-name=a\nb")
    return jobs


def test_texts_of_a_user_neither_end_nor_blind_nor_steer_the_daemon(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    jobs = attack(slurm)
    before = {job: slurm.show(job) for job in jobs.values()}
    daemon.start()
    ours = [hand_over(slurm, "sleep 0.2", "--cpus-per-task=4") for _ in range(4)]
    eventually(lambda: all_ended(slurm, ours), "the jobs that were handed over")
    assert all(daemon.placed(job) for job in ours), "pilotfish placed them"
    said = daemon.log.read_text()
    assert said.count(f"job {jobs['begin']} cannot be read") == 1 and "Traceback" not in said and "\x1b" not in said
    for job in jobs.values():
        now = slurm.show(job)
        for field in ("ReqNodeList", "Comment", "StartTime", "Priority"):
            assert now.get(field) == before[job].get(field)
        assert "AdminComment" not in now
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_pin_is_taken_back_whatever_the_job_says_in_its_comment(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    """The job changes its comments while it runs, its node dies, Slurm requeues it there: daemon and reaper see it."""
    jobs = attack(slurm)
    daemon.start()
    job = hand_over(slurm, "sleep 60", "--requeue")
    eventually(lambda: slurm.jobs()[job][0] == "RUNNING", "the job to run")
    node = slurm.show(job)["ReqNodeList"]
    slurm.run("scontrol", "update", f"JobId={job}", "Comment=mine")
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    slurm.signal(f"slurmd.{node}", signal.SIGKILL)  # or the node comes back, and Slurm starts the job on it
    slurm.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    eventually(lambda: slurm.jobs()[job][0] == "PENDING", "the requeue")
    assert slurm.show(job)["ReqNodeList"] == node
    others = ",".join(name for name in (f"n{i + 1}" for i in range(slurm.nodes)) if name != node)
    slurm.run("scontrol", "update", f"NodeName={others}", "State=DRAIN", "Reason=test")  # it waits, pinned or not
    argv = ("reap", "--config", daemon.config, "--older-than", "1")
    eventually(lambda: pilotfish(*argv, "--dry-run").stdout == f"release slurm/{job}\n", "the pin to be a second old")
    assert slurm.show(job)["ReqNodeList"] == node
    done = pilotfish(*argv)
    assert (done.returncode, done.stdout) == (0, f"release slurm/{job}\n"), done.stderr
    assert slurm.show(job)["ReqNodeList"] == "(null)" and slurm.show(job)["Comment"] == "mine"
    assert pilotfish(*argv).stdout == ""
    slurm.run("scontrol", "update", f"JobId={job}", f"ReqNodeList={node}", user="games")
    daemon.start()
    eventually(lambda: daemon.story(job), "the daemon to see the job")
    time.sleep(2.0)
    assert slurm.show(job)["ReqNodeList"] == node, "now it is its user's wish"
    assert all(slurm.jobs()[each][0] == "PENDING" for each in jobs.values())


def test_the_daemon_takes_it_back_too(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    daemon.start()
    job = hand_over(slurm, "sleep 60", "--requeue")
    eventually(lambda: slurm.jobs()[job][0] == "RUNNING", "the job to run")
    node = slurm.show(job)["ReqNodeList"]
    slurm.run("scontrol", "update", f"JobId={job}", "Comment=mine")
    daemon.stop(signal.SIGKILL)
    daemon.start()
    slurm.signal(f"slurmd.{node}", signal.SIGKILL)  # or the node is back before the pin has been there for long enough
    slurm.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
    eventually(lambda: slurm.show(job)["ReqNodeList"] == "(null)", "the pin to be taken back")
    assert daemon.stop(signal.SIGTERM) == 0


def test_every_byte_of_a_comment_stays(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    text, hold = "  caf\udce9 \t pilotfish:hold=600\r\n \x07é  ", ("--begin=now+600", "--comment=pilotfish:hold=600")
    job, full = slurm.submit("sleep 1", *hold), slurm.submit("sleep 1", *hold)
    slurm.run("scontrol", "update", f"JobId={job}", f"Comment={text}")
    slurm.run("scontrol", "update", f"JobId={full}", f"AdminComment={'x' * 1000}")
    daemon.start()
    eventually(lambda: all_ended(slurm, [job, full]), "the jobs")
    mark, fields = "@00ff@", ("JobID", "Comment", "admin_comment")
    form = ",".join(f"{field}:0{mark}" for field in fields)
    shown = CommandRunner()(["squeue", "--noheader", "--states=all", f"--jobs={job},{full}", f"--Format={form}"])
    rows = {int(row[0]): row[1:] for row in zip(*[iter(shown.split(mark)[:-1])] * 3, strict=True)}
    assert rows[job][0] == text and rows[full] == ("pilotfish:hold=600", "x" * 1000)
    assert daemon.placed(job) and daemon.placed(full)
