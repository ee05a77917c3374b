"""The starts of waiting jobs that squeue shows: planned ones, those of jobs beyond a limit, tasks and begin times."""

from __future__ import annotations

from typing import Any

from pilotfish.simulate.slurm.site import JobRecord, SiteJob, SiteLimits, SiteQos
from pilotfish.simulate.slurm.twin import planned_starts
from tests.simulate.slurm.small_sites import NODES, T0, job, site

ALL = tuple(node.name for node in NODES)
#: Holds all nodes for an hour at most, from 10 s after the begin.
RUNNING = job(
    id="1", min_nodes=len(NODES), is_exclusive=True,
    runs=(JobRecord("RUNNING", T0, T0 + 10.0, None, "main", ALL, 4 * len(NODES), started_by="backfill"),),
)  # fmt: skip
ASKED = T0 + 300.0
#: When squeue says that the running job ends at the latest, and how far a plan is beyond that: the search looks at
#: ends in windows of 30 s and more.
END, WINDOW = T0 + 10 + 3600.0, 60.0


def starts(*jobs: SiteJob, **changes: Any) -> dict[str, float]:
    """Return id -> the planned start of each waiting job."""
    place = site((RUNNING, *jobs), **changes)
    ((_, rows),) = planned_starts(place, [ASKED])
    return {place.jobs[row].id: start for row, start in rows.items()}


def test_a_waiting_job_is_planned_for_the_end_of_a_time_limit() -> None:
    (start,) = starts(job(id="2", submit=T0 + 20.0)).values()
    assert END <= start <= END + WINDOW


def test_all_tasks_of_an_array_have_the_start_of_the_task_that_is_planned_last() -> None:
    tasks = [
        job(
            id=f"2_{task}",
            array="2",
            task=task,
            min_nodes=len(NODES),
            is_exclusive=True,
            limit_min=20,
            submit=T0 + 20.0,
        )
        for task in range(3)
    ]
    planned = starts(*tasks)
    assert len(planned) == 3
    (start,) = set(planned.values())
    assert END + 1200 + WINDOW < start <= END + 2 * 1200 + 3 * WINDOW


def test_a_job_beyond_a_limit_of_its_qos_has_a_start_but_holds_no_nodes() -> None:
    qos = SiteQos("high", limits=SiteLimits(group_tres={"cpu": 2.0}))
    limited = job(id="2", qos="high", submit=T0 + 20.0, nice=-5, is_exclusive=True)
    planned = starts(limited, job(id="3", min_nodes=len(NODES), is_exclusive=True, submit=T0 + 20.0), qos=(qos,))
    assert END <= planned["2"] <= END + WINDOW
    assert END <= planned["3"] <= END + WINDOW


def test_a_job_that_may_not_start_yet_has_its_begin_time() -> None:
    assert starts(job(id="2", submit=T0 + 20.0, begin=T0 + 900.0)) == {"2": T0 + 900.0}


def test_a_job_that_came_after_the_last_pass_has_no_start() -> None:
    assert starts(job(id="2", submit=ASKED - 1.0)) == {}
