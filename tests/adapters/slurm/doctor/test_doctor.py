"""What the doctor concludes of what a Slurm answers: recorded answers, changed one setting at a time."""

from __future__ import annotations

import base64
import json
import re
import shlex
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.findings import NOTE, OK, PROBLEM, WARNING, Finding, Level, Service
from pilotfish.adapters.slurm.doctor import examine, judge, rest, trial
from pilotfish.adapters.slurm.doctor.asked import Asked, munge_command, rights, version
from pilotfish.adapters.slurm.handover import Selection
from pilotfish.adapters.slurm.records import SlurmJob, SlurmNode
from pilotfish.simulate.platform import Cluster, Node, NodeType
from pilotfish.simulate.snapshot import JobState, NodeState

#: of Slurm 22.05, the lines that matter
CONFIG = """Configuration data as of 2026-11-21T07:19:35
AccountingStorageEnforce = associations,limits,qos
AccountingStorageType   = accounting_storage/slurmdbd
AccountingStoreFlags    = job_comment
AuthType                = auth/munge
JobAcctGatherParams     = (null)
JobSubmitPlugins        = (null)
MinJobAge               = 300 sec
PreemptType             = preempt/none
PriorityFlags           =
PriorityMaxAge          = 7-00:00:00
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
PrivateData             = none
SchedulerParameters     = (null)
SchedulerType           = sched/backfill
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CPU_MEMORY
SlurmUser               = slurm(64030)
SlurmctldHost[0]        = ctl(10.0.0.1)
SlurmctldParameters     = (null)
SLURM_CONF              = /no/such/folder/slurm.conf
SLURM_VERSION           = 22.05.8
SuspendProgram          = (null)
TaskPlugin              = task/none

Slurmctld(primary) at ctl is UP
"""
#: what newer releases add, as their documentation has it
NEWER = """
Cgroup Support Configuration:
CgroupPlugin            = cgroup/v2
ConstrainRAMSpace       = yes
"""
PARTITION = (
    "PartitionName={name} AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A "
    "ExclusiveUser=NO MaxNodes=UNLIMITED MaxTime=1-00:00:00 Nodes=n[1-2] RootOnly=NO ReqResv=NO OverSubscribe=NO "
    "State=UP TotalCPUs=8 TotalNodes=2 TRES=cpu=8,mem=8G,node=2,billing=8"
)
NOW = 1_795_245_609.0
SDIAG = f"***\nsdiag output at Sat Nov 21 07:20:09 2026 ({NOW:.0f})\n***\n"
OPERATOR = "backup|Operator|research\n"
GOOD = Service("live")
NODES = [SlurmNode(name, NodeState.UP, 4, 4 * 2.0**30) for name in ("n1", "n2")]


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Slurm is about on this machine."""
    monkeypatch.delenv("SLURM_CONF", raising=False)


class Recorded:
    """A runner that answers from a record, and keeps what was asked; an error is raised."""

    def __init__(self, **answers: str | AdapterError) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, str | AdapterError] = {
            "squeue --version": "slurm-wlm 22.05.8\n",
            "scontrol show config": CONFIG,
            "sdiag": SDIAG,
            "scontrol --oneliner --all show partition": PARTITION.format(name="main"),
            "sacctmgr": OPERATOR,
            "munge": "MUNGE:AwQ:",
            "sinfo": "",
            "squeue": "",
        } | {key.replace("_", " "): value for key, value in answers.items()}

    def __call__(self, argv: Sequence[str]) -> str:
        line = shlex.join(argv)
        self.asked.append(line)
        answer = self.answers[max((key for key in self.answers if line.startswith(key)), key=len)]
        if isinstance(answer, AdapterError):
            raise answer
        return answer


def asked_of(config: str = CONFIG, user: str = "backup", **settings: object) -> Asked:
    """What would have been asked of a Slurm where all is well."""
    from pilotfish.adapters.slurm import doctor

    asked = doctor.ask(Recorded(scontrol_show_config=config), user, lambda: NOW)
    asked.nodes = NODES
    for name, value in settings.items():
        assert hasattr(asked, name)
        setattr(asked, name, value)
    return asked


def found(asked: Asked, service: Service = GOOD, selection: Selection | None = None,
          cluster: Cluster | None = None) -> list[Finding]:  # fmt: skip
    return list(judge(asked, selection or Selection(), cluster, service))


def about(topic: str, asked: Asked, **others: object) -> list[tuple[Level, str]]:
    return [(each.level, each.says) for each in found(asked, **others) if each.topic == topic]  # type: ignore[arg-type]


def changed(**settings: str) -> str:
    """The configuration with some settings of other values."""
    text = CONFIG
    for name, value in settings.items():
        lines = [f"{name} = {value}" if line.split(" ")[0] == name else line for line in text.splitlines()]
        text = "\n".join(lines) if f"{name} = {value}" in lines else "\n".join([f"{name} = {value}", *lines])
    return text


def test_where_all_is_well_nothing_is_a_problem() -> None:
    every = found(asked_of())
    assert {each.topic for each in every} >= {"controller", "clock", "rights", "accounting", "grace", "sharing"}
    assert not [each for each in every if each.level in (PROBLEM, WARNING)]
    for each in every:
        assert each.says and not each.says.endswith(".") and "\n" not in each.says


def test_only_reading_commands_are_run() -> None:
    run = Recorded()
    list(examine(run, "backup", Selection(), None, GOOD))
    verbs = {tuple(word for word in line.split() if word[0] != "-")[:2] for line in run.asked}
    showing = {("scontrol", "show"), ("sacctmgr", "show")}
    assert verbs <= showing | {("squeue",), ("sinfo",), ("sdiag",)}
    assert len(run.asked) <= 8


CASES: dict[str, tuple[Callable[[], Asked], str, Level, str]] = {
    "newer commands": (lambda: asked_of(client=(24, 5)), "versions", WARNING, "newer than the controller"),
    "older commands": (lambda: asked_of(client=(21, 8)), "versions", NOTE, "they may be older"),
    "an unknown release": (lambda: asked_of(changed(SLURM_VERSION="27.05.0")), "versions", WARNING, "27.05 is outside"),
    "an old release": (lambda: asked_of(changed(SLURM_VERSION="19.05.1")), "versions", WARNING, "watch a dry run"),
    "a clock that is off": (lambda: asked_of(ahead_s=-200.0), "clock", WARNING, "-200 s"),
    "a clock that is a bit off": (lambda: asked_of(ahead_s=9.0), "clock", NOTE, "goes by the controller's"),
    "rate limits": (lambda: asked_of(changed(SlurmctldParameters="rl_enable,rl_log_freq=1")), "controller", NOTE, "rl"),
    "one of two controllers": (
        lambda: asked_of(pings=["Slurmctld(primary) at a is UP", "Slurmctld(backup) at b is DOWN"]),
        "controller", WARNING, "(backup) at b is DOWN",
    ),
    "root": (lambda: asked_of(user="root"), "rights", NOTE, "may do everything"),
    "a user": (lambda: asked_of(level="None"), "rights", PROBLEM, "no operator"),
    "nobody": (lambda: asked_of(user="nobody"), "rights", PROBLEM, "shows no user nobody"),
    "an administrator": (lambda: asked_of(level="Administrator"), "rights", OK, "more than is needed"),
    "no accounting": (
        lambda: asked_of(changed(AccountingStorageType="accounting_storage/none"), level=""),
        "rights", PROBLEM, "only root and slurm",
    ),
    "jobs are hidden": (lambda: asked_of(changed(PrivateData="jobs,usage"), level="None"), "privacy", PROBLEM, "jobs"),
    "hidden from users": (lambda: asked_of(changed(PrivateData="jobs")), "privacy", NOTE, "backup sees all"),
    "comments are not kept": (
        lambda: asked_of(changed(AccountingStoreFlags="(null)")), "accounting", NOTE, "comments are not kept"),
    "no account": (lambda: asked_of(accounts=()), "accounting", NOTE, "placing others' needs none"),
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
def test_one_setting_at_a_time(make: Callable[[], Asked], topic: str, level: Level, words: str) -> None:
    assert any(each == level and words in says for each, says in about(topic, make())), about(topic, make())


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
    ((level, says),) = about("sharing", asked_of(partitions=[partition]))
    assert level is expected[0] and expected[1] in says


def test_partitions_that_are_out_of_the_ordinary() -> None:
    odd = {"PartitionName": "odd", "State": "DRAIN", "AllowAccounts": "a,b", "AllowQos": "ALL", "RootOnly": "YES"}
    said = about("partition", asked_of(partitions=[odd, {"PartitionName": "main", "State": "UP"}]))
    assert [level for level, _ in said] == [WARNING, NOTE, NOTE]
    assert "State=DRAIN" in said[0][1] and "AllowAccounts" in said[1][1] and "only root" in said[2][1]
    handed = Selection(frozenset({"main"}), comment=False)
    assert about("partition", asked_of(partitions=[odd, {"PartitionName": "main"}]), selection=handed) == []


def test_what_cannot_be_asked_is_a_finding_and_nothing_follows_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    away = AdapterError("scontrol: Unable to contact slurm controller (connect failure)", kind="unreachable")
    munge = AdapterError("scontrol: Munge encode failed: Failed to connect to ...", kind="unreachable")
    absent = AdapterError("squeue is not on the PATH", kind="missing")
    for answers, topic in (
        ({"scontrol_show_config": away}, "controller"),
        ({"scontrol_show_config": munge}, "munge"),
        ({"squeue_--version": absent}, "commands"),
    ):
        (only,) = examine(Recorded(**answers), "backup", Selection(), None, GOOD)
        assert (only.level, only.topic) == (PROBLEM, topic) and only.mend
    lost = AdapterError("scontrol: fatal: Could not establish a configuration source", kind="refused")
    (only,) = examine(Recorded(**{"squeue_--version": lost}), "backup", Selection(), None, GOOD)
    assert (only.level, only.topic) == (PROBLEM, "commands") and "SLURM_CONF" in only.mend[0]
    monkeypatch.setenv("SLURM_CONF", "/no/such/slurm.conf")
    run = Recorded()
    (only,) = examine(run, "backup", Selection(), None, GOOD)
    assert "/no/such/slurm.conf, which is not there" in only.says and run.asked == []
    monkeypatch.delenv("SLURM_CONF")
    slow = AdapterError("scontrol did not answer within 15 s", kind="timeout")
    munge = AdapterError("munge: Error: Failed to connect to ...", kind="refused")
    for error, topic in ((munge, "munge"), (absent, "controller")):
        (only,) = examine(Recorded(scontrol_show_config=slow, munge=error), "backup", Selection(), None, GOOD)
        assert (only.level, only.topic) == (PROBLEM, topic)
    books = examine(Recorded(sacctmgr=away), "backup", Selection(), None, GOOD)
    levels = {each.topic: each.level for each in books}
    assert levels["rights"] is WARNING and levels["accounting"] is WARNING and "grace" in levels


@pytest.mark.parametrize("text", ["", "garbage", "PartitionName", "a = b\n" * 3, CONFIG[:200]])
def test_garbled_answers_end_in_findings(text: str) -> None:
    run = Recorded(**{"scontrol_show_config": text, "sdiag": text, "sacctmgr": text, "squeue_--version": text,
                      "scontrol_--oneliner": text, "scontrol_--oneliner_--all_show_partition": text})  # fmt: skip
    every = list(examine(run, "backup", Selection(), None, GOOD))
    assert any(each.level is PROBLEM for each in every)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=200), st.sampled_from((CONFIG, SDIAG, OPERATOR))), min_size=5, max_size=5))
def test_any_answer_ends_in_findings(texts: list[str]) -> None:
    names = ("squeue_--version", "scontrol_show_config", "sdiag", "sacctmgr", "scontrol_--oneliner")
    run = Recorded(**dict(zip(names, texts, strict=True)))
    assert list(examine(run, "backup", Selection(), None, GOOD))


SCRIPT = "local HOLD_S = 600\n -- pilotfish:hold=SECONDS\n"
PLUGIN: dict[str, tuple[str, dict[str, object], Service, Level | None, str]] = {
    "no plugin": ("(null)", {}, GOOD, None, ""),
    "installed, and not in use": ("(null)", {"files": {"job_submit.lua": SCRIPT}}, GOOD, NOTE, "not in use"),
    "in use": ("lua", {"files": {"job_submit.lua": SCRIPT}}, GOOD, OK, "up to 600 s, and the daemon answers"),
    "no daemon": ("lua,throttle", {"files": {"job_submit.lua": SCRIPT}}, Service(""), PROBLEM, "600 s in vain"),
    "a dry run": ("lua", {"files": {"job_submit.lua": SCRIPT}}, Service("dry-run"), WARNING, "places none"),
    "no configuration": ("lua", {"files": {"job_submit.lua": SCRIPT}}, Service(), NOTE, "--config tells"),
    "another one": ("lua", {"files": {"job_submit.lua": "return 0"}}, GOOD, OK, "the site's own"),
    "out of sight": ("lua", {}, GOOD, NOTE, "cannot be read from here"),
    "unreadable": ("lua", {"at_controller": True, "unread": frozenset({"job_submit.lua"})}, GOOD, NOTE, "cannot"),
    "gone": ("lua", {"at_controller": True}, GOOD, PROBLEM, "slurmctld will not start again"),
}


@pytest.mark.parametrize(("plugins", "settings", "service", "level", "words"), PLUGIN.values(), ids=PLUGIN)
def test_our_job_submit_plugin(
    plugins: str, settings: dict[str, object], service: Service, level: Level | None, words: str
) -> None:
    said = about("job_submit", asked_of(changed(JobSubmitPlugins=plugins), **settings), service=service)
    assert (not said) if level is None else (len(said) == 1 and said[0][0] is level and words in said[0][1])


def test_the_shipped_script_is_known_by_what_it_says() -> None:
    import pilotfish

    text = (Path(pilotfish.__file__).parent / "docs" / "slurm" / "job_submit.lua").read_text()
    settings = {"files": {"job_submit.lua": text}}
    assert about("job_submit", asked_of(changed(JobSubmitPlugins="lua"), **settings))[0][1].count("600 s") == 1


def test_the_shipped_script_tags_jobs_and_does_nothing_that_takes_long() -> None:
    """It runs under the controller's locks."""
    import pilotfish

    text = (Path(pilotfish.__file__).parent / "docs" / "slurm" / "job_submit.lua").read_text()
    code = re.sub(r"--.*", "", text)
    assert set(re.findall(r"\bjob\.(\w+) = ", code)) == {"begin_time", "comment"}
    assert set(re.findall(r"\b(?:io|os|socket)\.\w+", code)) == {"io.open", "os.time"}
    assert not re.search(r"\b(?:require|dofile|loadfile|while|repeat)\b", code)


