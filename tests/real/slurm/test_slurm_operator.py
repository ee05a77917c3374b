"""The daemon as somebody who is neither root nor Slurm's own user: an operator places jobs of users, a user cannot."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path

import pytest
from real_world import COMMAND, eventually
from slurm_daemon import SlurmDaemon
from slurm_site import OPERATOR, SlurmSite

from pilotfish.adapters.slurm.handed_over.pin_record import Pin

pytestmark = pytest.mark.xdist_group("site 2")
Start = Callable[[str], SlurmDaemon]


@pytest.fixture
def start(site: SlurmSite, tmp_path: Path) -> Iterator[Start]:
    """Start the daemon as a user."""
    if not _may_run(OPERATOR):
        pytest.skip(f"SKIPPED, the user {OPERATOR} may not read the folder in which pilotfish is installed")
    with ExitStack() as stack:

        def begin(user: str) -> SlurmDaemon:
            folder = site.shared() / f"{tmp_path.name}-{user}"
            folder.mkdir()
            daemon = stack.enter_context(closing(SlurmDaemon(folder, site.nodes, site.cpus, user)))
            daemon.start()
            return daemon

        yield begin


def _may_run(user: str) -> bool:
    argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *COMMAND, "--version"]
    return subprocess.run(argv, capture_output=True, cwd="/").returncode == 0


def hand_over(site: SlurmSite, line: str, *options: str) -> int:
    return site.submit(line, "--begin=now+600", "--comment=for me pilotfish:hold=600", *options)


def comment_of(site: SlurmSite, job: int) -> str:
    return site.run("squeue", "--noheader", "--states=all", f"--jobs={job}", "--Format=Comment:0").rstrip("\n")


def test_an_operator_places_jobs_of_users_and_leaves_their_comments_alone(site: SlurmSite, start: Start) -> None:
    daemon = start(OPERATOR)
    jobs = [hand_over(site, "sleep 0.5", "--cpus-per-task=3") for _ in range(6)]
    eventually(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in jobs), "the jobs")
    for job in jobs:
        shown = site.show(job)
        assert shown["NodeList"] == shown["ReqNodeList"] and "AdminComment" not in shown
        assert comment_of(site, job) == "for me pilotfish:hold=600"
    assert daemon.stop(signal.SIGTERM) == 0


def test_an_operators_reaper_takes_back_a_pin_on_record(site: SlurmSite, start: Start) -> None:
    daemon = start(OPERATOR)
    daemon.stop(signal.SIGKILL)
    job = hand_over(site, "sleep 0.2")
    site.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")
    pins = daemon.config.parent / "state" / "slurm" / "pins"
    pins.mkdir(mode=0o700, parents=True, exist_ok=True)
    (pins / str(job)).write_text(json.dumps(asdict(Pin(site.uid("games"), ("n2",), 1000))))
    for path in (pins.parent, pins, pins / str(job)):
        shutil.chown(path, OPERATOR)
    site.run("scontrol", "update", f"JobId={job}", "ReqNodeList=n2", "StartTime=now")
    argv = [*daemon.prefix, *COMMAND, "reap", "--config", str(daemon.config)]
    done = subprocess.run(argv, capture_output=True, text=True, env=daemon.environment, cwd="/")
    assert (done.returncode, done.stdout) == (0, f"release slurm/{job}\n"), done.stderr
    eventually(lambda: site.jobs()[job][0] == "COMPLETED", "the job")
    assert site.jobs()[job][1] != "n2"


def test_missing_rights_are_logged_once_and_change_nothing(site: SlurmSite, start: Start) -> None:
    daemon, before = start("news"), _refusals(site, "news")
    jobs = [hand_over(site, "true") for _ in range(8)]
    eventually(lambda: "must be an operator" in daemon.log.read_text(), "a refusal")
    time.sleep(4.0)
    said = daemon.log.read_text()
    assert said.count("change only its own jobs") == 1, said
    assert _refusals(site, "news") - before <= 1, "it is asked for again once in a minute"
    for job in jobs:
        shown = site.show(job)
        assert shown["JobState"] == "PENDING" and shown["ReqNodeList"] == "(null)"
    assert "failed" in {each["kind"] for each in daemon.story(jobs[0])["story"]}
    assert daemon.stop(signal.SIGTERM) == 0


def _refusals(site: SlurmSite, user: str) -> int:
    """Changes that the controller refused a user."""
    log = (site.path / "log" / "slurmctld.log").read_text()
    return log.count(f"uid={site.uid(user)}: Invalid user id")
