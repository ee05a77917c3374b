"""What Slurm would refuse is never proposed, what it has reserved is never delayed, and nothing is kept too long."""

from __future__ import annotations

import random
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from real_world import eventually, pilotfish
from slurm_daemon import SlurmDaemon
from slurm_site import SlurmSite

pytestmark = pytest.mark.xdist_group("site 4")
#: Seconds between two passes of the site's backfill, and some for a busy machine.
PASS_S = 5 + 25


@pytest.fixture
def daemon(site: SlurmSite, tmp_path: Path) -> Iterator[SlurmDaemon]:
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus)) as made:
        yield made


@pytest.fixture
def maintenance(site: SlurmSite) -> Iterator[str]:
    """A reservation of all nodes but the last, that begins in two minutes."""
    words = ("ReservationName=maint", "StartTime=now+120", "Duration=60", f"Nodes=n[1-{site.nodes - 1}]")
    site.run("scontrol", "create", "reservation", *words, "Flags=MAINT,IGNORE_JOBS", "Users=root")
    yield f"n{site.nodes}"
    site.clear()
    site.run("scontrol", "delete", "ReservationName=maint")


def hand_over(site: SlurmSite, line: str, *options: str, user: str = "games") -> int:
    """Submit a job as its user would for pilotfish."""
    return site.submit(line, "--begin=now+600", "--comment=pilotfish:hold=600", *options, user=user)


def waits(daemon: SlurmDaemon, job: int) -> str:
    """Why the daemon does not start a job."""
    return str(daemon.story(job)["waits"])