def job(**settings: object) -> SlurmJob:
    given = {"submit": NOW - 100, "begin": NOW + 500, "comment": "pilotfish:hold=600", "reason": "BeginTime"}
    return SlurmJob(7, JobState.PENDING, **(given | settings))  # type: ignore[arg-type]


def test_jobs_that_wait() -> None:
    assert "1 job waits, 1 for pilotfish; 0 pinned" in about("queue", asked_of(jobs=[job()]))[0][1]
    away = about("queue", asked_of(jobs=[job()]), service=Service(""))
    assert away[1][0] is WARNING and "the last in 500 s" in away[1][1]
    late = about("queue", asked_of(jobs=[job(deadline=NOW + 100)]))
    assert late[1][0] is WARNING and "(7)" in late[1][1]
    mark = f"pilotfish:pin={NOW - 900:.0f}:job=7:uid=5:was="
    pinned = about("queue", asked_of(jobs=[job(uid=5, admin_comment=mark)]))
    assert pinned[1][0] is PROBLEM and "the reaper does not run" in pinned[1][1]


def test_power_saving_needs_its_programs_and_an_administrator() -> None:
    wanted = Service("live", power_save=True)
    with_programs = changed(SuspendProgram="/s", ResumeProgram="/r")
    assert [level for level, _ in about("power", asked_of(with_programs), service=wanted)] == [PROBLEM, OK]
    assert [level for level, _ in about("power", asked_of(), service=wanted)] == [PROBLEM, PROBLEM]
    administrator = asked_of(with_programs, level="Administrator")
    assert [level for level, _ in about("power", administrator, service=wanted)] == [OK]


