"""What became of jobs that have left the queue, and how little is asked of a Slurm that is ill."""

from __future__ import annotations

import re
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from real_world import eventually, pilotfish
from slurm_cluster import free_ports
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite

pytestmark = pytest.mark.xdist_group("site")
WORKFLOW = """
schema: pilotfish/workflow/v1
name: own
jobs:
  fine: {{command: [sleep, "3"]}}
  three: {{command: [sh, -c, "sleep 3; exit 3"]}}
  ended: {{command: [sleep, "600"]}}
  late: {{command: [sleep, "600"], walltime: "00:00:30"}}
  once: {{command: [sh, -c, "echo once >> {trail}; sleep 3"]}}
"""
ENDS = {"fine": "completed", "three": "failed", "ended": "cancelled", "late": "timeout", "once": "completed"}


@pytest.fixture
def daemon(site: SlurmSite, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as made:
        config = yaml.safe_load(made.config.read_text())
        (port,) = free_ports(1)
        made.config.write_text(yaml.safe_dump(config | {"metrics": {"enabled": True, "port": port}}))
        yield made


@pytest.fixture
def forgetful(site: SlurmSite) -> Iterator[SlurmSite]:
    """The site with a controller that soon forgets jobs that have ended."""
    text = site.config.read_text()
    site.config.write_text(text.replace("MinJobAge=300", "MinJobAge=2"))
    site.run("scontrol", "reconfigure")
    yield site
    site.config.write_text(text)
    site.start_controller()
    site.run("scontrol", "reconfigure")


def metrics(daemon: SlurmDaemon) -> dict[str, float]:
    """What the daemon exports of the requests that it sends."""
    port = yaml.safe_load(daemon.config.read_text())["metrics"]["port"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def sent(found: dict[str, float]) -> float:
    """How many requests have gone out."""
    return sum(number for name, number in found.items() if "adapter_request_seconds_count" in name)


def breaker(daemon: SlurmDaemon, service: str = "controller") -> str:
    """The state of a breaker."""
    pattern = re.compile(rf'pilotfish_adapter_breaker{{.*service="{service}",state="([a-z-]+)"}}')
    (state,) = [m[1] for name, on in metrics(daemon).items() if on == 1.0 and (m := pattern.fullmatch(name))]
    return state


def states(daemon: SlurmDaemon, *keys: str) -> dict[str, str]:
    """The state of each job, as the daemon tells it; "" while it does not know it."""
    told = {key: daemon.ask("explain", job=key) or {} for key in keys}
    return {key: str(answer.get("job", {}).get("state", "")) for key, answer in told.items()}


def test_ends_that_nobody_saw_are_found_once_accounting_answers(
    forgetful: SlurmSite, daemon: SlurmDaemon, tmp_path: Path
) -> None:
    """Jobs end and are forgotten by the controller while the daemon is dead; then slurmdbd is away, and comes back."""
    site, trail = forgetful, forgetful.shared() / "once"
    dag = tmp_path / "dag.yaml"
    dag.write_text(WORKFLOW.format(trail=trail))
    daemon.start()
    assert pilotfish("submit", dag, PILOTFISH_SOCKET=str(daemon.socket)).returncode == 0
    hand = ("--begin=now+600", "--comment=pilotfish:hold=600")
    lines = {"fine": "sleep 3", "three": "sleep 3; exit 3", "ended": "sleep 600", "late": "sleep 600"}
    users = {
        name: site.submit(line, *hand, *(["--time=0:30"] if name == "late" else [])) for name, line in lines.items()
    }
    expected = {f"own-1/{name}": end for name, end in ENDS.items()}
    expected |= {f"slurm/{users[name]}": ENDS[name] for name in users}

    def begun() -> bool:
        return set(states(daemon, *expected).values()) <= {"running", "completed", "failed"}

    eventually(begun, "all jobs to run")
    daemon.stop(signal.SIGKILL)
    names = site.run("squeue", "--noheader", "--format=%A %j").splitlines()
    own_ended = next(line.split()[0] for line in names if line.endswith("own-1/ended"))
    site.run("scancel", str(users["ended"]), own_ended)
    deadline = time.monotonic() + 300
    while site.run("squeue", "--noheader", "--states=all"):
        assert time.monotonic() < deadline
        time.sleep(1.0)
    assert trail.read_text() == "once\n"

    site.signal("slurmdbd", signal.SIGKILL)
    daemon.start()
    eventually(lambda: "records of ended jobs cannot be read" in daemon.log.read_text(), "a word about accounting")
    time.sleep(8.0)
    gone = {key: state for key, state in states(daemon, *expected).items() if state == "unknown"}
    assert {f"slurm/{users['ended']}", f"slurm/{users['late']}", "own-1/ended", "own-1/late"} <= gone.keys()
    assert breaker(daemon) == "closed"
    site.start_accounting()
    eventually(lambda: states(daemon, *expected) == expected, "the true ends")
    told = daemon.ask("explain", job="own-1/three") or {}
    assert told["job"]["exit_code"] == 3
    said = daemon.log.read_text()
    assert said.count("cannot be read") == 1 and said.count("can be read again") == 1
    assert trail.read_text() == "once\n" and "Traceback" not in said
    assert daemon.stop(signal.SIGTERM) == 0


def test_a_frozen_controller_is_left_alone_and_all_jobs_run_once(site: SlurmSite, daemon: SlurmDaemon) -> None:
    trail = site.shared() / "frozen-books"
    trail.unlink(missing_ok=True)
    daemon.start()
    hand = ("--begin=now+600", "--comment=pilotfish:hold=600", "--cpus-per-task=4")
    jobs = [site.submit(f"echo {number} >> {trail}; sleep 2", *hand) for number in range(20)]
    eventually(lambda: trail.exists(), "the first job to run")
    site.signal("slurmctld", signal.SIGSTOP)
    try:
        eventually(lambda: breaker(daemon) != "closed", "the breaker to open")
        before = sent(metrics(daemon))
        time.sleep(30.0)
        after, state = sent(metrics(daemon)), breaker(daemon)
    finally:
        site.signal("slurmctld", signal.SIGCONT)
    assert state != "closed" and after - before <= 5  # 60 cycles
    eventually(lambda: breaker(daemon) == "closed", "the breaker to close")
    eventually(lambda: all(site.jobs()[job][0] == "COMPLETED" for job in jobs), "the end of all jobs")
    assert sorted(map(int, trail.read_text().split())) == list(range(20))
    said = daemon.log.read_text()
    assert said.count("the cluster cannot be seen") == 1 and said.count("the cluster can be seen again") == 1
    assert "Traceback" not in said and daemon.stop(signal.SIGTERM) == 0


def test_a_cycle_reads_three_times_at_most(site: SlurmSite, daemon: SlurmDaemon) -> None:
    """With jobs that run, a job of ours that waits, and a neighbour; counted by what goes out."""
    hand = ("--begin=now+600", "--comment=pilotfish:hold=600")
    for line in ("sleep 600", "sleep 600"):
        site.submit(line, "--nodes=8", "--cpus-per-task=4", *hand)
    daemon.start()
    eventually(lambda: "RUNNING" in {state for state, _ in site.jobs().values()}, "a job to run")
    first = metrics(daemon)
    time.sleep(10.0)
    last = metrics(daemon)
    cycles = last["pilotfish_cycle_duration_seconds_count"] - first["pilotfish_cycle_duration_seconds_count"]
    assert cycles >= 5 and sent(last) - sent(first) <= 3 * (cycles + 1)
