"""Rules that few sites use: each decides a small case, and does not where the site does not ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pilotfish.simulate.slurm.site import (
    JobRecord,
    PriorityRules,
    SchedulerRules,
    Site,
    SiteAssociation,
    SiteJob,
    SiteLimits,
    SiteNode,
    SitePartition,
    SiteQos,
    SiteReservation,
    SiteRules,
)
from pilotfish.simulate.slurm.site_outcome import replayed_outcome
from pilotfish.simulate.slurm.twin import SiteStart, replay_site
from tests.simulate.slurm.small_sites import T0

NODES = tuple(SiteNode(f"n{place}", cpus=8, cores=8, sockets=2, memory_mib=8000, gpus=2) for place in range(3))
#: Jobs come in the order of their submission.
RULES = SiteRules(priority=PriorityRules(is_multifactor=False))


def partition(nodes: Sequence[SiteNode] = NODES, **changes: Any) -> SitePartition:
    return SitePartition("main", tuple(node.name for node in nodes), is_default=True, **changes)


def job(name: str, at: int = 0, **changes: Any) -> SiteJob:
    """Return a job of one task that runs for ten minutes."""
    plain = {"limit_min": 10, "run_s": 600.0, "max_nodes": 1}
    tasks = changes.get("tasks", 1)
    return SiteJob(name, name, "ann", "lab", "normal", ("main",), T0 + at, **plain | {"min_cpus": tasks} | changes)


def starts(
    jobs: Sequence[SiteJob], rules: SiteRules = RULES, nodes: Sequence[SiteNode] = NODES,
    part: SitePartition | None = None, **changes: Any,
) -> dict[str, SiteStart]:  # fmt: skip
    """Return the starts of a replay by the id of the job."""
    site = Site(rules, tuple(nodes), (part or partition(nodes),), jobs=tuple(jobs), **changes)
    return {jobs[start.job].id: start for start in replay_site(site).starts}


# --- nodes and CPUs ---
@pytest.mark.parametrize(("cpus", "together"), [(4, True), (3, False)])
def test_a_job_has_all_cpus_of_its_cores(cpus: int, together: bool) -> None:
    """Each job asks for one CPU, and gets both of a core; the limit is a number of CPUs."""
    nodes = (SiteNode("n0", cpus=8, cores=4, threads=2),)
    qos = (SiteQos("normal", limits=SiteLimits(group_tres={"cpu": cpus})),)
    replayed = starts([job("a"), job("b")], replace(RULES, enforces_limits=True), nodes, qos=qos)
    assert (replayed["b"].start < T0 + 60) == together


@pytest.mark.parametrize(("selects", "together"), [("cores", True), ("sockets", False)])
def test_jobs_share_no_socket_where_sockets_are_selected(selects: str, together: bool) -> None:
    jobs = [job("a"), job("b"), job("c")]
    replayed = starts(jobs, replace(RULES, selects=selects), NODES[:1])
    assert replayed["b"].start < T0 + 60 and (replayed["c"].start < T0 + 60) == together


@pytest.mark.parametrize(
    ("of_site", "of_part", "together"),
    [(None, None, True), (1000, None, False), (1000, 4000, True), (8000, 1000, False)],
)
def test_more_memory_than_a_cpu_may_have_takes_more_cpus(
    of_site: int | None, of_part: int | None, together: bool
) -> None:
    """A job of 3,000 MiB takes three CPUs, and three such jobs do not fit on eight."""
    jobs = [job(name, memory_per_cpu_mib=2500) for name in "abc"]
    rules = replace(RULES, counts_memory=True, max_memory_per_cpu_mib=of_site)
    replayed = starts(jobs, rules, NODES[:1], partition(NODES[:1], max_memory_per_cpu_mib=of_part))
    assert (replayed["c"].start < T0 + 60) == together


@pytest.mark.parametrize(("packs", "node"), [(False, "n0"), (True, "n2")])
def test_serial_jobs_are_packed_at_the_end(packs: bool, node: str) -> None:
    rules = replace(RULES, scheduler=SchedulerRules(pack_serial_at_end=packs))
    assert starts([job("a")], rules)["a"].nodes == (node,)
    assert starts([job("a", tasks=2)], rules)["a"].nodes == ("n0",)


@pytest.mark.parametrize(("contiguous", "waits"), [(False, False), (True, True)])
def test_contiguous_nodes_stand_side_by_side(contiguous: bool, waits: bool) -> None:
    """The node in the middle is taken for ten minutes."""
    middle = job("middle", required_nodes=("n1",), is_exclusive=True)
    wide = job("wide", 5, tasks=2, min_nodes=2, max_nodes=2, is_exclusive=True, is_contiguous=contiguous)
    replayed = starts([middle, wide])
    assert (replayed["wide"].start >= T0 + 600) == waits


# --- dependencies ---
@pytest.mark.parametrize(
    ("name", "dependency", "waits"), [("1", "singleton", True), ("2", "singleton", False), ("1", "", False)]
)
def test_a_singleton_waits_for_earlier_jobs_of_its_name(name: str, dependency: str, waits: bool) -> None:
    replayed = starts([job("1"), replace(job("2", 5), name=name, dependency=dependency)])
    assert (replayed["2"].start >= T0 + 600) == waits


@pytest.mark.parametrize(("kind", "waits"), [("aftercorr", False), ("afterok", True)])
def test_tasks_wait_for_the_task_of_their_number_or_for_all(kind: str, waits: bool) -> None:
    """Task 1 of the first array runs for half an hour, task 0 for ten minutes."""
    tasks = [
        job(f"10_{task}", array="10", task=task, limit_min=60, run_s=run) for task, run in ((0, 600.0), (1, 1800.0))
    ]
    later = [job(f"20_{task}", 5, array="20", task=task, dependency=f"{kind}:10") for task in (0, 1)]
    replayed = starts([*tasks, *later])
    assert replayed["20_0"].start >= T0 + 600 and (replayed["20_0"].start >= T0 + 1800) == waits
    assert replayed["20_1"].start >= T0 + 1800


# --- jobs that leave the queue ---
@pytest.mark.parametrize(("deadline_min", "starts_at_all"), [(None, True), (25, True), (15, False)])
def test_a_job_that_cannot_end_by_its_deadline_leaves(deadline_min: int | None, starts_at_all: bool) -> None:
    """`late` could start after ten minutes."""
    deadline = None if deadline_min is None else T0 + 60.0 * deadline_min
    jobs = [job("runs", is_exclusive=True), job("late", 5, deadline=deadline)]
    assert ("late" in starts(jobs, nodes=NODES[:1])) == starts_at_all


@pytest.mark.parametrize(("kills", "runs"), [(False, False), (True, True)])
def test_jobs_whose_dependencies_cannot_be_met_leave_if_the_site_says_so(kills: bool, runs: bool) -> None:
    """`first` succeeds, so `second`, which waits for its failure, never runs; `third` waits for the end of `second`."""
    jobs = [job("1"), job("2", 5, dependency="afternotok:1"), job("3", 6, dependency="afterany:2")]
    replayed = starts(jobs, replace(RULES, kills_invalid_dependents=kills))
    assert "2" not in replayed and ("3" in replayed) == runs


# --- how many jobs a pass looks at, and for whom it reserves ---
@pytest.mark.parametrize(
    ("limit", "backfills"), [({}, True), ({"bf_max_job_assoc": 1}, False), ({"bf_max_job_user_part": 1}, False)]
)
def test_a_backfill_pass_looks_at_some_jobs_of_an_association(limit: dict[str, int], backfills: bool) -> None:
    """`small` fits in front of `wide`, which waits; both are of one association."""
    jobs = [
        job("runs", tasks=8, limit_min=60, run_s=3600.0),
        job("wide", 5, min_nodes=3, max_nodes=3, tasks=24, is_exclusive=True),
        job("small", 6, limit_min=30),
    ]
    rules = replace(RULES, scheduler=SchedulerRules(**limit))
    assert (starts(jobs, rules)["small"].start < T0 + 600) == backfills


@pytest.mark.parametrize(("threshold", "delayed"), [(0, False), (10_000, True)])
def test_a_job_below_the_threshold_of_its_qos_holds_no_nodes(threshold: int, delayed: bool) -> None:
    """`wide` has priority 1 and would hold all nodes; `long` would delay it."""
    jobs = [
        job("runs", tasks=8, limit_min=60, run_s=3600.0),
        job("wide", 5, min_nodes=3, max_nodes=3, tasks=24, is_exclusive=True),
        job("long", 6, limit_min=120, run_s=7200.0),
    ]
    qos = (SiteQos("normal", min_priority=threshold),)
    replayed = starts(jobs, replace(RULES, priority=PriorityRules()), qos=qos)
    assert (replayed["wide"].start > replayed["long"].start + 7000) == delayed


def test_a_search_for_a_start_ends_among_thousands_of_running_jobs() -> None:
    """Its window doubles after each 200 ends: here, far more often than a number of seconds can be doubled."""
    number = 13_500
    nodes = (SiteNode("n0", cpus=number, cores=number),)
    running = [job(f"{k}", limit_min=60 + k % 50, run_s=60.0 * (60 + k % 50)) for k in range(number)]
    rules = replace(RULES, scheduler=SchedulerRules(default_queue_depth=number + 1))
    replayed = starts([*running, job("all", 1, tasks=number)], rules, nodes)
    assert len(replayed) == number + 1
    assert replayed["all"].start >= T0 + 3600 + 49 * 60


# --- limits ---
@pytest.mark.parametrize(
    ("version", "flags", "together"),
    [((23, 11), {"Relative"}, False), ((23, 2), {"Relative"}, True), ((25, 5), set(), True)],
)
def test_limits_of_a_relative_qos_are_percentages(version: tuple[int, int], flags: set[str], together: bool) -> None:
    """A quarter of 24 CPUs is 6; 25 CPUs are more than there are."""
    qos = (SiteQos("normal", flags=frozenset(flags), limits=SiteLimits(group_tres={"cpu": 25})),)
    rules = replace(RULES, enforces_limits=True, version=version)
    replayed = starts([job("a", tasks=4), job("b", tasks=4)], rules, qos=qos)
    assert (replayed["b"].start < T0 + 60) == together


@pytest.mark.parametrize(("factor", "together"), [(1.0, False), (2.0, True)])
def test_a_qos_multiplies_the_limits_of_associations(factor: float, together: bool) -> None:
    associations = (
        SiteAssociation("root"), SiteAssociation("lab", parent=0, limits=SiteLimits(group_tres={"cpu": 5})),
        SiteAssociation("lab", "ann", 1),
    )  # fmt: skip
    qos = (SiteQos("normal", limit_factor=factor),)
    rules = replace(RULES, enforces_limits=True, enforces_associations=True)
    replayed = starts([job("a", tasks=4), job("b", tasks=4)], rules, qos=qos, associations=associations)
    assert (replayed["b"].start < T0 + 60) == together


@pytest.mark.parametrize("where", ["partition", "QOS"])
def test_some_partitions_and_qos_take_only_jobs_in_reservations(where: str) -> None:
    part = partition(requires_reservation=where == "partition")
    qos = (SiteQos("normal", flags=frozenset({"RequiresReservation"} if where == "QOS" else set())),)
    reservation = SiteReservation("course", T0 - 10.0, T0 + 9000.0, ("n1",), users=frozenset({"ann"}))
    jobs = [job("inside", reservation="course"), job("outside")]
    replayed = starts(jobs, part=part, qos=qos, reservations=(reservation,))
    assert "inside" in replayed and "outside" not in replayed


# --- clocks ---
@pytest.mark.parametrize(("interval", "latest"), [(0.000002, 20), (40.0, 60)])
def test_main_passes_are_some_time_apart(interval: float, latest: int) -> None:
    """`first` ends after ten seconds, and its end asks for a pass, which `second` waits for."""
    jobs = [job("first", tasks=8, run_s=10.0), job("second", 1, tasks=8)]
    rules = replace(
        RULES, is_backfilling=False, scheduler=SchedulerRules(sched_min_interval=interval, sched_interval=600.0)
    )
    start = starts(jobs, rules, NODES[:1])["second"].start - T0
    assert latest - 25 < start <= latest


# --- power saving ---
SLEEPY = replace(RULES, suspend_time_s=300.0, suspend_timeout_s=60.0, resume_timeout_s=120.0)


@pytest.mark.parametrize(("suspend_time_s", "waits"), [(None, 0), (300.0, 120), (5000.0, 0)])
def test_a_job_on_a_node_that_sleeps_starts_when_it_has_booted(suspend_time_s: float | None, waits: int) -> None:
    """It runs from then on, for as long as it takes."""
    start = starts([job("early"), job("late", 4000)], replace(SLEEPY, suspend_time_s=suspend_time_s), NODES[:1])["late"]
    assert 4000 + waits <= start.start - T0 <= 4000 + waits + 10 and start.end == start.start + 600


def test_nodes_that_are_awake_are_chosen_first() -> None:
    """`long` keeps n1 awake; n0, which is lower, and n2 sleep."""
    jobs = [job("long", required_nodes=("n1",), limit_min=100, run_s=6000.0), job("late", 3000)]
    start = starts(jobs, SLEEPY)["late"]
    assert start.nodes == ("n1",) and start.start < T0 + 3010


@pytest.mark.parametrize(("stays_on", "waits"), [(True, 0), (False, 120)])
def test_some_nodes_never_sleep(stays_on: bool, waits: int) -> None:
    nodes = (replace(NODES[0], stays_on=stays_on),)
    start = starts([job("early"), job("late", 4000)], SLEEPY, nodes)["late"].start - T0
    assert 4000 + waits <= start <= 4000 + waits + 10


def test_a_node_that_goes_to_sleep_takes_no_job_until_it_sleeps() -> None:
    """It goes to sleep at second 900, takes no job for 60 s, and then boots for 120 s."""
    start = starts([job("early"), job("late", 910)], SLEEPY, NODES[:1])["late"].start - T0
    assert 960 + 120 <= start <= 960 + 120 + 70


@pytest.mark.parametrize(("rate", "waits"), [(300, 121), (1, 240)])
def test_so_many_nodes_boot_in_a_minute(rate: int, waits: int) -> None:
    """The third node begins to boot two minutes after the first where one boots a minute."""
    wide = job("wide", 4000, min_nodes=3, max_nodes=3, tasks=24, is_exclusive=True)
    start = starts([job("early"), wide], replace(SLEEPY, resume_rate=rate))["wide"].start - T0
    assert 4000 + waits - 1 <= start <= 4000 + waits + 10


def test_nodes_of_a_cloud_sleep_at_first() -> None:
    nodes = tuple(replace(node, is_asleep=True) for node in NODES)
    assert 120 <= starts([job("first")], SLEEPY, nodes)["first"].start - T0 <= 130


def test_a_booting_node_takes_no_other_job() -> None:
    """`second` would fit on the node that boots for `first`."""
    replayed = starts([job("early"), job("first", 4000), job("second", 4020)], SLEEPY, NODES[:1])
    assert replayed["second"].start >= replayed["first"].start


def test_nodes_that_sleep_draw_no_power() -> None:
    """n0 sleeps from second 900 to 4000, when `late` comes, and from 5020 to the end, 9000; n1 is always awake."""
    record = JobRecord("COMPLETED", T0, T0, T0 + 600.0, "main", ("n0",), 8, energy_j=60_000.0)
    jobs = (
        job("early", tasks=8, runs=(record,)),
        job("late", 4000, tasks=8, runs=(record,)),
        job("last", 9000, tasks=8),
    )
    nodes = (NODES[0], replace(NODES[1], stays_on=True))
    site = Site(replace(SLEEPY, is_backfilling=False), nodes, (partition(nodes),), jobs=jobs)
    site = replace(site, jobs=tuple(replace(one, required_nodes=("n0",)) for one in jobs))
    outcome = replayed_outcome(site, replay_site(site))
    assert outcome.asleep_s is not None
    assert outcome.asleep_s.sum() == pytest.approx(3100 + 3980, abs=30)
    powers = outcome.power_w(50.0)
    assert powers is not None
    energy = float((powers * outcome.hours).sum())
    assert energy == pytest.approx(2 * 60_000 + 50.0 * (2 * 9000 - 2 * 600 - 3100 - 3980), rel=0.01)
    assert replayed_outcome(replace(site, rules=RULES), replay_site(replace(site, rules=RULES))).asleep_s is None