def test_a_cluster_file_against_slurms_nodes() -> None:
    kind, wide = NodeType("t", 4, 4 * 2.0**30, 1e10), NodeType("w", 8, 9 * 2.0**30, 1e10)

    def of(**nodes: NodeType) -> list[tuple[Level, str]]:
        cluster = Cluster("c", tuple(Node(name, each) for name, each in nodes.items()), source="c.yaml")
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


DENIED = AdapterError("scontrol: Access/permission denied for job 9", kind="refused")


@pytest.mark.parametrize(
    ("answers", "levels"),
    [
        ({}, [OK, OK, NOTE]),
        ({"scontrol_update_JobId=9_AdminComment": DENIED}, [OK, OK]),
        ({"scontrol_update_JobId=9_AdminComment": DENIED, "scontrol_update_JobId=9_Nice": DENIED}, [OK, PROBLEM]),
        ({"scontrol_update": DENIED}, [PROBLEM, PROBLEM]),
        ({"sinfo": DENIED}, [WARNING]),
        ({"scancel": DENIED}, [OK, OK, NOTE, WARNING]),
    ],
)
def test_a_trial_job_is_changed_and_always_cancelled(answers: dict[str, AdapterError], levels: list[Level]) -> None:
    run = Recorded(**({"sbatch": "9\n", "scontrol_update": "", "scancel": "", "sinfo": "n1\nn1\nn2\n"} | answers))
    assert [each.level for each in trial.findings(run, ["--partition=x"])] == levels
    assert run.asked[-1] == "scancel 9" and " --partition=x " in run.asked[0] and "--begin=now+30days" in run.asked[0]
    assert Selection().takes(job(comment=trial.COMMENT)) is False


