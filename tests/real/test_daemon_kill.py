"""The real daemon on real processes, killed: every job runs exactly once, and nothing is forgotten."""

from __future__ import annotations

import json
import os
import pwd
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import COMMAND, CPUS, PATIENCE_S, Served, eventually, pilotfish

pytestmark = pytest.mark.xdist_group("machine")

KILLS, SEED = 10, 4
LIFE_S = 0.6


class Daemon(Served):
    """`pilotfish daemon` in a process of its own, on one or two nodes of one CPU."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.store = folder / "profiles.sqlite"
        kind = {"cores": 1, "memory": "1GiB", "memory_bandwidth": "10GB/s"}
        nodes = [{"names": name, "type": "cpu", "cpus": str(cpu)} for name, cpu in zip("ab", CPUS, strict=False)]
        cluster = {"schema": "pilotfish/cluster/v1", "name": "here", "node_types": {"cpu": kind}, "nodes": nodes}
        self.write("cluster.yaml", cluster)
        config = {
            "schema": "pilotfish/daemon/v1", "cluster": "cluster.yaml", "state_dir": "journal", "policy": "mom",
            "access": {"root": True}, "cycle_seconds": 0.2, "profiles": str(self.store), "socket": {"path": str(self.socket)},
            "metrics": {"enabled": False}, "adapter": {"name": "local", "options": {"cgroups": False}},
        }  # fmt: skip
        self.write("pilotfish.yaml", config)

    def write(self, name: str, document: dict[str, Any]) -> Path:
        path = self.folder / name
        path.write_text(yaml.safe_dump(document, sort_keys=False))
        return path

    def submit(self, name: str, jobs: dict[str, dict[str, Any]]) -> str:
        """Hand a workflow in; returns its id."""
        flow = self.write(f"{name}.yaml", {"schema": "pilotfish/workflow/v1", "name": name, "jobs": jobs})
        done = pilotfish("submit", flow, "--socket", self.socket)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def ended(self, workflow: str) -> dict[str, Any]:
        """What `pilotfish status` says of a workflow once that has ended."""

        def look() -> bool:
            answer = self.ask("status", workflow=workflow)
            return answer is not None and answer["workflows"][0]["exit_code"] is not None

        eventually(look, "the end of the workflow")
        done = pilotfish("status", workflow, "--json", "--socket", self.socket)
        assert done.returncode == 0, done.stderr
        (found,) = json.loads(done.stdout)["workflows"]
        return dict(found)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with closing(Daemon(tmp_path)) as made:
        yield made


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def job(command: str, *after: str, seconds: float = 0.2) -> dict[str, Any]:
    profile = {"service_demand": 0.01, "utilisation": 0.01 / seconds}
    return {"command": command, "after": list(after), "profile": profile}


def test_killed_at_ten_random_moments_every_job_runs_once(daemon: Daemon) -> None:
    chance = random.Random(SEED)
    jobs: dict[str, dict[str, Any]] = {}
    for i in range(30):
        seconds = chance.uniform(0.1, 0.4)
        before = [f"j{k}" for k in {i - 1 - chance.randrange(3) for _ in range(2)} if k >= 0]
        jobs[f"j{i}"] = job(f"echo j{i} >> trail; sleep {seconds:.2f}", *before, seconds=seconds)
    daemon.start()
    workflow = daemon.submit("thirty", jobs)
    unfinished = 0
    for turn in range(KILLS):
        time.sleep(chance.uniform(0.0, LIFE_S))
        unfinished += len(lines(daemon.folder / "trail")) < len(jobs)
        assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
        if turn % 2:  # the next one is killed at work, else perhaps while it starts
            daemon.start()
        else:
            daemon.spawn()
    eventually(lambda: daemon.ask("status"), "an answer of the daemon")
    done = daemon.ended(workflow)
    trail = lines(daemon.folder / "trail")
    assert sorted(trail) == sorted(jobs)
    assert unfinished >= 5
    for name, wanted in jobs.items():
        assert all(trail.index(before) < trail.index(name) for before in wanted["after"])
    assert (done["state"], done["exit_code"]) == ("completed", 0)
    assert [found["id"] for found in done["jobs"]] == list(jobs)
    for found in done["jobs"]:
        assert (found["state"], found["exit_code"], found["signal"]) == ("completed", 0, None)
        assert found["nodes"] in (["a"], ["b"]) and found["forecast_run_time"] > 0
        assert found["finish_time"] > found["start_time"]
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_job_that_fails_while_the_daemon_is_dead_keeps_its_exit_code(daemon: Daemon) -> None:
    daemon.start()
    jobs = {
        "bad": job("echo bad >> trail; sleep 0.5; echo over >> trail; exit 3"),
        "child": job("echo child >> trail", "bad"),
        "grandchild": job("echo grandchild >> trail", "child"),
        "free": job("echo free >> trail; sleep 0.1"),
    }
    workflow = daemon.submit("failing", jobs)
    trail = daemon.folder / "trail"
    eventually(lambda: "bad" in lines(trail), "the start of the job")
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    eventually(lambda: "over" in lines(trail), "its end")
    daemon.start()
    done = daemon.ended(workflow)
    found = {one["id"]: (one["state"], one["exit_code"]) for one in done["jobs"]}
    assert found == {
        "bad": ("failed", 3), "child": ("cancelled", None), "grandchild": ("cancelled", None),
        "free": ("completed", 0),
    }  # fmt: skip
    assert done["exit_code"] == 1 and sorted(lines(trail)) == ["bad", "free", "over"]
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_job_that_removes_its_own_directory_ends_as_it_ended(daemon: Daemon) -> None:
    daemon.start()
    # the keeper may write a file meanwhile
    removal = 'echo $PILOTFISH_JOB_ID >> trail; while [ -e "$PILOTFISH_JOB_DIR" ]; do rm -rf "$PILOTFISH_JOB_DIR"; done'
    jobs = {"quick": job(removal), "slow": job(f"{removal}; sleep 1.5; exit 3"), "child": job("true", "quick")}
    workflow = daemon.submit("removing", jobs)
    eventually(lambda: "slow" in lines(daemon.folder / "trail"), "the start of the job")
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    daemon.start()
    done = daemon.ended(workflow)
    found = {one["id"]: (one["state"], one["exit_code"]) for one in done["jobs"]}
    assert found == {"quick": ("completed", 0), "slow": ("failed", 3), "child": ("completed", 0)}
    assert sorted(lines(daemon.folder / "trail")) == ["quick", "slow"]


class Waiting:
    """`pilotfish submit --wait` in a process of its own, once the workflow is taken."""

    def __init__(self, daemon: Daemon, command: str, *options: str) -> None:
        flow = daemon.write("waited.yaml", {"schema": "pilotfish/workflow/v1", "jobs": {"a": job(command)}})
        argv = [*COMMAND, "submit", str(flow), "--wait", "--socket", str(daemon.socket), *options]
        self.errors = daemon.folder / "errors"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self.process.stdout is not None
        self.workflow = self.process.stdout.readline().strip()

    def away(self) -> bool:
        """Whether it has said that the daemon is away: none listens, or the one that was asked has died meanwhile."""
        return "asking again about" in self.errors.read_text()


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 1)])
def test_who_waits_outlasts_a_daemon_that_is_killed_and_started_again(daemon: Daemon, code: int, expected: int) -> None:
    daemon.start()
    waiting = Waiting(daemon, f"echo begun >> trail; sleep 2; exit {code}")
    eventually(lambda: lines(daemon.folder / "trail"), "the start of the job")
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    eventually(waiting.away, "a word about the daemon that is away")
    time.sleep(1.0)
    daemon.start()
    assert waiting.process.wait(PATIENCE_S) == expected
    _, *failed = waiting.errors.read_text().splitlines()
    assert ["exit code 3" in line for line in failed] == [True] * expected
    assert lines(daemon.folder / "trail") == ["begun"]


def test_who_waits_for_a_daemon_that_stays_away_does_not_know(daemon: Daemon) -> None:
    daemon.start()
    waiting = Waiting(daemon, "sleep 1", "--patience", "0.5")
    assert waiting.workflow
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    assert waiting.process.wait(PATIENCE_S) == 75
    said = waiting.errors.read_text().splitlines()
    assert len(said) == 2 and "no answer for 0.5 s" in said[1] and waiting.workflow in said[1]


def test_who_waits_for_a_workflow_that_the_daemon_forgot_does_not_know(daemon: Daemon) -> None:
    daemon.start()
    waiting = Waiting(daemon, "sleep 1")
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    (daemon.folder / "journal").rename(daemon.folder / "elsewhere")
    daemon.start()
    assert waiting.process.wait(PATIENCE_S) == 75
    assert f"no workflow '{waiting.workflow}' exists" in waiting.errors.read_text()


def test_a_clean_stop_leaves_jobs_alone(daemon: Daemon) -> None:
    daemon.start()
    line = "echo begun >> trail; while [ ! -e go ]; do sleep 0.05; done; echo over >> trail"
    workflow = daemon.submit("long", {"a": job(line)})
    trail = daemon.folder / "trail"
    eventually(lambda: lines(trail), "the start of the job")
    assert daemon.stop(signal.SIGTERM) == 0
    assert "stopped; jobs go on" in daemon.log.read_text() and not daemon.socket.exists()
    assert lines(trail) == ["begun"]
    (daemon.folder / "go").touch()
    eventually(lambda: len(lines(trail)) == 2, "the end of the job")
    daemon.start()
    (found,) = daemon.ended(workflow)["jobs"]
    assert (found["state"], found["exit_code"]) == ("completed", 0)
    assert lines(trail) == ["begun", "over"]


def test_a_dry_run_prints_the_mapping_and_starts_nothing(daemon: Daemon) -> None:
    daemon.start("--dry-run")
    jobs = {"a": job("echo a >> trail"), "b": job("echo b >> trail", "a")}
    workflow = daemon.submit("dry", jobs)
    eventually(lambda: daemon.out.read_text(), "a decision")
    story = daemon.ask("explain", job=f"{workflow}/a")
    assert story is not None and {record["kind"] for record in story["story"]} >= {"chosen", "would"}
    assert daemon.stop(signal.SIGTERM) == 0
    assert daemon.out.read_text() == f"start {workflow}/a on a ({pwd.getpwuid(os.geteuid()).pw_name})\n"
    assert not (daemon.folder / "trail").exists()
    assert not list(daemon.folder.glob("journal/*.sqlite*")) and not list(daemon.folder.glob("journal/local/jobs/*"))
    assert not daemon.store.exists()


def test_a_job_without_a_profile_has_one_after_its_first_run(daemon: Daemon) -> None:
    busy = {"command": ["python3", "-IS", "-c", "sum(range(6000000))"]}
    daemon.start()
    first = daemon.ended(daemon.submit("first", {"a": busy}))["jobs"][0]
    assert first["forecast_run_time"] == pytest.approx(60.0)
    second = daemon.ended(daemon.submit("second", {"again": busy}))["jobs"][0]
    assert second["forecast_run_time"] < 10.0 and second["forecast_run_within"] is None  # one run gives no interval
    assert daemon.stop(signal.SIGTERM) == 0
    known = json.loads(pilotfish("profile", "list", "--store", daemon.store, "--json").stdout)["profiles"]
    (mine,) = [profile for name, profile in known.items() if "sum(range" in name]
    assert (mine["source"], mine["runs"]) == ("measured", 2)
    taken = max(run["finish_time"] - run["start_time"] for run in (first, second))
    assert mine.get("threads", 1) == 1 and 0.001 < mine["service_demand"] <= 1.1 * taken


def test_forecasts_from_several_runs_have_an_interval_and_are_judged_by_it_after_a_kill(daemon: Daemon) -> None:
    sleepy = {"command": ["sleep", "1.5"]}
    daemon.start()
    for i in range(2):
        daemon.ended(daemon.submit(f"learn{i}", {"a": sleepy}))
    workflow = daemon.submit("kept", {"a": sleepy, "b": job("echo b", "a")})
    eventually(lambda: daemon.ask("status", workflow=workflow)["workflows"][0]["jobs"][0]["start_time"], "the start")
    daemon.stop(signal.SIGKILL)
    daemon.start()
    found = daemon.ended(workflow)["jobs"][0]
    low, high = found["forecast_run_within"]
    assert 0.0 < low <= found["forecast_run_time"] <= high
    told = json.loads(pilotfish("accuracy", "--socket", daemon.socket, "--json").stdout)["jobs"]
    kept = next(one for one in told if one["key"] == f"{workflow}/a")
    assert (kept["shortest_s"], kept["longest_s"]) == pytest.approx((low, high))
    assert kept["source"] == "measured" and kept["inside"] is (low - 1e-3 <= kept["actual_s"] <= high + 1e-3)
