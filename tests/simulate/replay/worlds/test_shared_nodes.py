"""Replays on nodes that jobs share equal the reference, and satisfy their laws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotfish.profiles.prediction.online_run_times import OnlineRunTimes
from pilotfish.simulate.errors import ConfigError, PolicyError
from pilotfish.simulate.model.cluster import Cluster, ContendingThreads, Contention, Node, NodeType, Power
from pilotfish.simulate.model.machine import Powers, machine_of
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.energy.power_policies import PowerCap
from pilotfish.simulate.queue_policies.interface import Reject, Start, Wake
from pilotfish.simulate.queue_policies.policy_options import Amount, Sharing
from pilotfish.simulate.queue_policies.policy_specs import ON_NODES, Conservative, Easy, Saving, Strict, parse
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.node_allocation import NodeShapes
from pilotfish.simulate.world.replay_result import Replayed, pieces_by_job
from pilotfish.simulate.world.world_parts import Part
from tests.reference.plain_shared_nodes import Plain
from tests.reference.plain_sharing import PlainSharing
from tests.simulate.replay.test_replay import places
from tests.support import effort

TIMES = st.one_of(st.integers(0, 9).map(float), st.floats(0, 9).map(lambda time: round(time, 3)))
#: Gap, run time, walltime, size, GB/s per thread, GB per thread.
JOB_PARTS = (TIMES, TIMES, st.integers(1, 9), st.integers(0, 9), st.sampled_from((0, 0, 1, 3)))
JOB = st.tuples(TIMES, *JOB_PARTS)
ROWS = st.lists(JOB, min_size=1, max_size=9)


def kind(model: Contention, everyone: ContendingThreads, cores: int, ghz: float) -> NodeType:
    return NodeType(
        f"{model}-{everyone}-{cores}-{ghz}", cores, 8e9, 1e10, 1, ghz * 1e9, contention=model,
        contending_threads=everyone,
    )  # fmt: skip


MODELS = st.sampled_from((Contention.NONE, Contention.EQUAL_SHARE, Contention.MAX_MIN))
KINDS = st.builds(kind, MODELS, st.sampled_from(ContendingThreads), st.integers(1, 4), st.sampled_from((1.0, 2.5)))
#: Nodes of one type that differ in speed.
VARIANTS = st.builds(
    lambda kind, paces: [kind.at_pace(pace) for pace in paces],
    KINDS, st.lists(st.sampled_from((0.8, 1.0, 1.25)), min_size=2, max_size=6),
)  # fmt: skip
CLUSTERS = st.builds(
    lambda kinds, threads: Cluster(
        "c", tuple(Node(f"n{i}", each) for i, each in enumerate(kinds)), oversubscription=threads
    ),
    st.one_of(st.lists(KINDS, min_size=1, max_size=3), VARIANTS),
    st.sampled_from((1.0, 2.0)),
)
QUEUE = st.one_of(
    st.builds(Easy, st.sampled_from(("fcfs", "sjf", "wfp3", "random"))), st.builds(Strict), st.builds(Conservative)
)


def workload(rows: list[Any], **changes: Any) -> Workload:
    gaps, runs, walls, sizes, rates, memories = zip(*rows, strict=True)
    submit, run, wall = (np.array(column, np.float64) for column in (np.cumsum(gaps), runs, walls))
    more = {"volume": run * np.array(rates) * 1e9, "memory": np.array(memories) * 1e9}
    found = Workload("w", np.arange(1, len(rows) + 1), submit, run, wall, np.array(sizes, np.int64), more=more)
    return replace(found, **changes)


@st.composite
def graphs_of(draw: st.DrawFn, rows: st.SearchStrategy[list[Any]]) -> Workload:
    """Return jobs of one core without traffic that depend on earlier rows, some of which are killed."""
    jobs = workload([(gap, run, wall, 1, 0, 0) for gap, run, wall, *_ in draw(rows)])
    number = st.integers(0, len(jobs) - 1)
    pairs = [pair for pair in draw(st.sets(st.tuples(number, number), max_size=12)) if pair[0] < pair[1]]
    before, after = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    delays = draw(st.lists(st.sampled_from([0.0, 0.5, 3.0, 30.0]), min_size=len(pairs), max_size=len(pairs)))
    any_end = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return replace(jobs, dependencies=Dependencies(before, after, np.array(delays, float), np.array(any_end, bool)))


def shapes_of(jobs: Workload, cluster: Cluster) -> list[tuple[int, int] | None]:
    shapes = NodeShapes(cluster)
    return [shapes.of(int(size), float(memory)) for size, memory in zip(jobs.size, jobs.more["memory"], strict=True)]


def nodes_of(done: Replayed, limits: list[int]) -> dict[int, tuple[int, ...]]:
    """Return the nodes of each job that ran, from its resources; `limits`: resources of each node."""
    owner, pieces = pieces_by_job(done.pieces, done.piece0, done.piece_count)
    bounds = np.cumsum(limits)
    found: dict[int, set[int]] = {}
    for row, (first, last) in zip(owner.tolist(), pieces.tolist(), strict=True):
        found.setdefault(row, set()).update(np.searchsorted(bounds, np.arange(first, last + 1), "right").tolist())
    return {row: tuple(sorted(nodes)) for row, nodes in found.items()}


def agree(done: Replayed, plain: Plain) -> None:
    """Assert that a reference gives the same times."""
    starts = np.array([plain.state.start.get(row, math.nan) for row in range(len(done.workload))])
    ends = np.array([plain.state.finish.get(row, math.nan) for row in range(len(done.workload))])
    assert np.allclose(done.start_time, starts, rtol=1e-9, atol=1e-6, equal_nan=True)
    assert np.allclose(done.finish_time, ends, rtol=1e-9, atol=1e-6, equal_nan=True)
    assert set(np.flatnonzero(done.overran).tolist()) == plain.killed


@given(ROWS, CLUSTERS, st.sampled_from(list(ON_NODES)), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_mapping_policy_gives_the_schedule_of_the_reference(
    rows: list[Any], cluster: Cluster, policy: str, actual: bool
) -> None:
    jobs = workload(rows)
    done = replay(
        jobs, machine_of(cluster), parse(policy), run_times="actual" if actual else "walltime", contention=True
    )
    shapes = shapes_of(jobs, cluster)
    plain = Plain(jobs, cluster, shapes, actual=actual)
    found = nodes_of(done, [int(limit) for limit in cluster.thread_limits])
    plain.replay(policy, {row: found.get(row, ()) for row in range(len(jobs))})
    agree(done, plain)
    assert done.rejected.tolist() == [shape is None for shape in shapes]


class Recent:
    """Predicts the mean run time of the jobs of this size that have ended, 3 s at first."""

    def __init__(self, jobs: Workload) -> None:
        self.jobs, self.known = jobs, dict[int, list[float]]()

    def expected(self, row: int) -> float:
        return float(np.mean(self.known.get(int(self.jobs.size[row]), [3.0])))

    def ended(self, row: int, ran: float | None = None) -> None:
        self.known.setdefault(int(self.jobs.size[row]), []).append(float(self.jobs.run_time[row]))


#: Small jobs that share the bandwidth of few nodes, so that it matters how long the others are expected to go on.
STREAM = st.tuples(
    st.sampled_from((0.0, 0.5, 1.0)), st.sampled_from((1.0, 3.0, 8.0, 20.0)), st.just(60.0), st.integers(1, 2),
    st.integers(2, 9), st.just(0),
)  # fmt: skip
NARROW = st.builds(
    lambda model, nodes: Cluster("c", tuple(Node(f"n{i}", kind(model, ContendingThreads.ALL, 4, 1.0)) for i in nodes)),
    st.sampled_from((Contention.EQUAL_SHARE, Contention.MAX_MIN)), st.sampled_from((range(2), range(3))),
)  # fmt: skip


@given(
    *(st.one_of(ROWS, st.lists(STREAM, min_size=6, max_size=12)), st.one_of(CLUSTERS, NARROW)),
    *(st.sampled_from(list(ON_NODES)), st.sampled_from((0.0, 0.37, 1.93)), st.booleans()),
)
@settings(max_examples=300, deadline=None)
def test_a_mapping_policy_takes_time_and_hears_predictions_as_the_reference_does(
    rows: list[Any], cluster: Cluster, policy: str, takes: float, predicted: bool
) -> None:
    jobs = workload(rows)
    told, plainly = (Recent(jobs), Recent(jobs)) if predicted else ("walltime", None)
    done = replay(jobs, machine_of(cluster), parse(policy), decision_time=takes, run_times=told, contention=True)
    shapes = shapes_of(jobs, cluster)
    plain = Plain(jobs, cluster, shapes, actual=False)
    found = nodes_of(done, [int(limit) for limit in cluster.thread_limits])
    plain.replay(policy, {row: found.get(row, ()) for row in range(len(jobs))}, takes, plainly)
    agree(done, plain)


@given(ROWS, CLUSTERS, st.sampled_from(list(ON_NODES)), st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_mapping_policy_that_takes_no_time_decides_as_one_that_is_never_asked(
    rows: list[Any], cluster: Cluster, policy: str, follows: bool
) -> None:
    """The compiled loop, and the one that asks at each instant; a clock that stands still measures nothing."""
    jobs = workload(rows)
    if follows and len(jobs) > 1:
        jobs = replace(jobs, dependencies=Dependencies(np.array([0]), np.array([len(jobs) - 1])))
    once = replay(jobs, machine_of(cluster), parse(policy), contention=True)
    asked = replay(jobs, machine_of(cluster), parse(policy), decision_time=None, contention=True)
    told = replay(jobs, machine_of(cluster), parse(policy), run_times=Walltimes(), contention=True)
    for other in (asked, told):
        for column in ("submit_time", "start_time", "finish_time", "overran", "rejected", "stranded", "pieces"):
            assert np.array_equal(getattr(once, column), getattr(other, column), equal_nan=column[-4:] == "time"), (
                column
            )
        assert once.instants == other.instants


class Walltimes:
    """Knows nothing, so the walltimes count."""

    def expected(self, row: int) -> None:
        return None

    def ended(self, row: int, ran: float | None = None) -> None:
        return None


@given(ROWS, CLUSTERS, QUEUE)
@settings(max_examples=100, deadline=None)
def test_under_a_queue_policy_jobs_progress_as_in_the_reference(rows: list[Any], cluster: Cluster, policy: Any) -> None:
    jobs = workload(rows)
    done = replay(jobs, machine_of(cluster), policy, parts=(Part(),), contention=True)
    cores = [node.type.cores for node in cluster.nodes]
    ran = {row: float(done.start_time[row]) for row in np.flatnonzero(~done.rejected).tolist()}
    plain = Plain(jobs, cluster, shapes_of(jobs, cluster), actual=True)
    plain.follow(ran, nodes_of(done, cores))
    agree(done, plain)
    assert done.machine == sum(cores) and not done.stranded.any()


@given(ROWS, st.integers(1, 9), QUEUE, st.booleans())
@settings(max_examples=100, deadline=None)
def test_on_one_node_without_contention_it_is_the_rigid_replay(
    rows: list[Any], cores: int, policy: Any, predicted: bool
) -> None:
    rows = [(gap, max(run, 0.5), max(wall, 0.5), size, 0, 0) for gap, run, wall, size, *_ in rows]
    if policy.order == "random":
        policy = replace(policy, order="fcfs")
    jobs, node = workload(rows), kind(Contention.NONE, ContendingThreads.ALL, cores, 1.0)
    known = [OnlineRunTimes(jobs) if predicted else "walltime" for _ in range(2)]
    done = replay(
        jobs, machine_of(Cluster("c", (Node("n", node),))), policy, run_times=known[0], parts=(Part(),), contention=True
    )
    rigid = replay(jobs, cores, policy, run_times=known[1])
    assert np.allclose(done.start_time, rigid.start_time, rtol=0, atol=1e-6, equal_nan=True)
    assert np.allclose(done.finish_time, rigid.finish_time, rtol=0, atol=1e-6, equal_nan=True)
    assert done.overran.tolist() == rigid.overran.tolist() and done.rejected.tolist() == rigid.rejected.tolist()


@given(ROWS, CLUSTERS, st.sampled_from([*ON_NODES, "easy", "conservative"]))
@settings(max_examples=60, deadline=None)
def test_no_core_twice_and_memory_only_slows_down(rows: list[Any], cluster: Cluster, policy: str) -> None:
    jobs = workload(rows)
    done = replay(jobs, machine_of(cluster), parse(policy), contention=True)
    owner, pieces = pieces_by_job(done.pieces, done.piece0, done.piece_count)
    held = np.concatenate(
        [[done.start_time[owner], done.finish_time[owner]], pieces["first"][None], pieces["last"][None]]
    )
    for begin, end, first, last in held.T:
        both = (held[0] < end) & (held[1] > begin) & (held[2] <= last) & (held[3] >= first)
        assert both.sum() == (begin < end)
    ran = ~done.rejected & ~done.overran
    fastest = max(kind.relative_speed for kind in cluster.types) / min(kind.relative_speed for kind in cluster.types)
    assert (done.finish_time - done.start_time >= jobs.run_time / fastest - 1e-6)[ran].all()
    assert (done.start_time >= jobs.submit_time - 1e-9)[ran].all()


def lab(nodes: int = 1, model: Contention = Contention.EQUAL_SHARE) -> Cluster:
    each = kind(model, ContendingThreads.ALL, 4, 1.0)
    return Cluster("lab", tuple(Node(f"n{i}", each) for i in range(nodes)))


#: Two jobs of two threads, each of which would use all of the memory bandwidth of a node.
STREAMS = [(0.0, 10.0, 99.0, 2, 5, 0), (0.0, 10.0, 99.0, 2, 5, 0)]


@pytest.mark.parametrize("policy", [*ON_NODES, "easy", "strict", "conservative"])
def test_two_jobs_that_need_all_of_the_bandwidth_take_twice_as_long(policy: str) -> None:
    done = replay(workload(STREAMS), machine_of(lab()), parse(policy), contention=True)
    assert done.finish_time.tolist() == pytest.approx([20.0, 20.0])
    apart = replay(workload(STREAMS), machine_of(lab(2)), parse(policy), contention=True)
    expected = 10.0 if policy in ("slf", "let", "mom") else 20.0  # the others know nothing of a job that starts now
    assert apart.finish_time.tolist() == pytest.approx([expected] * 2)


@pytest.mark.parametrize("policy", ["mom", "easy"])
def test_a_job_that_is_slowed_down_beyond_its_walltime_is_killed_and_strands_its_followers(policy: str) -> None:
    rows = [(0.0, 10.0, 15.0, 2, 5, 0), (0.0, 10.0, 99.0, 2, 5, 0), (0.0, 1.0, 5.0, 1, 0, 0), (0.0, 1.0, 5.0, 1, 0, 0)]
    jobs = workload(rows, dependencies=Dependencies(np.array([0, 1]), np.array([2, 3])))
    done = replay(jobs, machine_of(lab()), parse(policy), contention=True)
    assert done.overran.tolist() == [True, False, False, False]
    assert done.finish_time[:2].tolist() == pytest.approx([15.0, 17.5])
    assert done.stranded.tolist() == [False, False, True, False]
    assert done.submit_time[3] == done.start_time[3] == done.finish_time[1]


class Own:
    """Sleeps for a second, rejects jobs of 3, and starts the others on the highest nodes."""

    def decide(self, now: Any) -> Any:
        if now.submitted:
            yield Wake(now.time + 1.0)
        free = now.free_nodes()
        for job in list(now.waiting):
            if job.size == 3:
                yield Reject(job)
            elif now.time >= job.submit_time + 1.0:
                fits = np.flatnonzero(free.cores >= free.need(job).cores)[::-1][: job.nodes].tolist()
                free.take(job, tuple(fits))
                yield Start(job, nodes=fits)


class Breaks:
    def decide(self, now: Any) -> Any:
        return 1 / len(now.ended)


def test_a_policy_of_ones_own_decides_and_takes_time() -> None:
    jobs = workload([*STREAMS, (0.0, 1.0, 5.0, 3, 0, 0)])
    done = replay(jobs, machine_of(lab(2)), Own(), decision_time=0.5, parts=(Part(),), contention=True)
    assert done.start_time[:2].tolist() == pytest.approx([1.5, 1.5])
    assert done.finish_time[:2].tolist() == pytest.approx([21.5, 21.5])
    assert done.rejected.tolist() == [False, False, True]
    assert nodes_of(done, [4, 4]) == {0: (1,), 1: (1,)}
    with pytest.raises(PolicyError, match=r"Breaks: at 0.0 s: ZeroDivisionError"):
        replay(jobs, machine_of(lab()), Breaks(), parts=(Part(),), contention=True)


@pytest.mark.parametrize("order", ["fcfs", "wfp3", "unicep"])
@pytest.mark.parametrize("decision_time", [0.0, 0.25])
def test_a_bound_goes_with_every_order_and_with_decisions_that_take_time(order: str, decision_time: float) -> None:
    for share, decisions in (("none", 2), ("1.2", 2), ("2", 1)):
        policy = parse(f"easy:order={order},share={share}")
        done = replay(workload(STREAMS), machine_of(lab()), policy, decision_time=decision_time, contention=True)
        assert done.finish_time.max() == pytest.approx(20.0 + decision_time * decisions), share


def test_what_cannot_be_replayed_is_said() -> None:
    endless = workload([(0.0, 5.0, math.inf, 1, 0, 0)])
    with pytest.raises(ConfigError, match=r"it has no walltime to plan with \(1 of 1 job\).*--runtimes actual"):
        replay(endless, machine_of(lab()), parse("mom"), contention=True)
    assert replay(endless, machine_of(lab()), parse("slf"), contention=True).finish_time.tolist() == [5.0]
    assert replay(
        endless, machine_of(lab()), parse("mom"), run_times="actual", contention=True
    ).finish_time.tolist() == [5.0]
    with pytest.raises(ConfigError, match="oversubscription"):
        replay(endless, machine_of(replace(lab(), oversubscription=math.inf)), parse("slf"), contention=True)
    with pytest.raises(ConfigError, match="it communicates"):
        replay(workload([(0.0, math.nan, 5.0, 1, 0, 0)]), machine_of(lab()), parse("slf"), contention=True)


# --- EASY and strict order, compiled ---
ORDERED = st.one_of(
    st.builds(
        Easy,
        st.sampled_from(("fcfs", "sjf", "smallest", "largest", "f1")),
        st.sampled_from([Sharing(), *map(Sharing, (0.0, 1.0, 1.1, 1.5))]),
    ),
    st.builds(Strict, st.sampled_from(("fcfs", "largest"))),
)
#: Jobs that come in quick succession, so that many wait.
CROWD = st.lists(st.tuples(st.sampled_from((0.0, 0.0, 0.5, 1.0)), *JOB_PARTS), min_size=2, max_size=14)


@given(CROWD, CLUSTERS, ORDERED, st.booleans())
@settings(max_examples=250, deadline=None)
def test_compiled_backfilling_is_that_in_python(
    rows: list[Any], cluster: Cluster, policy: Easy | Strict, actual: bool
) -> None:
    alike(workload(rows), cluster, policy, "actual" if actual else "walltime")


#: One core of four is free for the last job, for less time than the first jobs are late: it delays no reservation.
OUTLASTED = [(0.0, 10.0, 9, 1, 9, 0), (0.0, 10.0, 9, 2, 9, 0), (1.0, 5.0, 9, 4, 0, 0), (12.0, 2.0, 9, 1, 0, 0)]
FOUR = Cluster("c", (Node("n0", kind(Contention.EQUAL_SHARE, ContendingThreads.ALL, 4, 1.0)),))


@given(CROWD, st.lists(JOB, max_size=4), CLUSTERS, ORDERED)
@example(OUTLASTED[:3], OUTLASTED[3:], FOUR, Easy())
@example(OUTLASTED[:3], OUTLASTED[3:], FOUR, Easy(share=Sharing(9.0)))
@settings(max_examples=100, deadline=None)
def test_a_reservation_is_made_again_once_a_job_has_outlasted_its_expected_end(
    rows: list[Any], late: list[Any], cluster: Cluster, policy: Easy | Strict
) -> None:
    jobs = workload([*rows, *late])
    done = alike(replace(jobs, walltime=np.full(len(jobs), 1e3)), cluster, policy, "actual")
    if rows == OUTLASTED[:3] and cluster is FOUR:
        assert done.start_time[3] == jobs.submit_time[3]


def alike(jobs: Workload, cluster: Cluster, policy: Easy | Strict, told: str) -> Replayed:
    """Return the schedule of the compiled policy; assert that it is that of its form in Python."""
    compiled = replay(jobs, machine_of(cluster), policy, run_times=told, contention=True)
    python = replay(jobs, machine_of(cluster), policy, run_times=told, parts=(Part(),), contention=True)
    for column in ("start_time", "finish_time", "overran", "rejected", "stranded"):
        assert np.array_equal(getattr(compiled, column), getattr(python, column), equal_nan=True), column
    for row in np.flatnonzero(~compiled.rejected).tolist():
        assert len(places(python, row)) == len(places(compiled, row)) == jobs.size[row]
    cores = [node.type.cores for node in cluster.nodes]
    assert nodes_of(compiled, cores) == nodes_of(python, cores) and compiled.machine == python.machine == sum(cores)
    return compiled


@pytest.mark.parametrize(
    "spec", effort.some(["easy", "easy:order=sjf", "easy:order=largest", "easy:share=1.5", "strict"])
)
@pytest.mark.parametrize("paces", [(1.0,), (1.0, 0.9, 1.1, 1.0)])
def test_compiled_backfilling_is_that_in_python_where_hundreds_run_and_wait(
    spec: str, paces: tuple[float, ...]
) -> None:
    """Wide and narrow jobs, so that reservations move, are given up, and hold many nodes."""
    rng, count, node = np.random.default_rng(3), 300, kind(Contention.MAX_MIN, ContendingThreads.ALL, 4, 1.0)
    types = [node.at_pace(pace) for pace in paces]
    cluster = Cluster("c", tuple(Node(f"n{i}", types[i % len(types)]) for i in range(80)))
    sizes = rng.choice([1, 2, 3, 40, 200], count, p=[0.6, 0.2, 0.1, 0.07, 0.03])
    runs = np.round(rng.lognormal(3, 1, count), 1) + 1
    gaps = np.round(rng.exponential(0.3 * (sizes * runs).mean() / 320, count), 1)
    walls, rates, memories = (rng.choice(some, count) for some in ([2, 4, 9], [0, 1, 4], [0, 1, 3]))
    rows = zip(gaps, runs, runs * walls, sizes, rates, memories, strict=True)
    jobs = workload([tuple(row) for row in rows])
    compiled, python = (
        replay(jobs, machine_of(cluster), parse(spec), contention=True),
        replay(jobs, machine_of(cluster), parse(spec), parts=(Part(),), contention=True),
    )
    for column in ("start_time", "finish_time", "overran", "rejected"):
        assert np.array_equal(getattr(compiled, column), getattr(python, column), equal_nan=True), column
    assert nodes_of(compiled, [4] * 80) == nodes_of(python, [4] * 80)
    running = [((compiled.start_time <= now) & (compiled.finish_time > now)).sum() for now in compiled.start_time]
    waiting = [((jobs.submit_time <= now) & (compiled.start_time > now)).sum() for now in compiled.start_time]
    assert max(running) > 64 and max(waiting) > 30


@given(CROWD, CLUSTERS, st.sampled_from((1.0, 1.1, 1.5, 2.0)), st.sampled_from((Easy, Conservative)))
@settings(max_examples=150, deadline=None)
def test_no_job_is_slowed_down_by_more_than_the_bound(
    rows: list[Any], cluster: Cluster, bound: float, policy: type[Easy] | type[Conservative]
) -> None:
    jobs = workload(rows)
    jobs = replace(jobs, walltime=np.full(len(jobs), 1e3))
    done = replay(jobs, machine_of(cluster), policy(share=Sharing(bound)))
    alone = np.array([alone_on(cluster, jobs, row) for row in range(len(jobs))])
    ran = ~done.rejected
    assert ((done.finish_time - done.start_time) <= alone * bound * (1 + 1e-6) + 1e-6)[ran].all()
    free = replay(jobs, machine_of(cluster), Easy(), contention=True)
    assert done.rejected.tolist() == free.rejected.tolist(), "each job that fits is started some time"


@pytest.mark.parametrize("spec", ["easy:share=1.2", "strict", "conservative:share=1.2", "easy:share=none"])
@pytest.mark.parametrize("takes", [0.0, 0.5])
def test_a_job_that_slows_itself_down_starts_where_it_is_alone(spec: str, takes: float) -> None:
    """Its nodes share a memory, of which its threads want more than there is; so does the job after it."""
    one = kind(Contention.EQUAL_SHARE, ContendingThreads.ALL, 1, 1.0)
    cluster = Cluster("c", tuple(Node(name, one, "both") for name in "ab"))
    jobs = workload([(0.0, 1.0, 9.0, 2, 8, 0), (0.0, 1.0, 9.0, 2, 8, 0)])
    done = replay(jobs, machine_of(cluster), parse(spec), contention=True, decision_time=takes)
    assert not done.rejected.any()
    assert (done.finish_time - done.start_time).tolist() == pytest.approx([1.6, 1.6])
    assert done.start_time[1] >= done.finish_time[0]


def alone_on(cluster: Cluster, jobs: Workload, row: int) -> float:
    """Return the longest run time of a job that has the cluster for itself, on whatever nodes."""
    times = []
    for kind in cluster.types:
        same = tuple(replace(node, type=kind) for node in cluster.nodes if node.type is kind)
        some = replay(
            jobs.take(np.array([row])), machine_of(replace(cluster, nodes=same)), parse("slf"), contention=True
        )
        times.append(float(some.finish_time[0] - some.start_time[0]))
    return float(np.nanmax(times)) if not np.isnan(times).all() else math.inf


@given(CROWD, CLUSTERS, st.sampled_from((Easy, Conservative)))
@settings(max_examples=100, deadline=None)
def test_without_sharing_each_job_has_nodes_of_its_own(
    rows: list[Any], cluster: Cluster, policy: type[Easy] | type[Conservative]
) -> None:
    jobs = workload(rows)
    done = replay(jobs, machine_of(cluster), policy(share=Sharing(0.0)))
    nodes = nodes_of(done, [node.type.cores for node in cluster.nodes])
    for one, mine in nodes.items():
        for other, theirs in nodes.items():
            if one < other and set(mine) & set(theirs):
                begin = max(done.start_time[one], done.start_time[other])
                assert begin >= min(done.finish_time[one], done.finish_time[other])


def test_streams_wait_for_each_other_where_the_bound_is_small() -> None:
    jobs = workload([*STREAMS, (0.0, 10.0, 10.0, 2, 0, 0)])
    starts = {}
    for share in (0.0, 1.0, 1.5, 2.0, math.inf):
        done = replay(jobs, machine_of(lab(model=Contention.MAX_MIN)), Easy(share=Sharing(share)), contention=True)
        starts[share] = done.start_time.tolist()
    assert starts[math.inf] == starts[2.0] == [0.0, 0.0, 20.0]
    assert starts[1.0] == starts[1.5] == [0.0, 10.0, 0.0]
    assert starts[0.0] == [0.0, 10.0, 20.0]


@given(CROWD, CLUSTERS, st.sampled_from((0.0, 1.0, 1.1, 1.5)), st.sampled_from(("fcfs", "sjf", "largest")))
@settings(max_examples=150, deadline=None)
def test_conservative_with_a_bound_is_the_reference(
    rows: list[Any], cluster: Cluster, bound: float, order: str
) -> None:
    jobs = workload(rows)
    plain = PlainSharing(order, bound, [node.type.relative_speed for node in cluster.nodes])
    done = replay(jobs, machine_of(cluster), Conservative(order, share=Sharing(bound)))
    expected = replay(jobs, machine_of(cluster), plain, parts=(Part(),), contention=True)
    for column in ("start_time", "finish_time", "overran", "rejected"):
        assert np.array_equal(getattr(done, column), getattr(expected, column), equal_nan=True), column
    cores = [node.type.cores for node in cluster.nodes]
    assert nodes_of(done, cores) == nodes_of(expected, cores)
    for row, reserved in plain.first.items():
        assert done.start_time[row] <= reserved, "a reservation is a promise"


# --- what if ---
class Asks:
    """Starts jobs on the lowest nodes that fit; asks for a forecast before the last one starts."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.found: Any = None

    def decide(self, now: Any) -> Any:
        free = now.free_nodes()
        for job in list(now.waiting):
            nodes = free.where(job)
            if nodes is None or (job.number == self.last and len(now.waiting) > 1):
                continue
            if job.number == self.last:
                self.found = now.forecast(job, nodes)
            free.take(job, nodes)
            yield Start(job, nodes=nodes)


