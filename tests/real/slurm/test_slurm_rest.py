"""Slurm over the real slurmrestd: it tells what the commands tell, it places jobs, and losing it loses nothing."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from real_world import COMMAND, eventually
from rest_proxy import MODES, Proxy
from slurm_daemon import SlurmDaemon
from slurm_site import OPERATOR, SlurmSite

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.findings import ServiceState
from pilotfish.adapters.slurm import create, examine
from pilotfish.adapters.slurm.adapter import SlurmAdapter
from pilotfish.adapters.slurm.handed_over.job_update import BEGUN, hold_back
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.records import SlurmJob
from pilotfish.adapters.slurm.rest import versions
from pilotfish.adapters.slurm.rest.errors import NotDone
from pilotfish.adapters.slurm.rest.failover import FailoverTransport
from pilotfish.adapters.slurm.rest.transport import RestTransport, rest_transport
from pilotfish.adapters.slurm.transport.command_transport import CommandTransport
from pilotfish.adapters.slurm.transport.runner import CommandRunner
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.plan import Place, Release
from pilotfish.simulate.model.snapshot import JobState

pytestmark = pytest.mark.xdist_group("site 2")
HOLD = ("--begin=now+600", "--comment=pilotfish:hold=600")
LOST, BACK = "slurmrestd is not usable", "slurmrestd is usable again"


@pytest.fixture(params=["tcp", "unix"])
def rest(site: SlurmSite, request: pytest.FixtureRequest) -> Iterator[RestTransport]:
    url = site.rest_url if request.param == "tcp" else f"unix:{site.rest_socket}"
    with closing(rest_transport(url, OPERATOR)) as way:
        yield way


def mixed(site: SlurmSite) -> None:
    """One of everything in the queue. No job starts on n7, which would keep it awake."""
    away = "--exclude=n7"
    site.submit("sleep 60", "--nodes=2", "--nodelist=n1,n2", '--comment=a "b" JobState=RUNNING é|', "--job-name=näme x")
    site.submit("sleep 60", away, "--array=1-5%2")
    site.submit("sleep 60", away, "--partition=shared", "--ntasks=2", "--cpus-per-task=2")
    site.submit("sleep 60", away, "--exclusive=user", "--partition=main,half", "--constraint=virt", "--qos=high")
    site.submit("sleep 60", away, "--mem=0", "--time=1", user="news")
    site.submit("sleep 60", away, "--mem-per-cpu=200M", "--cpus-per-task=3", "--nice=7")
    site.submit("true", "--begin=now+600", "--contiguous", "--nodes=2", "--ntasks=4", "--cpus-per-task=2")
    site.submit("true", "--begin=now+600", "--switches=1", "--ntasks-per-node=2", "--mem=100M")
    site.submit("true", "--hold", "--deadline=now+1day", "--nodes=2-4", "--requeue")
    site.submit("true", "--begin=now+600", "--overcommit", "--ntasks=8", "--core-spec=1")
    site.submit("true", "--begin=now+3days", "--exclude=n1,n2", "--time-min=1", "--time=UNLIMITED")
    ended = [site.submit("exit 3", away), site.submit("kill -9 $$", away), site.submit("true", away)]
    waiting = site.submit("sleep 60", "--begin=now+600", "--comment=pilotfish:hold=600")
    site.submit("true", f"--dependency=afterok:{waiting}?afterany:{waiting}", "--mem=300M")
    whole = site.submit("sleep 60", f"--nodes={site.nodes}", "--exclusive")
    site.run("scontrol", "hold", str(whole))
    cancelled = site.submit("sleep 60", away)
    site.until(lambda: site.jobs()[cancelled][0] == "RUNNING", "a job to run")
    site.run("scancel", str(cancelled))
    suspended = site.submit("sleep 60", away, "--partition=shared")
    site.until(lambda: site.jobs()[suspended][0] == "RUNNING", "a job to run")
    site.run("scontrol", "suspend", str(suspended))
    site.until(lambda: all(site.jobs()[job][0] in ("FAILED", "COMPLETED") for job in ended), "jobs to end")
    site.run("scontrol", "update", "NodeName=n8", "State=DRAIN", "Reason=maintenance")
    site.run("scontrol", "update", "NodeName=n7", "State=POWER_DOWN_ASAP")
    site.until(lambda: short_state(site, "n7") == "idle~", "n7 to sleep")


def short_state(site: SlurmSite, node: str) -> str:
    return site.run("sinfo", "--noheader", f"--nodes={node}", "--partition=main", "--format=%t")


def comparable(job: SlurmJob) -> dict[str, Any]:
    """What both ways know: squeue has no field for excluded nodes, and tells of what never ran otherwise than it waited.

    squeue does not say whether memory is for each CPU, and REST of 22.05 not of all jobs how many CPUs a task has.
    """
    fields = dataclasses.asdict(job) | {"unwanted": (), "memory_per_cpu": 0.0, "per_task": 1}
    never_ran = {"cpus": 0, "threads": 0, "memory": 0.0, "special": "", "part": False, "array": None}
    return fields | (never_ran if job.state.ended and not job.placed else {})


def test_rest_and_commands_agree_on_every_job_and_node(site: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed(site)
    try:
        for version in (37, 38):
            monkeypatch.setattr(versions, "READABLE", range(36, version + 1))
            for url in (site.rest_url, f"unix:{site.rest_socket}"):
                with closing(rest_transport(url, OPERATOR)) as way:
                    assert way.version.number == version
                    compare(
                        FailoverTransport(way, CommandTransport(CommandRunner())), CommandTransport(CommandRunner())
                    )
    finally:
        site.run("scontrol", "update", "NodeName=n7", "State=POWER_UP")
        site.until(lambda: short_state(site, "n7") in ("idle", "mix", "alloc"), "n7 to wake")


def unlike(*told: dict[str, Any] | None) -> dict[str, list[Any]]:
    """The fields of a job in which three readings of it differ, None: the job is not in that reading."""
    readings = [reading or {} for reading in told]
    names = dict.fromkeys(name for reading in readings for name in reading)
    values = {name: [reading.get(name, "no job") for reading in readings] for name in names}
    return {name: each for name, each in values.items() if any(value != each[0] for value in each)}


def compare(rest: FailoverTransport, commands: CommandTransport) -> None:
    """Job by job, field by field, node by node."""
    differ = {}
    for _ in range(30):  # until nothing changes in between: states, priorities
        over_rest, by_commands = ({job.id: comparable(job) for job in way.jobs()} for way in (rest, commands))
        alone = {id: comparable(job) for id in over_rest for job in rest.jobs([id])}  # none: purged meanwhile
        nodes = sorted(rest.nodes(), key=str), sorted(commands.nodes(), key=str)
        differ = {id: unlike(over_rest.get(id), alone.get(id), fields) for id, fields in by_commands.items()}
        differ = {id: fields for id, fields in differ.items() if fields}
        if not differ and over_rest.keys() == by_commands.keys() and nodes[0] == nodes[1]:
            break
        time.sleep(0.3)
    assert not differ and over_rest.keys() == by_commands.keys() and len(over_rest) >= 18
    assert nodes[0] == nodes[1]
    assert len({job["state"] for job in over_rest.values()}) >= 5 and len({node.state for node in nodes[0]}) >= 3
    assert rest.excluded() == commands.excluded() and set(rest.excluded().values()) >= {("n1", "n2")}
    assert abs(rest.time() - commands.time()) <= 1
    assert rest.jobs([999999]) == [] and rest.jobs([999999, min(over_rest)])[0].id == min(over_rest)


def test_an_unchanged_queue_is_kept_and_every_change_is_seen_at_once(site: SlurmSite, rest: RestTransport) -> None:
    site.submit("true", "--hold")
    for number in range(20):
        rest.jobs()
        job = site.submit("true", "--begin=now+600", f"--job-name=j{number}")
        seen = {each.id: each for each in rest.jobs()}
        assert seen[job].name == f"j{number}"
        site.run("scancel", str(job))
        assert {each.id: each.state for each in rest.jobs()}[job] is JobState.CANCELLED


def test_nodes_and_a_start_are_written_in_one_request(site: SlurmSite, rest: RestTransport) -> None:
    job = site.submit("sleep 2", "--begin=now+600")
    rest.update(job, {"ReqNodeList": "n[5-6]"})
    assert site.show(job)["ReqNodeList"] == "n[5-6]"
    rest.update(job, {"ReqNodeList": ""})
    assert site.show(job)["ReqNodeList"] == "(null)"
    rest.update(job, {"ReqNodeList": "n5", "StartTime": "now"})
    site.until(lambda: site.jobs()[job] == ("RUNNING", "n5"), "the job to run on n5")


def test_a_hard_time_min_is_not_written_over_rest(site: SlurmSite, rest: RestTransport) -> None:
    if rest.version.number >= versions.STRUCTURED:
        pytest.skip("NOT TESTED: this Slurm may take TimeMin for a soft limit")
    job = site.submit("true", "--begin=now+600", "--time=60")
    with pytest.raises(NotDone, match="cannot write TimeMin=5"):
        rest.update(job, {"StartTime": "now", "TimeMin": "5"})
    kind = NodeType("t", 4, 4 * 2.0**30, 1e10)
    cluster = Cluster("pilot", tuple(Node(f"n{number}", kind) for number in range(1, site.nodes + 1)))
    with pytest.raises(ConfigError, match=r"time_min: Slurm 2\d\.\d\d.* cuts the time limits of such jobs for good"):
        create(cluster, rest_url=site.rest_url, time_min=True)
    shown = site.show(job)
    assert (shown["JobState"], shown["TimeLimit"]) == ("PENDING", "01:00:00")
    site.run("scancel", str(job))


def test_a_job_is_held_back_unless_it_has_begun(site: SlurmSite, rest: RestTransport) -> None:
    """By a time of the controller's clock alone. Over both ways Slurm refuses it for a job that has begun."""
    waits, runs = site.submit("true", "--begin=now+600"), site.submit("sleep 60", "--nodes=1-2", "--exclusive")
    site.until(lambda: site.jobs()[runs][0] == "RUNNING", "the job to run")
    nodes = site.show(runs)["NodeList"]
    ways: tuple[RestTransport | CommandTransport, ...] = (rest, CommandTransport(CommandRunner()))
    for number, way in enumerate(ways, start=30):
        until = int(rest.time()) + number
        way.update(waits, hold_back(until))
        (job,) = way.jobs([waits])
        assert (job.begin, job.state) == (until, JobState.PENDING)
        with pytest.raises(AdapterError) as refused:
            way.update(runs, hold_back(until))
        assert BEGUN[0] in refused.value.stderr_tail and not refused.value.transient
        assert site.show(runs)["NodeList"] == nodes and "ResizeTime" not in site.show(runs)


