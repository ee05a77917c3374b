"""A site that goes on from now: as a replay does from its begin, with the jobs that run, their ends, and drained nodes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pilotfish.simulate.slurm.present import Present, present_site
from pilotfish.simulate.slurm.site import JobRecord, Site, SiteJob
from pilotfish.simulate.slurm.site_changes import with_drained_nodes
from pilotfish.simulate.slurm.twin import replay_site
from tests.simulate.slurm.small_sites import NODES, T0, job, site

DAY_S = 86_400.0
NOW = T0 + 1000.0
ALL = tuple(node.name for node in NODES)


def waiting(name: str, **changes: Any) -> SiteJob:
    record = JobRecord("PENDING", changes.get("submit", NOW), None, None, priority=changes.pop("priority", None))
    return job(id=name, **{"submit": NOW, "runs": (record,)} | changes)


def running(name: str, nodes: tuple[str, ...], start: float, **changes: Any) -> SiteJob:
    record = JobRecord("RUNNING", start, start, None, "main", nodes, 4 * len(nodes))
    return waiting(name, min_nodes=len(nodes), is_exclusive=True, runs=(record,), submit=start, **changes)


def outlook(place: Site, seed: int = 0, horizon_s: float = DAY_S) -> dict[str, tuple[float, float]]:
    """Return id -> start and finish of each job, seconds from now."""
    present = Present(present_site(place), NOW)
    result = present.outlook(np.array([one.run_s for one in place.jobs]), horizon_s, seed)
    times = zip(result.start - NOW, result.finish - NOW, strict=True)
    return {one.id: pair for one, pair in zip(present.site.jobs, times, strict=True)}


@pytest.mark.parametrize("seed", range(4))
def test_with_no_running_job_it_is_a_replay(seed: int) -> None:
    jobs = [
        waiting(
            str(place), min_nodes=1 + place % 4, user=("alice", "bob", "carol")[place % 3], run_s=300.0 * (1 + place)
        )
        for place in range(12)
    ]
    place = site(jobs)
    replayed = {
        place.jobs[one.job].id: (one.start - NOW, (one.end or 0) - NOW) for one in replay_site(place, seed).starts
    }
    assert outlook(place, seed) == replayed


def test_a_job_that_runs_holds_its_nodes_until_its_end() -> None:
    place = site((running("1", ALL, NOW - 600.0, run_s=900.0), waiting("2", min_nodes=2)))
    starts = outlook(place)
    assert starts["1"] == (-600.0, 300.0)
    assert 300.0 <= starts["2"][0] <= 300.0 + 65.0
    assert starts["2"][1] == starts["2"][0] + 600.0


def test_a_job_that_has_run_longer_than_expected_ends_at_once() -> None:
    starts = outlook(site((running("1", ALL, NOW - 600.0, run_s=100.0), waiting("2"))))
    assert starts["1"][1] == 1.0 and starts["2"][0] <= 65.0


def test_a_job_ends_at_its_limit() -> None:
    starts = outlook(site((running("1", ALL, NOW - 600.0, run_s=math.inf, limit_min=20), waiting("2", run_s=math.inf))))
    assert 600.0 <= starts["1"][1] <= 630.0
    assert starts["2"][0] + 3600.0 <= starts["2"][1] <= starts["2"][0] + 3630.0


def test_priorities_are_those_that_the_site_shows() -> None:
    jobs = [
        waiting(str(place), min_nodes=6, is_exclusive=True, priority=number) for place, number in enumerate((5, 50))
    ]
    assert outlook(site(jobs))["1"][0] < outlook(site(jobs))["0"][0]


def test_nodes_that_are_drained_later_take_no_job_then() -> None:
    place = site((running("1", ALL[:3], NOW - 600.0, run_s=1800.0), waiting("2", min_nodes=6, is_exclusive=True)))
    drained = with_drained_nodes(place, ALL[:1], NOW + 60.0, NOW + 7200.0)
    assert outlook(place)["2"][0] < 1300.0
    assert 7200.0 <= outlook(drained)["2"][0] <= 7265.0
    assert outlook(drained)["1"] == outlook(place)["1"], "a job that runs goes on"


def test_a_start_beyond_the_time_asked_is_not_known() -> None:
    place = site((running("1", ALL, NOW - 600.0, run_s=4200.0), waiting("2")))
    assert np.isnan(outlook(place, horizon_s=3000.0)["2"]).all()


def test_the_nodes_of_a_job_are_those_that_it_has() -> None:
    place = site((running("1", ALL[:3], NOW - 600.0, run_s=1800.0), waiting("2", min_nodes=4, is_exclusive=True)))
    present = Present(present_site(place), NOW)
    result = present.outlook(present.limit_s, DAY_S)
    assert result.uses(np.array([False] * 3 + [True] * 3)).tolist() == [False, True]
    assert result.uses(np.array([True] * 6)).tolist() == [True, True]


def test_jobs_that_have_ended_are_left_out() -> None:
    ended = replace(
        running("1", ALL, NOW - 900.0), runs=(JobRecord("COMPLETED", NOW - 900, NOW - 900, NOW - 1, "main", ALL),)
    )
    assert [one.id for one in present_site(site((ended, waiting("2")))).jobs] == ["2"]
    assert outlook(site((waiting("2", dependency="afterok:1"),)))["2"][0] <= 65.0


def test_a_job_that_waits_for_a_running_one_starts_after_it() -> None:
    place = site((running("1", ALL[:1], NOW - 600.0, run_s=900.0), waiting("2", dependency="afterok:1")))
    assert outlook(place)["2"][0] >= 300.0


@pytest.mark.parametrize(("busy", "waits"), [((), 200), (ALL[:1], 0)])
def test_nodes_that_sleep_now_boot_first(busy: tuple[str, ...], waits: int) -> None:
    """A job of two cores; a node on which a job runs is awake."""
    jobs = [replace(running("1", busy, NOW - 600.0, run_s=9000.0, limit_min=300), is_exclusive=False)] if busy else []
    place = site([*jobs, waiting("2", tasks=2, max_nodes=1, memory_per_node_mib=10)])
    rules = replace(place.rules, suspend_time_s=300.0, resume_timeout_s=200.0)
    place = replace(place, rules=rules, nodes=tuple(replace(node, is_asleep=True) for node in place.nodes))
    if busy:
        place = replace(place, jobs=tuple(replace(one, tasks=2, min_cpus=2) for one in place.jobs))
        record = replace(place.jobs[0].runs[0], cpus=2)
        place = replace(place, jobs=(replace(place.jobs[0], runs=(record,)), place.jobs[1]))
    assert outlook(place)["2"][0] == pytest.approx(waits, abs=70)


@pytest.mark.parametrize(
    "changes",
    [{"bf_max_job_test": 2}, {"bf_resolution": 600, "bf_max_job_user_part": 1}, {"sched_interval": 5.0}],
)
def test_a_site_with_other_passes_goes_on_like_one_that_is_made_for_them(changes: dict[str, Any]) -> None:
    queue = [waiting(str(2 + k), min_nodes=1 + k % 6, user=("alice", "bob")[k % 2], run_s=600.0) for k in range(20)]
    place = present_site(site([running("1", ALL[:4], NOW - 600.0, run_s=3000.0), *queue]))
    other = replace(place, rules=replace(place.rules, scheduler=replace(place.rules.scheduler, **changes)))
    run_s, before = np.array([one.run_s for one in place.jobs]), Present(place, NOW)
    first = before.outlook(run_s, DAY_S).start
    changed = before.changed(other).outlook(run_s, DAY_S)
    alone = Present(other, NOW).outlook(run_s, DAY_S)
    assert changed.start.tolist() == alone.start.tolist()
    assert changed.finish.tolist() == alone.finish.tolist()
    assert changed.piece_nodes.tolist() == alone.piece_nodes.tolist()
    assert before.outlook(run_s, DAY_S).start.tolist() == first.tolist()


def test_a_site_with_other_nodes_or_limits_is_made_for_them() -> None:
    place = present_site(site([waiting("1", min_nodes=2), waiting("2", min_nodes=2)]))
    drained = with_drained_nodes(place, ALL[1:], NOW, NOW + 7200.0)
    run_s, before = np.array([one.run_s for one in place.jobs]), Present(place, NOW)
    assert before.changed(drained).outlook(run_s, DAY_S).start.min() >= NOW + 7200.0
    assert before.outlook(run_s, DAY_S).start.max() < NOW + 7200.0