@given(CROWD, CLUSTERS)
@example([(0.0, 2.0, 0.0, 1, 0, 0), (0.0, 1.0, 0.0, 1, 6, 0)], lab())  # alone is not next to what runs already
@settings(max_examples=150, deadline=None)
def test_a_forecast_comes_true_if_nothing_else_starts(rows: list[Any], cluster: Cluster) -> None:
    """The last job comes when all others run or have ended; without it, they end as they would have."""
    early = [(0.0, run, 0.0, size, rate, memory) for _, run, _, size, rate, memory in rows[:-1]]
    jobs = replace(workload([*early, (1.0, *rows[-1][1:])]), walltime=np.full(len(rows), 1e6))
    jobs = replace(jobs, more={**jobs.more, "memory": np.zeros(len(jobs))})
    last = len(rows) - 1
    policy = Asks(last)
    with_it = replay(jobs, machine_of(cluster), policy, run_times="actual", parts=(Part(),), contention=True)
    without = replay(
        jobs.take(np.arange(last)),
        machine_of(cluster),
        Asks(last),
        run_times="actual",
        parts=(Part(),),
        contention=True,
    )
    if with_it.rejected[last]:
        assert policy.found is None
        return
    found, start = policy.found, with_it.start_time[last]
    assert found.end == pytest.approx(with_it.finish_time[last], abs=1e-6)
    alone = alone_at(cluster, jobs, last, nodes_of(with_it, [node.type.cores for node in cluster.nodes])[last])
    assert found.slowdown == pytest.approx(max(1.0, (found.end - start) / alone), rel=1e-6)
    went_on = ~without.rejected & (without.finish_time > start)
    left, then = (done.finish_time[:last][went_on] - start for done in (without, with_it))
    assert found.delay_s == pytest.approx(float((then - left).sum()), abs=1e-6)
    assert found.others == pytest.approx(max([1.0, *(then / left).tolist()]), rel=1e-6)


