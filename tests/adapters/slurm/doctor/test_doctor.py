"""The doctor's findings from recorded answers of Slurm, changed one setting at a time."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.findings import NOTE, OK, PROBLEM, WARNING, Finding, Level, ServiceState
from pilotfish.adapters.slurm.doctor import findings_of, questions
from pilotfish.adapters.slurm.doctor.questions import Answers, ask, munge_command, rights
from pilotfish.adapters.slurm.doctor.setup import SETUP
from pilotfish.adapters.slurm.doctor.setup import __file__ as SETUP_FILE
from pilotfish.adapters.slurm.handed_over.ownership import SlurmSelection
from pilotfish.adapters.slurm.transport.scontrol import version
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from tests.support.slurm_answers import (
    CONFIG,
    GOOD,
    NEWER,
    OPERATOR,
    SDIAG,
    USERS,
    Recorded,
    about,
    asked_of,
    changed,
    found,
)


def checked(run: Recorded) -> Iterator[Finding]:
    return findings_of(ask(run, "backup"), SlurmSelection(), None, GOOD)


def test_a_good_site_has_no_problems() -> None:
    findings = found(asked_of())
    assert {finding.topic for finding in findings} >= {
        "controller",
        "clock",
        "rights",
        "accounting",
        "grace",
        "sharing",
    }
    assert not [finding for finding in findings if finding.level in (PROBLEM, WARNING)]
    for finding in findings:
        assert finding.says and not finding.says.endswith(".") and "\n" not in finding.says


def test_only_reading_commands_are_run() -> None:
    run = Recorded()
    list(checked(run))
    verbs = {tuple(word for word in shlex.split(line) if word[0] != "-")[:2] for line in run.asked}
    showing = {("scontrol", "show"), ("sacctmgr", "show")}
    assert verbs <= showing | {("squeue",), ("sinfo",), ("sdiag",)}
    assert len(run.asked) <= 10


def test_a_user_who_is_not_the_account_of_the_service_need_not_be_an_operator() -> None:
    hidden = asked_of(changed(PrivateData="jobs"), level="None")
    for answers in (asked_of(level="None"), asked_of(user="games"), hidden):
        findings = found(answers, ServiceState("live", account="pilotfish"))
        assert not [finding for finding in findings if finding.level in (PROBLEM, WARNING)]
        (rights,) = (finding for finding in findings if finding.topic == "rights")
        assert rights.level is NOTE and rights.mend == ("pilotfish doctor --user pilotfish",)


def test_rights_that_are_hidden_from_the_current_user_are_no_problem() -> None:
    answers = asked_of(changed(PrivateData="users"), user="games")
    answers.sees_all = False
    assert about("rights", answers) == [(NOTE, "PrivateData=users: whether games is an operator is not shown to you")]


CASES: dict[str, tuple[Callable[[], Answers], str, Level, str]] = {
    "newer commands": (lambda: asked_of(client=(24, 5)), "versions", WARNING, "newer than the controller"),
    "older commands": (lambda: asked_of(client=(21, 8)), "versions", NOTE, "up to two releases older"),
    "an unknown release": (lambda: asked_of(changed(SLURM_VERSION="27.05.0")), "versions", WARNING, "27.05 is outside"),
    "an old release": (lambda: asked_of(changed(SLURM_VERSION="19.05.1")), "versions", WARNING, "watch a dry run"),
    "a clock that is off": (lambda: asked_of(ahead_s=-200.0), "clock", WARNING, "-200 s"),
    "a clock that is a bit off": (lambda: asked_of(ahead_s=9.0), "clock", NOTE, "uses the controller's"),
    "rate limits": (lambda: asked_of(changed(SlurmctldParameters="rl_enable,rl_log_freq=1")), "controller", NOTE, "rl"),
    "one of two controllers": (
        lambda: asked_of(pings=["Slurmctld(primary) at a is UP", "Slurmctld(backup) at b is DOWN"]),
        "controller", WARNING, "(backup) at b is DOWN",
    ),
    "root": (lambda: asked_of(user="root"), "rights", NOTE, "may do everything"),
    "a user": (lambda: asked_of(level="None"), "rights", PROBLEM, "not an operator"),
    "nobody": (lambda: asked_of(user="nobody"), "rights", PROBLEM, "accounting has no user nobody"),
    "an administrator": (lambda: asked_of(level="Administrator"), "rights", OK, "more than is needed"),
    "no accounting": (
        lambda: asked_of(changed(AccountingStorageType="accounting_storage/none"), level=""),
        "rights", PROBLEM, "only root and slurm",
    ),
    "jobs are hidden": (lambda: asked_of(changed(PrivateData="jobs,usage"), level="None"), "privacy", PROBLEM, "jobs"),
    "hidden from users": (lambda: asked_of(changed(PrivateData="jobs")), "privacy", NOTE, "backup sees all"),
    "comments are not kept": (
        lambda: asked_of(changed(AccountingStoreFlags="(null)")), "accounting", NOTE, "comments are not kept"),
    "no account": (lambda: asked_of(accounts=()), "accounting", NOTE, "placing users' jobs needs none"),
    "little memory of ends": (
        lambda: asked_of(changed(AccountingStorageType="accounting_storage/none", MinJobAge="2 sec"), user="root"),
        "accounting", WARNING, "for 2 s",
    ),
    "age is lost": (lambda: asked_of(), "priority", NOTE, "cost 0.992 points"),
    "age goes on": (lambda: asked_of(changed(PriorityFlags="ACCRUE_ALWAYS")), "priority", OK, "counts as waiting"),
    "no age": (lambda: asked_of(changed(PriorityWeightAge="0")), "priority", OK, "costs no priority"),
    "first come": (lambda: asked_of(changed(PriorityType="priority/basic")), "priority", OK, "costs none"),
    "a slow scheduler": (
        lambda: asked_of(changed(SchedulerParameters="sched_interval=120,default_queue_depth=7")),
        "grace", OK, "within 120 s (sched_interval) if it is among the first 7",
    ),
    "no backfill": (lambda: asked_of(changed(SchedulerType="sched/builtin")), "backfill", NOTE, "no reservations"),
    "preemption": (lambda: asked_of(changed(PreemptType="preempt/qos")), "preemption", NOTE, "loses its pin"),
    "whole nodes by plugin": (lambda: asked_of(changed(SelectType="select/linear")), "sharing", WARNING, "whole nodes"),
    "memory is not counted": (lambda: asked_of(changed(SelectTypeParameters="CR_CPU")), "memory", NOTE, "not count"),
    "memory is counted": (lambda: asked_of(), "memory", NOTE, "not enforced (TaskPlugin"),
    "memory is enforced": (
        lambda: asked_of(changed(TaskPlugin="task/affinity,task/cgroup") + NEWER), "memory", OK, "enforced by cgroups"),
    "cgroups do not constrain": (
        lambda: asked_of(changed(TaskPlugin="task/cgroup"), files={"cgroup.conf": "#ConstrainRAMSpace=yes\n"}),
        "memory", NOTE, "not enforced: a job",
    ),
    "cgroups cannot be seen": (
        lambda: asked_of(changed(TaskPlugin="task/cgroup")), "memory", NOTE, "cannot be seen from here"),
    "cgroups constrain by file": (
        lambda: asked_of(changed(TaskPlugin="task/cgroup"), files={"cgroup.conf": "constrainramspace = Yes\n"}),
        "memory", OK, "enforced",
    ),
    "who takes more is ended": (
        lambda: asked_of(changed(JobAcctGatherParams="OverMemoryKill")), "memory", OK, "OverMemoryKill"),
    "nodes can sleep": (
        lambda: asked_of(changed(SuspendProgram="/s", ResumeProgram="/r")), "power", NOTE, "administrator"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "topic", "level", "words"), CASES.values(), ids=CASES)
def test_one_setting_at_a_time(make: Callable[[], Answers], topic: str, level: Level, words: str) -> None:
    assert any(found_level == level and words in message for found_level, message in about(topic, make())), about(
        topic, make()
    )


SHARING = {
    "OverSubscribe=NO": (OK, "each core belongs to one job"),
    "OverSubscribe=FORCE:3": (OK, "up to 3 jobs share each core"),
    "OverSubscribe=YES:4": (OK, "up to 4 jobs that ask for it"),
    "OverSubscribe=EXCLUSIVE": (NOTE, "whole nodes"),
    "OverSubscribe=NO ExclusiveUser=YES": (NOTE, "one user at a time"),
    "Exclusive=NODE": (NOTE, "whole nodes"),
    "Exclusive=TOPO": (NOTE, "whole nodes"),
    "Exclusive=USER": (NOTE, "one user at a time"),
    "Exclusive=NO": (OK, "each core belongs to one job"),
}


@pytest.mark.parametrize(("words", "expected"), SHARING.items(), ids=SHARING)
def test_what_jobs_share(words: str, expected: tuple[Level, str]) -> None:
    partition = {"PartitionName": "main", "State": "UP"} | dict(word.split("=") for word in words.split())
    ((level, message),) = about("sharing", asked_of(partitions=[partition]))
    assert level is expected[0] and expected[1] in message


@pytest.mark.parametrize(("user", "create"), [("pilotfish", "systemd-sysusers"), ("backup", "useradd --system backup")])
@pytest.mark.parametrize("level", ["", "Operator"])
def test_a_missing_unix_user_is_created_before_its_account(user: str, create: str, level: str) -> None:
    (only,) = (finding for finding in found(asked_of(user=user, uid=None, level=level)) if finding.topic == "rights")
    assert only.level is PROBLEM and f"no Unix user {user}" in only.says
    added = only.mend.index(f"sacctmgr add user {user} account=ACCOUNT AdminLevel=Operator")
    assert only.mend.index(create) < added
    assert (f"sacctmgr delete user name={user}" in only.mend[:added]) is bool(level)


def test_an_account_that_was_added_before_its_unix_user_has_no_rights() -> None:
    answers = asked_of(slurm_uid=4294967294)
    (only,) = (finding for finding in found(answers) if finding.topic == "rights")
    assert only.level is PROBLEM and "added before the Unix user" in only.says
    assert only.mend == ("sacctmgr delete user name=backup",
                         "sacctmgr add user backup account=ACCOUNT AdminLevel=Operator")  # fmt: skip
    assert asked_of().slurm_uid == 34
    findings = checked(Recorded(scontrol_show_assoc__mgr=USERS.format(uid=4294967294)))
    assert [finding.level for finding in findings if finding.topic == "rights"] == [PROBLEM]


@pytest.mark.real
def test_the_setup_can_be_typed_line_by_line(tmp_path: Path) -> None:
    lines = [line for line in SETUP.format(user="pilotfish").splitlines() if not line.startswith("#")]
    verbs = [line.split()[0] for line in lines]
    assert verbs.index("systemd-sysusers") < verbs.index("sacctmgr"), "the account comes after the Unix user"
    assert lines.index("systemctl daemon-reload") < len(lines) - 1 and lines[-1].startswith("systemctl enable")
    root = Path(SETUP_FILE).parents[3]
    for line in lines:
        if line.split()[0] in ("install", "cp", "mkdir"):
            if line.startswith("cp") and "systemd/system" in line:
                (tmp_path / "etc/systemd/system").mkdir(parents=True)  # made by systemd itself
            subprocess.run(line.replace("/etc/", f"{tmp_path}/etc/"), shell=True, check=True, cwd=root)
    users = (tmp_path / "etc/sysusers.d/pilotfish.conf").read_text().splitlines()
    assert [line.split()[-1] for line in users if line.startswith("u ")] == ["/var/lib/pilotfish", "-"]
    assert (tmp_path / "etc/pilotfish/pilotfish.yaml").exists()


def test_partitions_with_unusual_settings() -> None:
    odd = {"PartitionName": "odd", "State": "DRAIN", "AllowAccounts": "a,b", "AllowQos": "ALL", "RootOnly": "YES"}
    findings = about("partition", asked_of(partitions=[odd, {"PartitionName": "main", "State": "UP"}]))
    assert [level for level, _ in findings] == [WARNING, NOTE, NOTE]
    assert "State=DRAIN" in findings[0][1] and "AllowAccounts" in findings[1][1] and "only root" in findings[2][1]
    handed = SlurmSelection(frozenset({"main"}), comment=False)
    assert about("partition", asked_of(partitions=[odd, {"PartitionName": "main"}]), selection=handed) == []


def test_a_failed_request_is_a_finding_without_consequences(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    away = AdapterError("scontrol: Unable to contact slurm controller (connect failure)", kind="unreachable")
    munge = AdapterError("scontrol: Munge encode failed: Failed to connect to ...", kind="unreachable")
    absent = AdapterError("squeue is not on the PATH", kind="missing")
    for answers, topic in (
        ({"scontrol_show_config": away}, "controller"),
        ({"scontrol_show_config": munge}, "munge"),
        ({"squeue_--version": absent}, "commands"),
    ):
        (only,) = checked(Recorded(**answers))
        assert (only.level, only.topic) == (PROBLEM, topic) and only.mend
    lost = AdapterError("scontrol: fatal: Could not establish a configuration source", kind="refused")
    for file, mend in ((str(tmp_path), (f"export SLURM_CONF={tmp_path}",)), (f"{tmp_path}/none", ())):
        monkeypatch.setattr(questions, "SLURM_CONFS", (f"{tmp_path}/neither", file))
        (only,) = checked(Recorded(**{"squeue_--version": lost}))
        assert (only.level, only.topic, only.mend) == (PROBLEM, "commands", mend)
        assert bool(mend) is ("copy the controller's" not in only.says)
    rejected = AdapterError("squeue: Parsing error; Unable to process configuration file", kind="refused")
    (only,) = checked(Recorded(**{"squeue_--version": rejected}))
    assert "cannot read slurm.conf: squeue: Parsing error" in only.says and not only.mend
    monkeypatch.setenv("SLURM_CONF", "/no/such/slurm.conf")
    run = Recorded()
    (only,) = checked(run)
    assert "/no/such/slurm.conf, which does not exist" in only.says and run.asked == []
    monkeypatch.delenv("SLURM_CONF")
    slow = AdapterError("scontrol did not answer within 15 s", kind="timeout")
    munge = AdapterError("munge: Error: Failed to connect to ...", kind="refused")
    for error, topic in ((munge, "munge"), (absent, "controller")):
        (only,) = checked(Recorded(scontrol_show_config=slow, munge=error))
        assert (only.level, only.topic) == (PROBLEM, topic)
    accounting = checked(Recorded(sacctmgr=away))
    levels = {finding.topic: finding.level for finding in accounting}
    assert levels["rights"] is WARNING and levels["accounting"] is WARNING and "grace" in levels


@pytest.mark.parametrize("text", ["", "garbage", "PartitionName", "a = b\n" * 3, CONFIG[:200]])
def test_garbled_answers_end_in_findings(text: str) -> None:
    run = Recorded(**{"scontrol_show_config": text, "sdiag": text, "sacctmgr": text, "squeue_--version": text,
                      "scontrol_--oneliner": text, "scontrol_--oneliner_--all_show_partition": text})  # fmt: skip
    findings = list(checked(run))
    assert any(finding.level is PROBLEM for finding in findings)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=200), st.sampled_from((CONFIG, SDIAG, OPERATOR))), min_size=5, max_size=5))
def test_any_answer_ends_in_findings(texts: list[str]) -> None:
    names = ("squeue_--version", "scontrol_show_config", "sdiag", "sacctmgr", "scontrol_--oneliner")
    run = Recorded(**dict(zip(names, texts, strict=True)))
    assert list(checked(run))


def test_power_saving_needs_its_programs_and_an_administrator() -> None:
    service = ServiceState("live", power_save=True)
    with_programs = changed(SuspendProgram="/s", ResumeProgram="/r")
    assert [level for level, _ in about("power", asked_of(with_programs), service=service)] == [PROBLEM, OK]
    assert [level for level, _ in about("power", asked_of(), service=service)] == [PROBLEM, PROBLEM]
    administrator = asked_of(with_programs, level="Administrator")
    assert [level for level, _ in about("power", administrator, service=service)] == [OK]


def test_a_cluster_file_against_slurms_nodes() -> None:
    kind, wide = NodeType("t", 4, 4 * 2.0**30, 1e10), NodeType("w", 8, 9 * 2.0**30, 1e10)

    def of(**nodes: NodeType) -> list[tuple[Level, str]]:
        cluster = Cluster("c", tuple(Node(name, node_type) for name, node_type in nodes.items()), source="c.yaml")
        return about("cluster", asked_of(), cluster=cluster)

    assert of(n1=kind, n2=kind) == [(OK, "c.yaml agrees with Slurm about 2 nodes")]
    assert [level for level, _ in of(n1=kind)] == [NOTE, OK]
    assert [level for level, _ in of(n1=wide, n2=kind, n9=kind)] == [WARNING, WARNING, WARNING]
    assert of(x1=kind)[0][0] is PROBLEM


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OPERATOR, ("Operator", ("research",))),
        ("backup|None|\n", ("None", ())),
        ("backup|Administrator|a\nbackup|Administrator|b\n", ("Administrator", ("a", "b"))),
        ("other|Operator|a\n", ("", ())),
        ("backup\nbackup|", ("", ())),
        ("", ("", ())),
    ],
)
def test_rights_are_read(text: str, expected: tuple[str, tuple[str, ...]]) -> None:
    assert rights(text, "backup") == expected


def test_versions_are_read() -> None:
    texts = ("slurm-wlm 22.05.8", "slurm 23.11.4", "25.05.0-0rc1", "none")
    assert [version(text) for text in texts] == [(22, 5), (23, 11), (25, 5), (0, 0)]


def test_munge_is_called_at_slurms_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "slurm.conf"
    monkeypatch.setenv("SLURM_CONF", str(path))
    assert munge_command() == ["munge", "--no-input"]
    for text in ("AuthInfo=socket=/run/m.sock\n", "# x\n AuthInfo = ttl=60,socket=/run/m.sock,cred_expire=120\n"):
        path.write_text(text)
        assert munge_command() == ["munge", "--no-input", "--socket=/run/m.sock"]
