"""The daemon beside a real Slurm: it places what it was handed, touches nothing else, and nothing waits for it."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_world import eventually, pilotfish
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_work import all_ended, hand_over

from pilotfish.cli.__main__ import main
from pilotfish.daemon.socket import ipc

pytestmark = pytest.mark.xdist_group("slurm 2")


@pytest.fixture
def daemon(slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus, wide_nodes=slurm.nodes)) as made:
        yield made


def test_jobs_that_are_handed_over_run_once_where_they_were_planned(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    trail, draw = slurm.shared() / "trail", random.Random(3)
    daemon.start()
    jobs: list[int] = []
    for number in range(30):
        nodes = 2 if number % 10 == 9 else 1
        after = [f"--dependency=afterok:{draw.choice(jobs)}"] if number % 5 == 4 else []
        line = f"echo {number} >> {trail}; sleep {draw.choice((0.2, 1, 2))}"
        jobs.append(hand_over(slurm, line, f"--nodes={nodes}", f"--cpus-per-task={draw.choice((1, 2, 4))}", *after))
    neighbour = slurm.submit("sleep 1")
    eventually(lambda: all_ended(slurm, [*jobs, neighbour]), "the end of all jobs")
    assert sorted(map(int, trail.read_text().split())) == list(range(30))
    for job in jobs:
        shown, told = slurm.show(job), daemon.story(job)
        assert shown["JobState"] == "COMPLETED" and "AdminComment" not in shown
        comment = slurm.run("squeue", "--noheader", "--states=all", f"--jobs={job}", "--Format=Comment:0")
        assert comment.rstrip("\n") == "pilotfish:hold=600"
        eventually(lambda job=job: daemon.story(job)["job"]["state"] == "completed", "the end to be seen")
        chosen = [record for record in told["story"] if record["kind"] == "chosen"]
        assert shown["NodeList"] == shown["ReqNodeList"]
        assert chosen and set(told["job"]["nodes"]) == set(chosen[-1]["data"]["nodes"])
    assert "AdminComment" not in slurm.show(neighbour)
    assert daemon.stop(signal.SIGTERM) == 0


def test_other_jobs_are_never_changed(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    daemon.start()
    later = slurm.submit("true", "--begin=now+600", "--comment=pilotfish")  # its user's own begin time
    longer = slurm.submit("true", "--begin=now+900", "--comment=pilotfish:hold=60")  # longer than was set for us
    foreign = slurm.submit("true", "--begin=now+600")
    array = slurm.submit("true", "--begin=now+600", "--comment=pilotfish", "--array=1-2")
    forged = slurm.submit("true", "--begin=now+600", "--comment=x\n1@pilotfish", "--job-name=a JobState=RUNNING")
    ours = hand_over(slurm, "true", "--nodelist=n3")
    tied = hand_over(slurm, "true", "--exclude=n1,n2,n3")
    eventually(lambda: all_ended(slurm, [ours, tied]), "the end of the jobs handed over")
    time.sleep(1.5)
    assert {slurm.jobs()[job][0] for job in (later, longer, foreign, array, forged)} == {"PENDING"}
    for job in (later, longer, foreign, array, forged):
        assert "AdminComment" not in slurm.show(job) and slurm.show(job)["ReqNodeList"] == "(null)"
    assert (slurm.show(ours)["NodeList"], slurm.show(tied)["NodeList"]) == ("n3", "n4")


def test_a_begin_time_in_the_comment_hands_over_from_a_login_node_with_a_wrong_clock(
    slurm: SlurmCluster, daemon: SlurmDaemon
) -> None:
    """What `sbatch --begin=now+600` sends where the clock is an hour ahead."""
    until = int(time.time()) + 4200
    begin = f"--begin={time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(until))}"
    said, moved = (slurm.submit("true", begin, f"--comment=pilotfish:until={until}") for _ in range(2))
    unsaid = slurm.submit("true", begin, "--comment=pilotfish:hold=600")
    slurm.run("scontrol", "update", f"JobId={moved}", f"StartTime=uts{until - 600}", user="games")
    daemon.start()
    eventually(lambda: all_ended(slurm, [said]), "the end of the job that says when it begins")
    time.sleep(1.5)
    for job in (moved, unsaid):
        assert "AdminComment" not in slurm.show(job) and slurm.jobs()[job][0] == "PENDING"
        assert "moved its begin time, or the clock of the login node" in daemon.story(job)["waits"]


@pytest.mark.parametrize("grace_s", [600, 18])
def test_a_dry_run_logs_its_decisions_and_writes_nothing(
    slurm: SlurmCluster, daemon: SlurmDaemon, grace_s: int
) -> None:
    """A job that may begin soon is held back first: its two commands, in their order."""
    daemon.start("--dry-run", "--show-commands")
    jobs = [hand_over(slurm, "true", grace_s=grace_s)]
    begin = slurm.show(jobs[0])["StartTime"]

    def decided() -> bool:
        """On a busy machine a job may begin before the daemon has decided: then another one is handed over."""
        if slurm.jobs().get(jobs[-1], ("",))[0] != "PENDING":
            jobs.append(hand_over(slurm, "true", grace_s=grace_s))
        return "ReqNodeList" in daemon.out.read_text()

    eventually(decided, "a decision")
    assert daemon.stop(signal.SIGTERM) == 0
    decision, *before, command = daemon.out.read_text().splitlines()[: 3 if grace_s == 18 else 2]
    job, _, node = decision.removeprefix("start slurm/").partition(" (")[0].partition(" on ")
    assert "(games, " in decision
    assert int(job) in jobs
    assert command == f"  scontrol update JobId={job} ReqNodeList={node} StartTime=now"
    assert [line.rstrip("0123456789") for line in before] == [f"  scontrol update JobId={job} StartTime=uts"] * (
        grace_s == 18
    )
    shown = slurm.show(int(job))
    assert "AdminComment" not in shown and shown["ReqNodeList"] == "(null)"
    assert grace_s == 18 or (shown["JobState"], shown["StartTime"]) == ("PENDING", begin)


def test_in_shadow_slurm_starts_the_job_and_the_log_has_what_would_have_been_done(
    slurm: SlurmCluster, daemon: SlurmDaemon
) -> None:
    daemon.config.write_text(f"{daemon.config.read_text()}mode: shadow\n")
    daemon.start()
    job = hand_over(slurm, "true", grace_s=18)
    eventually(lambda: all_ended(slurm, [job]), "the job, started by Slurm")
    answer = pilotfish("log", "--socket", daemon.socket, "--job", str(job), "--json")
    assert answer.returncode == 0, answer.stderr
    (line,) = json.loads(answer.stdout)["lines"]
    assert (line["kind"], line["action"], line["user"].split()[0]) == ("would", "start", "games")
    assert slurm.show(job)["ReqNodeList"] == "(null)" and not (daemon.folder / "state" / "slurm" / "pins").exists()
    assert daemon.stop(signal.SIGTERM) == 0
    answer = pilotfish("log", "--config", daemon.config)
    words = " ".join(answer.stdout.split())
    assert f"would have started slurm/{job} (games) on n" in words and "stop: shadow -> - by signal" in words, words
    assert max(map(len, answer.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("key", "mode"), [("paused", "paused"), ("mode", "shadow"), ("all jobs", "paused"), ("partition", "live")]
)
def test_the_brake_gives_all_held_jobs_back_without_a_restart(
    slurm: SlurmCluster, daemon: SlurmDaemon, key: str, mode: str
) -> None:
    """The nodes are full, so the jobs stay held; once they are given back, Slurm alone starts them."""
    full = slurm.submit("sleep 600", f"--nodes={slurm.nodes}", "--exclusive")
    daemon.start()
    jobs = [hand_over(slurm, "true") for _ in range(3)]

    def followed() -> int:
        status = daemon.ask("status") or {"workflows": []}
        return sum(len(workflow["jobs"]) for workflow in status["workflows"])

    eventually(lambda: followed() == len(jobs), "the jobs, in its queue")
    if key in ("paused", "mode"):
        before = daemon.config.read_text()
        daemon.config.write_text(f"{before}{key}: {'shadow' if key == 'mode' else 'true'}\n")
        done = pilotfish("reload", "--config", daemon.config)
        assert (done.returncode, done.stdout) == (0, f"reloaded: {key}\n"), done.stderr
    else:
        where = ("--partition", slurm.show(jobs[0])["Partition"]) if key == "partition" else ()
        done = pilotfish("pause", *where, "--why", "a test", "--socket", daemon.socket)
        daemon.stop(signal.SIGKILL)  # the next daemon knows of the pause, and gives back what this one held
        assert done.returncode == 0 and "a test" in done.stdout and "jobs that it held: 3" in done.stdout, done.stderr
        daemon.start()
    eventually(lambda: (daemon.ask("status") or {}).get("mode") == mode, mode)
    begins = "%Y-%m-%dT%H:%M:%S"

    def free() -> bool:
        shown = [slurm.show(job) for job in jobs]
        assert {one["ReqNodeList"] for one in shown} == {"(null)"}
        return all(time.mktime(time.strptime(one["EligibleTime"], begins)) < time.time() + 60 for one in shown)

    if key == "mode":
        assert free()  # before the command has returned
    eventually(free, "the end of all holds")
    slurm.run("scancel", str(full))
    eventually(lambda: all_ended(slurm, jobs), "the jobs, started by Slurm")
    assert {slurm.jobs()[job][0] for job in jobs} == {"COMPLETED"}


def test_the_reaper_removes_a_pin_to_a_node_that_failed(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    """The node is drained between the decision and the start, and the daemon is dead: no pin outlives it."""
    job = hand_over(slurm, "sleep 0.2")
    slurm.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")
    daemon.record(job, slurm.uid("games"), ("n2",), time.time())
    slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=n2", "StartTime=now")
    time.sleep(2.5)
    assert slurm.jobs()[job][0] == "PENDING"
    argv = ("reap", "--config", daemon.config, "--older-than", "2")
    assert pilotfish(*argv, "--dry-run").stdout == f"release slurm/{job}\n"
    assert slurm.show(job)["ReqNodeList"] == "n2"
    done = pilotfish(*argv)
    assert (done.returncode, done.stdout) == (0, f"release slurm/{job}\n"), done.stderr
    eventually(lambda: all_ended(slurm, [job]), "the end of the job")
    assert slurm.jobs()[job] == ("COMPLETED", slurm.jobs()[job][1]) and slurm.jobs()[job][1] != "n2"
    assert pilotfish(*argv).stdout == ""


def test_the_daemon_removes_its_own_pins_too(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    slurm.run("scontrol", "update", "NodeName=n[1,3-4]", "State=DRAIN", "Reason=test")
    job = hand_over(slurm, "sleep 0.2", "--exclude=n2")
    daemon.record(job, slurm.uid("games"), ("n3",), time.time() - 60)
    slurm.run("scontrol", "update", f"JobId={job}", "ReqNodeList=n3", "StartTime=now")
    daemon.start()
    eventually(lambda: slurm.show(job)["ReqNodeList"] == "(null)", "the pin to be taken back")
    slurm.run("scontrol", "update", "NodeName=n[1,3-4]", "State=RESUME")
    eventually(lambda: all_ended(slurm, [job]), "the end of the job")


@pytest.mark.parametrize("who", ["slurmctld", "munged"])
def test_an_outage_is_logged_once_and_so_is_its_end(slurm: SlurmCluster, daemon: SlurmDaemon, who: str) -> None:
    daemon.start()
    first = hand_over(slurm, "sleep 1")
    eventually(lambda: slurm.jobs()[first][0] == "RUNNING", "the first job to run")
    slurm.signal(who, signal.SIGTERM)
    eventually(lambda: "the cluster cannot be reached" in daemon.log.read_text(), "a word about it")
    slurm.start_munge()
    slurm.start_controller()
    second = hand_over(slurm, "true")
    eventually(lambda: all_ended(slurm, [first, second]), "the end of all jobs")
    said = daemon.log.read_text()
    assert said.count("the cluster cannot be reached") == 1 and said.count("the cluster can be reached again") == 1
    assert daemon.stop(signal.SIGTERM) == 0


def test_users_cancel_and_nodes_fail_during_a_workload(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    daemon.start()
    jobs = [hand_over(slurm, f"sleep {60 if number == 9 else 1}", "--cpus-per-task=4") for number in range(10)]
    eventually(lambda: any(state == "RUNNING" for state, _ in slurm.jobs().values()), "a job to run")
    slurm.run("scancel", str(jobs[-1]), str(jobs[0]), user="games")
    slurm.run("scontrol", "update", "NodeName=n4", "State=DRAIN", "Reason=test")
    eventually(lambda: all_ended(slurm, jobs), "the end of all jobs")
    states = [slurm.jobs()[job][0] for job in jobs]
    assert states[-1] == "CANCELLED" and states[1:-1] == ["COMPLETED"] * 8
    time.sleep(1.0)
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_frozen_controller_runs_no_job_twice(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    trail = slurm.shared() / "frozen"
    daemon.start()
    jobs = [hand_over(slurm, f"echo {number} >> {trail}; sleep 0.5") for number in range(6)]
    slurm.signal("slurmctld", signal.SIGSTOP)
    time.sleep(3.0)
    slurm.signal("slurmctld", signal.SIGCONT)
    eventually(lambda: all_ended(slurm, jobs), "the end of all jobs")
    assert sorted(map(int, trail.read_text().split())) == list(range(6))
    assert daemon.stop(signal.SIGTERM) == 0


@pytest.fixture
def epilog(slurm: SlurmCluster) -> Iterator[Path]:
    """The events' socket, of which slurmctld tells through the script that is shipped."""
    path, script, before = slurm.shared() / "events.sock", slurm.path / "etc" / "job-end.sh", slurm.config.read_text()
    shipped = (Path(__file__).parents[3] / "systemd" / "pilotfish-job-end.sh").read_text()
    script.write_text(shipped.replace("/run/pilotfish/events.sock", str(path)))
    script.chmod(0o755)
    for text in (f"{before}EpilogSlurmctld={script}\n", before):
        slurm.config.write_text(text)
        slurm.signal("slurmctld", signal.SIGTERM)  # a reconfiguration does not make 22.05 run the program
        slurm.start_controller()
        if text != before:
            yield path