def alone_at(cluster: Cluster, jobs: Workload, row: int, nodes: tuple[int, ...]) -> float:
    """Return the run time of a job that has these nodes for itself."""
    there = replace(cluster, nodes=tuple(cluster.nodes[node] for node in nodes))
    slowest = min(cluster.types, key=lambda kind: kind.relative_speed)
    factor = min(kind.relative_speed for kind in there.types) / slowest.relative_speed
    some = jobs.take(np.array([row]))
    some = replace(some, run_time=some.run_time / factor)
    done = replay(some, machine_of(there), Easy(), run_times="actual", parts=(Part(),), contention=True)
    return max(float(done.finish_time[0] - done.start_time[0]), 1e-6)


def test_a_policy_of_ones_own_can_avoid_what_hurts() -> None:
    """Two streams and two nodes: a policy that asks starts them on different nodes."""

    class Gentle:
        def decide(self, now: Any) -> Any:
            for job in list(now.waiting)[:1]:
                costs = {node: now.forecast(job, (node,)).delay_s for node in range(len(now.machine.nodes))}
                yield Start(job, nodes=(min(costs, key=lambda node: costs[node]),))

    rows = [STREAMS[0], (1.0, *STREAMS[1][1:])]
    done = replay(workload(rows), machine_of(lab(2)), Gentle(), parts=(Part(),), contention=True)
    assert done.finish_time.tolist() == pytest.approx([10.0, 11.0])
    rigid = replay(workload(rows), 4, Asks(1))
    assert rigid.finish_time.tolist() == [10.0, 11.0]


