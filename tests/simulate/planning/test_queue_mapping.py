"""Queue policies in plans: the schedule of a replay where nothing contends, the laws where it does, errors one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import PolicyError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Phase, Profile, Provenance, ThreadGroup, Workflow
from pilotfish.simulate.model.objective import Objective, Submitted
from pilotfish.simulate.model.plan import Plan, PlannedJob, RunningJob
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.queue_mapping import QueueMapping
from pilotfish.simulate.queue_policies.energy.power_policies import PowerCap
from pilotfish.simulate.queue_policies.interface import QueuePolicy, QueueView, Reject, Reserve, Start, Wake
from pilotfish.simulate.queue_policies.order_ranks import ORDERS
from pilotfish.simulate.queue_policies.policy_options import Amount, Sharing
from pilotfish.simulate.queue_policies.policy_specs import ALLOCATIONS, Conservative, Easy, Nodes, Pairs, Saving, Strict
from pilotfish.simulate.queue_policies.uncompiled import uncompiled
from pilotfish.simulate.replay.replay import replay
from tests.simulate.replay.test_replay import places
from tests.support import python_policies
from tests.support.python_policies import Says

GIB = 2.0**30


def cluster_of(*cores: int, oversubscription: float = 1.0, bandwidth: float = 1e15) -> Cluster:
    kinds = {n: NodeType(f"t{n}", n, 8 * GIB, bandwidth) for n in cores}
    return Cluster("lab", tuple(Node(f"n{i}", kinds[n]) for i, n in enumerate(cores)), oversubscription)


def job_of(name: str, seconds: float, threads: int = 1, *, bandwidth: float = 0.0, **changes: Any) -> Job:
    return Job(name, Profile((ThreadGroup(threads, seconds, bandwidth=bandwidth),)), **changes)


def planned(
    policy: QueuePolicy | Callable[[QueueView], Any], jobs: list[Job], cluster: Cluster, **options: Any
) -> Plan:
    """Plan under a policy, or under what a function decides."""
    made = policy if hasattr(policy, "decide") else Says(policy)
    POLICIES["mine"] = QueueMapping("mine", lambda seed: made)
    return plan(Workflow("w", tuple(jobs)), cluster, policy="mine", explain=False, **options)


SECONDS = st.integers(1, 12).map(float)
ROW = st.tuples(SECONDS, SECONDS, st.integers(1, 6))


@given(
    st.lists(ROW, min_size=1, max_size=25), st.integers(6, 9), st.booleans(), st.booleans(),
    st.sampled_from([name for name in ORDERS if name != "random"]),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_a_plan_starts_what_a_replay_starts_where_nothing_contends(
    rows: list[tuple[float, float, int]], cores: int, spread: bool, fills: bool, order: str
) -> None:
    """One node with all cores, or jobs of one thread on nodes of one core each, where none overtakes another.

    On nodes, a reservation is one of certain nodes, so fewer jobs overtake than where resources are only counted.
    """
    fills = fills and not spread
    walls, sizes = [max(run, wall) for run, wall, _ in rows], [size for *_, size in rows]
    runs = [run for run, *_ in rows]
    jobs = [
        job_of(f"j{i}", run, 1 if spread else size, nodes=size if spread else 1, walltime=wall)
        for i, (run, wall, size) in enumerate(zip(runs, walls, sizes, strict=True))
    ]
    times = np.zeros(len(rows)), np.array(runs), np.array(walls)
    trace = Workload("w", np.arange(len(rows)), *times, size=np.array(sizes, np.int64))
    policy = Easy(order) if fills else Strict(order)
    made = planned(uncompiled(policy, 0), jobs, cluster_of(*[1] * cores) if spread else cluster_of(cores))
    assert [job.start_time for job in made.jobs] == replay(trace, cores, policy).start_time.tolist()
    if not spread and order == "fcfs":
        own = getattr(python_policies, "Easy" if fills else "Strict")()
        simple = planned(own, jobs, cluster_of(cores)).jobs
        assert simple == tuple(replace(one, reserved=None) for one in made.jobs)


@given(
    st.lists(ROW, min_size=1, max_size=20), st.integers(6, 9),
    st.sampled_from([name for name in ALLOCATIONS if name != "basic"]),
    st.sampled_from(("fcfs", "sjf", "largest")), st.integers(0, 3),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_a_plan_allocates_nodes_as_a_replay_allocates_resources(
    rows: list[tuple[float, float, int]], nodes: int, allocation: str, order: str, away: int
) -> None:
    """Two clusters of nodes of one core each; the first nodes take no jobs. `basic` only counts resources in a replay."""
    cluster = cluster_of(*[1] * nodes)
    names = [node.name for node in cluster.nodes]
    cluster = replace(cluster, groups={"west": tuple(names[:4]), "east": tuple(names[4:])})
    groups = [(0, 3 - away), (4 - away, nodes - 1 - away)] if away < 4 else [(0, nodes - 1)]
    times = (
        np.zeros(len(rows)),
        np.array([run for run, *_ in rows]),
        np.array([max(run, wall) for run, wall, _ in rows]),
    )
    sizes = np.array([size for *_, size in rows], np.int64)
    jobs = [
        job_of(f"j{i}", times[1][i], nodes=int(sizes[i]), walltime=times[2][i])
        for i in range(len(rows)) if sizes[i] <= nodes - away
    ]  # fmt: skip
    rows_left = sizes <= nodes - away
    trace = Workload("w", np.arange(len(jobs)), *(column[rows_left] for column in times), size=sizes[rows_left])
    if not jobs:
        return
    own, compared = (uncompiled(Conservative(order, allocation), 0, arranged=True) for _ in range(2))
    made = planned(own, jobs, cluster, available=names[away:], may_reject=True)
    done = replay(trace, nodes - away, compared, groups=groups)
    assert made.rejected.keys() == {jobs[i].id for i in np.flatnonzero(done.rejected).tolist()}
    started = {job.id: (job.start_time, sorted(names.index(name) - away for name in job.nodes)) for job in made.jobs}
    ran = np.flatnonzero(~done.rejected).tolist()
    expected = {jobs[i].id: (float(done.start_time[i]), places(done, i)) for i in ran}
    assert started == expected


POLICY = st.sampled_from(
    [lambda: uncompiled(Easy(), 0), lambda: uncompiled(Easy("sjf"), 0), lambda: uncompiled(Strict("largest"), 0),
     lambda: uncompiled(Conservative("sjf"), 0, arranged=True),
     lambda: uncompiled(Conservative(allocation="best-effort-contiguous"), 0), lambda: uncompiled(Pairs(), 0),
     lambda: uncompiled(Nodes("smallest", "random"), 0), python_policies.Easy, python_policies.Strict]
)  # fmt: skip


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Job], Cluster]:
    """Draw jobs that contend, depend on each other, need memory and may run on some nodes only."""
    cores = draw(st.lists(st.integers(2, 6), min_size=1, max_size=4))
    cluster, jobs = cluster_of(*cores, oversubscription=2.0, bandwidth=1e9), list[Job]()
    for i in range(draw(st.integers(1, 14))):
        nodes = draw(st.integers(1, len(cores)))
        threads = draw(st.integers(1, min(sorted(cores)[-nodes:])))
        wide = [f"n{k}" for k, n in enumerate(cores) if n >= threads]
        allowed = frozenset(wide[:nodes]) if draw(st.booleans()) else None
        after = (f"j{draw(st.integers(0, i - 1))}",) if i and draw(st.booleans()) else ()
        wall = draw(st.one_of(st.none(), SECONDS))
        needs = {
            "memory": draw(st.sampled_from([0.0, 3 * GIB, 8 * GIB])),
            "bandwidth": draw(st.sampled_from([0.0, 4e8])),
        }
        bandwidth = needs.pop("bandwidth")
        job = job_of(f"j{i}", draw(SECONDS), threads, bandwidth=bandwidth, nodes=nodes, after=after, allowed=allowed,
                     walltime=wall, **needs)  # fmt: skip
        jobs.append(job)
    return jobs, cluster


@given(worlds(), POLICY)
@settings(max_examples=80, deadline=None)
def test_no_core_is_given_twice_and_nobody_starts_before_it_is_ready(
    world: tuple[list[Job], Cluster], make: Callable[[], QueuePolicy]
) -> None:
    jobs, cluster = world
    made = planned(make(), jobs, cluster)
    ran = {job.id: job for job in made.jobs}
    assert list(ran) == [job.id for job in jobs]
    for job in jobs:
        mine = ran[job.id]
        assert len(set(mine.nodes)) == job.nodes and (job.allowed is None or job.allowed >= set(mine.nodes))
        assert all(mine.start_time >= ran[name].finish_time * (1 - 1e-9) for name in job.after)
        for name in mine.nodes:
            here = [job for job in jobs if name in ran[job.id].nodes and overlap(ran[job.id], mine)]
            node = cluster.nodes[cluster.index[name]]
            assert sum(job.profile.threads for job in here) <= node.type.cores  # although the cluster allows twice that
            assert sum(job.memory for job in here) <= node.type.memory * (1 + 1e-9)
    assert planned(make(), jobs, cluster) == made


def overlap(one: PlannedJob, other: PlannedJob) -> bool:
    """Return whether one job runs at the moment at which the other starts."""
    return one.start_time <= other.start_time < one.finish_time * (1 - 1e-9)


@given(worlds())
@settings(max_examples=50, deadline=None)
def test_what_a_policy_sees_is_consistent(world: tuple[list[Job], Cluster]) -> None:
    jobs, cluster = world
    starts = dict[int, tuple[int, ...]]()

    def decide(now: QueueView) -> Any:
        busy = {core for it in now.running for first, last in it.resources for core in range(first, last + 1)}
        free = [core for first, last in now.free_resources for core in range(first, last + 1)]
        assert sorted([*busy, *free]) == list(range(now.machine.processors)) and now.free == len(free)
        room = now.free_nodes()
        of_nodes = [range(first, last + 1) for first, last in now.machine.nodes]
        assert room.cores.tolist() == [sum(core in free for core in cores) for cores in of_nodes]
        assert all(starts[it.job.number] == room.held(it) for it in now.running)
        assert now.columns()["walltime"].tolist() == [job.walltime for job in now.waiting]
        assert [it.until for it in now.running] == sorted(it.until for it in now.running)
        for job in now.waiting:
            given = jobs[job.number]
            assert job.size == given.profile.threads * given.nodes and job.nodes == given.nodes
            assert job.predicted == (given.walltime is None) and job.walltime == (given.walltime or job.walltime)
            if (nodes := room.where(job)) is not None:
                room.take(job, nodes)
                starts[job.number] = nodes
                yield Start(job, nodes=nodes)

    assert len(planned(decide, jobs, cluster).jobs) == len(jobs)


def test_a_policy_sees_no_true_run_time_and_no_contention() -> None:
    """Two worlds that differ in what the jobs really do, until the first end."""
    seen = []
    for seconds, bandwidth in ((30.0, 0.0), (50.0, 9e8)):
        jobs = [job_of(f"j{i}", seconds, 2, bandwidth=bandwidth, walltime=100.0) for i in range(4)]
        policy = Says(python_policies.Easy().decide)
        made = planned(policy, jobs, cluster_of(4, bandwidth=1e9))
        seen.append((policy.seen[0], [job.finish_time for job in made.jobs[:2]]))
    assert seen[0][0] == seen[1][0] and seen[0][1] == [30.0, 30.0] and min(seen[1][1]) > 50.0


def test_running_jobs_are_shown_with_their_latest_ends_and_users_with_their_waits() -> None:
    jobs = [job_of("r", 100.0, 2, walltime=90.0, owner=7), job_of("late", 100.0, 1), job_of("new", 1.0, 4)]
    underway = [RunningJob("r", ("n1",), 0.5, elapsed_s=60.0), RunningJob("late", ("n0",), 0.9, elapsed_s=200.0)]
    policy = Says(python_policies.Easy().decide)
    waits = [Submitted(("new",), waited=12.0)]
    made = planned(
        policy, jobs, cluster_of(4, 4), underway=underway, submitted=waits, objective=Objective("turnaround")
    )
    (time, free, _, waiting, running, submitted, _), *_ = policy.seen
    assert (time, free, submitted) == (0.0, 5, (2,))
    assert waiting == ((2, "new", 4, 1.0, -12.0),)
    assert running == ((1, -200.0, -100.0, ((0, 0),)), (0, -60.0, 30.0, ((4, 5),)))
    assert made.plain_finish_times == {} and {job.id: job.start_time for job in made.jobs}["new"] == pytest.approx(10.0)


def test_a_wide_job_is_not_passed_for_ever_where_the_free_cores_are_spread() -> None:
    """The policy starts the wide job first in each call, but a core of each node is always taken."""
    narrow = [job_of(f"s{i}", 5.0 + i % 3) for i in range(60)]
    jobs = [job_of("gate", 1.0), *narrow, job_of("wide", 1.0, 4, after=("gate",))]
    made = planned(
        lambda now: [Start(job) for job in sorted(now.waiting, key=lambda job: -job.size)], jobs, cluster_of(4, 4)
    )
    start = {job.id: job.start_time for job in made.jobs}
    assert start["wide"] < 10.0 < 35.0 < start["s59"]


def test_a_wake_up_is_kept_and_an_unknown_walltime_is_reported() -> None:
    def decide(now: QueueView) -> Any:
        first = next(iter(now.waiting), None)
        return [] if first is None else [Wake(7.5)] if now.time < 7.5 else [Start(first)]

    made = planned(decide, [job_of("a", 2.0)], cluster_of(1))
    assert [job.start_time for job in made.jobs] == [7.5]
    assert made.warnings == ("no walltime, so policy mine decides by the predicted run time: a",)


def first(now: QueueView) -> Any:
    return next(iter(now.waiting))


@pytest.mark.parametrize(
    ("decide", "why"),
    [
        (
            lambda now: [Start(first(now), nodes=(0, 0))],
            "job 'a', at 0.0 s: its nodes are (0, 0) (allowed: 2 of the nodes 0",
        ),
        (lambda now: [Start(first(now), nodes=(0, 9))], "its nodes are (0, 9)"),
        (lambda now: [Start(first(now), nodes=(0, 2))], "its nodes are (0, 2)"),
        (lambda now: [Start(first(now), nodes="ab")], "its nodes are 'ab'"),
        (lambda now: [Start(first(now), [(0, 3)])], "its cores are 4 on n0 (allowed: 2 on each of 2 nodes)"),
        (lambda now: [Start(first(now), [(0, 1)])], "it is given 2 resources (allowed: 4, the size it asks for)"),
        (lambda now: [Start(first(now), [(7, 10)])], "invalid resources 7 to 10"),
        (
            lambda now: [Reject(job) for job in now.waiting],
            "policy mine: job 'a': it is never started: policy mine rejects it",
        ),
        (lambda now: [], "it waits forever, like 1 other: nothing runs"),
        (lambda now: [Start(first(now)), Start(first(now))], "it is already running"),
        (lambda now: [Wake(0.0)], "invalid Wake(0.0)"),
        (lambda now: [7], "invalid decision 7"),
        (lambda now: 1 / 0, "policy mine: at 0.0 s: ZeroDivisionError: division by zero"),
    ],
)
def test_an_invalid_decision_is_one_clear_error(decide: Callable[[QueueView], Any], why: str) -> None:
    jobs = [job_of("a", 5.0, 2, nodes=2), job_of("b", 5.0, 1)]
    with pytest.raises(PolicyError) as caught:
        planned(decide, jobs, cluster_of(4, 4, 1))
    assert why.replace("job 'a', at", "job a, at") in str(caught.value)


def sharing(bound: float) -> QueuePolicy:
    return uncompiled(Easy(share=Sharing(bound)), 0)


@pytest.mark.parametrize(
    ("bound", "starts"), [(0.0, [0.0, 10.0, 20.0]), (1.1, [0.0, 10.0, 0.0]), (2.0, [0.0, 0.0, 20.0])]
)
def test_jobs_share_nodes_where_nobody_is_hurt_beyond_a_bound(bound: float, starts: list[float]) -> None:
    """Two jobs that use the whole bandwidth of the only node, and one that uses none."""
    jobs = [job_of(name, 10.0, 4, bandwidth=rate, walltime=50.0) for name, rate in (("a", 20.0), ("b", 20.0), ("c", 0))]
    found = planned(sharing(bound), jobs, cluster_of(8, bandwidth=80.0))
    assert [job.start_time for job in sorted(found.jobs, key=lambda job: job.id)] == pytest.approx(starts)


def test_a_bound_on_sharing_looks_at_later_phases_of_a_job() -> None:
    """Both jobs stream in their second phase only, so that they start alike and would hurt each other later."""
    phases = ThreadGroup(1, 10.0, phases=(Phase(0.5, 1.0, 0.0), Phase(0.5, 1.0, 80.0)))
    jobs = [Job(name, Profile((phases,)), walltime=50.0) for name in "ab"]
    found = [planned(sharing(bound), jobs, cluster_of(8, bandwidth=80.0)).jobs for bound in (1.1, 2.0)]
    assert [max(job.start_time for job in jobs) for jobs in found] == [10.0, 0.0]


@given(st.lists(ROW, min_size=1, max_size=12), st.sampled_from((1.0, 1.1, 1.5)))
@settings(max_examples=60, deadline=None)
def test_in_a_plan_nobody_takes_longer_than_the_bound(rows: list[tuple[float, float, int]], bound: float) -> None:
    jobs = [
        job_of(str(i), run, min(size, 4), bandwidth=20.0 * (size % 3), walltime=1e3)
        for i, (_, run, size) in enumerate(rows)
    ]
    found = planned(sharing(bound), jobs, cluster_of(4, 4, bandwidth=60.0))
    assert len(found.jobs) == len(jobs)
    for one in found.jobs:
        assert one.finish_time - one.start_time <= bound * one.isolated_run_time * (1 + 1e-6) + 1e-6


def test_a_queue_policy_does_not_oversubscribe() -> None:
    cluster = cluster_of(4, oversubscription=2.0)
    with pytest.raises(PolicyError, match=r"job 'a': it is never started: it needs 6 cores on each of 1 node, and"):
        planned(python_policies.Easy(), [job_of("a", 1.0, 6)], cluster)


def test_a_plan_that_is_run_again_does_not_oversubscribe_either() -> None:
    """The prediction interval of a plan on a cluster that allows three threads on each core."""
    known = Provenance("measured", runs=9, interval=(0.999, 1.001), spread=1e-4)
    profile = Profile((ThreadGroup(2, 10.0),), provenance=known)
    jobs = [Job(f"j{i}", profile, walltime=12.0) for i in range(4)]
    POLICIES["mine"] = QueueMapping("mine", lambda seed: python_policies.Strict())
    made = plan(Workflow("w", tuple(jobs)), cluster_of(2, oversubscription=3.0), policy="mine")
    assert made.makespan == 40.0 and made.makespan_within == pytest.approx((40.0, 40.0), rel=0.01)
    assert [job.within.latest for job in made.jobs if job.within] == pytest.approx([10, 20, 30, 40], rel=0.01)


def test_everything_may_be_rejected() -> None:
    made = planned(lambda now: [Reject(job) for job in now.waiting], [job_of("a", 1.0)], cluster_of(1), may_reject=True)
    assert (made.jobs, made.makespan, list(made.rejected)) == ((), 0.0, ["a"])


def test_what_is_rejected_is_left_out_with_what_waits_for_it_where_that_is_allowed() -> None:
    jobs = [job_of("a", 1.0), job_of("b", 1.0, after=("a",)), job_of("c", 1.0), job_of("d", 1.0, 6)]

    def decide(now: QueueView) -> Any:
        return [Reject(job) if job.id == "a" else Start(job) for job in now.waiting]

    made = planned(decide, jobs, cluster_of(4, oversubscription=2.0), may_reject=True)
    assert [job.id for job in made.jobs] == ["c"] and made.makespan == 1.0
    assert made.lower_bound == 0.0
    assert made.rejected == {
        "a": "policy mine rejects it",
        "b": "it waits for a job that is never started",
        "d": "it needs 6 cores on each of 1 node, and a queue policy does not oversubscribe",
    }


def test_a_policy_that_takes_too_long_is_cut() -> None:
    asked = iter([False, False, True])
    with pytest.raises(
        PolicyError, match=r"at 2\.0 s: a time limit or the end of the daemon came before all jobs were started"
    ):
        planned(
            python_policies.Strict(), [job_of(f"j{i}", 1.0) for i in range(9)], cluster_of(1),
            should_stop=lambda: next(asked),
        )  # fmt: skip


def test_a_policy_of_ones_own_promises_the_nodes_that_backfill_reserves() -> None:
    def decide(now: QueueView) -> Any:
        fill, decisions = now.backfill(), list[Any]()
        assert fill.nodes is None
        for job in now.waiting:
            if (start := fill.start(job)) is None and now.time == 0.0 and job.id == "wide":
                fill.reserve(job)
                start = Reserve(job, fill.reserved, fill.nodes)
            decisions += [start] if start is not None else []
        return decisions

    jobs = [job_of("a", 4.0, 2, walltime=4.0), job_of("wide", 5.0, 2, nodes=2, walltime=5.0), job_of("b", 2.0, 2)]
    asking, built_in = (planned(policy, jobs, cluster_of(2, 2, 1)) for policy in (decide, uncompiled(Easy(), 0)))
    promised = {job.id: job.reserved for job in asking.jobs}
    assert promised == {job.id: job.reserved for job in built_in.jobs}
    assert promised["wide"] is not None and promised["wide"].nodes == ("n0", "n1")


def test_a_late_running_job_does_not_stop_backfilling_or_reservations() -> None:
    """It has passed its walltime: the others are planned behind it, under every policy."""
    jobs = [
        job_of("r", 100.0, 3, walltime=10.0),
        job_of("wide", 5.0, 4, walltime=5.0),
        job_of("thin", 1.0, walltime=1.0),
    ]
    underway = [RunningJob("r", ("n0",), 0.5, elapsed_s=50.0)]
    for policy in (Easy(), Strict(), Conservative()):
        made = planned(uncompiled(policy, 0), jobs, cluster_of(4), underway=underway)
        start = {job.id: job.start_time for job in made.jobs}
        assert start["wide"] == pytest.approx(50.0, abs=2.0 if isinstance(policy, Strict) else 1e-6), policy
        assert math.isfinite(start["thin"])


def capped(share: float, order: str = "fcfs") -> QueuePolicy:
    policy = Saving(Easy(order), limit=PowerCap(cap=Amount(share, share=True)))
    return uncompiled(policy, 0, window=(-math.inf, math.inf))


@given(worlds(), st.sampled_from([0.6, 0.75, 0.9, 1.0]), st.sampled_from(["fcfs", "sjf"]))
@settings(max_examples=80, deadline=None)
def test_a_plan_stays_below_a_power_cap(world: tuple[list[Job], Cluster], share: float, order: str) -> None:
    """An idle core takes half of what a computing one does."""
    jobs, cluster = world
    power = {n: Power(float(n), computing=2.0 * n) for n in range(1, 7)}
    nodes = [replace(node, type=replace(node.type, power=power[node.type.cores])) for node in cluster.nodes]
    cluster = replace(cluster, nodes=tuple(nodes))
    allowed = math.floor(sum(node.type.cores for node in nodes) * (2.0 * share - 1.0) + 1e-9)
    cores = {job.id: job.profile.threads * job.nodes for job in jobs}
    if max(cores.values()) > allowed:
        with pytest.raises(PolicyError, match="it is never started: "):
            planned(capped(share, order), jobs, cluster)
        return
    made = planned(capped(share, order), jobs, cluster)
    for one in made.jobs:
        here = [job for job in made.jobs if job.start_time <= one.start_time < job.finish_time * (1 - 1e-9)]
        assert sum(cores[job.id] for job in here) <= allowed
    if share == 1.0:
        uncapped = planned(uncompiled(Easy(order), 0), jobs, cluster).jobs
        assert made.jobs == tuple(replace(one, reserved=None) for one in uncapped)


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (cluster_of(4), "policy .*: the power of this machine is not known"),
        (
            Cluster("c", tuple(Node(f"n{i}", replace(cluster_of(4).nodes[0].type, name=f"t{i}", power=Power(1.0 + i)))
                               for i in range(2))),
            "the resources of this machine differ in power",
        ),
    ],
)  # fmt: skip
def test_a_power_cap_needs_equal_and_known_powers(cluster: Cluster, why: str) -> None:
    with pytest.raises(PolicyError, match=why):
        planned(capped(0.9), [job_of("a", 5.0)], cluster)