def seconds(text: str) -> float:
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def some_options(draw: random.Random) -> list[str]:
    """What a job may ask for, at random; not everything of it goes together."""
    minutes, partition = (
        draw.choice((1, 2, 4, 10)),
        draw.choice(("main", "main", "half", "shared", "short", "main,half")),
    )
    options = [
        f"--time={minutes}",
        f"--partition={partition}",
        f"--qos={draw.choice(('normal', 'high', 'capped', 'brief'))}",
    ]
    options += draw.choice(([], [], ["--exclusive"], ["--constraint=virt"], ["--exclude=n[1-2]"], ["--nodelist=n3"]))
    options += draw.choice(([], ["--mem=1500"], ["--mem-per-cpu=500"], ["--mem=0"]))
    options += draw.choice(
        ([f"--cpus-per-task={draw.randint(1, 4)}"], ["--nodes=2"], ["--ntasks=6"], ["--nodes=1-2", "--ntasks=3"],
         ["--nodes=2", "--ntasks=4", "--ntasks-per-node=2"], ["--ntasks=3", "--cpus-per-task=2"], ["-N2-3", "-n5"])
    )  # fmt: skip
    return options


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_slurm_makes_every_proposed_start(site: SlurmSite, daemon: SlurmDaemon, maintenance: str, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(6):
        words = [f"--time={draw.choice((1, 5))}", f"--partition={draw.choice(('main', 'shared'))}", "--nice=-500000"]
        site.submit("sleep 300", *words, *draw.choice((["-c2"], ["-N2", "-n3"], ["-c4"])), user="root")
    site.until(lambda: "RUNNING" in {state for state, _ in site.jobs().values()}, "neighbours")
    submitted = dict[int, list[str]]()
    while len(submitted) < 25:
        with suppress(AssertionError):  # Slurm does not take every combination
            options = some_options(draw)
            job = hand_over(site, "sleep 300", *options, user=draw.choice(("games", "news")))
            submitted[job] = options
    time.sleep(PASS_S / 3)  # what Slurm starts by itself has started
    daemon.start("--dry-run", "--show-commands")
    eventually(lambda: "scontrol" in daemon.out.read_text(), "decisions")
    time.sleep(2.0)
    assert daemon.stop(signal.SIGTERM) == 0
    said = daemon.out.read_text().splitlines()
    assert "# not done" not in "".join(said)
    commands = [shlex.split(line) for line in said if "StartTime=now" in line and "ReqNodeList" in line]
    chosen = {int(argv[2].removeprefix("JobId=")): argv for argv in reversed(commands)}
    assert chosen
    for job, argv in reversed(chosen.items()):
        site.run(*argv)
        assert job in submitted
    late = {}
    deadline = time.monotonic() + 4 * PASS_S
    while time.monotonic() < deadline:
        late = {job: site.show(job) for job in chosen if site.show(job)["JobState"] == "PENDING"}
        if not late:
            break
        time.sleep(0.5)
    queue = site.run("squeue", "--format=%i %P %T %C %D %m %N %h %n %r")
    assert not late, f"{queue}\n{[(job, submitted[job], chosen[job]) for job in late]}"
    for job, argv in chosen.items():
        assert f"ReqNodeList={site.show(job)['NodeList']}" in argv


def test_a_planned_start_is_not_delayed(site: SlurmSite, daemon: SlurmDaemon) -> None:
    """The neighbours may run for ten minutes, then a wide job comes: only what ends before may start."""
    go = site.shared() / "neighbours-go"
    go.unlink(missing_ok=True)
    until = f"until [ -e {go} ]; do sleep 0.2; done"
    neighbours = [site.submit(until, "--time=10", "-c4", f"--nodelist=n{i}", user="root") for i in range(1, 5)]
    site.until(lambda: {site.jobs()[job][0] for job in neighbours} == {"RUNNING"}, "the neighbours")
    wide = site.submit("sleep 1", f"--nodes={site.nodes}", "-c4", "--time=1", "--nice=-500000", user="root")
    site.until(lambda: "SchedNodeList" in site.show(wide) or site.show(wide)["StartTime"] != "Unknown", "a plan")
    planned = seconds(site.show(wide)["StartTime"])
    daemon.start()
    long = [hand_over(site, "sleep 1", "--time=30", "-c4") for _ in range(4)]
    short = [hand_over(site, "sleep 1", "--time=1", "-c4") for _ in range(4)]
    eventually(lambda: {site.jobs()[job][0] for job in short} == {"COMPLETED"}, "the end of the short ones")
    assert {site.jobs()[job][0] for job in long} == {"PENDING"}
    assert f"job {wide}" in waits(daemon, long[0])
    go.touch()
    eventually(lambda: site.jobs()[wide][0] == "COMPLETED", "the end of the wide one")
    begun = seconds(site.show(wide)["StartTime"])
    assert begun <= planned  # the neighbours ended before their time
    eventually(lambda: {site.jobs()[job][0] for job in long} == {"COMPLETED"}, "the end of the long ones")
    assert all(seconds(site.show(job)["StartTime"]) >= begun for job in long)


def test_a_future_reservation_keeps_its_nodes(site: SlurmSite, daemon: SlurmDaemon, maintenance: str) -> None:
    daemon.start()
    long = [hand_over(site, "sleep 60", "--time=10", "-c2") for _ in range(4)]
    short = hand_over(site, "true", "--time=1", "-c4")
    eventually(lambda: site.jobs()[short][0] == "COMPLETED", "the end of the short one")
    eventually(lambda: [site.jobs()[job][0] for job in long].count("RUNNING") == 2, "two of the long ones")
    time.sleep(2.0)
    assert sorted(site.jobs()[job] for job in long) == [("PENDING", "")] * 2 + [("RUNNING", maintenance)] * 2


def test_jobs_of_one_user_together_stay_within_their_limit(site: SlurmSite, daemon: SlurmDaemon) -> None:
    daemon.start()
    jobs, most, reasons = [hand_over(site, "sleep 3", "--qos=capped") for _ in range(5)], 0, set[str]()
    deadline = time.monotonic() + 300
    while any(site.jobs()[job][0] != "COMPLETED" for job in jobs):
        assert time.monotonic() < deadline, site.run("squeue")
        shown = [site.show(job) for job in jobs]
        most = max(most, sum(words["JobState"] == "RUNNING" for words in shown))
        reasons |= {words["Reason"] for words in shown if words["JobState"] == "PENDING"}
        time.sleep(0.3)
    assert most == 2 and not [reason for reason in reasons if reason.startswith("QOS")], reasons


def let_go(site: SlurmSite, job: int) -> bool:
    """Whether a job that was held for ten minutes may begin now, on any node."""
    shown = site.show(job)
    return seconds(shown["EligibleTime"]) - seconds(shown["SubmitTime"]) < 300 and shown["ReqNodeList"] == "(null)"


def test_a_wide_job_is_let_go_and_slurm_reserves_its_nodes(site: SlurmSite, daemon: SlurmDaemon) -> None:
    go = site.shared() / "neighbour-may-end"
    go.unlink(missing_ok=True)
    until = f"until [ -e {go} ]; do sleep 0.2; done"
    neighbour = site.submit(until, "--time=10", "-c4", "--nodelist=n1", user="root")
    site.until(lambda: site.jobs()[neighbour][0] == "RUNNING", "the neighbour")
    daemon.start()
    wide = hand_over(site, "sleep 1", f"--nodes={site.nodes}", "--time=1")
    eventually(lambda: let_go(site, wide), "the job to be let go")
    assert site.jobs()[neighbour][0] == "RUNNING" and site.show(wide)["ReqNodeList"] == "(null)"
    go.touch()
    eventually(lambda: site.jobs()[wide][0] == "COMPLETED", "the end of the wide one")
    told = [record["text"] for record in daemon.story(wide)["story"]]
    assert any("release" in text and f"{site.nodes} nodes" in text for text in told), told


#: What a job may ask for -> why it is let go; "": it is placed.
ASKED = {
    "--ntasks=6": "", "--ntasks=3 --spread-job": "", "--ntasks=6 --use-min-nodes": "", "--overcommit": "",
    "--nodes=2 --wait-all-nodes=1": "", "--nodes=2 --ntasks=4 --distribution=cyclic:block": "",
    "--nodes=2-3": "a range of nodes", "--nodes=2-3 --ntasks=5": "a range of nodes",
    "--nodes=1-2 --use-min-nodes": "a range of nodes", "--nodes=2-4 --spread-job": "a range of nodes",
    "--overcommit --ntasks=8": "more tasks than cores", "--overcommit --nodes=2 --ntasks=8": "more tasks than cores",
    "--nodes=2 --contiguous": "contiguous nodes", "--core-spec=1": "specialised cores",
    "--time=5 --time-min=1": "a minimum time limit", "--bb=capacity=1G": "a burst buffer",
    "--array=1-2": "members of arrays", "--nodes=1 : --nodes=1": "heterogeneous jobs",
    "--reservation=mine": "the reservation mine",
}  # fmt: skip


@pytest.fixture
def mine(site: SlurmSite) -> Iterator[None]:
    """A reservation of the user's, now."""
    words = ("ReservationName=mine", "StartTime=now", "Duration=10", "Nodes=n8", "Users=games")
    site.run("scontrol", "create", "reservation", *words)
    yield
    site.run("scancel", "--user=games")
    site.until(lambda: not site.run("squeue", "--noheader"), "the queue to be empty")
    site.run("scontrol", "delete", "ReservationName=mine")


def test_whatever_a_job_asks_for_it_is_placed_or_let_go_at_once(
    site: SlurmSite, daemon: SlurmDaemon, mine: None
) -> None:
    jobs = {options: hand_over(site, "true", *options.split()) for options in ASKED}
    daemon.start()

    def states() -> set[str]:
        """Of these jobs, with the members of arrays, but not of jobs of tests before."""
        return {state for job, (state, _) in site.jobs().items() if job >= min(jobs.values())}

    eventually(lambda: states() == {"COMPLETED"}, "the end of all jobs")
    for options, job in jobs.items():
        story, shown, why = daemon.story(job)["story"], site.show(job), ASKED[options]
        if why:
            assert any("release" in entry["text"] and why in entry["text"] for entry in story), (options, story)
        assert (shown["NodeList"] == shown["ReqNodeList"]) is not bool(why), (options, shown, story)


def test_with_a_dead_daemon_the_reaper_lets_everything_go_that_has_waited_too_long(
    site: SlurmSite, tmp_path: Path, mine: None
) -> None:
    options = [*ASKED, f"--nodes={site.nodes - 1}"]
    jobs = [hand_over(site, "true", *each.split()) for each in options]
    unasked = site.submit("true", "--begin=now+600")
    time.sleep(4)
    reap = ("reap", "--config", SlurmDaemon(tmp_path, site.nodes, site.cpus, max_defer_s=2).config)
    assert pilotfish(*reap, "--older-than", "500").stdout == ""
    done = pilotfish(*reap, "--older-than", "1")
    assert done.returncode == 0 and {f"release slurm/{job}" for job in jobs} <= set(done.stdout.splitlines()), done
    eventually(lambda: {site.jobs()[job][0] for job in jobs} == {"COMPLETED"}, "the end of all jobs")
    assert site.jobs()[unasked][0] == "PENDING" and pilotfish(*reap, "--older-than", "1").stdout == ""


def test_no_job_is_kept_longer_than_the_site_allows(
    site: SlurmSite, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    neighbours = [site.submit("sleep 600", "-c4", f"--nodelist=n{number + 1}") for number in range(site.nodes)]
    site.until(lambda: {site.jobs()[job][0] for job in neighbours} == {"RUNNING"}, "the neighbours")
    with closing(SlurmDaemon(tmp_path, site.nodes, site.cpus, max_defer_s=4)) as daemon:
        daemon.start()
        job = hand_over(site, "true")
        eventually(lambda: let_go(site, job), "the job to be let go")
        kept = seconds(site.show(job)["EligibleTime"]) - seconds(site.show(job)["SubmitTime"])
        record_property("measured", f"a job that may be kept for 4 s was let go after {kept:.0f} s")
