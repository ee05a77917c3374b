"""OAR's whole queue as its own schedulers see it."""

from __future__ import annotations

from typing import Any

import pytest

from pilotfish.adapters.oar.job_views import UNEVALUATED
from pilotfish.adapters.oar.records.requests import OarResources
from pilotfish.adapters.oar.whole_queue import observed_queue
from pilotfish.simulate.model.observed_queue import ObservedQueue
from pilotfish.simulate.model.snapshot import JobState
from pilotfish.simulate.replay.queue_forecast import forecast_queue
from tests.support.oar_records import NOW, ORDINARY, job, world

NODES = frozenset(f"node{n}" for n in range(1, 5))
NOON = int(NOW) + 600


def seen(*jobs: dict[str, Any], allowed: dict[str, frozenset[str] | None] | None = None, **other: Any) -> ObservedQueue:
    state = world(*jobs, **other)
    answers = allowed or {}
    return observed_queue(
        state, OarResources(state.resources), "us", lambda user: len(user), lambda asked: answers.get(asked, NODES)
    )


def one(**other: Any) -> Any:
    """The one job of a queue, and what else it is asked with."""
    settings = {name: other.pop(name) for name in ("allowed", "resources", "planned") if name in other}
    (queued,) = seen(job(5, **other), **settings).jobs
    return queued


def running(number: int, *on: int, **other: Any) -> dict[str, Any]:
    return job(number, state="Running", decided=int(NOW) - 22, began=int(NOW) - 20, on=list(on), **other)


def test_a_job_that_waits_says_what_it_asks_for_and_when_oar_expects_it() -> None:
    queued = one(name="align", project="research", queue="default", planned={"5": [NOON, None]}, allowed={})
    assert (queued.key, queued.name, queued.owner, queued.account, queued.queue) == (
        "oar/5",
        "align",
        5,
        "research",
        "default",
    )
    assert (queued.nodes, queued.cores, queued.walltime, queued.submit_time) == (1, 1, 60.0, 1795471944.0)
    assert (queued.where, queued.manager_start, queued.unknown, queued.start_time) == (NODES, float(NOON), "", None)
    assert one(planned={"5": [int(NOW) - 9, None]}).manager_start is None, "a plan that has passed"
    nodes = frozenset({"node2"})
    assert one(properties="fast = 'YES'", allowed={"fast = 'YES'": nodes}).where == nodes
    assert one(properties="").where == NODES
    assert one(command="/bin/sleep 1").name == "sleep", "most jobs of OAR have no name"


def test_jobs_come_in_the_order_in_which_oar_considers_them() -> None:
    """Queues by priority; in a queue by what the scheduler with fair sharing has noted, and by id."""
    share = "R=1,W=0:1:0,J=B (Karma=0.500,quota_ok)"
    jobs = [
        job(1, queue="default"), job(2, user="much", message=share), job(3, user="much"), job(4, user="little"), job(5),
    ]  # fmt: skip
    assert [queued.key for queued in seen(*jobs).jobs] == [f"oar/{n}" for n in (4, 5, 2, 3, 1)]


def test_a_job_that_runs_or_ended_says_when_and_where() -> None:
    queue = seen(
        running(1, 1, 2, 3, 4),
        job(2, state="Launching", decided=int(NOW) - 1, on=[5]),
        job(3, state="Terminated", began=int(NOW) - 9, stop=int(NOW) - 2, ended=int(NOW) - 1, exit=0, on=[7]),
        running(4, 8, types=["besteffort"]),
    )
    first, second, third, killable = queue.jobs
    assert (first.state, first.nodes, first.cores, first.where) == (JobState.RUNNING, 2, 2, {"node1", "node2"})
    assert (first.start_time, first.finish_time, first.waiting) == (float(int(NOW) - 20), None, False)
    assert (second.state, second.start_time) == (JobState.CONFIGURING, float(int(NOW) - 1))
    assert (third.state, third.finish_time) == (JobState.COMPLETED, float(int(NOW) - 2))
    assert killable.where == frozenset(), "it gives way to any other job"
    assert queue.nodes == dict.fromkeys(NODES, (2, 0.0)) and queue.time == NOW


