"""Forecasts of a Slurm's queue by its own rules, from what its commands print."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pilotfish.daemon.oracle.twin_forecasts import HORIZON_S, PAST, forecast_site
from pilotfish.daemon.oracle.twin_messages import TwinAnswer, TwinQuestion
from tests.support.slurm_queue_lines import CONFIG, RUNNING, SUBMIT, WAITING, line, present_texts

NOW = SUBMIT + 4200.0
#: It has had all nodes for ten minutes, and may have them for another fifty.
ALL = {**RUNNING, "nodes": "n[1-4]", "count": "4", "cpus": "32", "limit": "01:00:00", "shared": "NO"}
WIDE = {**WAITING, "shared": "NO", "count": "2-2", "tasks": "2", "cpus": "2"}
#: A pass of the scheduler comes so many seconds after a job has ended, at most.
PASS_S = 60.0


def asked(*jobs: str, **changes: str) -> TwinQuestion:
    """Return a question about jobs that all take 20 minutes."""
    texts = present_texts(*(jobs or (line(1, ALL), line(2, WIDE))), **changes)
    runs = {str(number): (1190.0, 1200.0, 1210.0, 0) for number in range(1, 9)}
    return TwinQuestion(texts, {}, NOW, runs)


def starts(answer: TwinAnswer) -> dict[str, float]:
    """Return the start of each job, seconds from now."""
    return {number: times[0] - NOW for number, times in answer.jobs.items()}


def test_a_job_waits_until_its_nodes_are_free_and_runs_as_long_as_expected() -> None:
    answer = forecast_site(asked())
    (start, early, late, end, first_end, last_end) = answer.jobs["2"]
    assert 590.0 <= start - NOW <= 610.0 + PASS_S and 1190.0 <= end - start <= 1210.0
    assert early <= start <= late and first_end <= end <= last_end
    assert not answer.why_not and not answer.unknown
    assert answer == forecast_site(asked()), "the same question has the same answer"


def test_without_a_run_time_a_job_runs_until_its_limit() -> None:
    assert starts(forecast_site(replace(asked(), runs={})))["2"] >= 3000.0


def test_an_array_starts_with_its_first_task_and_ends_with_its_last() -> None:
    one_by_one = line(2, WIDE, array="ArrayJobId=2 ArrayTaskId=3-5%1 ArrayTaskThrottle=1 ")
    start, _, _, end, _, _ = forecast_site(asked(line(1, ALL), one_by_one)).jobs["2"]
    assert 590.0 <= start - NOW <= 610.0 + PASS_S and 3 * 1190.0 <= end - start <= 3 * (1210.0 + PASS_S)


def test_jobs_that_came_lately_come_again_and_widen_the_interval() -> None:
    columns = "JobID|JobName|User|Account|QOS|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqNodes|ReqCPUS"
    ended = [
        f"9{minute:02}|sim|bob|lab|high|main|COMPLETED|2026-03-02T06:{minute:02}:00|2026-03-02T06:{minute:02}:00"
        f"|2026-03-02T06:{minute:02}:00|2026-03-02T06:{minute:02}:50|50|60|4|32"
        for minute in range(60)
    ]
    question = asked()
    alone = forecast_site(question).jobs["2"]
    texts = {**question.texts, PAST: "\n".join((columns, *ended, ""))}
    (start, early, late, *_) = forecast_site(replace(question, texts=texts)).jobs["2"]
    assert late - early > alone[2] - alone[1] and early <= start <= late


def test_a_task_that_was_split_from_its_array_has_its_own_number() -> None:
    rest = line(2, WIDE, array="ArrayJobId=2 ArrayTaskId=4-5 ")
    first = line(3, WIDE, array="ArrayJobId=2 ArrayTaskId=3 ", priority=20_000)
    assert forecast_site(asked(line(1, ALL), first, rest)).jobs.keys() == {"2", "3"}


def test_a_job_that_is_handed_over_begins_when_it_is_planned_to() -> None:
    held = line(2, WIDE, reason="JobHeldUser", priority=0, eligible="Unknown")
    waits = asked(held)
    assert "2" in forecast_site(waits).unknown
    planned = forecast_site(replace(waits, begins={"2": NOW + 300.0}))
    assert 300.0 <= starts(planned)["2"] <= 300.0 + PASS_S


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scontrol_part.txt": "PartitionName=main Nodes=n[1-4] Default=YES OverSubscribe=FORCE:4\n"}, "share cores"),
        ({}, f"within {HORIZON_S / 3600:.0f} hours"),
    ],
)
def test_a_start_that_is_not_known_has_a_reason(changes: dict[str, str], reason: str) -> None:
    endless = line(1, ALL, limit="60-00:00:00")
    answer = forecast_site(replace(asked(endless, line(2, WIDE), **changes), runs={}))
    assert not answer.jobs and reason in answer.unknown["2"]


@pytest.mark.parametrize("setting", ["1", "NO", "EXCLUSIVE", "FORCE:1"])
def test_cores_of_other_partitions_are_not_shared(setting: str) -> None:
    part = f"PartitionName=main Nodes=n[1-4] Default=YES OverSubscribe={setting}\n"
    assert forecast_site(asked(**{"scontrol_part.txt": part})).jobs


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ("PriorityType = priority/multifactor\nPriorityWeightFairshare = 1000\n", "sshare.psv"),
        ("AccountingStorageEnforce = limits\n", "qos.psv"),
        ("AccountingStorageEnforce = associations\n", "assoc.psv"),
    ],
)
def test_a_site_whose_rules_rest_on_what_cannot_be_read_is_not_forecast(rules: str, missing: str) -> None:
    config = CONFIG.replace("PriorityType = priority/basic\n", "") + rules
    refused = replace(asked(**{"scontrol_config.txt": config}), missing={missing: "accounting is away"})
    answer = forecast_site(refused)
    assert answer.why_not == "accounting is away" and not answer.jobs
    assert not forecast_site(replace(asked(), missing={missing: "accounting is away"})).why_not, "no rule needs it"


def test_other_rules_that_are_not_followed_are_said() -> None:
    gang = CONFIG + "PreemptMode = GANG\n"
    assert "GANG" in forecast_site(asked(**{"scontrol_config.txt": gang})).why_not
    licences = CONFIG + "SchedulerParameters = bf_licenses\n"
    answer = forecast_site(asked(**{"scontrol_config.txt": licences}))
    assert answer.jobs and any("bf_licenses" in sentence for sentence in answer.unfollowed)


def test_jobs_that_cannot_be_read_and_no_site_at_all() -> None:
    odd = line(3, WIDE, cpus="x")
    assert "1 job of 3 cannot be read" in forecast_site(asked(line(1, ALL), line(2, WIDE), odd)).why_not
    assert "nodes" in forecast_site(asked(**{"scontrol_node.txt": ""})).why_not