def test_a_trial_job_that_is_refused_is_a_finding() -> None:
    (only,) = trial.findings(Recorded(sbatch=AdapterError("sbatch: Invalid account")))
    assert only.level is WARNING and "Invalid account" in only.says


def token(**claims: object) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"SLURM_JWT=aaa.{part}.bbb\n"


def test_slurmrestd_and_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, listener = tmp_path / "token", socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def levels(text: str, mode: int = 0o600) -> list[Level]:
        path.write_text(text)
        path.chmod(mode)
        return [each.level for each in rest.findings({"rest_url": url, "rest_token_file": str(path)}, NOW)]

    with listener:
        assert levels(token(exp=NOW + 600, sun="backup")) == [OK, OK]
        assert levels(token(exp=NOW + 600, sun="backup"), 0o644) == [OK, PROBLEM, OK]
        assert levels(token(exp=NOW - 1)) == [OK, WARNING]
        assert levels("SLURM_JWT=nonsense") == levels("a.!!!.c") == levels(token(sun="x")) == [OK, WARNING]
        path.unlink()
        assert [each.level for each in rest.findings({"rest_url": url, "rest_token_file": path}, NOW)] == [OK, WARNING]
    assert rest.findings({}, NOW) is not None and list(rest.findings({"rest_url": ""}, NOW)) == []
    for away in (url, f"unix:{tmp_path}/none", "http://:x", "what"):
        assert [each.level for each in rest.findings({"rest_url": away}, NOW)] == [WARNING]
    bound = socket.socket(socket.AF_UNIX)
    with bound:
        monkeypatch.chdir(tmp_path)
        bound.bind("s")
        bound.listen()
        assert rest.unreachable("unix:s") == ""


def test_munge_is_asked_at_the_socket_that_slurm_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "slurm.conf"
    monkeypatch.setenv("SLURM_CONF", str(path))
    assert munge_command() == ["munge", "--no-input"]
    for text in ("AuthInfo=socket=/run/m.sock\n", "# x\n AuthInfo = ttl=60,socket=/run/m.sock,cred_expire=120\n"):
        path.write_text(text)
        assert munge_command() == ["munge", "--no-input", "--socket=/run/m.sock"]
