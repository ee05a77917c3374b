"""A user's commands on a login node: how they find their way, how long jobs are held, what is kept and shown."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pilotfish
from pilotfish.adapters.slurm.transport.scontrol import Allocation
from pilotfish.adapters.slurm.user_client import OwnJobs
from pilotfish.cli.output.status import show_status
from pilotfish.cli.service.service_commands import chosen
from pilotfish.cli.user_client import submission_records as records
from pilotfish.cli.user_client.client import UserClient
from pilotfish.cli.user_client.settings import SubmissionSettings
from pilotfish.cli.user_client.submission_records import BEGUN, TAKEN_BACK, WHOLE, SubmissionRecord, read
from pilotfish.cli.user_client.submit import LONGEST_S, earliest_starts, guessed, holds, in_order
from pilotfish.cli.user_client.watch import LOST, Watched, job_reply, log_reply, read_workflows, workflow_reply
from pilotfish.daemon import paths
from pilotfish.daemon.report.selection import Chosen
from pilotfish.daemon.state.codec import id_for, new_id
from pilotfish.daemon.state.users import user_name
from pilotfish.simulate.errors import ConfigError, InvalidJobError, PilotfishError
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job, Profile, ThreadGroup, Workflow
from tests.support.login_slurm import FakeSlurm

HEAD = "schema: pilotfish/client/v1\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any setting."""
    for name in ("PILOTFISH_ADAPTER", "PILOTFISH_SOCKET", "PILOTFISH_CLIENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(paths, "SITE_CLIENT", tmp_path / "site.yaml")
    (tmp_path / "config" / "pilotfish").mkdir(parents=True)
    return tmp_path


def test_without_a_word_the_daemon_is_asked(home: Path) -> None:
    assert chosen(None, None) is None
    assert chosen("slurm", None) == SubmissionSettings(adapter="slurm")


def test_who_goes_before_whom(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, user_file = home / "site.yaml", home / "config" / "pilotfish" / "client.yaml"
    site.write_text(HEAD + "adapter: slurm\ngrace_seconds: 30\ncluster: lab.yaml\n")
    settings = chosen(None, None)
    assert settings and (settings.grace_seconds, settings.cluster) == (30, str(home / "lab.yaml"))
    user_file.write_text(
        HEAD + "grace_seconds: 9\nsubmit_options: [--partition=shared, -A, x]\n".replace(", -A, x", "")
    )
    settings = chosen(None, None)
    assert settings and (settings.grace_seconds, settings.submit_options) == (9, ["--partition=shared"])
    monkeypatch.setenv("PILOTFISH_SOCKET", "/run/s")
    assert chosen(None, None) is None
    monkeypatch.setenv("PILOTFISH_ADAPTER", "slurm")
    assert chosen(None, None) is not None and chosen(None, "/run/s") is None and chosen("daemon", None) is None
    monkeypatch.setenv("PILOTFISH_ADAPTER", "slrum")
    with pytest.raises(ConfigError, match=r"PILOTFISH_ADAPTER: found 'slrum'; did you mean 'slurm'\?"):
        chosen(None, None)


@pytest.mark.parametrize("how", ["mode", "owner"])
def test_settings_that_another_user_controls_are_refused(home: Path, how: str) -> None:
    if how == "owner" and os.geteuid() != 0:
        pytest.skip("not root, so no file can be given to another user")
    path = home / "site.yaml"
    path.write_text(HEAD + "service_user: mallory\n")
    path.chmod(0o666) if how == "mode" else os.chown(path, 61001, 61001)
    with pytest.raises(ConfigError, match=f"{path}: cannot be read: not trusted"):
        chosen("slurm", None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("adapter: pbs\n", "adapter: found 'pbs'"),
        ("grace_seconds: 0\n", "grace_seconds"),
        ("grace: 5\n", "grace: unknown key"),
        ("submit_options: [--begin=now]\n", "submit_options"),
        ("submit_options: [-d, 'afterok:5']\n", "submit_options"),
        ("submit_options: [--wait]\n", "submit_options"),
        ("submit_options: [shared]\n", "submit_options"),
        ("submit_options: --partition=x\n", "submit_options"),
        ("max_defer_seconds: 1e9\n", "max_defer_seconds"),
    ],
)
def test_a_wrong_setting_names_its_file_and_key(home: Path, text: str, words: str) -> None:
    path = home / "site.yaml"
    path.write_text(HEAD + text)
    with pytest.raises(ConfigError) as error:
        chosen("slurm", None)
    assert str(error.value).startswith(f"{path}: ") and words in str(error.value) and "\n" not in str(error.value)


def test_the_sample_names_every_key(home: Path) -> None:
    text = (Path(pilotfish.__file__).parent / "systemd" / "client.yaml").read_text()
    (home / "site.yaml").write_text(text)
    assert chosen(None, None) == SubmissionSettings(adapter="slurm")
    (home / "site.yaml").write_text(re.sub(r"^# (cluster|output_dir): ", r"\1: ", text, flags=re.MULTILINE))
    settings = chosen(None, None)
    assert settings and settings.model_fields_set == set(SubmissionSettings.model_fields)


def job(name: str, *after: str, seconds: float = 0.0) -> Job:
    profile = Profile((ThreadGroup(1, seconds),)) if seconds else DEFAULT_PROFILE
    return Job(name, profile, after, command=("true",))


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    """Jobs that depend on earlier ones; the run time of some is unknown."""
    size = draw(st.integers(1, 8))
    jobs = []
    for i in range(size):
        after = draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        seconds = draw(st.sampled_from([0.0, 5.0, 4000.0, 1e6]))
        jobs.append(job(f"j{i}", *(f"j{k}" for k in sorted(after)), seconds=seconds))
    return Workflow("w", tuple(jobs))


@given(workflows(), st.integers(1, 3600), st.integers(0, 60), st.integers(1, 7200))
def test_a_hold_is_one_grace_beyond_what_must_pass_anyway(flow: Workflow, grace: int, stagger: int, defer: int) -> None:
    to = SubmissionSettings(grace_seconds=grace, stagger_seconds=stagger, max_defer_seconds=defer)
    keys = {job.id: f"w/{job.id}" for job in flow.jobs}
    earliest, hold_of = earliest_starts(flow), holds(flow, {}, keys, to)
    for task in flow.jobs:
        hold, least = hold_of[task.id], earliest[task.id]
        assert 1 <= hold <= min(LONGEST_S, least + 1 + min(grace + stagger, defer))
        assert hold >= min(least + min(grace, defer), LONGEST_S)
        assert all(earliest[before] <= least for before in task.after)
        if not task.after:
            assert hold <= defer
    assert [task.id for task in in_order(flow)] and holds(flow, {}, keys, to) == hold_of


def test_a_plan_moves_the_holds(home: Path) -> None:
    flow = Workflow("w", (job("a", seconds=10), job("b", "a", seconds=10)))
    to = SubmissionSettings(grace_seconds=60, stagger_seconds=0, max_defer_seconds=1000)
    keys = {"a": "w/a", "b": "w/b"}
    assert holds(flow, {}, keys, to) == {"a": 60, "b": 70}
    assert holds(flow, {"a": 30.2, "b": 50.0}, keys, to) == {"a": 91, "b": 110}
    assert holds(flow, {"a": 1e5, "b": 1e5}, keys, to) == {"a": 1000, "b": 1010}


def test_jobs_after_a_job_of_unknown_run_time_have_no_forecast() -> None:
    flow = Workflow("w", (job("a", seconds=1), job("b"), job("c", "a", "b", seconds=1), job("d", "c", seconds=1)))
    assert guessed(flow) == {"b", "c", "d"}


def test_a_key_gives_the_same_name_everywhere() -> None:
    assert id_for("dag 1", "nightly") == id_for("dag 1", "nightly") != id_for("dag 1", "daily")
    workflow_id = new_id("dag 1")
    assert (
        id_for("dag 1", workflow_id) == workflow_id
        and workflow_id.startswith("dag-1.")
        and id_for("other", workflow_id) != workflow_id
    )


FLOW = Workflow("dag", (job("a", seconds=5), job("b", "a", seconds=5), job("c", "b")))


def make(folder: Path, **fields: Any) -> SubmissionRecord:
    record = SubmissionRecord("dag.aaaaaa", "k", FLOW, 1_000_000.0, folder / "dag.aaaaaa", **fields)
    record.create(records.folder(folder))
    return record


def test_a_record_comes_back_also_if_its_last_line_was_cut_off(tmp_path: Path) -> None:
    record = make(tmp_path, hold={"a": 5}, forecast={"a": {"start": 0.0}})
    record.submitted("a", 7)
    record.submitted("b", 8)
    record.has_ended("a", {"state": "completed", "start_time": 1.0})
    record.reached(WHOLE)
    assert read(record.path) == record
    content = record.path.read_bytes()
    intent = content.index(b"\n") + 1
    for end in range(intent, len(content)):
        record.path.write_bytes(content[:end])
        copy = read(record.path)
        assert (copy.workflow, copy.hold) == (record.workflow, record.hold) and copy.ids.items() <= record.ids.items()
    for text in (b"", b"{", b"[]\n", b"null\n", b'{"schema": "x"}\n', content[: intent // 2], b"\xff\xfe"):
        record.path.write_bytes(text)
        with pytest.raises(ConfigError, match=r"dag\.aaaaaa\.jsonl"):
            read(record.path)
        problems: list[str] = []
        assert records.known(tmp_path, problems.append) == [] and len(problems) == 1


def test_two_do_not_submit_the_same_at_once(tmp_path: Path) -> None:
    with records.alone(tmp_path, "dag.aaaaaa"):
        with pytest.raises(PilotfishError, match="by another process"), records.alone(tmp_path, "dag.aaaaaa"):
            pass
        with records.alone(tmp_path, "dag.bbbbbb"):
            pass
    with pytest.raises(KeyboardInterrupt), records.alone(tmp_path, "dag.aaaaaa"):
        raise KeyboardInterrupt
    assert not [*(tmp_path / "workflows").iterdir()]


def test_only_the_newest_records_are_kept_whatever_the_clock(tmp_path: Path) -> None:
    paths = []
    for number in range(5):
        record = SubmissionRecord(f"w.{number}", "k", FLOW, 0.0, tmp_path)
        record.create(records.folder(tmp_path))
        os.utime(record.path, (1e6 * number, 1e6 * number))
        paths.append(record.path)
    for keep in (9, 5, 3, 0):
        records.forget(tmp_path, keep)
        assert [path.exists() for path in paths] == [number >= 5 - keep for number in range(5)]


def row(name: str, state: str = "PENDING", **more: Any) -> dict[str, Any]:
    """A job of the user's in the queue."""
    fields = {"State": state, "Comment": f"pilotfish:hold=60;key=dag.aaaaaa/{name}", "Name": name, "Dependency": ""}
    return fields | {"submit": 1_000_000.0, "begin": 1_000_060.0} | more


def seen(folder: Path, rows: dict[int, dict[str, Any]]) -> Watched:
    return asked(folder, rows)[1]


def asked(folder: Path, rows: dict[int, dict[str, Any]]) -> tuple[OwnJobs, Watched]:
    slurm = FakeSlurm()
    slurm.jobs = rows
    user_jobs = slurm.own()
    (watched,) = read_workflows(user_jobs, records.known(folder, pytest.fail))
    return user_jobs, watched


def told_of(found: tuple[OwnJobs, Watched], name: str, now: float, allocation: Allocation | None = None) -> Any:
    user_jobs, watched = found
    user_jobs.allocation = lambda job: allocation
    return log_reply(watched, name, user_jobs.manager, user_jobs.story(watched.jobs[name], now))


RAN = {"start": 1_000_010.0, "end": 1_000_016.0, "nodes": "n2"}


def test_what_was_seen_to_end_is_kept_and_what_went_unseen_is_told_by_what_follows(tmp_path: Path) -> None:
    make(tmp_path, ids={}).reached(WHOLE)
    for number, name in enumerate("abc", 1):
        read(tmp_path / "workflows" / "dag.aaaaaa.jsonl").submitted(name, number)
    first = seen(tmp_path, {1: row("a", "COMPLETED", **RAN), 2: row("b"), 3: row("c")})
    reply = workflow_reply(first)
    assert (reply["state"], reply["jobs"][0]["finish_time"]) == ("running", 1_000_016.0)
    later = workflow_reply(seen(tmp_path, {3: row("c", "RUNNING", start=1_000_030.0, nodes="n1")}))
    assert [job["state"] for job in later["jobs"]] == ["completed", "completed", "running"]
    assert (later["jobs"][0]["nodes"], later["jobs"][1]["start_time"], later["exit_code"]) == (["n2"], None, None)
    last = workflow_reply(seen(tmp_path, {}))
    assert [job["state"] for job in last["jobs"]] == ["completed", "unknown", "unknown"]
    assert (last["state"], last["exit_code"], last["jobs"][2]["reason"]) == ("unknown", None, LOST)


def test_accounting_tells_what_the_queue_has_forgotten(tmp_path: Path) -> None:
    record = make(tmp_path)
    record.reached(WHOLE)
    for number, name in enumerate("abc", 1):
        record.submitted(name, number)
    slurm = FakeSlurm()
    slurm.accounted = {1: "COMPLETED", 2: "TIMEOUT", 3: "RUNNING", 99: "FAILED"}
    (watched,) = read_workflows(slurm.own(), [record])
    reply = workflow_reply(watched)
    assert [job["state"] for job in reply["jobs"]] == ["completed", "timeout", "unknown"]
    assert reply["state"] == "timeout" and read(record.path).ended.keys() == {"a", "b"}
    assert sum(argv[0] == "sacct" for argv in slurm.ran) == 1


def test_a_failure_says_how_and_what_followed(tmp_path: Path) -> None:
    record = make(tmp_path)
    record.reached(WHOLE)
    never = {"State": "CANCELLED", "end": 1_000_016.0}
    rows = {1: row("a", "FAILED", status=3 << 8, **RAN), 2: row("b", **never), 3: row("c", **never)}
    pair = asked(tmp_path, rows)
    reply = workflow_reply(pair[1])
    assert (reply["state"], reply["exit_code"], reply["jobs"][0]["exit_code"]) == ("failed", 1, 3)
    log = told_of(pair, "a", 1_000_020.0)
    assert [line["kind"] for line in log["story"]] == ["submitted", "started", "ended"]
    assert log["story"][-1]["text"] == "failed: exit code 3" and log["job"]["stderr"].endswith("dag.aaaaaa/a.err")


def test_the_owner_of_a_resized_job_is_told(tmp_path: Path) -> None:
    make(tmp_path).reached(WHOLE)
    pair = asked(tmp_path, {1: row("a", "RUNNING", nodes="n2", start=1_000_010.0)})
    stories = [told_of(pair, "a", 0.0, Allocation(was_resized, {}))["story"] for was_resized in (False, True)]
    kinds = [[entry["kind"] for entry in story] for story in stories]
    assert kinds == [["submitted", "started"], ["submitted", "started", "resized"]]


@pytest.mark.parametrize(
    ("cores", "text"),
    [
        ({"n2": (0, 1, 3), "n4": (2,)}, "on n2 (cores 0-1,3), n4 (cores 2)"),
        ({"n2": (0, 1, 3)}, "on n[2,4]"),  # an answer without one of the nodes says nothing
        ({}, "on n[2,4]"),
    ],
)
def test_the_owner_reads_the_cores_that_slurm_shows(
    tmp_path: Path, cores: dict[str, tuple[int, ...]], text: str
) -> None:
    make(tmp_path).reached(WHOLE)
    pair = asked(tmp_path, {1: row("a", "RUNNING", nodes="n2,n4", start=1_000_010.0)})
    assert told_of(pair, "a", 0.0, Allocation(False, cores))["story"][-1]["text"] == text


def test_what_slurm_says_of_the_start_of_a_waiting_job(tmp_path: Path) -> None:
    make(tmp_path).reached(WHOLE)
    watched = seen(tmp_path, {1: row("a", start=1_000_300.0), 2: row("b")})
    assert [job_reply(watched, name)["manager_start_time"] for name in ("a", "b")] == [1_000_300.0, None]
    assert job_reply(watched, "a")["start_time"] is None, "it has not started"
    running = seen(tmp_path, {1: row("a", "RUNNING", nodes="n2", start=1_000_300.0)})
    assert job_reply(running, "a")["manager_start_time"] is None


@pytest.mark.parametrize(("stage", "state"), [(BEGUN, "pending"), (TAKEN_BACK, "cancelled"), (WHOLE, "unknown")])
def test_what_never_came_to_the_queue(tmp_path: Path, stage: str, state: str) -> None:
    make(tmp_path).reached(stage)
    assert {job["state"] for job in workflow_reply(seen(tmp_path, {}))["jobs"]} == {state}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "may choose its nodes and start it; in 50 s it may begin by itself"),
        ({"begin": 1_000_001.0}, "pilotfish may still choose its nodes"),
        ({"begin": 1_000_001.0, "wanted": "n2"}, "pilotfish may still choose its nodes"),
        ({"begin": 1_000_500.0}, "its user moved its begin time"),
        ({"Dependency": "afterok:1(unfulfilled)"}, "it depends on afterok:1(unfulfilled)"),
        ({"State": "RUNNING", "nodes": "n1", "start": 1_000_009.0}, ""),
    ],
)
def test_why_a_job_waits_also_without_a_record(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    pair = asked(tmp_path, {1: row("a", "RUNNING", nodes="n1"), 2: row("b", **changed)})
    log = told_of(pair, "b", 1_000_010.0)
    assert words in log["waits"] if words else log["waits"] == ""
    assert log["after"] == (["a"] if "Dependency" in changed else [])
    kinds, early = [line["kind"] for line in log["story"]], changed.get("begin") == 1_000_001.0
    assert [kind in kinds for kind in ("placed", "released")] == [
        early and "wanted" in changed,
        early and "wanted" not in changed,
    ]


@pytest.fixture
def login(home: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FakeSlurm, UserClient]:
    """A user on a login node, with one workflow, two jobs that were handed over, and one that was not."""
    monkeypatch.setenv("PILOTFISH_STATE", str(home / "state"))
    slurm = FakeSlurm()
    single = {"Name": "align.sh", "Partition": "short", "PriorityLong": "77"}
    slurm.jobs = {
        1: row("a"),
        2: row("x", Comment="pilotfish:hold=60") | single,
        3: row("x", "RUNNING", Comment="pilotfish", start=1_000_001.0, nodes="n1") | single | {"Partition": "long"},
        4: row("x", Comment="my own"),
        5: row("x", "COMPLETED", Comment="pilotfish", start=1_000_001.0, end=1_000_002.0, nodes="n1"),
    }
    client = UserClient(SubmissionSettings(adapter="slurm"))
    client.__dict__["own"] = slurm.own()
    return slurm, client


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        ({}, ["a", "2", "3"]),
        ({"partition": "short"}, ["2"]),
        ({"name": "align*"}, ["2", "3"]),
        ({"state": "running"}, ["3"]),
        ({"user": "nobody-of-this-name"}, []),
        ({"workflow": "slurm"}, ["2", "3"]),
    ],
)
def test_users_see_the_jobs_that_they_handed_over(
    login: tuple[FakeSlurm, UserClient], selection: dict[str, str], ids: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    reply = login[1].status(None, Chosen(**selection))
    assert [job["id"] for flow in reply["workflows"] for job in flow["jobs"]] == ids
    show_status(reply, everything=False)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("mesocentre: the jobs and workflows of ") and "without the service, " in head
    if ids == ["a", "2", "3"]:
        row = next(line for line in lines if line.startswith("2 ")).split()
        me = user_name(os.getuid()).partition(" ")[0]
        assert row[:5] == ["2", "align.sh", me, "short", "pending"] and "77" in row
        assert "slurm: 2 jobs handed over" in lines


def test_a_job_that_was_handed_over_is_explained_and_not_cancelled(login: tuple[FakeSlurm, UserClient]) -> None:
    slurm, client = login
    assert client.explain("2")["job"]["partition"] == "short"
    for target in ("slurm", "slurm/2"):
        with pytest.raises(InvalidJobError, match=r"is cancelled in Slurm itself \(scancel ID\)"):
            client.cancel(target)
    assert not [argv for argv in slurm.ran if argv[0] == "scancel"]