def test_nodes_that_take_no_jobs_are_not_usable() -> None:
    kinds = [
        ("Alive", "NO", 0), ("Alive", "YES", 0), ("Absent", "NO", 0), ("Absent", "NO", NOON), ("Suspected", "NO", 0),
    ]  # fmt: skip
    resources = [[n, f"node{n}", *kind, str(n)] for n, kind in enumerate(kinds)]
    assert set(seen(resources=resources).nodes) == {"node0", "node3"}, "the other one is asleep, and wakes for a job"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, ""),
        ({"kind": "INTERACTIVE"}, ""),
        ({"types": ["deploy", "idempotent", "expire=2030-01-01 00:00:00"]}, ""),
        ({"holding": True}, "its user holds it"),
        ({"queue": "gone"}, "queue gone is disabled in OAR"),
        ({"reservation": "Scheduled", "decided": NOON}, "it is an advance reservation"),
        ({"types": ["besteffort"]}, "it is a besteffort job, and OAR starts any other job first"),
        ({"types": ["timesharing=*,*"]}, "it is of type timesharing"),
        ({"types": ["container"]}, "it is of type container"),
        ({"after": [3]}, "it depends on 3"),
        ({"forms": [[60, [[ORDINARY, [["core", 1]]]]], [90, [[ORDINARY, [["core", 2]]]]]]}, "it is moldable"),
        ({"forms": [[60, [[ORDINARY, [["network_address", -1]]]]]]}, "it asks for all or the best of something"),
        ({"allowed": {"x": None}, "properties": "x"}, UNEVALUATED),
    ],
)
def test_what_oar_alone_decides_is_not_known(changes: dict[str, Any], why: str) -> None:
    assert one(**changes).unknown == why


def test_a_job_waits_for_the_end_of_another_under_its_key() -> None:
    own_job = job(1, user="us", name="flow/a", command=": pilotfish:key=flow/a; exec true")
    _, after, last = seen(own_job, job(2, after=[1]), job(3, after=[2])).jobs
    assert (after.after, last.after) == (("flow/a",), ("oar/2",))


@pytest.mark.parametrize(
    ("planned", "why"),
    [
        ({"7": [NOON, [1, 2]]}, "the advance reservation 7 may be in its way"),
        ({}, "the advance reservation 7 may be in its way"),
        ({"7": [NOON, [1, 2]], "5": [NOON - 60, None]}, ""),
        ({"7": [NOON, [1, 2]], "5": [NOON - 59, None]}, "the advance reservation 7 may be in its way"),
        ({"7": [NOON, [3, 4]], "5": [NOON, None]}, ""),
    ],
    ids=["no plan", "nodes unknown", "begins after it", "begins in it", "other nodes"],
)
def test_an_advance_reservation_on_its_nodes_makes_a_start_unknown(planned: dict[str, Any], why: str) -> None:
    reservation = job(7, reservation="Scheduled", decided=NOON)
    queued, reserved = seen(job(properties="x"), reservation, allowed={"x": frozenset({"node1"})}, planned=planned).jobs
    assert queued.unknown == why
    assert (reserved.unknown, reserved.manager_start) == ("it is an advance reservation", NOON)
    begun = running(7, 1, reservation="Scheduled")
    assert not any(job.unknown for job in seen(begun, job(properties="")).jobs)


def test_the_forecast_counts_with_jobs_that_run_and_those_before_it() -> None:
    wide = {"forms": [[100, [[ORDINARY, [["network_address", 4], ["core", 2]]]]]]}
    late = {"forms": [[50, [[ORDINARY, [["network_address", 4], ["core", 2]]]]]]}
    full = running(1, *range(1, 9), **wide)
    forecasts = forecast_queue(seen(full, job(2, **late), job(3), job(4, types=["besteffort"])))
    assert [forecasts[f"oar/{n}"].start_time for n in (2, 3)] == [int(NOW) + 80, int(NOW) + 130]
    assert forecasts["oar/4"].start_time is None and "besteffort" in forecasts["oar/4"].unknown
    killable = running(1, *range(1, 9), types=["besteffort"], **wide)
    assert forecast_queue(seen(killable, job(2)))["oar/2"].start_time == NOW