def test_an_operators_pins_are_written_over_rest(site: SlurmSite, rest: RestTransport) -> None:
    """Nodes and start in one request; and so they are taken back. No comment is written."""
    run, told, kind = CommandRunner(), list[Sequence[str]](), NodeType("t", 4, 4 * 2.0**30, 1e10)

    def as_operator(argv: Sequence[str]) -> str:
        told.append(argv)
        return run(["setpriv", f"--reuid={OPERATOR}", f"--regid={OPERATOR}", "--clear-groups", *argv])

    cluster = Cluster("pilot", tuple(Node(f"n{number}", kind) for number in range(1, site.nodes + 1)))
    adapter = SlurmAdapter(cluster, FailoverTransport(rest, CommandTransport(as_operator)), SlurmSelection())
    jobs = [site.submit("sleep 30", *HOLD) for _ in range(3)]
    for _ in range(10):  # what changes rarely is read one thing at a time
        adapter.snapshot()
    views = {view.key: view for view in adapter.snapshot().jobs}
    for number, job in enumerate(jobs[:2], start=5):
        adapter.apply(Place(f"slurm/{job}", views[f"slurm/{job}"].job, (f"n{number}",)))
        site.until(
            lambda job=job, n=number: site.jobs()[job] == ("RUNNING", f"n{n}"), "the job to run where it was put"
        )
        comment = site.run("squeue", "--noheader", f"--jobs={job}", "--Format=Comment:0")
        assert comment.rstrip("\n") == "pilotfish:hold=600" and "AdminComment" not in site.show(job)
    assert not [argv for argv in told if argv[:2] == ["scontrol", "update"]]
    site.run("scontrol", "update", "NodeName=n7", "State=DRAIN", "Reason=test")
    adapter.apply(Place(f"slurm/{jobs[2]}", views[f"slurm/{jobs[2]}"].job, ("n7",)))
    assert site.show(jobs[2])["ReqNodeList"] == "n7"
    adapter.apply(Release(f"slurm/{jobs[2]}"))
    assert site.show(jobs[2])["ReqNodeList"] == "(null)"
    begins = "it may begin within a second"  # Slurm's times are whole seconds
    site.until(lambda: all(view.waits != begins for view in adapter.snapshot().jobs), "its begin time to pass")
    site.run("scancel", str(jobs[2]))
    adapter.apply(Place(f"slurm/{jobs[2]}", views[f"slurm/{jobs[2]}"].job, ("n6",)))  # ended meanwhile: nothing to do
    assert not [argv for argv in told if argv[:2] == ["scontrol", "update"]]
    adapter.close()


