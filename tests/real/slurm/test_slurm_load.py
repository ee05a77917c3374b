"""How often the daemon asks a real Slurm: seldom while nothing happens, and in time when something does."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from real_world import eventually
from slurm_cluster import SlurmCluster
from slurm_daemon import SlurmDaemon
from slurm_work import hand_over

from pilotfish.daemon.timing.cadence import IDLE_COUNT_S

pytestmark = pytest.mark.xdist_group("slurm 4")
WATCH_S = 20.0
#: A job that has a node to itself.
ALONE = ("--nodes=1", "--cpus-per-task=4")


@pytest.fixture
def daemon(slurm: SlurmCluster, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, slurm.nodes, slurm.cpus)) as made:
        config = yaml.safe_load(made.config.read_text()) | {"cycle_seconds": 1.0}
        made.config.write_text(yaml.safe_dump(config))
        yield made


def calls(slurm: SlurmCluster) -> dict[str, int]:
    """How often the controller was asked, by kind of request, without nodes, submissions and ends of jobs."""
    table = slurm.run("sdiag").partition("by message type")[2].partition("by user")[0]
    found = {m[1]: int(m[2]) for m in re.finditer(r"REQUEST_(\w+)\s*\( *\d+\)\s*count:(\d+)", table)}
    return {name: many for name, many in found.items() if any(word in name for word in ("INFO", "UPDATE"))}


def asked(slurm: SlurmCluster, meanwhile: Callable[[], object] = lambda: None) -> tuple[float, dict[str, int]]:
    """The seconds for which it was watched, at least WATCH_S, and how often it was asked, without what is asked here."""
    began, before = time.monotonic(), calls(slurm)
    meanwhile()
    time.sleep(WATCH_S)
    after = calls(slurm)
    found = {name: many - before.get(name, 0) for name, many in after.items()}
    found["STATS_INFO"] -= 1
    return time.monotonic() - began, {name: many for name, many in found.items() if many}


def test_it_asks_seldom_while_nothing_is_handed_over_and_comes_when_something_is(
    slurm: SlurmCluster, daemon: SlurmDaemon, record_property: Callable[[str, object], None]
) -> None:
    for _ in range(slurm.nodes + 1):
        slurm.submit("sleep 600", *ALONE)
    daemon.start()
    time.sleep(2.0)
    watched_s, found = asked(slurm)
    record_property("measured", f"idle, {watched_s:.0f} s: {found}")
    assert set(found) == {"STATS_INFO"} and found["STATS_INFO"] <= 1 + watched_s / IDLE_COUNT_S
    job = hand_over(slurm, "true", *ALONE)
    eventually(lambda: daemon.ask("explain", job=f"slurm/{job}"), "the job to be seen")


def test_while_nothing_is_handed_over_a_question_has_an_answer_of_now(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    running = [slurm.submit("sleep 600", *ALONE) for _ in range(slurm.nodes)]
    waiting = slurm.submit("sleep 600", *ALONE)
    daemon.start()
    eventually(lambda: len(daemon.ask("status")["queue"]) == 1, "the queue")
    time.sleep(2.0)
    watched_s, found = asked(slurm)
    assert set(found) == {"STATS_INFO"} and found["STATS_INFO"] <= 1 + watched_s / IDLE_COUNT_S
    slurm.run("scancel", str(running[0]))
    eventually(lambda: slurm.jobs()[waiting][0] == "RUNNING", "the start of the job that waited")
    reply = daemon.ask("status")
    assert reply["queue"] == [] and reply["time"] - reply["seen"] < 2.0
    assert daemon.ask("explain", job=str(waiting))["job"]["state"] == "running"


def test_it_asks_only_for_counts_while_nothing_can_start_and_sees_what_ends(
    slurm: SlurmCluster, daemon: SlurmDaemon, record_property: Callable[[str, object], None]
) -> None:
    blockers = [slurm.submit("sleep 600", *ALONE) for _ in range(slurm.nodes)]
    waiting = hand_over(slurm, "sleep 600", *ALONE)
    daemon.start()
    eventually(lambda: daemon.ask("explain", job=f"slurm/{waiting}"), "the job to be seen")
    time.sleep(15.0)  # what was just seen is looked at again a few times
    watched_s, found = asked(slurm, lambda: [slurm.run("squeue") for _ in range(20)])
    record_property("measured", f"quiet, {watched_s:.0f} s: {found}, 20 JOB_INFO and PARTITION_INFO of another")
    assert 1 <= found["STATS_INFO"] <= watched_s and found["JOB_INFO"] - 20 <= 3 + watched_s / 10  # not one a second
    began = time.monotonic()
    slurm.run("scancel", str(blockers[3]))
    eventually(lambda: slurm.jobs()[waiting] == ("RUNNING", "n4"), "the start on the node that was freed")
    record_property("measured", f"{time.monotonic() - began:.1f} s from a cancellation to the start on its node")


def test_what_is_not_counted_is_seen_in_time(slurm: SlurmCluster, daemon: SlurmDaemon) -> None:
    """A begin time that passes: Slurm cannot start the job, so no count moves, but the daemon may place it from then."""
    for _ in range(slurm.nodes):
        slurm.submit("sleep 600", *ALONE)
    job = slurm.submit("true", "--begin=now+12", "--comment=pilotfish", *ALONE)
    daemon.start()

    def why() -> str:
        return str(daemon.ask("explain", job=f"slurm/{job}"))

    eventually(lambda: "begin later" in why(), "the reason of the user")
    eventually(lambda: "begin later" not in why(), "the end of that reason")
