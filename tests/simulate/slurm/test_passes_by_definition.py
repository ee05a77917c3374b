"""The passes start what a naive reading of the rules starts, on the same nodes, and plan the same starts."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.kernels.object_cache import load
from pilotfish.simulate.kernels.slurm.tables import PENDING
from pilotfish.simulate.slurm.ordered_jobs import OrderedJobs
from pilotfish.simulate.slurm.site import Site, SiteJob, SiteLimits, SiteNode, SitePartition
from pilotfish.simulate.slurm.site_tables import Phases, completed, site_block
from pilotfish.simulate.slurm.twin import BACKFILL, FULL_MAIN, MAIN, advanced, starts_of
from tests.reference.slurm_machine import Machine
from tests.reference.slurm_passes import Start
from tests.reference.slurm_replay import Passes, PlainReplay
from tests.simulate.slurm.small_sites import RULES, job, site
from tests.support.slurm_sites import ASPECTS, BY_HAND, NEVER_S, T0, passes_of, sites

KINDS = {"main": MAIN, "full": FULL_MAIN, "backfill": BACKFILL}
Plans = list[dict[int, int]]


def by_twin(
    site: Site, passes: Passes, *, plans: bool = True, handed: OrderedJobs | None = None
) -> tuple[list[Start], Plans]:
    """Return the starts of the twin, whose passes are asked for, and the planned starts after each of them.

    Args:
        site: the site.
        passes: when, and of what kind.
        plans: whether backfill passes plan the start of each job; otherwise they end after the last that may start.
        handed: jobs that something else than Slurm orders.
    """
    site = completed(site)
    block = site_block(site, Phases(0.0, float(NEVER_S), float(NEVER_S), 0, float(NEVER_S)), handed=handed)
    block.count["plans"] = int(plans)
    call, planned = load("slurm.site_requests"), Plans()
    for time, kind in passes:
        block = advanced(block, float(time))
        call(block.address, KINDS[kind], float(time))
        rows = block.jobs[["state", "expected"]].tolist()
        planned.append({job: start for job, (state, start) in enumerate(rows) if state == PENDING and start})
    return [Start(one.job, one.partition, one.nodes, int(one.start), one.by) for one in starts_of(site, block)], planned


def by_reference(site: Site, passes: Passes) -> tuple[list[Start], Plans]:
    """Return the same of the reference."""
    return PlainReplay(Machine(completed(site)), epilog=int(site.rules.epilog_s[0]), limit_phase=0).run(passes)


def check(site: Site, passes: Passes) -> None:
    starts, plans = by_reference(site, passes)
    assert by_twin(site, passes) == (starts, plans)
    assert by_twin(site, passes, plans=False)[0] == starts


@given(sites(), passes_of())
@settings(max_examples=40, deadline=None)
def test_jobs_that_ask_for_cores(site: Site, passes: Passes) -> None:
    check(site, passes)


@given(st.frozensets(st.sampled_from(sorted(ASPECTS)), min_size=1, max_size=3).flatmap(sites), passes_of())
@settings(max_examples=50, deadline=None)
def test_sites_that_use_a_few_rules(site: Site, passes: Passes) -> None:
    check(site, passes)


@given(sites(ASPECTS), passes_of())
@settings(max_examples=20, deadline=None)
def test_sites_that_use_all_rules(site: Site, passes: Passes) -> None:
    check(site, passes)


@given(
    st.frozensets(st.sampled_from(sorted(ASPECTS)), max_size=2).flatmap(
        lambda others: sites(others | {"reservations"})
    ),
    passes_of(),
)
@settings(max_examples=60, deadline=None)
def test_sites_with_reservations(site: Site, passes: Passes) -> None:
    check(site, passes)


def test_a_job_starts_after_its_first_window_and_a_reservation_in_between() -> None:
    names = ("v", "x", "y", "first", "second")
    nodes = tuple(SiteNode(name, cpus=4, cores=4, memory_mib=1000) for name in names)
    parts = (
        SitePartition("wide", ("v", "x", "y"), is_default=True, is_exclusive=True),
        *(SitePartition(name, (name,), is_exclusive=True) for name in names),
    )

    def asks(number: int, part: str, minutes: int, nodes: int = 1) -> SiteJob:
        submit = T0 if number <= len(names) else T0 + 10 + number
        return job(
            id=str(number), submit=submit, partitions=(part,), limit_min=minutes, run_s=60.0 * minutes,
            min_nodes=nodes, max_nodes=nodes, tasks=nodes, min_cpus=nodes,
        )  # fmt: skip

    running = [asks(1, "v", 2), asks(2, "x", 70), asks(3, "y", 100), asks(4, "first", 10), asks(5, "second", 20)]
    # Two slices hide from the search for job 10 that v is free again after job 6; x has a reservation, too, before y
    # is free. So job 10 takes x and y in 100 minutes, and not v, and job 11 comes after it.
    reserved = [asks(6, "v", 58), asks(7, "x", 10), asks(8, "first", 200), asks(9, "second", 200)]
    last = [asks(10, "wide", 5, nodes=2), asks(11, "y", 10)]
    scheduler = replace(RULES.scheduler, **BY_HAND, bf_resolution=60)
    rules = replace(RULES, scheduler=scheduler, epilog_s=(2.0, 2.0))
    place = replace(site([*running, *reserved, *last], rules=rules), nodes=nodes, partitions=parts)
    passes: Passes = [(T0 + 5, "main"), (T0 + 30, "backfill")]
    check(place, passes)
    plan = by_twin(place, passes)[1][-1]
    assert plan[9] == T0 + 5 + 60 * 100
    assert plan[10] > plan[9]


def test_a_pass_reaches_further_once_a_job_has_started_whose_user_is_then_at_the_limit() -> None:
    nodes = tuple(SiteNode(f"n{number}", cpus=4, cores=4, memory_mib=1000) for number in range(6))
    part = SitePartition("main", tuple(node.name for node in nodes), is_default=True, is_exclusive=True)

    def asks(number: int, user: str, minutes: int, nodes: int = 1) -> SiteJob:
        return job(
            user, id=str(number), submit=T0 + (number > 1) * (10 + number), limit_min=minutes, run_s=60.0 * minutes,
            min_nodes=nodes, max_nodes=nodes, tasks=nodes, min_cpus=nodes,
        )  # fmt: skip

    # The pass tests four jobs. Before the third one starts, these are the second to the fifth; then its user is at the
    # limit, and the last job is one of them. It would still run when the second job begins on all nodes.
    jobs = [asks(1, "carol", 60, 4), asks(2, "carol", 60, 6), *(asks(number, "alice", 5) for number in range(3, 9))]
    scheduler = replace(RULES.scheduler, **BY_HAND, bf_resolution=60, bf_max_job_test=4)
    rules = replace(RULES, scheduler=scheduler, epilog_s=(2.0, 2.0))
    limits = {"alice": SiteLimits(max_jobs=1)}
    place = site([*jobs, asks(9, "bob", 120)], partition=part, rules=rules, associations=limits)
    passes: Passes = [(T0 + 5, "main"), (T0 + 30, "backfill")]
    check(replace(place, nodes=nodes), passes)
    assert [start.job for start in by_reference(replace(place, nodes=nodes), passes)[0]] == [0, 2]


def test_a_main_pass_reaches_as_many_records_as_it_has_time_for() -> None:
    nodes = tuple(SiteNode(f"n{number}", cpus=4, cores=4, memory_mib=1000) for number in range(4))
    part = SitePartition("main", tuple(node.name for node in nodes), is_default=True, is_exclusive=True)
    jobs = [job(id=str(number), submit=T0, max_nodes=1) for number in range(4)]
    for seconds, records in ((1.0, 1), (4.0, 2), (5.0, 3), (1000.0, 4)):  # each record takes two seconds
        scheduler = replace(RULES.scheduler, **BY_HAND, max_sched_time=seconds)
        rules = replace(RULES, scheduler=scheduler, epilog_s=(2.0, 2.0), record_s=2.0)
        place = replace(site(jobs, partition=part, rules=rules), nodes=nodes)
        for kind in ("main", "full"):
            check(place, [(T0 + 5, kind)])
            assert [start.job for start in by_twin(place, [(T0 + 5, kind)])[0]] == [*range(records)]


def test_nodes_of_a_choice_that_failed_are_chosen_once_smaller_ones_are_dropped() -> None:
    """With three nodes at most, twelve CPUs need those with four: not the node in use that a plan looks at first."""
    nodes = tuple(SiteNode(f"n{number}", cpus=4, cores=4, memory_mib=1000) for number in range(4))
    part = SitePartition("main", tuple(node.name for node in nodes), is_default=True)
    jobs = [
        job(id="1", tasks=3, min_cpus=3, max_nodes=1, required_nodes=("n0",)),
        job(id="2", tasks=4, min_cpus=4, max_nodes=1, required_nodes=("n3",), limit_min=10),
        job(id="3", submit=T0 + 10, min_nodes=3, max_nodes=3, tasks=12, min_cpus=12),
    ]
    scheduler = replace(RULES.scheduler, **BY_HAND, bf_resolution=60, bf_busy_nodes=True)
    place = site(jobs, partition=part, rules=replace(RULES, scheduler=scheduler, epilog_s=(2.0, 2.0)))
    passes: Passes = [(T0 + 5, "main"), (T0 + 30, "backfill")]
    check(replace(place, nodes=nodes), passes)
    plan = by_twin(replace(place, nodes=nodes), passes)[1][-1]
    assert T0 + 600 <= plan[2] < T0 + 700


def test_least_loaded_nodes_of_a_choice_that_failed_are_chosen_once_smaller_ones_are_dropped() -> None:
    nodes = tuple(
        SiteNode(f"n{number}", cpus=cpus, cores=cpus, memory_mib=1000) for number, cpus in enumerate((1, 4, 4, 4))
    )
    part = SitePartition("main", tuple(node.name for node in nodes), is_default=True, is_least_loaded=True)
    wide = job(min_nodes=3, max_nodes=3, tasks=12, min_cpus=12)
    place = site([wide], partition=part, rules=replace(RULES, scheduler=replace(RULES.scheduler, **BY_HAND)))
    starts, _ = by_twin(replace(place, nodes=nodes), [(T0 + 5, "main")])
    assert [start.nodes for start in starts] == [("n1", "n2", "n3")]