def test_the_doctor_checks_rest(site: SlurmSite, tmp_path: Path) -> None:
    site.submit("true", "--hold")
    service = ServiceState("live")
    found = examine(None, OPERATOR, service, rest_url=site.rest_url, rest_user="")
    told = [(finding.level, finding.says) for finding in found if finding.topic == "rest"]
    assert [level for level, _ in told] == ["ok", "ok"] and "v0.0.38 shows" in told[1][1]
    (lost,) = [
        each for each in examine(None, OPERATOR, service, rest_url=f"unix:{tmp_path}/none") if each.topic == "rest"
    ]
    assert lost.level == "warning" and "no server listens at unix:" in lost.says


def test_slurms_refusals_are_reported(site: SlurmSite, rest: RestTransport) -> None:
    job = site.submit("true", "--begin=now+600")
    for number, fields, kind, words in (
        (job, {"ReqNodeList": "n99"}, "refused", "Invalid node name"),
        (999999, {"ReqNodeList": "n1"}, "gone", "Invalid job id"),
    ):
        with pytest.raises(AdapterError) as caught:
            rest.update(number, fields)
        assert caught.value.kind == kind and not caught.value.transient and words in caught.value.stderr_tail
    with closing(rest_transport(site.rest_url, "games")) as users, pytest.raises(AdapterError) as caught:
        users.update(site.submit("true", "--begin=now+600", user="news"), {"StartTime": "now"})
    assert not caught.value.transient


