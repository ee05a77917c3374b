"""What became of jobs that have left the queue, and how little is asked of a Slurm that is ill."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from real_world import eventually, pilotfish
from slurm_cluster import free_ports
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite
from waiting import without_cluster

pytestmark = pytest.mark.xdist_group("site 3")
ROOT = Path(__file__).parents[3]
WORKFLOW = """
schema: pilotfish/workflow/v1
name: own
jobs:
  fine: {{command: [sleep, "20"]}}
  three: {{command: [sh, -c, "sleep 20; exit 3"]}}
  ended: {{command: [sleep, "600"]}}
  late: {{command: [sleep, "600"], walltime: "00:00:30"}}
  once: {{command: [sh, -c, "echo once >> {trail}; sleep 20"]}}
"""
DEADLY = """
schema: pilotfish/workflow/v1
name: last
jobs:
  deadly: {{command: [sh, -c, "echo deadly >> {trail}"]}}
"""
#: kills who calls it once the job has been taken
DEADLY_SBATCH = """#!/bin/sh
id=$({real} "$@") || exit
case "$*" in *deadly*) kill -KILL $PPID;; esac
echo "$id"
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
        lines = without_cluster(answer.read().decode()).splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def sent(found: dict[str, float]) -> float:
    """How many requests have gone out, without those for counters."""
    requests = {name: number for name, number in found.items() if "adapter_request_seconds_count" in name}
    return sum(number for name, number in requests.items() if 'call="activity"' not in name)


def breaker(daemon: SlurmDaemon, service: str = "controller") -> str:
    """The state of a breaker."""
    pattern = re.compile(rf'pilotfish_adapter_breaker{{.*service="{service}",state="([a-z-]+)"}}')
    (state,) = [m[1] for name, on in metrics(daemon).items() if on == 1.0 and (m := pattern.fullmatch(name))]
    return state


def states(daemon: SlurmDaemon, *keys: str) -> dict[str, str]:
    """The state of each job, as the daemon tells it; "" while it does not know it."""
    told = {key: daemon.ask("explain", job=key) or {} for key in keys}
    return {key: str(answer.get("job", {}).get("state", "")) for key, answer in told.items()}


def test_missed_ends_are_found_once_accounting_answers(
    forgetful: SlurmSite, daemon: SlurmDaemon, tmp_path: Path
) -> None:
    """The daemon is killed before it hears of its last submission; while it is dead all jobs end, and the controller
    forgets them; then slurmdbd is away, and comes back."""
    site, trail = forgetful, forgetful.shared() / "once"
    trail.unlink(missing_ok=True)
    dag, deadly, sbatch = tmp_path / "dag.yaml", tmp_path / "deadly.yaml", tmp_path / "bin" / "sbatch"
    dag.write_text(WORKFLOW.format(trail=trail))
    deadly.write_text(DEADLY.format(trail=trail))
    sbatch.parent.mkdir()
    sbatch.write_text(DEADLY_SBATCH.format(real=shutil.which("sbatch")))
    sbatch.chmod(0o755)
    daemon.environment["PATH"] = f"{sbatch.parent}:{os.environ['PATH']}"
    daemon.start()
    flow = pilotfish("submit", dag, "--socket", daemon.socket).stdout.strip()
    hand = ("--begin=now+600", "--comment=pilotfish:hold=600")
    lines = {"fine": "sleep 20", "three": "sleep 20; exit 3", "ended": "sleep 600", "late": "sleep 600"}
    users = {
        name: site.submit(line, *hand, *(["--time=0:30"] if name == "late" else [])) for name, line in lines.items()
    }
    expected = {f"{flow}/{name}": end for name, end in ENDS.items()}
    expected |= {f"slurm/{users[name]}": ENDS[name] for name in users}

    def begun() -> bool:
        return set(states(daemon, *expected).values()) == {"running"}

    eventually(begun, "all jobs to run")
    whole = ("--nodes=8", "--cpus-per-task=4", "--begin=now+10", "--comment=pilotfish:hold=10")
    alone = f"slurm/{site.submit('exit 3', *whole)}"  # waits for the others, and starts by itself
    eventually(lambda: states(daemon, alone) == {alone: "pending"}, "the last job to be seen")
    last = pilotfish("submit", deadly, "--socket", daemon.socket).stdout.strip()
    assert daemon.process is not None and daemon.process.wait(60) == -signal.SIGKILL
    sbatch.unlink()
    expected |= {f"{last}/deadly": "completed", alone: "failed"}
    names = site.run("squeue", "--noheader", "--format=%A %j").splitlines()
    own_ended = next(line.split()[0] for line in names if line.endswith(f" {flow}/ended"))
    site.run("scancel", str(users["ended"]), own_ended)
    deadline = time.monotonic() + 300
    while site.run("squeue", "--noheader", "--states=all"):
        assert time.monotonic() < deadline
        time.sleep(1.0)
    ran = sorted(trail.read_text().split())
    assert ran == ["deadly", "once"]

    site.signal("slurmdbd", signal.SIGKILL)
    daemon.start()
    eventually(lambda: "records of ended jobs cannot be read" in daemon.log.read_text(), "a word about accounting")
    time.sleep(8.0)
    assert states(daemon, *expected) == dict.fromkeys(expected, "unknown") | {alone: "pending"}
    assert breaker(daemon) == "closed"
    site.start_accounting()
    eventually(lambda: states(daemon, *expected) == expected, "the true ends")
    told = daemon.ask("explain", job=f"{flow}/three") or {}
    assert told["job"]["exit_code"] == 3
    said = daemon.log.read_text()
    assert said.count("cannot be read") == 1 and said.count("can be read again") == 1
    assert sorted(trail.read_text().split()) == ran and "Traceback" not in said
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
    assert said.count("the cluster cannot be reached") == 1 and said.count("the cluster can be reached again") == 1
    assert daemon.stop(signal.SIGTERM) == 0


