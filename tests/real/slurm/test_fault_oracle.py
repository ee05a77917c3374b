"""The oracle of the faults finds each thing that may not happen, and finds nothing where all is well."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from fault_oracle import (
    ALLOWANCE_S,
    CLASSES,
    PIN_S,
    Job,
    Run,
    away,
    differences,
    forgotten,
    resizes,
    starts,
    violations,
)
from fault_shims import BREAKS
from real_world import Served, own_faults

from pilotfish.daemon.state import job_stages
from pilotfish.daemon.state.job_stages import JobStage
from pilotfish.simulate.model.snapshot import JobState

PRODUCT_REPORT = job_stages.report_fault


def job() -> Job:
    """A job that was held for ten seconds, and ran once."""
    asked = {"Comment": "  mine pilotfish:hold=10", "TimeLimit": "00:05:00"}
    return Job("f1", "games", True, 100.0, 110.0, asked, id=1, state="COMPLETED", runs=[Run(0, 105.0, 107.0)])


def kinds(made: Job, *outages: tuple[float, float]) -> set[str]:
    return {each.kind for each in violations(made, outages)}


def never_ran(made: Job) -> None:
    made.runs, made.state = [], "PENDING"


def ran_twice(made: Job) -> None:
    made.runs.append(Run(0, 120.0, 121.0))


def ran_twice_at_once(made: Job) -> None:
    made.restarts = 1
    made.runs.append(Run(1, 106.0, 108.0))


def began_late(made: Job) -> None:
    made.runs = [Run(0, made.due + ALLOWANCE_S + 1.0)]


def ran_again_late(made: Job) -> None:
    made.restarts, made.requeued = 1, 108.0
    made.runs.append(Run(1, 108.0 + 11.0 + ALLOWANCE_S + 1.0))


def began_before_its_begin(made: Job) -> None:
    made.begins = [(103.0, 130.0)]


def began_while_held(made: Job) -> None:
    made.holds = [(102.0, 120.0)]


def comment_changed(made: Job) -> None:
    shown = {"Comment": "mine pilotfish:hold=10", "TimeLimit": "00:05:00"}
    made.changed = differences(made, shown, made.asked)


def kept_its_pin(made: Job) -> None:
    made.pinned_s = PIN_S + 1.0


BROKEN: list[tuple[Callable[[Job], None], str]] = [
    (never_ran, "lost"), (ran_twice, "doubled"), (ran_twice_at_once, "doubled"), (began_late, "late"),
    (ran_again_late, "late"), (began_before_its_begin, "loosened"), (began_while_held, "loosened"),
    (comment_changed, "changed"), (kept_its_pin, "pinned"),
]  # fmt: skip


@pytest.mark.parametrize(("breaks", "kind"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_each_violation_is_found_and_nothing_else(breaks: Callable[[Job], None], kind: str) -> None:
    made = job()
    assert kinds(made) == set()
    breaks(made)
    assert kinds(made) == {kind}


def test_every_class_is_tried() -> None:
    assert {kind for _, kind in BROKEN} | {"resized", "ended", "fault"} == set(CLASSES)


def test_what_is_slurms_is_no_violation() -> None:
    late = job()
    began_late(late)
    assert not kinds(late, (100.0, 130.0)), "Slurm was away"
    requeued = job()
    ran_twice(requeued)
    requeued.restarts = 1
    assert not kinds(requeued)
    doubled = job()
    ran_twice(doubled)
    doubled.forgotten = True
    assert not kinds(doubled)
    launched_slowly = job()
    began_while_held(launched_slowly)
    launched_slowly.started = [101.9]
    assert not kinds(launched_slowly), "it had been started when its user held it"
    launched_slowly.started = [90.0, 104.0]
    assert kinds(launched_slowly) == {"loosened"}


@pytest.mark.parametrize("tie", ["own_nodes", "one_node"])
def test_a_job_that_only_certain_nodes_may_run_waits_for_them_without_fault(tie: str) -> None:
    for breaks in (began_late, ran_again_late):
        made = job()
        breaks(made)
        assert kinds(made) == {"late"}
        setattr(made, tie, True)
        assert not kinds(made)
    made = job()
    setattr(made, tie, True)
    kept_its_pin(made)
    assert kinds(made) == {"pinned"}


def test_only_a_daemon_that_noted_the_begin_time_can_tell_a_small_move_from_a_hold() -> None:
    made = job()
    made.held, made.known = (110.0, 111.0), True
    made.begins = [(103.0, 107.0)]
    assert kinds(made) == {"loosened"}
    made.known = False
    for begin, found in ((90.0, set()), (107.0, set()), (116.0, set()), (118.0, {"loosened"}), (170.0, {"loosened"})):
        made.begins = [(103.0, begin)]
        assert kinds(made) == found, begin


def test_a_comment_that_has_one_more_word_was_changed() -> None:
    made, shown = job(), {"Comment": "  mine pilotfish:hold=10 placed", "TimeLimit": "00:05:00"}
    assert differences(made, shown, made.asked).keys() == {"Comment"}


def test_what_its_user_changes_while_slurm_is_asked_is_no_change_of_ours() -> None:
    made, before = job(), {"Comment": "the text before", "TimeLimit": "00:05:00"}
    assert not differences(made, before, before), "Slurm answered before the change"
    assert differences(made, before, made.asked).keys() == {"Comment"}
    assert not differences(made, made.asked, {}), "it was not known yet what its user asks for"


def test_what_a_controller_logged_and_had_not_written_is_forgotten_with_it() -> None:
    times = [datetime.fromisoformat(f"2026-11-22T22:15:{second}").timestamp() for second in ("15.773", "20.120")]
    log = (
        "[2026-11-22T22:15:15.773] _slurm_rpc_submit_batch_job: JobId=2 InitPrio=78 usec=763\n"
        "[2026-11-22T22:15:20.120] _job_complete: JobId=3 done\n"
    )
    assert forgotten(log, [(times[0] + 0.1, times[1] + 1.0)]) == [(3, times[1] + 1.0)]
    assert forgotten(log, [(times[0] - 9.0, times[0] - 1.0), (times[1] + 0.1, times[1] + 9.0)]) == []


def test_outages_that_overlap_count_once() -> None:
    assert away([(0.0, 10.0), (5.0, 20.0), (50.0, 60.0), (6.0, 7.0)], 2.0, 55.0) == 23.0


def test_starts_are_read_from_the_log() -> None:
    log = (
        "[2026-11-22T22:15:15.773] sched: Allocate JobId=2 NodeList=n1 #CPUs=1 Partition=debug\n"
        "[2026-11-22T22:15:15.920] sched/backfill: _start_job: Started JobId=3 in debug on n1\n"
    )
    time = datetime(2026, 11, 22, 22, 15, 15, 773000).timestamp()
    assert starts(log) == {2: [time], 3: [pytest.approx(time + 0.147)]}


def test_a_change_of_a_running_jobs_nodes_is_read_from_the_log() -> None:
    log = (
        "[2026-11-22T22:15:15.773] sched: _update_job: setting nodes to n1 for JobId=2\n"
        "[2026-11-22T22:15:15.920] sched: _update_job: setting req_nodes to n1 for JobId=3\n"
    )
    assert resizes(log) == [(datetime(2026, 11, 22, 22, 15, 15, 773000).timestamp(), 2, "n1")]


def test_a_fault_that_the_daemon_reports_of_itself_is_found(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_stages, "report_fault", PRODUCT_REPORT)
    job_stages.next_stage("w/a", JobStage.ENDED, JobStage.WAITING, JobState.PENDING)
    assert own_faults(caplog.text) == caplog.text.splitlines() != []
    assert own_faults("cycle 3: 2 started\nslurm did not answer within 15 s") == []


@pytest.mark.real
def test_a_daemon_that_reported_a_fault_does_not_stop_in_silence(tmp_path: Path) -> None:
    served = Served(tmp_path)
    for text in ("Traceback (most recent call last):", "please report this fault of pilotfish: w/a moves"):
        served.log.write_text(f"all is well\n{text}\n")
        served.process = subprocess.Popen(["sleep", "60"])
        with pytest.raises(AssertionError, match=re.escape(text)):
            served.close()
        assert served.process is None
    served.log.write_text("all is well\n")
    served.process = subprocess.Popen(["sleep", "60"])
    served.close()


@pytest.mark.parametrize("code", BREAKS.values(), ids=BREAKS)
def test_the_daemon_can_be_broken_in_each_way(code: str) -> None:
    """A daemon that fails to start is not broken in the way that the faults are to reveal."""
    subprocess.run([sys.executable, "-c", code], check=True)