def test_a_controller_that_is_down_is_not_an_empty_queue(site: SlurmSite) -> None:
    site.submit("true", "--hold")
    with closing(rest_transport(f"unix:{site.rest_socket}", OPERATOR)) as rest:
        assert rest.jobs()
        site.signal("slurmctld", signal.SIGKILL)
        with pytest.raises(AdapterError) as caught:
            rest.jobs()
        assert caught.value.transient and not isinstance(caught.value, NotDone)
        site.start_controller()
        assert rest.jobs()


# The daemon over REST


class Workload:
    """Jobs that were handed over, and what shows that each ran once."""

    def __init__(self, site: SlurmSite) -> None:
        self.site, self.jobs, self.trail = site, list[int](), site.shared() / f"trail-{os.urandom(4).hex()}"

    def add(self, count: int) -> None:
        for _ in range(count):
            self.jobs.append(self.site.submit(f"echo {len(self.jobs)} >> {self.trail}; sleep 0.3", *HOLD))

    def ran_once(self) -> bool:
        found = self.site.jobs()
        ended = all(found[job][0] == "COMPLETED" for job in self.jobs)
        return ended and sorted(map(int, self.trail.read_text().split())) == list(range(len(self.jobs)))


def may_run(user: str) -> bool:
    """Whether the user may read the folder in which pilotfish is installed."""
    argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *COMMAND, "--version"]
    return subprocess.run(argv, capture_output=True, cwd="/").returncode == 0


@pytest.fixture
def workload(site: SlurmSite) -> Workload:
    return Workload(site)


def daemon_over(site: SlurmSite, folder: Path, url: str, user: str = "", **options: Any) -> SlurmDaemon:
    """The daemon with slurmrestd at `url`, as root or as another user."""
    options = {"timeout_s": 3.0, "rest_url": url} | ({} if user else {"rest_user": OPERATOR}) | options
    if user:
        folder = site.shared() / f"{folder.name}-{user}"
        folder.mkdir()
    return SlurmDaemon(folder, site.nodes, site.cpus, user, **options)


def test_slurmrestd_is_killed_and_restarted_during_a_workload(
    site: SlurmSite, workload: Workload, tmp_path: Path
) -> None:
    with closing(daemon_over(site, tmp_path, f"unix:{site.rest_socket}")) as daemon:
        daemon.start()
        workload.add(4)
        eventually(workload.ran_once, "the first jobs")
        site.signal("slurmrestd", signal.SIGKILL)
        workload.add(4)
        eventually(lambda: LOST in daemon.log.read_text(), "a word about it")
        eventually(workload.ran_once, "jobs without REST")
        site.start_rest()
        eventually(lambda: BACK in daemon.log.read_text(), "a word about its return")
        workload.add(4)
        eventually(workload.ran_once, "all jobs")
        said = daemon.log.read_text()
        assert (said.count(LOST), said.count(BACK), said.count("Traceback")) == (1, 1, 0)
        assert "cannot be reached" not in said and daemon.stop(signal.SIGTERM) == 0