# --- mapping policies under a power cap ---
SPANS = st.tuples(st.sampled_from((-math.inf, 1.0, 3.5)), st.sampled_from((math.inf, 5.0, 12.0)))
CAPS = st.builds(
    lambda percent, span: PowerCap(span[0], span[1], Amount(percent / 100, share=True)), st.integers(55, 100), SPANS
)
ALIKE = st.builds(
    lambda each, count: Cluster("c", tuple(Node(f"n{i}", replace(each, power=Power(8.0, 4.0))) for i in range(count))),
    KINDS, st.integers(1, 4),
)  # fmt: skip


@given(ROWS, ALIKE, st.sampled_from(list(ON_NODES)), CAPS, st.sampled_from((0.0, 0.0, 0.37, 1.93)), st.booleans())
@settings(max_examples=200, deadline=None)
def test_a_mapping_policy_under_a_power_cap_is_the_reference(
    rows: list[Any], cluster: Cluster, policy: str, cap: PowerCap, takes: float, predicted: bool
) -> None:
    jobs, machine, shapes = workload(rows), machine_of(cluster), shapes_of(workload(rows), cluster)
    told, plainly = (Recent(jobs), Recent(jobs)) if predicted else ("walltime", None)
    capped = Saving(parse(policy), limit=cap)
    done = replay(jobs, machine, capped, decision_time=takes, run_times=told)
    assert isinstance(machine.powers, Powers)
    window, allowed = cap.window(jobs) or (0.0, 0.0), cap.allowed(machine.powers, machine.processors)
    forbidden = [shape is None or (window[1] == math.inf and shape[0] * shape[1] > allowed) for shape in shapes]
    assert done.rejected.tolist() == forbidden
    plain = Plain(
        jobs, cluster, [None if no else shape for no, shape in zip(forbidden, shapes, strict=True)], actual=False
    )
    found = nodes_of(done, [int(limit) for limit in cluster.thread_limits])
    plain.replay(policy, {row: found.get(row, ()) for row in range(len(jobs))}, takes, plainly, (*window, allowed))
    agree(done, plain)
    held = np.array([0 if shape is None else shape[0] * shape[1] for shape in shapes])
    for time in done.start_time.tolist():
        if window[0] + takes <= time < window[1]:
            assert held[(done.start_time <= time) & (done.finish_time > time)].sum() <= allowed