#: What slurmctld calls the requests that read.
READS = (
    "JOB_INFO", "JOB_INFO_SINGLE", "NODE_INFO", "PARTITION_INFO", "RESERVATION_INFO", "ASSOC_MGR_INFO", "BUILD_INFO",
    "PING", "FED_INFO",
)  # fmt: skip


def controller_reads(site: SlurmSite) -> dict[str, int]:
    """How often the controller says that it was read, by kind of message."""
    table = site.run("sdiag").partition("by message type")[2].partition("by user")[0]
    found = {m[1]: int(m[2]) for m in re.finditer(r"REQUEST_(\w+)\s.*?count:(\d+)", table)}
    return {kind: found.get(kind, 0) for kind in READS}


def test_a_cycle_costs_the_controller_what_the_guide_says(
    site: SlurmSite, daemon: SlurmDaemon, record_property: Callable[[str, object], None]
) -> None:
    """With jobs that run, a job of ours that waits, and a neighbour; counted by what goes out, and by slurmctld."""
    stated = re.search(r"\| a cycle \|.*\| (\d) to (\d),", (ROOT / "docs/guides/slurm-operation.md").read_text())
    assert stated
    hand = ("--begin=now+600", "--comment=pilotfish:hold=600")
    for line in ("sleep 600", "sleep 600"):
        site.submit(line, "--nodes=8", "--cpus-per-task=4", *hand)
    daemon.start()
    eventually(lambda: "RUNNING" in {state for state, _ in site.jobs().values()}, "a job to run")
    began, first, before = time.monotonic(), metrics(daemon), controller_reads(site)
    time.sleep(10.0)
    last, after = metrics(daemon), controller_reads(site)
    watched_s = time.monotonic() - began
    cycles = last["pilotfish_cycle_duration_seconds_count"] - first["pilotfish_cycle_duration_seconds_count"]
    commands = sent(last) - sent(first)
    seen = {kind: after[kind] - before[kind] for kind in READS if after[kind] > before[kind]}
    each = sum(seen.values()) / cycles
    record_property("measured", f"{cycles:.0f} cycles, {commands:.0f} commands, {each:.2f} RPCs: {seen}")
    assert 0 < cycles <= 1 + watched_s and commands <= 3 * (cycles + 1)
    assert int(stated[1]) * (1 - 1 / cycles) <= each <= int(stated[2]) * (1 + 1 / cycles)