def test_answers_are_corrupted_during_a_workload(site: SlurmSite, workload: Workload, tmp_path: Path) -> None:
    """As the operator, whose pins go over REST: answers of changes are lost as well."""
    if not may_run(OPERATOR):
        pytest.skip(f"SKIPPED, the user {OPERATOR} may not read the folder in which pilotfish is installed")
    proxy = Proxy(site.ports["rest"])
    with closing(proxy), closing(daemon_over(site, tmp_path, proxy.url, OPERATOR)) as daemon:
        daemon.start()
        for number, mode in enumerate(MODES, start=1):
            workload.add(2)
            proxy.mode = mode
            workload.add(2)
            eventually(lambda n=number: daemon.log.read_text().count(LOST) == n, f"a word about answers {mode}")
            eventually(workload.ran_once, f"jobs with answers {mode}")
            proxy.mode = ""
            eventually(lambda n=number: daemon.log.read_text().count(BACK) == n, "a word about its return")
        said = daemon.log.read_text()
        assert (said.count(LOST), said.count(BACK)) == (len(MODES), len(MODES))
        assert "cannot be reached" not in said and daemon.stop(signal.SIGTERM) == 0


def test_tokens_are_renewed_before_they_expire(site: SlurmSite, workload: Workload, tmp_path: Path) -> None:
    """Tokens that live for three seconds: REST is never lost, and no token is ever told."""
    with closing(daemon_over(site, tmp_path, site.rest_url, rest_token_lifespan_s=3)) as daemon:
        daemon.start()
        for _ in range(4):
            workload.add(3)
            time.sleep(2)
        eventually(workload.ran_once, "all jobs")
        said = daemon.log.read_text() + daemon.out.read_text()
        assert LOST not in said and "slurmrestd at" in said and "eyJ" not in said


def test_a_token_that_is_not_renewed_loses_rest_and_nothing_else(
    site: SlurmSite, workload: Workload, tmp_path: Path
) -> None:
    path = tmp_path / "token"

    def renew(lifespan_s: int) -> None:
        beside = tmp_path / "token.new"
        beside.touch(0o600)
        beside.write_text(f"SLURM_JWT={site.token(lifespan_s=lifespan_s)}\n")
        beside.replace(path)

    renew(5)
    with closing(daemon_over(site, tmp_path, site.rest_url, rest_token_file=str(path))) as daemon:
        daemon.start()
        workload.add(3)
        eventually(lambda: LOST in daemon.log.read_text(), "a word about the token")
        workload.add(3)
        eventually(workload.ran_once, "jobs without REST")
        renew(600)
        eventually(lambda: BACK in daemon.log.read_text(), "a word about its return")
        workload.add(3)
        eventually(workload.ran_once, "all jobs")
        said = daemon.log.read_text()
        assert (said.count(LOST), said.count(BACK)) == (1, 1) and "the token expired" in said
        assert "eyJ" not in said and "cannot be reached" not in said


def test_a_dry_run_over_rest_shows_the_commands(site: SlurmSite, tmp_path: Path) -> None:
    with closing(daemon_over(site, tmp_path, site.rest_url)) as daemon:
        daemon.start("--dry-run", "--show-commands")
        job = site.submit("true", *HOLD)
        eventually(lambda: "scontrol" in daemon.out.read_text(), "a decision")
        assert f"  scontrol update JobId={job} ReqNodeList=" in daemon.out.read_text()
    assert site.show(job)["JobState"] == "PENDING" and "AdminComment" not in site.show(job)


def test_texts_of_a_user_hide_no_other_job(site: SlurmSite, rest: RestTransport) -> None:
    """The last test of this file: Slurm shows these jobs for minutes after their end, over REST as they were written."""
    victim = site.submit("true", *HOLD)
    jobs = [
        site.submit("true", "--hold", "--comment=caf\udce9 \x07", "--job-name=\udcff", user="news") for _ in range(3)
    ]
    site.run("scontrol", "update", f"JobId={jobs[0]}", "ReqNodeList=n1,n2,n1", user="news")
    site.run("scontrol", "update", f"JobId={jobs[1]}", "ExcNodeList=n3,n1,n3", user="news")
    site.run("scontrol", "update", f"JobId={jobs[2]}", "StartTime=now+3000000days", user="news")
    found = {job.id: job for job in rest.jobs()}
    assert (found[victim].state, found[victim].comment) == (JobState.PENDING, "pilotfish:hold=600")
    assert {JobState.UNKNOWN} == {found[job].state for job in jobs[:2]}
    late = found[jobs[2]]
    assert (late.state, late.comment, late.name) == (JobState.PENDING, "caf\udce9 \x07", "?")
    assert [job.id for job in rest.jobs([victim])] == [victim]
    by_command = {job.id: job for job in CommandTransport(CommandRunner()).jobs()}
    assert by_command[victim].state is JobState.PENDING and by_command[jobs[2]].state is JobState.UNKNOWN
    assert by_command[jobs[0]].comment in ("", "caf\udce9 \x07")