def test_a_job_follows_one_that_ends_long_before_the_next_look(
    slurm: SlurmCluster, daemon: SlurmDaemon, epilog: Path
) -> None:
    config = yaml.safe_load(daemon.config.read_text()) | {"events": {"users": ["slurm"], "path": str(epilog)}}
    daemon.config.write_text(yaml.safe_dump(config))
    daemon.start()
    known = hand_over(slurm, "true")  # once it has run, the daemon knows the site
    eventually(lambda: all_ended(slurm, [known]), "the end of the first job")
    first = slurm.submit("sleep 600", "--exclusive", f"--nodes={slurm.nodes}")
    eventually(lambda: slurm.jobs()[first][0] == "RUNNING", "the neighbour")
    job = hand_over(slurm, "true")
    eventually(lambda: daemon.ask("explain", job=f"slurm/{job}"), "the job to be seen")
    daemon.config.write_text(yaml.safe_dump(config | {"cycle_seconds": 600.0}))
    assert daemon.process
    daemon.process.send_signal(signal.SIGHUP)
    eventually(lambda: "reloaded: cycle_seconds" in daemon.log.read_text(), "the long cycle")
    slurm.run("scancel", str(first), user="games")
    eventually(lambda: all_ended(slurm, [job]), "the end of the job")  # the next look is 600 s away
    shown = slurm.show(job)
    assert shown["ReqNodeList"] == shown["NodeList"]  # the daemon chose


