"""The oracle of the faults finds each thing that may not happen, and finds nothing where all is well."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fault_oracle import ALLOWANCE_S, CLASSES, Job, Run, away, differences, is_forgotten, resizes, violations

MARK = "pilotfish:pin=1700000000:abcdefghij-_0123"


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
    made.changed = differences(made, {"Comment": f"mine pilotfish:hold=10 {MARK}", "TimeLimit": "00:05:00"})


def kept_its_pin(made: Job) -> None:
    made.pinned_s = 60.0


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
    assert {kind for _, kind in BROKEN} | {"resized"} == set(CLASSES)


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
    assert is_forgotten(doubled, [(98.0, 106.0)], ()) and not is_forgotten(doubled, [(132.0, 140.0)], ())
    doubled.forgotten = True
    assert not kinds(doubled)


def test_our_marks_are_no_change_of_a_comment_unless_the_job_is_not_ours() -> None:
    made, shown = job(), {"Comment": f"  mine pilotfish:hold=10 {MARK}", "TimeLimit": "00:05:00"}
    assert not differences(made, shown)
    made.handed = False
    assert differences(made, shown).keys() == {"Comment"}


def test_outages_that_overlap_count_once() -> None:
    assert away([(0.0, 10.0), (5.0, 20.0), (50.0, 60.0), (6.0, 7.0)], 2.0, 55.0) == 23.0


def test_a_change_of_a_running_jobs_nodes_is_read_from_the_log() -> None:
    log = (
        "[2026-11-22T22:15:15.773] sched: _update_job: setting nodes to n1 for JobId=2\n"
        "[2026-11-22T22:15:15.920] sched: _update_job: setting req_nodes to n1 for JobId=3\n"
    )
    assert resizes(log) == [("2026-11-22T22:15:15.773", 2, "n1")]
