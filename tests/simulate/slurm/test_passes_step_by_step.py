"""Single steps of the passes that a naive reading of the rules showed to be wrong: which jobs start, and when."""

from __future__ import annotations

from dataclasses import replace

from pilotfish.simulate.slurm.site import (
    PriorityRules,
    SchedulerRules,
    Site,
    SiteJob,
    SiteNode,
    SitePartition,
    SiteReservation,
    SiteRules,
)
from tests.simulate.slurm.test_passes_by_definition import by_twin
from tests.support.slurm_sites import BY_HAND, NEVER_S, T0

ALL = ("n0", "n1", "n2", "n3")


def job(number: int, partition: str = "main", **changes: object) -> SiteJob:
    plain = {"limit_min": 1, "run_s": 10.0}
    return SiteJob(
        str(number), f"j{number}", "alice", "physics", "normal", (partition,), float(T0), **(plain | changes)
    )


def site(
    *jobs: SiteJob, parts: tuple[SitePartition, ...] = (SitePartition("main", ALL, is_default=True),),
    down: tuple[str, ...] = (), **scheduler: object,
) -> Site:  # fmt: skip
    nodes = tuple(SiteNode(name, cpus=1, cores=1, works=name not in down) for name in ALL)
    rules = SiteRules(
        scheduler=SchedulerRules(**BY_HAND | scheduler), priority=PriorityRules(period_s=NEVER_S, partition=100.0),
        epilog_s=(2.0, 2.0),
    )  # fmt: skip
    return Site(rules, nodes, parts, jobs=jobs)


def started(place: Site, kind: str = "main") -> set[str]:
    return {place.jobs[start.job].id for start in by_twin(place, [(T0 + 1, kind)])[0]}


def test_a_job_that_too_few_nodes_are_up_for_closes_no_partition() -> None:
    assert started(site(job(1, tasks=4, min_cpus=4), job(2), down=("n3",))) == {"2"}


def test_a_job_that_its_partition_can_never_run_closes_it_for_none() -> None:
    assert started(site(job(1, tasks=5, min_cpus=5), job(2))) == {"2"}


def test_a_job_that_waits_for_nodes_in_use_closes_its_partition() -> None:
    exclusive = {"min_nodes": 4, "is_exclusive": True, "tasks": 4}
    assert started(site(job(1), job(2, **exclusive), job(3))) == {"1"}


def test_each_task_of_an_array_counts_as_a_record_that_was_tested() -> None:
    tasks = tuple(job(1, array="1", task=task) for task in range(3))
    assert len(by_twin(site(*tasks, default_queue_depth=1), [(T0 + 1, "main")])[0]) == 2


def test_a_job_that_wants_more_nodes_than_are_up_closes_its_partition_however_young() -> None:
    wide = job(1, min_nodes=2, tasks=2, min_cpus=2)
    assert started(site(wide, job(2), down=ALL[1:], bf_min_age_reserve=60)) == set()


def test_ends_at_one_time_are_looked_at_by_submission() -> None:
    """The job on another node is submitted last: it stands between the ends on n0 and n1, and widens no window."""
    main = SitePartition("main", ("n0", "n1", "n2"), is_default=True)
    first = SitePartition("first", ("n3",), job_factor=2)
    jobs = (job(1), job(2, limit_min=2), job(3, tasks=2, min_cpus=2), job(4, "first"))
    _, plans = by_twin(site(*jobs, parts=(main, first)), [(T0 + 1, "backfill")])
    assert plans == [{2: T0 + 121}]


def test_windows_begin_at_the_hard_end_of_an_overdue_job() -> None:
    main = SitePartition("main", ("n0", "n1"), is_default=True)
    place = site(job(1), job(2, run_s=5000.0), job(3), job(4), parts=(main,))
    assert by_twin(place, [(T0 + 1, "main"), (T0 + 62, "backfill")])[1][-1] == {3: T0 + 91}


def test_a_job_beyond_the_reservations_of_its_partition_is_looked_at_once() -> None:
    main = SitePartition("main", ("n0",), is_default=True)
    jobs = tuple(job(number) for number in (1, 2, 3))
    _, plans = by_twin(site(*jobs, parts=(main,), bf_job_part_count_reserve=1), [(T0 + 1, "backfill")])
    assert plans == [{1: T0 + 61}]


def test_a_job_over_the_time_of_its_partition_counts_as_no_tested_record() -> None:
    main = SitePartition("main", ALL, is_default=True, max_time_min=5)
    assert started(site(job(1, limit_min=60), job(2), parts=(main,), partition_job_depth=1)) == {"2"}


def test_a_job_over_the_time_of_its_partition_counts_for_no_user_in_a_backfill_pass() -> None:
    main = SitePartition("main", ALL, is_default=True, max_time_min=5)
    assert started(site(job(1, limit_min=60), job(2), parts=(main,), bf_max_job_user=1), "backfill") == {"2"}


def test_a_plan_prefers_nodes_that_are_in_use_now() -> None:
    """What runs on n2 and n3 ends in one window: then job 3 may have n0 and both, or, by their numbers, n0 to n2."""
    jobs = (
        job(1, limit_min=10, required_nodes=("n2",)), job(2, limit_min=10, required_nodes=("n3",)),
        job(3, min_nodes=3, max_nodes=3, tasks=3, min_cpus=3), job(4, limit_min=60),
    )  # fmt: skip
    for is_busy_first in (True, False):
        place = site(*jobs, bf_busy_nodes=is_busy_first)
        starts = by_twin(place, [(T0 + 1, "main"), (T0 + 2, "backfill")])[0]
        assert (3 in {start.job for start in starts}) == is_busy_first


def test_a_main_pass_passes_over_a_job_that_wants_more_nodes_than_its_flex_reservation_has() -> None:
    flex = SiteReservation("r", T0 + 600.0, T0 + 1200.0, ("n0",), flags=frozenset({"FLEX"}))
    for nodes in (1, 2):
        place = replace(site(job(1, reservation="r", min_nodes=nodes, tasks=nodes)), reservations=(flex,))
        assert started(place) == ({"1"} if nodes == 1 else set())
        assert started(place, "backfill") == {"1"}


def test_a_plan_that_nodes_in_use_suffice_for_has_an_idle_one_besides() -> None:
    """What runs on n0 and n1 ends in one window, and job 3 is planned there; job 4 starts on a node without a plan."""
    jobs = (
        job(1, limit_min=10, required_nodes=("n0",)), job(2, limit_min=10, required_nodes=("n1",)),
        job(3, min_nodes=2, max_nodes=2, tasks=2, min_cpus=2, excluded_nodes=("n3",)), job(4, limit_min=60),
    )  # fmt: skip
    for is_busy_first, node in ((True, "n3"), (False, "n2")):
        place = site(*jobs, bf_busy_nodes=is_busy_first)
        starts = by_twin(place, [(T0 + 1, "main"), (T0 + 2, "backfill")])[0]
        assert [start.nodes for start in starts if start.job == 3] == [(node,)]