def test_jobs_that_are_not_handed_over_show_when_they_start(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    """Runs of two seconds with a walltime of ten minutes; one job is held. A job that is handed over is waited for."""
    hand_over(slurm, "true")
    daemon.start("--dry-run")
    ask = partial(ipc.ask, str(daemon.socket), trusted=lambda uid: True)

    def waiting() -> dict[str, dict[str, Any]]:
        """The jobs that have been forecast, by id."""
        queue = ask("status").get("queue", ())
        return {job["id"]: job for job in queue if job["unknown"] != "it was submitted a moment ago"}

    full = ("--exclusive", f"--nodes={slurm.nodes}", "--time=10", "--job-name=short")
    held = str(slurm.submit("true", "--hold"))
    jobs = [slurm.submit("sleep 2", *full) for _ in range(4)]
    eventually(lambda: held in waiting(), "the queue to be forecast")
    assert (waiting()[held]["plan"], waiting()[held]["unknown"]) == (None, "it is held")
    later = slurm.submit("true", "--begin=now+1hour", "--time=5", "--array=1,3,7,10-30:10,40-99%2")
    merge = slurm.submit("true", f"--dependency=afterok:{later}")
    eventually(lambda: {str(later), str(merge)} <= waiting().keys(), "an array, and what follows it")
    array, follower = (waiting()[str(number)] for number in (later, merge))
    assert (array["tasks"], array["unknown"], follower["unknown"]) == (66, "", "")
    assert array["plan"]["start_time"] > time.time() + 3000
    assert follower["plan"]["start_time"] == pytest.approx(array["plan"]["finish_time"])
    slurm.run("scancel", str(later), str(merge), user="games")
    last = str(jobs[-1])
    eventually(
        lambda: last not in (seen := waiting()) or seen[last]["plan"]["start_time"] < time.time() + 60, "to learn"
    )
    started = {f"slurm/{job}" for job in jobs}
    eventually(lambda: started <= {row[0] for row in ask("accuracy")["starts"]}, "all starts")


def test_a_job_that_was_let_go_is_headed_so_until_after_its_end(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needs a node that is busy until the daemon may hold it no longer."""
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus, wide_nodes=slurm.nodes, max_defer_s=5)) as daemon:
        daemon.start()
        for name in ("PILOTFISH_ADAPTER", "PILOTFISH_CLIENT"):
            monkeypatch.delenv(name, raising=False)

        def heading(job: int) -> str:
            main(["explain", f"slurm/{job}", "--socket", str(daemon.socket)])
            return capsys.readouterr().out

        full = ("--exclusive", f"--nodes={slurm.nodes}")
        busy = slurm.submit("sleep 600", *full)
        eventually(lambda: slurm.show(busy)["JobState"] == "RUNNING", "all nodes to be busy")
        job = hand_over(slurm, "sleep 3", *full, "--job-name=align")
        eventually(lambda: f"slurm/{job}: let go; pending; " in heading(job), "it to be let go")
        slurm.run("scancel", str(busy))
        eventually(lambda: f"slurm/{job}: let go; running; " in heading(job), "it to run")
        daemon.stop(signal.SIGKILL)
        daemon.start()
        eventually(lambda: f"slurm/{job}: let go; completed; " in heading(job), "its end to be seen")
        shown = daemon.story(job)["job"]
        assert (shown["name"], shown["partition"]) == ("align", slurm.show(job)["Partition"])
        assert "cancelled" not in heading(job) and "by the resource manager" in heading(job)
        assert 3.0 <= shown["finish_time"] - shown["start_time"] <= 10.0


@pytest.fixture
def new_daemon(new_slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, new_slurm.nodes, new_slurm.cpus, wide_nodes=new_slurm.nodes)) as made:
        yield made


def test_jobs_that_may_use_some_nodes_only_are_forecast_to_wait_for_these(
    new_slurm: SlurmCluster, new_daemon: SlurmDaemon
) -> None:
    """Partition `half` has two of the four nodes of `main`; each node has a job of another walltime.

    No job has ended: the walltimes are all that is known.
    """
    slurm, daemon = new_slurm, new_daemon
    alone, minutes = ("--exclusive", "--nodes=1"), {"n1": 9, "n2": 8, "n3": 3, "n4": 2}
    running = {
        name: slurm.submit("sleep 900", *alone, f"--nodelist={name}", f"--time={many}")
        for name, many in minutes.items()
    }
    eventually(lambda: {slurm.jobs()[job][0] for job in running.values()} == {"RUNNING"}, "a job on each node")
    nodes = [("--partition=half",), ("--exclude=n3,n4",), (), ("--exclude=n1,n2,n4",), ()]
    jobs = [str(slurm.submit("true", *alone, "--time=5", *more)) for more in nodes]
    daemon.start("--dry-run")
    ask = partial(ipc.ask, str(daemon.socket), trusted=lambda uid: True)

    def planned() -> list[dict[str, Any]]:
        found = {job["id"]: job["plan"] for job in ask("status").get("queue", ())}
        return [found[job] for job in jobs if found.get(job)]

    plans = eventually(lambda: found if len(found := planned()) == len(jobs) else None, "the forecasts")
    began = {name: datetime.fromisoformat(slurm.show(job)["StartTime"]).timestamp() for name, job in running.items()}
    ends = {name: began[name] + 60.0 * many for name, many in minutes.items()}
    expected = [ends["n2"], ends["n1"], ends["n4"], ends["n3"], ends["n4"] + 300.0]
    assert [plan["start_time"] for plan in plans] == pytest.approx(expected, abs=1.0)
    for plan, job in zip(plans, jobs, strict=True):
        assert ask("explain", job=f"slurm/{job}")["job"]["plan"]["start_time"] == pytest.approx(
            plan["start_time"], abs=1.0
        )
        assert plan["start_within"][0] <= plan["start_time"] <= plan["start_within"][1]