@given(ROWS, ALIKE, st.sampled_from(list(ON_NODES)))
@settings(max_examples=100, deadline=None)
def test_a_cap_that_caps_nothing_changes_nothing(rows: list[Any], cluster: Cluster, policy: str) -> None:
    capped = parse(f"{policy}+powercap:cap=100%")
    done, base = (replay(workload(rows), machine_of(cluster), each) for each in (capped, parse(policy)))
    for column in ("start_time", "finish_time", "pieces", "rejected"):
        assert np.array_equal(getattr(done, column), getattr(base, column), equal_nan=column[-4:] == "time"), column


@given(CROWD, ALIKE, st.sampled_from((0.0, 1.0, 1.5)), st.sampled_from(("fcfs", "largest")), CAPS)
@settings(max_examples=150, deadline=None)
def test_conservative_with_a_bound_under_a_power_cap_is_the_reference(
    rows: list[Any], cluster: Cluster, bound: float, order: str, cap: PowerCap
) -> None:
    jobs, machine = workload(rows), machine_of(cluster)
    assert isinstance(machine.powers, Powers)
    limit = *(cap.window(jobs) or (0.0, 0.0)), cap.allowed(machine.powers, machine.processors)
    plain = PlainSharing(order, bound, [1.0] * len(cluster.nodes), limit)
    done = replay(jobs, machine, Saving(Conservative(order, share=Sharing(bound)), limit=cap))
    expected = replay(jobs, machine_of(cluster), plain, parts=(Part(),), contention=True)
    for column in ("start_time", "finish_time", "overran", "rejected"):
        assert np.array_equal(getattr(done, column), getattr(expected, column), equal_nan=True), column
    cores = [node.type.cores for node in cluster.nodes]
    assert nodes_of(done, cores) == nodes_of(expected, cores)
    for row, reserved in plain.first.items():
        assert done.start_time[row] <= reserved, "a reservation is a promise"


@given(
    graphs_of(ROWS), st.sampled_from(["mom", "slf", "easy", "strict", "conservative"]), st.sampled_from([0.0, 0.125])
)
@settings(max_examples=60, deadline=None)
def test_a_job_is_submitted_when_the_delay_after_the_jobs_before_it_is_over(
    jobs: Workload, policy: str, decision_time: float
) -> None:
    """With room for all jobs, they start when they are submitted, or `decision_time` later."""
    cluster = lab(12)
    done = replay(jobs, machine_of(cluster), parse(policy), contention=True, decision_time=decision_time)
    given, late = jobs.dependencies, done.overran
    assert given is not None
    for row in range(len(jobs)):
        pairs = given.after == row
        before, delays = given.before[pairs], given.delays[pairs]
        met = (~done.rejected[before]) & (given.at_any_end[pairs] | ~late[before])
        assert done.rejected[row] == (not met.all())
        if met.all():
            submitted = max([jobs.submit_time[row], *(done.finish_time[before] + delays).tolist()])
            assert done.submit_time[row] == pytest.approx(submitted)
            assert submitted - 1e-6 <= done.start_time[row] <= submitted + 2 * decision_time + 1e-6
