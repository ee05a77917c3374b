"""Workflows of ordinary users on a login node, against the real Slurm: whole or not at all, each job once, in order,
with and without a daemon beside."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import COMMAND, PATIENCE_S, eventually, run_as, users_cache
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite

pytestmark = pytest.mark.xdist_group("site 1")
#: job -> what it waits for; two sources, a diamond, a chain, two ends
DAG = {
    "fetch": [], "notes": [], "unpack": ["fetch"], "index": ["fetch"], "align-1": ["unpack", "index"],
    "align-2": ["unpack", "index"], "align-3": ["unpack", "index"], "merge": ["align-1", "align-2", "align-3"],
    "call": ["merge"], "report": ["merge", "notes"], "annotate": ["call"], "publish": ["annotate", "report"],
}  # fmt: skip
SMALL = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
#: stands before the real sbatch and does something at the call that is named
SHIM = """#!/bin/sh
n=$(cat {folder}/calls 2>/dev/null || echo 0); n=$((n+1)); echo $n > {folder}/calls
if [ $n = {call} ]; then {before}; fi
{sbatch} "$@"; code=$?
if [ $n = {call} ]; then {after}; fi
exit $code
"""


class User:
    """A user of the site with a home, and `pilotfish` over Slurm in it."""

    def __init__(self, site: SlurmSite, name: str, home: Path, **settings: Any) -> None:
        self.site, self.name, self.home = site, name, home
        self.flow = f"dag-{secrets.token_hex(3)}"  # Slurm still shows the jobs of earlier tests
        home.mkdir()
        self.settings: dict[str, Any] = {"schema": "pilotfish/client/v1", "adapter": "slurm", "grace_seconds": 4}
        self.set(stagger_seconds=2, **settings)
        shutil.chown(home, name, name)

    def set(self, **settings: Any) -> None:
        """Change the settings."""
        self.settings |= settings
        (self.home / "client.yaml").write_text(yaml.safe_dump(self.settings))

    def write(self, jobs: dict[str, list[str]], **lines: str) -> Path:
        """A workflow of jobs that leave their names in `trail`; `lines` are other commands, by job."""
        path = self.home / "dag.yaml"
        plain = {
            name: {
                "after": after,
                "command": lines.get(name.replace("-", "_"), f"echo {name} >> trail"),
                "profile": {"service_demand": 0.1},
            }
            for name, after in jobs.items()
        }
        flow = {"schema": "pilotfish/workflow/v1", "name": self.flow, "jobs": plain}
        path.write_text(yaml.safe_dump(flow, sort_keys=False))
        return path

    def environment(self, path: str) -> dict[str, str]:
        """What the user's commands see; `path` is searched first."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PILOTFISH_", "XDG_"))}
        mine = {"HOME": str(self.home), "PILOTFISH_CLIENT": str(self.home / "client.yaml")}
        mine["PILOTFISH_CACHE"] = str(users_cache(self.name))
        return kept | mine | {"PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]}

    def start(self, *argv: str | Path, path: str = "") -> subprocess.Popen[str]:
        """Begin a command as this user."""
        as_user = ("setpriv", f"--reuid={self.name}", f"--regid={self.name}", "--clear-groups")
        return subprocess.Popen(
            [*as_user, *COMMAND, *map(str, argv)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env=self.environment(path),
        )

    def __call__(self, *argv: str | Path, path: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return run_as(self.name, *argv, env=self.environment(path), cwd=self.home)

    def submit(self, *options: str | Path, path: str = "") -> str:
        """Submit the workflow; returns its id."""
        done = self("submit", "dag.yaml", *options, path=path)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def shown(self) -> dict[str, Any]:
        """What `status` tells of the workflow."""
        (found,) = json.loads(self("status", self.flow, "--json").stdout)["workflows"]
        return dict(found)

    def trail(self) -> list[str]:
        """Names of the jobs that have run, in that order."""
        path = self.home / "trail"
        return path.read_text().split() if path.exists() else []

    def shim(self, call: int, *, before: str = ":", after: str = ":") -> str:
        """A folder for the PATH whose sbatch does something at its n-th call."""
        folder = self.home / "shim"
        folder.mkdir(exist_ok=True)
        (folder / "calls").unlink(missing_ok=True)
        sbatch = shutil.which("sbatch")
        file = folder / "sbatch"
        file.write_text(SHIM.format(folder=folder, call=call, before=before, after=after, sbatch=sbatch))
        file.chmod(0o755)
        shutil.chown(folder, self.name, self.name)
        return str(folder)


@pytest.fixture
def make_user(site: SlurmSite) -> Iterator[Any]:
    made: list[User] = []

    def make(name: str = "games", **settings: Any) -> User:
        made.append(User(site, name, site.shared() / f"home-{name}-{len(made)}", **settings))
        return made[-1]

    yield make
    for user in made:
        shutil.rmtree(user.home, ignore_errors=True)


@pytest.fixture
def user(make_user: Any) -> User:
    return make_user()


def keys(site: SlurmSite, workflow: str, states: str = "all") -> Counter[str]:
    """How often each key of a workflow's is in the queue, of jobs in these states."""
    shown = site.run("squeue", "--noheader", f"--states={states}", "--format=%k").splitlines()
    found = (line.partition("key=")[2].partition(";")[0] for line in shown)
    return Counter(key for key in found if key.startswith(f"{workflow}/"))


def in_order(trail: list[str], dag: dict[str, list[str]]) -> bool:
    """Whether each job ran once, after those that it waits for."""
    first = all(trail.index(before) < trail.index(name) for name, after in dag.items() for before in after)
    return sorted(trail) == sorted(dag) and first


def test_without_a_daemon_everything_begins_by_itself_within_one_grace(user: User) -> None:
    user.write(DAG)
    workflow = user.submit("--wait")
    assert in_order(user.trail(), DAG)
    shown = user.shown()
    assert (shown["id"], shown["state"], shown["exit_code"]) == (workflow, "completed", 0)
    assert all(job["nodes"] and job["start_time"] for job in shown["jobs"])
    told = user("explain", "merge").stdout
    assert "after" in told and "align-1, align-2, align-3" in told and "held for pilotfish" in told and "ended" in told


def test_with_a_daemon_it_is_placed_as_soon_as_it_can_start(user: User, site: SlurmSite, tmp_path: Path) -> None:
    user.set(grace_seconds=900)
    user.write(DAG)
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as daemon:
        daemon.start()
        workflow = user.submit()
        eventually(lambda: len(user.trail()) >= len(DAG), "the last job")  # a look at a file costs nothing
        eventually(lambda: user.shown()["state"] == "completed", "the end of the workflow")
        assert in_order(user.trail(), DAG)
        assert re.search(r"placed +on n\d, chosen by pilotfish", user("explain", f"{workflow}/merge").stdout)
        assert all(daemon.placed(number) for number in ids(site, workflow))
        assert daemon.stop(signal.SIGTERM) == 0
    assert len(ids(site, workflow)) == len(DAG)


def test_the_daemons_account_submits_workflows_as_any_user(make_user: Any, site: SlurmSite, tmp_path: Path) -> None:
    """Whose key is in the comment does not make it a job that the daemon has submitted: the job's name would say so."""
    user = make_user("root", grace_seconds=900)
    user.write(SMALL)
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as daemon:
        daemon.start()
        workflow = user.submit()
        eventually(lambda: len(user.trail()) >= len(SMALL), "the last job")  # a look at a file costs nothing
        eventually(lambda: user.shown()["state"] == "completed", "the end of the workflow")
        assert in_order(user.trail(), SMALL)
        assert all(daemon.placed(number) for number in ids(site, workflow))
        assert daemon.stop(signal.SIGTERM) == 0


def test_a_submission_shows_a_forecast_and_no_hold_starts_at_once(user: User, site: SlurmSite) -> None:
    nodes = [{"names": f"n[1-{site.nodes}]", "type": "t"}]
    kind = {"cores": site.cpus, "memory": "4GiB", "memory_bandwidth": "10GB/s"}
    lab = {"schema": "pilotfish/cluster/v1", "name": "lab", "node_types": {"t": kind}, "nodes": nodes}
    (user.home / "lab.yaml").write_text(yaml.safe_dump(lab))
    user.set(cluster="lab.yaml")
    user.write(SMALL)
    workflow = user.submit("--no-hold", "--wait")
    assert in_order(user.trail(), SMALL)
    assert not any("hold=" in site.show(number)["Comment"] for number in ids(site, workflow))
    assert all(job["forecast_run_time"] for job in user.shown()["jobs"])


def test_dependents_of_a_failure_are_cancelled_and_wait_reports_it(user: User) -> None:
    user.write(DAG, merge="echo merge >> trail; exit 3")
    done = user("submit", "dag.yaml", "--wait")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("pilotfish: job 'merge' failed: exit code 3"), done.stderr
    jobs = {job["id"]: job for job in user.shown()["jobs"]}
    assert {jobs[name]["state"] for name in ("call", "report", "annotate", "publish")} == {"cancelled"}
    assert jobs["notes"]["state"] == "completed" and "publish" not in user.trail()
    assert user.shown()["state"] == "failed"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_submission_that_is_killed_is_completed_by_the_next(user: User, site: SlurmSite, moment: str) -> None:
    user.set(grace_seconds=600)
    user.write(SMALL)
    for call in (1, 2, 4):  # before and after them 0, 1, 2, 3 and 4 jobs are there
        path = user.shim(call, **{moment: "kill -9 $PPID"})
        killed = user("submit", "dag.yaml", "--key", f"k{call}", path=path)
        assert killed.returncode == -signal.SIGKILL
        said = user("submit", "dag.yaml")
        assert said.returncode == 1 and "was not finished" in said.stderr
        assert call != 2 or "the submission of" in user("status").stderr
        workflow = user.submit("--key", f"k{call}")
        assert call != 2 or user.submit("--key", f"k{call}") == workflow
        assert keys(site, workflow) == {f"{workflow}/{name}": 1 for name in SMALL}
        for number in ids(site, workflow):
            shown = site.show(number)
            hold = int(shown["Comment"].partition("hold=")[2].partition(";")[0])
            assert abs(seconds(shown["EligibleTime"]) - seconds(shown["SubmitTime"]) - hold) <= 2
        assert user("cancel", workflow).returncode == 0
    eventually(lambda: not site.run("squeue", "--noheader"), "the queue to be empty")
    assert not user.trail()


def test_after_a_kill_it_still_runs_once(user: User, site: SlurmSite) -> None:
    user.write(SMALL)
    assert user("submit", "dag.yaml", "--key", "k", path=user.shim(3, after="kill -9 $PPID")).returncode < 0
    user.submit("--key", "k", "--wait")
    assert in_order(user.trail(), SMALL)


def test_a_refusal_in_the_middle_leaves_nothing_behind(user: User, site: SlurmSite) -> None:
    user.set(submit_options=["--qos=capped"])
    user.write(DAG)
    done = user("submit", "dag.yaml", "--key", "k")
    assert (done.returncode, done.stdout) == (1, "")
    (said,) = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert "QOSMaxSubmitJobPerUserLimit" in said and "taken back: 5 jobs; none had begun" in said
    assert not site.run("squeue", "--noheader", "--user=games") and not user.trail()
    assert user.shown()["state"] == "cancelled"
    user.set(submit_options=["--partition=nowhere"])
    done = user("submit", "dag.yaml", "--key", "k")
    assert done.returncode == 1 and "invalid partition specified: nowhere" in done.stderr.lower()
    assert "Traceback" not in done.stderr and not user.trail()
    user.set(submit_options=[])
    user.submit("--key", "k", "--wait")
    assert in_order(user.trail(), DAG)


def test_with_a_daemon_no_job_begins_before_all_are_submitted(user: User, site: SlurmSite, tmp_path: Path) -> None:
    user.set(submit_options=["--qos=capped"], grace_seconds=600)
    user.write(DAG)
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as daemon:
        daemon.start()
        done = user("submit", "dag.yaml", path=user.shim(5, before="sleep 3"))
        assert done.returncode == 1 and "none had begun" in done.stderr and not user.trail()


def test_a_frozen_controller_duplicates_no_job(user: User, site: SlurmSite) -> None:
    user.set(timeout_seconds=2.0, patience_seconds=60.0, grace_seconds=20)
    user.write(SMALL)
    path = user.shim(2, before=f"touch {user.home}/here; while [ ! -e {user.home}/go ]; do sleep 0.1; done")
    process = user.start("submit", "dag.yaml", "--wait", path=path)
    eventually(lambda: (user.home / "here").exists(), "the second sbatch")
    site.signal("slurmctld", signal.SIGSTOP)
    try:
        (user.home / "go").touch()
        eventually(lambda: process.stderr and "looking up" in process.stderr.readline(), "the end of its patience")
    finally:
        site.signal("slurmctld", signal.SIGCONT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert in_order(user.trail(), SMALL)
    assert keys(site, out.strip()) == {f"{out.strip()}/{name}": 1 for name in SMALL}


@pytest.mark.parametrize("call", [1, 3])
def test_a_submission_that_slurm_carries_out_late_does_nothing(user: User, site: SlurmSite, call: int) -> None:
    """Later than the client waits for it (`SETTLE_S`), so that the job is there twice."""
    user.set(grace_seconds=1, stagger_seconds=0)
    user.write(SMALL)
    late = f'(sleep 14; exec {shutil.which("sbatch")} "$@") >/dev/null 2>&1 </dev/null &'
    path = user.shim(call, before=f"{late} echo 'Socket timed out on send/recv operation' >&2; exit 1")
    workflow = user.submit(path=path)
    twice = eventually(lambda: [key for key, often in keys(site, workflow).items() if often == 2], "the double")
    for number in ids(site, workflow):  # the double is still locked for two minutes
        if site.jobs()[number][0] == "PENDING" and site.show(number)["Dependency"] == "(null)":
            site.run("scontrol", "update", f"JobId={number}", "StartTime=now", check=False)  # it may have begun by now
    eventually(lambda: not site.run("squeue", "--noheader"), "the end of all jobs")
    assert in_order(user.trail(), SMALL)
    shown = {job["id"]: job for job in user.shown()["jobs"]}
    assert {job["state"] for job in shown.values()} == {"completed"} and len(twice) == 1


@pytest.mark.parametrize("frozen", [False, True])
def test_what_slurm_has_late_of_a_cancelled_workflow_does_nothing(user: User, site: SlurmSite, frozen: bool) -> None:
    """The client is gone when Slurm carries its submission out; the cancel comes before that, Slurm answering or not."""
    user.set(timeout_seconds=2.0)
    user.write(SMALL)
    go = user.home / "go"
    late = f'(until [ -e {go} ]; do sleep 0.1; done; exec {shutil.which("sbatch")} "$@") >/dev/null 2>&1 </dev/null &'
    path = user.shim(1, before=f"{late} kill -9 $PPID; exit 1")
    assert user("submit", "dag.yaml", "--key", "k", path=path).returncode == -signal.SIGKILL
    assert "is not submitted" in user("cancel", f"{user.flow}/a").stderr
    workflow = user.shown()["id"]
    if frozen:
        site.signal("slurmctld", signal.SIGSTOP)
    try:
        done = user("cancel", workflow)
    finally:
        site.signal("slurmctld", signal.SIGCONT)
    assert done.returncode == int(frozen), done.stderr
    go.touch()
    (number,) = eventually(lambda: ids(site, workflow), "the late job")
    site.run("scontrol", "update", f"JobId={number}", "StartTime=now", check=False)  # it may have begun by now
    eventually(lambda: site.jobs()[number][0] not in ("PENDING", "RUNNING", "COMPLETING"), "its end")
    assert site.jobs()[number][0] == "CANCELLED" and user.trail() == [] and user.shown()["state"] == "cancelled"
    assert "was cancelled before Slurm had it" in (user.home / workflow / "a.err").read_text()
    user.submit("--key", "k", "--wait")  # and the same work can be submitted again
    assert in_order(user.trail(), SMALL)


def test_unknown_jobs_are_reported_and_found_again(user: User, site: SlurmSite) -> None:
    user.set(timeout_seconds=1.0, patience_seconds=1.0, grace_seconds=60)
    user.write(SMALL)
    path = user.shim(3, before=f"touch {user.home}/here; while [ ! -e {user.home}/go ]; do sleep 0.1; done")
    process = user.start("submit", "dag.yaml", "--key", "k", path=path)
    eventually(lambda: (user.home / "here").exists(), "the third sbatch")
    site.signal("slurmctld", signal.SIGSTOP)
    try:
        (user.home / "go").touch()
        _, err = process.communicate(timeout=PATIENCE_S)
    finally:
        site.signal("slurmctld", signal.SIGCONT)
    assert process.returncode == 75 and "is not known; 2 of 4 jobs were" in err, err
    user.set(timeout_seconds=15.0)
    workflow = eventually(lambda: user("submit", "dag.yaml", "--key", "k").stdout.strip(), "the controller")
    assert keys(site, workflow) == {f"{workflow}/{name}": 1 for name in SMALL}
    user("cancel", workflow)


def test_others_see_and_cancel_nothing(user: User, make_user: Any, site: SlurmSite) -> None:
    user.set(grace_seconds=600)
    user.write(SMALL)
    other, workflow = make_user("news"), user.submit()
    for private in (False, True):
        with configured(site, "PrivateData=jobs") if private else nullcontext():
            assert workflow not in other("status", "--json").stdout and user.shown()["id"] == workflow
            for argv in (("cancel", workflow), ("cancel", f"{workflow}/a"), ("explain", f"{workflow}/a")):
                done = other(*argv)
                assert done.returncode == 1 and "you have no workflow" in done.stderr
            assert "no workflow of yours" in other("explain", str(ids(site, workflow)[0])).stderr
    assert set(keys(site, workflow, "PENDING").values()) == {1}
    assert user("cancel", workflow).stdout == "4 cancelled, 0 being ended\n"


def test_a_user_asks_why_any_job_of_theirs_waits(user: User, make_user: Any, site: SlurmSite) -> None:
    held = ["--begin=now+600", "--comment=pilotfish:hold=600"]
    plain, array, asked = (site.submit("true", *options) for options in (["--hold"], [*held, "--array=1-2"], held))
    said = {number: user("explain", str(number)).stdout for number in (plain, array, asked)}
    assert "left to Slurm, unless the site hands it over" in said[plain] and "JobHeld" in said[plain]
    assert "members of arrays" in said[array] and "members of arrays" in user("explain", f"{array}_2").stdout
    assert "pilotfish may choose its nodes" in said[asked] and f"as job {asked} of Slurm, held" in said[asked]
    parts = site.submit("true", *held, "--job-name=first", ":", "--job-name=second")
    found = [user("explain", f"{parts}+{offset}").stdout for offset in (0, 1)]
    assert [f"as job {parts + offset} of Slurm" in text for offset, text in enumerate(found)] == [True, True]
    assert user("explain", f"{parts}+2").returncode == 1
    listed = user("status").stdout.splitlines()
    assert any(line.startswith(f"{asked} ") and "pending" in line for line in listed), listed
    done = make_user("news")("explain", str(asked))
    assert done.returncode == 1 and "no workflow of yours has a job" in done.stderr
    site.run("scancel", *map(str, (plain, array, asked, parts)))


def test_without_its_record_a_workflow_is_found_by_its_jobs(user: User, site: SlurmSite) -> None:
    user.set(grace_seconds=600)
    user.write(SMALL)
    workflow = user.submit("--key", "k")
    shutil.rmtree(user.home / ".local")
    shown = user.shown()
    assert (shown["id"], [job["id"] for job in shown["jobs"]]) == (workflow, list(SMALL))
    number = ids(site, workflow)[3]
    told = user("explain", str(number)).stdout
    assert f"{workflow}/d" in told and "b, c" in told
    assert user.submit("--key", "k") == workflow
    assert keys(site, workflow) == {f"{workflow}/{name}": 1 for name in SMALL}
    assert user("cancel", f"{workflow}/d").returncode == 0 and user("cancel", user.flow).returncode == 0
    assert user("cancel", user.flow).returncode == 1
    assert user.shown()["state"] == "cancelled"


def test_accounting_shows_what_the_queue_has_dropped(user: User, site: SlurmSite) -> None:
    user.write(SMALL, c="exit 7")
    with configured(site, "MinJobAge=2"):
        workflow = user.submit()
        eventually(lambda: len(user.trail()) == 2 and not ids(site, workflow), "the queue to forget the jobs")
        site.until(lambda: user.shown()["state"] == "failed", "accounting")
    shown = {job["id"]: job for job in user.shown()["jobs"]}
    assert [shown[name]["state"] for name in SMALL] == ["completed", "completed", "failed", "cancelled"]
    assert shown["c"]["exit_code"] == 7 and shown["a"]["nodes"] and shown["a"]["finish_time"]


def ids(site: SlurmSite, workflow: str) -> list[int]:
    """Ids of a workflow's jobs, the first submitted first."""
    lines = site.run("squeue", "--noheader", "--states=all", "--format=%A %k").splitlines()
    return sorted(int(line.split()[0]) for line in lines if f"key={workflow}/" in line)


def seconds(text: str) -> float:
    """Epoch seconds of a time of Slurm's."""
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


@contextmanager
def configured(site: SlurmSite, line: str) -> Iterator[None]:
    """With another line in slurm.conf, in place of one that sets the same."""
    before = site.config.read_text()
    name = line.partition("=")[0]
    others = [each for each in before.splitlines() if not each.startswith(f"{name}=")]
    site.config.write_text("\n".join([*others, line, ""]))
    try:
        site.run("scontrol", "reconfigure")
        yield
    finally:
        site.config.write_text(before)
        site.run("scontrol", "reconfigure")
