"""Partitions, reservations, limits and planned starts: read as recorded, and never passed by what is placed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError, ParseError
from pilotfish.adapters.slurm import limits, partitions, reservations, room, settings
from pilotfish.adapters.slurm.handover import Selection
from pilotfish.adapters.slurm.judge import Deferral, Judge, Memory
from pilotfish.adapters.slurm.outlook import START_S, Ask, First, Hold, Outlook, Planned, Window
from pilotfish.adapters.slurm.partitions import Partition, Sharing
from pilotfish.adapters.slurm.quota import Quota
from pilotfish.adapters.slurm.rarely import AGES, PATIENCE, Rarely, Site
from pilotfish.adapters.slurm.records import SlurmJob, SlurmNode
from pilotfish.adapters.slurm.reservations import Reservation
from pilotfish.adapters.slurm.update import Place, let_go, was_let_go
from pilotfish.simulate.platform import Cluster, Node, NodeType
from pilotfish.simulate.snapshot import JobState, NodeState

# as Slurm 22.05 printed it
PARTITION = (
    "PartitionName=short AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=NO QoS=N/A "
    "DefaultTime=00:01:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=2 MaxTime=00:05:00 "
    "MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-4] PriorityJobFactor=1 PriorityTier=1 RootOnly=NO "
    "ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=REQUEUE State=UP TotalCPUs=16 TotalNodes=4 "
    "SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED TRES=cpu=16,mem=16G\n"
)
RESERVATION = (
    "ReservationName=maint StartTime=2026-11-21T07:39:52 EndTime=2026-11-21T17:39:52 Duration=10:00:00 Nodes=n[7-8] "
    "NodeCnt=2 CoreCnt=8 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=8 Users=root "
    "Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)\n"
)
QOS = (
    "QOS=high(2) UsageRaw=0.000000 GrpJobs=7(0) GrpJobsAccrue=N(0) GrpSubmitJobs=N(1) GrpWall=600(0.08) "
    "GrpTRES=cpu=20(0),mem=N(0),fs/disk=N(0) GrpTRESMins=cpu=1000(118),mem=N(0) GrpTRESRunMins=cpu=500(0),mem=N(0) "
    "MaxWallPJ=2 MaxTRESPJ=cpu=8,mem=2000 MaxTRESPN=cpu=4 MaxTRESMinsPJ=cpu=300 MinPrioThresh=  MinTRESPJ=cpu=1 "
    "PreemptMode=OFF Priority=100 Account Limits= research={MaxJobsPA=N(0) MaxJobsAccruePA=N(0) MaxSubmitJobsPA=N(1) "
    "MaxTRESPA=cpu=12(0),mem=N(0)} User Limits= 5={MaxJobsPU=2(0) MaxSubmitJobsPU=N(1) MaxTRESPU=cpu=16(0),mem=N(0)} "
    "9={MaxJobsPU=2(0) MaxSubmitJobsPU=N(0) MaxTRESPU=cpu=16(0),mem=N(0)}\n"
)
LIMITS = (
    "Current Association Manager state\nAssociation Records\n"
    "ClusterName=pilot Account=root UserName= Partition= Priority=0 ID=1 ParentAccount= Lft=1 GrpJobs=50(1) "
    "GrpTRES=cpu=N(0) MaxJobs= MaxWallPJ= MaxTRESPJ=\n"
    "ClusterName=pilot Account=research UserName= Partition= Priority=0 ID=3 ParentAccount=root(1) Lft=6 GrpJobs=N(0) "
    "GrpTRES=cpu=30(18),mem=N(2304) MaxJobs=6 MaxWallPJ= MaxTRESPJ=\n"
    "ClusterName=pilot Account=research UserName=games(5) Partition= Priority=0 ID=5 ParentAccount= Lft=11 "
    "GrpJobs=9(4) GrpTRES=cpu=N(18) MaxJobs=6(4) MaxWallPJ=100 MaxTRESPJ=cpu=24 MaxTRESPN= MaxTRESMinsPJ=\n"
    f"QOS Records\n{QOS}"
)
CONFIG = "AccountingStorageEnforce = associations,limits,qos\nSchedulerParameters     = bf_interval=7,bf_continue\n"
JOB = SlurmJob(
    7, JobState.PENDING, "BeginTime", uid=5, account="research", qos="high", partition="main", nodes=1, cpus=2,
    time_limit=600.0, submit=990.0, begin=1590.0, priority=10, comment="pilotfish:hold=600",
    tres=(("cpu", 2.0), ("mem", 256.0), ("node", 1.0)),
)  # fmt: skip
NOW = 1000.0


def test_a_partition_as_it_was_printed() -> None:
    (found,) = partitions.parse(PARTITION).values()
    assert (found.name, found.up, found.nodes) == ("short", True, frozenset({"n1", "n2", "n3", "n4"}))
    assert (found.max_time, found.max_nodes, found.sharing, found.rows) == (300.0, 2, Sharing.NO, 1)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, ""),
        ({"State=UP": "State=DOWN"}, "not up"),
        ({"AllowAccounts=ALL": "DenyAccounts=research"}, "account research"),
        ({"AllowAccounts=ALL": "AllowAccounts=teaching,other"}, "account research"),
        ({"AllowQos=ALL": "AllowQos=normal"}, "QOS high"),
        ({"MaxTime=00:05:00": "MaxTime=00:04:59"}, "min at most"),
        ({"MinNodes=0": "MinNodes=2"}, "1 nodes"),
        ({"ReqResv=NO": "ReqResv=YES"}, "reservation"),
    ],
)
def test_what_a_partition_keeps_out(changed: dict[str, str], why: str) -> None:
    text = PARTITION
    for old, new in changed.items():
        text = text.replace(old, new)
    said = partitions.parse(text)["short"].obstacle(replace(JOB, partition="short", time_limit=300.0))
    assert why in said and bool(said) is bool(why)


@pytest.mark.parametrize(
    ("words", "sharing", "rows"),
    [("FORCE:4", Sharing.FORCE, 4), ("FORCE", Sharing.FORCE, 4), ("YES:2", Sharing.YES, 1),
     ("EXCLUSIVE", Sharing.EXCLUSIVE, 1), ("BRAND_NEW", Sharing.EXCLUSIVE, 1)],
)  # fmt: skip
def test_how_a_partition_shares(words: str, sharing: Sharing, rows: int) -> None:
    found = partitions.parse(PARTITION.replace("OverSubscribe=NO", f"OverSubscribe={words}"))["short"]
    assert (found.sharing, found.rows) == (sharing, rows)


@pytest.mark.parametrize(
    ("word", "sharing"),
    [("NO", Sharing.NO), ("NODE", Sharing.EXCLUSIVE), ("USER", Sharing.EXCLUSIVE), ("TOPO", Sharing.EXCLUSIVE)],
)
def test_how_a_partition_shares_since_26_11(word: str, sharing: Sharing) -> None:
    """By its documentation one key says what two did."""
    text = PARTITION.replace("OverSubscribe=NO", f"Exclusive={word}").replace("ExclusiveUser=NO ", "")
    assert partitions.parse(text)["short"].sharing is sharing


def test_reservations_as_they_were_printed() -> None:
    (found,) = reservations.parse(RESERVATION)
    assert (found.name, found.nodes) == ("maint", frozenset({"n7", "n8"})) and found.end - found.start == 36000
    assert reservations.parse(RESERVATION.replace("n[7-8]", "(null)")) == []
    assert reservations.parse("No reservations in the system\n") == []


@pytest.mark.parametrize("parse", [partitions.parse, reservations.parse, limits.parse, settings.parse])
def test_what_is_something_else_is_an_error(parse: Any) -> None:
    with pytest.raises(ParseError):
        parse("slurm_load: something went wrong\n")


@given(st.text())
def test_any_text_is_read_or_an_error(text: str) -> None:
    for parse in (limits.parse, settings.parse):
        try:
            parse(text)
        except ParseError:
            continue


def test_settings() -> None:
    assert settings.parse(CONFIG + "SchedulerType = sched/backfill\n") == settings.Settings(7.0, True)
    assert settings.parse("SchedulerType = sched/backfill\n") == settings.Settings(30.0, False)


def test_limits_as_they_were_printed() -> None:
    found = limits.parse(LIMITS)
    high = found.qos["high"]
    assert {name: cap.most for name, cap in high.group.items()} == {
        "jobs": 7, "minutes": 600, "cpu": 20, "cpu minutes": 1000, "cpu minutes left": 500,
    }  # fmt: skip
    assert high.group["cpu minutes"].used == 118
    assert {name: cap.most for name, cap in high.each.items()} == {
        "minutes": 2, "cpu": 8, "mem": 2000, "cpu minutes": 300, "cpu on a node": 4,
    }  # fmt: skip
    assert {name: cap.most for name, cap in high.users[5].items()} == {"jobs": 2, "cpu": 16}
    names = [scope.name for scope in found.scopes(JOB)]
    assert names[3:] == ["association 5", "association 3", "association 1"]
    caps = {scope.name: scope.caps for scope in found.scopes(JOB)}
    assert caps["association 5"]["jobs"].most == 6 and caps["association 3"]["cpu"].most == 30
    assert caps["association 1"]["jobs"].most == 50 and "jobs" not in caps["association 3"]
    assert found.knows(JOB) and not found.knows(replace(JOB, uid=77)) and found.knows(replace(JOB, qos="other"))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"time_limit": 120.0}, ""),
        ({}, "QOS high allows a job 2 minutes"),
        ({"time_limit": 60.0, "cpus": 10}, "8 cpu"),
        ({"time_limit": 60.0, "nodes": 2, "cpus": 7, "threads": 4}, ""),
        ({"time_limit": 60.0, "tres": (("mem", 3000.0),)}, "2000 mem"),
    ],
)
def test_what_is_too_large_by_itself(changed: dict[str, Any], why: str) -> None:
    job = replace(JOB, **changed)
    said = Quota(limits.parse(LIMITS), {}).obstacle(job, job.time_limit or math.inf)
    assert why in said and bool(said) is bool(why)


@given(st.lists(st.tuples(st.integers(1, 8), st.sampled_from((5, 9)), st.integers(1, 120)), max_size=30))
def test_no_limit_is_ever_passed(wanted: list[tuple[int, int, int]]) -> None:
    quota, taken = Quota(limits.parse(LIMITS), {}), list[tuple[int, int, int]]()
    for cpus, uid, span in wanted:
        job = replace(JOB, cpus=cpus, uid=uid, tres=(("cpu", float(cpus)),))
        if not quota.obstacle(job, span):
            quota.count(job, span)
            taken.append((cpus, uid, span))
    assert len(taken) <= 7 and sum(cpus for cpus, _, _ in taken) <= 12  # of the QOS, and of the account in it
    assert all(sum(uid == who for _, uid, _ in taken) <= 2 for who in (5, 9))
    assert sum(cpus * span / 60 for cpus, _, span in taken) <= 500


def test_a_partition_may_have_a_qos_of_its_own() -> None:
    quota, job = Quota(limits.parse(LIMITS), {"main": "high"}), replace(JOB, qos="normal", time_limit=60.0)
    quota.count(job, 60.0)
    quota.count(job, 60.0)
    assert "user 5 in QOS high may have 2 jobs" in quota.obstacle(job, 60.0)


SIZES = {f"n{i}": (4, 4.0) for i in range(4)}
NAMES = st.sets(st.sampled_from(sorted(SIZES)), min_size=1).map(lambda names: tuple(sorted(names)))
ORDERS = st.tuples(st.integers(-1, 0), st.integers(-3, 0), st.integers(1, 9))
PLANS = st.lists(
    st.builds(Planned, st.integers(1, 9), ORDERS, NAMES, st.floats(NOW - 50, NOW + 500), st.integers(1, 4),
              st.floats(0, 4), st.booleans()), max_size=5,
)  # fmt: skip
HOLDS = st.lists(st.builds(Hold, NAMES, st.integers(1, 4), st.floats(0, 4), st.floats(NOW, NOW + 500)), max_size=5)
FIRSTS = st.lists(st.builds(First, st.integers(1, 9), ORDERS, NAMES.map(frozenset)), max_size=4)
WINDOWS = st.lists(
    st.builds(Window, st.just("r"), NAMES.map(frozenset), st.floats(NOW - 50, NOW + 500), st.floats(NOW, NOW + 900)),
    max_size=3,
)
ASKS = st.builds(Ask, ORDERS, st.floats(1, 600), st.integers(1, 4), st.floats(0, 4), st.booleans())


@given(HOLDS, PLANS, FIRSTS, WINDOWS, ASKS)
def test_whoever_comes_first_is_never_delayed(
    holds: list[Hold], planned: list[Planned], first: list[First], windows: list[Window], ask: Ask
) -> None:
    outlook = Outlook(NOW, SIZES, holds, planned, first, windows)
    allowed, why = outlook.open(ask, SIZES.keys())
    assert bool(why) is (len(allowed) < len(SIZES))
    end = NOW + START_S + ask.span
    for name in SIZES:
        assert (name in allowed) is not bool(outlook.obstacle(ask, name))  # sets at once, or one by one: the same
        before = [p for p in planned if name in p.nodes and p.order < ask.order and p.start < end]
        if name not in allowed:
            continue
        assert not [w for w in windows if name in w.nodes and w.start < end and w.end > NOW]
        assert not [f for f in first if name in f.nodes and f.order < ask.order]
        for moment in {p.start for p in before}:  # at every planned start there is room for it, and for this job
            there = sum(h.cores for h in holds if name in h.nodes and h.end > moment)
            begun = sum(p.cores for p in before if p.start <= moment)
            assert there + begun + ask.cores <= 4 and not ask.whole


def test_where_nothing_is_to_come_everything_is_open() -> None:
    ask = Ask((0, 0, 1), math.inf, 4)
    assert Outlook(NOW, SIZES).open(ask, SIZES.keys()) == (frozenset(SIZES), "")
    late = Planned(9, (0, -9, 9), tuple(SIZES), NOW + 700.0, 4, 4.0)
    assert Outlook(NOW, SIZES, planned=[late]).open(replace(ask, span=600.0), SIZES.keys())[1] == ""
    assert "job 9" in Outlook(NOW, SIZES, planned=[late]).open(ask, SIZES.keys())[1]
    lower = replace(late, order=(0, 9, 9))
    assert Outlook(NOW, SIZES, planned=[lower]).open(ask, SIZES.keys())[1] == ""


@given(st.lists(st.integers(1, 4), max_size=8), st.integers(1, 4), st.integers(1, 4))
def test_rows_take_no_more_than_they_have(sizes: list[int], cores: int, rows: int) -> None:
    if room.in_rows(sizes, cores, rows):
        assert sum(sizes) <= cores * rows and all(size <= cores for size in sizes)
    if len(sizes) <= rows and all(size <= cores for size in sizes):
        assert room.in_rows(sizes, cores, rows)


MAIN = Partition("main", nodes=frozenset({"n0", "n1"}))
SHARED = Partition("shared", nodes=frozenset({"n0", "n1"}), sharing=Sharing.FORCE, rows=2)
BOTH = {"main": MAIN, "shared": SHARED}
NODE = SlurmNode("n0", NodeState.UP, 4, 4e9, partitions=frozenset(BOTH), idle=2, free=3e9)
RUNNING = replace(JOB, id=1, state=JobState.RUNNING, placed=("n0",), memory=1e9)


@pytest.mark.parametrize(
    ("there", "changed", "loose", "why"),
    [
        ([RUNNING], {}, False, ""),
        ([RUNNING], {"cpus": 3}, True, "2 cores free"),
        ([RUNNING], {"cpus": 3}, False, ""),  # the cluster's own limit tells
        ([RUNNING], {"memory": 3.5e9}, False, ""),  # so it does of memory that we see taken
        ([], {"memory": 3.5e9}, False, "not enough memory free"),
        ([], {"memory": 5e9}, False, "less memory"),
        ([RUNNING], {"shares": "NO"}, False, "not empty"),
        ([], {"shares": "USER"}, False, "not empty"),  # somebody is there whom we do not see
        ([RUNNING], {"shares": "NODE"}, False, "not empty"),  # a word that 22.05 does not know
        ([replace(RUNNING, shares="NO")], {}, False, "not empty"),
        ([RUNNING], {"shares": "YES", "cpus": 3}, True, "2 cores free"),  # the partition does not let it share
        ([RUNNING], {"partition": "shared"}, False, "do not share cores"),
        ([replace(RUNNING, partition="shared")], {}, False, "share cores"),
        ([replace(RUNNING, partition="shared", cpus=4)], {"partition": "shared"}, False, ""),
        ([replace(RUNNING, partition="shared", cpus=3)] * 2, {"partition": "shared"}, False, "no row"),
    ],
)
def test_room(there: list[SlurmJob], changed: dict[str, Any], loose: bool, why: str) -> None:
    load = room.load([job for job in there if "n0" in job.placed], BOTH)
    said = room.obstacle(replace(JOB, **changed), NODE, load, BOTH, loose=loose)
    assert why in said and bool(said) is bool(why)


@pytest.mark.parametrize(("stacked", "why"), [(1, ""), (3, ""), (4, "no row")])
def test_how_many_share_a_core_is_told_by_the_queue_and_not_by_the_node(stacked: int, why: str) -> None:
    """Seen on 22.05 with OverSubscribe=FORCE:4: CPUAlloc=4 of a node of 4 cores, for one job there as for four."""
    both = {"shared": replace(SHARED, rows=4)}
    load = room.load([replace(RUNNING, partition="shared", cpus=4, memory=0.0)] * stacked, both)
    said = room.obstacle(replace(JOB, partition="shared", cpus=4), replace(NODE, idle=0), load, both, loose=False)
    assert why in said and bool(said) is bool(why)


class Answers:
    """Stands for Slurm where it is asked for one thing; `asked` in order."""

    def __init__(self, **refused: AdapterError) -> None:
        self.asked, self.refused = list[str](), refused

    def __getattr__(self, kind: str) -> Any:
        def answer() -> Any:
            self.asked.append(kind)
            if kind in self.refused:
                raise self.refused[kind]
            return getattr(Site(), kind)

        return answer


def test_one_thing_is_read_each_time_and_each_in_its_turn() -> None:
    now, slurm = [100.0], Answers()
    rarely = Rarely(lambda: now[0])
    rarely.refresh(slurm, [], [])  # type: ignore[arg-type]
    assert slurm.asked == []  # nobody waits for us: nothing needs to be known
    rarely.refresh(slurm, [JOB], [7])  # type: ignore[arg-type]
    assert sorted(slurm.asked) == sorted(AGES) and not rarely.site.missing and rarely.site.covered == {7}
    for _ in range(1200):
        rarely.refresh(slurm, [JOB], [7])  # type: ignore[arg-type]
        now[0] += 0.5
    for kind, age in AGES.items():
        assert 600 / age * 0.8 - 1 <= slurm.asked.count(kind) - 1 <= 600 / age + 1


def test_new_jobs_hasten_what_concerns_them_and_starve_nothing() -> None:
    now, slurm = [100.0], Answers()
    rarely = Rarely(lambda: now[0])
    for number in range(1200):
        rarely.refresh(slurm, [replace(JOB, id=number)], [number])  # type: ignore[arg-type]
        now[0] += 0.5
    assert all(slurm.asked.count(kind) >= 600 / age * 0.4 - 1 for kind, age in AGES.items())


def test_what_is_refused_is_done_without(caplog: pytest.LogCaptureFixture) -> None:
    now, slurm = [0.0], Answers(limits=AdapterError("Access denied", kind="refused"))
    rarely = Rarely(lambda: now[0])
    for _ in range(400):
        rarely.refresh(slurm, [JOB], [7])  # type: ignore[arg-type]
        now[0] += 0.5
    assert not rarely.site.missing and slurm.asked.count("limits") <= 200 / (AGES["limits"] * PATIENCE) + 1
    assert caplog.text.count("does not tell its limits") == 1
    with pytest.raises(AdapterError):
        Rarely(lambda: 0.0).refresh(Answers(partitions=AdapterError("away", transient=True)), [JOB], [7])  # type: ignore[arg-type]


CLUSTER = Cluster("c", tuple(Node(f"n{i}", NodeType("t", 4, 4e9, 1e9)) for i in range(2)))
NODES = [replace(NODE, name=f"n{i}", idle=4, free=4e9) for i in range(2)]
SITE = Site(partitions=BOTH, covered=frozenset(range(99)))


def judge(*jobs: SlurmJob, site: Site = SITE, deferral: Deferral = Deferral(), **since: float) -> Judge:
    seen = {int(name[1:]): time for name, time in since.items()}
    memory = Memory(CLUSTER, Selection())
    memory.since = seen
    return Judge(CLUSTER, NODES, jobs, memory, site, NOW, deferral)


@pytest.mark.parametrize(
    ("changed", "site", "why"),
    [
        ({}, {}, ""),
        ({}, {"missing": frozenset({"reservations"})}, "reservations are not read yet"),
        ({"id": 100}, {}, "excludes are not read yet"),
        ({}, {"partitions": {"main": replace(MAIN, up=False)}}, "not up"),
        ({}, {"reservations": [Reservation("r", NOW + 500, NOW + 900, frozenset({"n0", "n1"}))]}, "reservation r"),
        ({}, {"reservations": [Reservation("r", NOW + 500, NOW + 900, frozenset({"n0"}))]}, ""),
        ({"wanted": ("n0", "n1")}, {}, "more or fewer nodes"),
        ({"special": "licenses"}, {}, "licenses"),
        ({"nodes": 3}, {}, "too few"),
    ],
)
def test_verdicts(changed: dict[str, Any], site: dict[str, Any], why: str) -> None:
    job = replace(JOB, **changed)
    found = judge(job, site=replace(SITE, **site)).verdicts()[job.id]
    assert why in found.waits and bool(found.waits) is bool(why)
    assert found.allowed or found.waits


def test_of_two_that_pass_a_limit_together_the_first_has_it() -> None:
    site = replace(SITE, limits=limits.parse(LIMITS), settings=settings.Settings(limits=True))
    jobs = [replace(JOB, id=number, priority=number, time_limit=60.0) for number in range(1, 5)]
    found = judge(*jobs, site=site).verdicts()
    assert [bool(found[number].waits) for number in range(1, 5)] == [True, True, False, False]
    runs = [replace(job, id=job.id + 10, state=JobState.RUNNING, placed=("n0",), end=NOW + 60) for job in jobs[:1]]
    assert sum(not verdict.waits for verdict in judge(*jobs, *runs, site=site).verdicts().values()) == 1


def test_a_job_that_slurm_may_start_by_itself_is_taken_in_its_turn_only() -> None:
    free = replace(JOB, begin=NOW - 1, reason="Priority")
    first = replace(free, id=3, priority=99, comment="")
    assert judge(free).verdicts()[7].waits == ""
    assert "job 3 comes first" in judge(free, first).verdicts()[7].waits
    assert judge(free, replace(first, reason="QOSMaxJobsPerUserLimit")).verdicts()[7].waits == ""
    planned = replace(free, planned=("n0",), start=NOW + 100)
    assert judge(planned).verdicts()[7].waits == "Slurm has planned its start"


def test_what_slurm_counts_and_we_do_not_see_is_taken() -> None:
    uneven = replace(RUNNING, nodes=2, cpus=5, threads=2, placed=("n0", "n1"), end=NOW + 50)
    nodes = [replace(NODES[0], idle=1), replace(NODES[1], idle=2)]
    found = Judge(CLUSTER, nodes, [uneven], Memory(CLUSTER, Selection()), SITE, NOW, Deferral()).unseen()
    assert found == [("n0", 1, 50.0)]


@pytest.mark.parametrize(
    ("changed", "deferral", "due"),
    [
        ({}, Deferral(), 990 + 3600),
        ({}, Deferral(60.0), 1050),
        ({"nodes": 2}, Deferral(), 1025),  # a pass of the backfill after it was first seen to wait for us
        ({"nodes": 2}, Deferral(wide_nodes=3), 990 + 3600),
        ({"nodes": 2, "dependency": "afterok:1"}, Deferral(), 990 + 3600),
        ({"special": "licenses"}, Deferral(), 990),
        ({"begin": NOW - 1, "reason": "Priority"}, Deferral(), None),
        ({"comment": "pilotfish"}, Deferral(), None),
    ],
)
def test_until_when_a_job_is_kept(changed: dict[str, Any], deferral: Deferral, due: float | None) -> None:
    found = judge(replace(JOB, **changed), deferral=deferral, j7=995.0).verdicts()[7]
    assert found.due == due and bool(found.why) is (due is not None)


def test_who_was_let_go_is_let_go_for_good() -> None:
    for place, field in ((Place.ADMIN_COMMENT, "admin_comment"), (Place.COMMENT, "comment")):
        fields = let_go(JOB, NOW, place=place)
        gone = replace(JOB, **{field: fields[place]})
        assert set(fields) == {"StartTime", place} and was_let_go(gone) and not was_let_go(replace(gone, id=8))
        assert judge(gone).verdicts() == {} and gone.comment.startswith("pilotfish:hold=600")
