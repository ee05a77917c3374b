"""Partitions, reservations, settings and limits: parsed as recorded, and never exceeded."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.base import ParseError
from pilotfish.adapters.slurm.placement import limits, partitions
from pilotfish.adapters.slurm.placement.limits import Quota
from pilotfish.adapters.slurm.placement.partitions import CoreSharing
from pilotfish.adapters.slurm.transport import scontrol
from tests.support.slurm_jobs import JOB, LIMITS

# Output of Slurm 22.05
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
CONFIG = "AccountingStorageEnforce = associations,limits,qos\nSchedulerParameters     = bf_interval=7,bf_continue\n"


def test_a_recorded_partition() -> None:
    (partition,) = partitions.parse(PARTITION).values()
    assert (partition.name, partition.up, partition.nodes) == ("short", True, frozenset({"n1", "n2", "n3", "n4"}))
    assert (partition.max_time, partition.max_nodes, partition.sharing, partition.rows) == (300.0, 2, CoreSharing.NO, 1)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, ""),
        ({"State=UP": "State=DOWN"}, "not up"),
        ({"AllowAccounts=ALL": "DenyAccounts=research"}, "account research"),
        ({"AllowAccounts=ALL": "AllowAccounts=teaching,other"}, "account research"),
        ({"AllowQos=ALL": "AllowQos=normal"}, "QOS high"),
        ({"MaxTime=00:05:00": "MaxTime=00:04:59"}, "min at most"),
        ({"MinNodes=0": "MinNodes=2"}, "1 node"),
        ({"ReqResv=NO": "ReqResv=YES"}, "reservation"),
    ],
)
def test_partition_obstacles(changed: dict[str, str], why: str) -> None:
    text = PARTITION
    for old, new in changed.items():
        text = text.replace(old, new)
    obstacle = partitions.parse(text)["short"].obstacle(replace(JOB, partition="short", time_limit=300.0))
    assert why in obstacle and bool(obstacle) is bool(why)


@pytest.mark.parametrize(
    ("words", "sharing", "rows"),
    [("FORCE:4", CoreSharing.FORCE, 4), ("FORCE", CoreSharing.FORCE, 4), ("YES:2", CoreSharing.YES, 1),
     ("EXCLUSIVE", CoreSharing.EXCLUSIVE, 1), ("BRAND_NEW", CoreSharing.EXCLUSIVE, 1)],
)  # fmt: skip
def test_partition_sharing(words: str, sharing: CoreSharing, rows: int) -> None:
    partition = partitions.parse(PARTITION.replace("OverSubscribe=NO", f"OverSubscribe={words}"))["short"]
    assert (partition.sharing, partition.rows) == (sharing, rows)


@pytest.mark.parametrize(
    ("word", "sharing"),
    [
        ("NO", CoreSharing.NO),
        ("NODE", CoreSharing.EXCLUSIVE),
        ("USER", CoreSharing.EXCLUSIVE),
        ("TOPO", CoreSharing.EXCLUSIVE),
    ],
)
def test_partition_sharing_since_26_11(word: str, sharing: CoreSharing) -> None:
    """By its documentation one key replaces two."""
    text = PARTITION.replace("OverSubscribe=NO", f"Exclusive={word}").replace("ExclusiveUser=NO ", "")
    assert partitions.parse(text)["short"].sharing is sharing


def test_recorded_reservations() -> None:
    (reservation,) = partitions.parse_reservations(RESERVATION)
    assert (reservation.name, reservation.nodes) == (
        "maint",
        frozenset({"n7", "n8"}),
    ) and reservation.end - reservation.start == 36000
    assert partitions.parse_reservations(RESERVATION.replace("n[7-8]", "(null)")) == []
    assert partitions.parse_reservations("No reservations in the system\n") == []


@pytest.mark.parametrize(
    "parse", [partitions.parse, partitions.parse_reservations, limits.parse, scontrol.parse_settings]
)
def test_other_text_is_an_error(parse: Any) -> None:
    with pytest.raises(ParseError):
        parse("slurm_load: something went wrong\n")


@given(st.text())
def test_any_text_is_read_or_an_error(text: str) -> None:
    for parse in (limits.parse, scontrol.parse_settings):
        try:
            parse(text)
        except ParseError:
            continue


def test_settings() -> None:
    settings = scontrol.parse_settings(CONFIG + "SchedulerType = sched/backfill\n")
    assert (settings.backfill_s, settings.limits) == (7.0, True)
    settings = scontrol.parse_settings("SchedulerType = sched/backfill\n")
    assert settings == scontrol.ControllerSettings(30.0, False, hard_time_min=settings.hard_time_min)
    assert "unknown version" in settings.hard_time_min


def test_recorded_limits() -> None:
    parsed = limits.parse(LIMITS)
    high = parsed.qos["high"]
    assert {name: cap.most for name, cap in high.group.items()} == {
        "jobs": 7, "minutes": 600, "cpu": 20, "cpu minutes": 1000, "cpu minutes left": 500,
    }  # fmt: skip
    assert high.group["cpu minutes"].used == 118
    assert {name: cap.most for name, cap in high.each.items()} == {
        "minutes": 2, "cpu": 8, "mem": 2000, "cpu minutes": 300, "cpu on a node": 4,
    }  # fmt: skip
    assert {name: cap.most for name, cap in high.users[5].items()} == {"jobs": 2, "cpu": 16}
    names = [scope.name for scope in parsed.scopes(JOB)]
    assert names[3:] == ["association 5", "association 3", "association 1"]
    caps = {scope.name: scope.caps for scope in parsed.scopes(JOB)}
    assert caps["association 5"]["jobs"].most == 6 and caps["association 3"]["cpu"].most == 30
    assert caps["association 1"]["jobs"].most == 50 and "jobs" not in caps["association 3"]
    assert parsed.knows(JOB) and not parsed.knows(replace(JOB, uid=77)) and parsed.knows(replace(JOB, qos="other"))


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
def test_jobs_that_exceed_a_limit_alone(changed: dict[str, Any], why: str) -> None:
    job = replace(JOB, **changed)
    obstacle = Quota(limits.parse(LIMITS), {}).obstacle(job, job.time_limit or math.inf)
    assert why in obstacle and bool(obstacle) is bool(why)


@given(st.lists(st.tuples(st.integers(1, 8), st.sampled_from((5, 9)), st.integers(1, 120)), max_size=30))
def test_no_limit_is_ever_exceeded(wanted: list[tuple[int, int, int]]) -> None:
    quota, counted_jobs = Quota(limits.parse(LIMITS), {}), list[tuple[int, int, int]]()
    for cpus, uid, span in wanted:
        job = replace(JOB, cpus=cpus, uid=uid, tres=(("cpu", float(cpus)),))
        if not quota.obstacle(job, span):
            quota.count(job, span)
            counted_jobs.append((cpus, uid, span))
    assert (
        len(counted_jobs) <= 7 and sum(cpus for cpus, _, _ in counted_jobs) <= 12
    )  # of the QOS, and of the account in it
    assert all(sum(uid == who for _, uid, _ in counted_jobs) <= 2 for who in (5, 9))
    assert sum(cpus * span / 60 for cpus, _, span in counted_jobs) <= 500


def test_a_partition_may_have_a_qos_of_its_own() -> None:
    quota, job = Quota(limits.parse(LIMITS), {"main": "high"}), replace(JOB, qos="normal", time_limit=60.0)
    quota.count(job, 60.0)
    quota.count(job, 60.0)
    assert "user 5 in QOS high may have 2 jobs" in quota.obstacle(job, 60.0)
