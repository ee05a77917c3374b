"""The daemon in a trace: the same schedule each time, the one that is right, and laws that hold for any."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.planning.problem import WINDOW, Options
from pilotfish.daemon.report.delays import PHASES, Delays
from pilotfish.daemon.trace_run import DaemonReplay, DrawnDelays, TraceJobs, TraceRun
from pilotfish.profiles.prediction.online_run_times import OnlineRunTimes
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.generate.models import lublin
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.planning.mapping_policies import POLICIES
from pilotfish.simulate.planning.queue_mapping import QueueMapping
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.node_allocation import spread
from pilotfish.simulate.world.replay_result import pieces_by_job
from tests.reference.plain_first_fit import first_fit
from tests.support import effort
from tests.support.python_policies import Patient

Row = tuple[float, float, float, int]


def cluster_of(nodes: int, cores: int = 4, **changes) -> Cluster:
    kind = NodeType("t", cores, 8e9, 1e10, contention=Contention.MAX_MIN)
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i in range(nodes)), **changes)


def workload_of(rows: list[Row], **more) -> Workload:
    submit, run, wall, size = (np.array(column) for column in zip(*rows, strict=True))
    return Workload(
        "trace", np.arange(len(rows)), submit.astype(float), run.astype(float), wall.astype(float), size, **more
    )


def played(
    jobs: Workload,
    cluster: Cluster,
    policy: str = "slf",
    runtimes: str = "walltime",
    takes: float | None = 0.0,
    delays: DrawnDelays | None = None,
    **changes,
) -> DaemonReplay:
    told = TraceJobs(jobs, cluster, runtimes, OnlineRunTimes(jobs) if runtimes == "predicted" else None)
    options = Options(policy=policy, objective="turnaround", window=changes.pop("window", WINDOW), **changes)
    guard = Guard(bound=0.5, window=20, fallback="slf")
    adapter = SimulatedAdapter(cluster, truth=told.truth, delays=delays and delays.of_run)
    run = TraceRun(told, adapter, options, guard, decision_time=takes, delays=delays)
    return run.run(progress=lambda now: None, clock=lambda: 0.0)


def rows_of(times: st.SearchStrategy[float]) -> st.SearchStrategy[list[Row]]:
    limit = times.filter(lambda time: time > 0)
    free = st.tuples(times, times, limit, st.integers(1, 9))
    exact = st.tuples(times, limit, st.integers(1, 9)).map(lambda job: (job[0], job[1], job[1], job[2]))
    return st.lists(free | exact, min_size=1, max_size=12).map(sorted)


WHOLE, ANY = st.integers(0, 40), st.floats(0, 40).map(lambda time: round(time, 3))


@given(rows_of(WHOLE), st.integers(1, 9))
def test_one_node_without_foresight_is_first_fit(rows: list[Row], cores: int) -> None:
    done = played(workload_of(rows), cluster_of(1, cores)).replayed
    expected = np.array(first_fit(rows, cores))
    assert np.allclose(done.start_time, expected[:, 0], rtol=0, atol=1e-4, equal_nan=True)
    assert np.allclose(done.finish_time, expected[:, 1], rtol=0, atol=1e-4, equal_nan=True)


@given(rows_of(WHOLE), st.integers(1, 3), st.sampled_from(("slf", "let", "mom")), st.booleans())
@settings(max_examples=40)
def test_the_compiled_replay_of_a_mapping_policy_is_that_of_the_daemon(
    rows: list[Row], nodes: int, policy: str, actual: bool
) -> None:
    jobs, cluster, told = workload_of(rows), cluster_of(nodes), "actual" if actual else "walltime"
    live = played(jobs, cluster, policy, told).replayed
    compiled = replay(jobs, machine_of(cluster), parse(policy), run_times=told, contention=True)
    for column in ("start_time", "finish_time", "overran", "rejected"):
        assert np.allclose(getattr(live, column), getattr(compiled, column), rtol=0, atol=1e-6, equal_nan=True)
    assert np.array_equal(live.pieces, compiled.pieces)


def test_a_policy_is_called_when_it_wants_to_though_nothing_happens() -> None:
    POLICIES["patient"] = QueueMapping("patient", lambda seed: Patient(5.0))
    done = played(workload_of([(0.0, 50.0, 60.0, 1), (3.5, 20.0, 25.0, 1)]), cluster_of(1), "patient")
    assert done.replayed.start_time.tolist() == [5.0, 8.5] and not done.failures


def test_a_job_that_ends_at_its_walltime_has_ended_by_itself() -> None:
    """Zero run times are simulated as 1e-6 s, so that the last job's times are rounded."""
    rows = [(0.0, 0.0, 1.0, 1)] * 5 + [(0.0, 9.0, 9.0, 1)]
    assert not played(workload_of(rows), cluster_of(1), "lookahead", budget=20).replayed.overran.any()


def law_no_core_twice(done: DaemonReplay) -> None:
    replayed = done.replayed
    owner, pieces = pieces_by_job(replayed.pieces, replayed.piece0, replayed.piece_count)
    held = [
        (int(job), set(range(first, last + 1)))
        for job, (first, last) in zip(owner, pieces[["first", "last"]].tolist(), strict=True)
    ]
    for (a, mine), (b, theirs) in itertools.combinations(held, 2):
        apart = replayed.finish_time[a] <= replayed.start_time[b] or replayed.finish_time[b] <= replayed.start_time[a]
        assert apart or mine.isdisjoint(theirs), (a, b)
    sizes = np.zeros(len(replayed.workload), int)
    np.add.at(sizes, owner, pieces["last"] - pieces["first"] + 1)
    assert (sizes == np.where(replayed.rejected, 0, replayed.workload.size)).all()


@pytest.mark.parametrize("policy", effort.some(["slf", "mom", "lookahead"], 2))
@pytest.mark.parametrize("runtimes", ["walltime", "predicted", "actual"])
def test_the_laws_of_any_schedule(policy: str, runtimes: str) -> None:
    @settings(max_examples=12)
    @given(rows_of(ANY), st.integers(1, 3), st.sampled_from((0.0, 0.0, 3.25)))
    def hold(rows: list[Row], nodes: int, takes: float) -> None:
        jobs = workload_of(rows)
        done = played(jobs, cluster_of(nodes), policy, runtimes, takes, budget=20)
        replayed, ran = done.replayed, ~done.replayed.rejected
        assert (ran == [spread(row[3], [4] * nodes) is not None for row in rows]).all()
        assert sum(done.not_started.values()) == (~ran & (jobs.size <= 4 * nodes)).sum()
        assert (replayed.start_time[ran] >= jobs.submit_time[ran] + takes - 1e-9).all()
        run = np.minimum(jobs.run_time, jobs.walltime)[ran]
        assert np.allclose((replayed.finish_time - replayed.start_time)[ran], run, rtol=0, atol=1e-5)
        assert (replayed.overran == ((jobs.run_time > jobs.walltime) & ran)).all()
        law_no_core_twice(done)

    hold()


def test_a_plan_that_takes_time_is_carried_out_when_it_is_made() -> None:
    """Jobs that come meanwhile are planned next; ends are, too. A clock that stands still measures nothing."""
    rows = [(0.0, 3.0, 3.0, 4), (1.0, 2.0, 2.0, 2), (9.0, 1.0, 1.0, 1)]
    done = played(workload_of(rows), cluster_of(1), takes=2.0).replayed
    assert done.start_time.tolist() == [2.0, 7.0, 11.0] and done.finish_time.tolist() == [5.0, 9.0, 12.0]
    jobs = lublin(40, 16, load=1.1, seed=5)
    at_once, measured = (played(jobs, cluster_of(4), "mom", takes=takes).replayed for takes in (0.0, None))
    assert at_once.start_time.tobytes() == measured.start_time.tobytes()


@pytest.mark.parametrize(
    ("policy", "runtimes"),
    effort.some(
        [("slf", "walltime"), ("mom", "walltime"), ("mom", "predicted"), ("mom", "actual"), ("lookahead", "walltime")]
    ),
)
def test_a_trace_has_one_schedule(policy: str, runtimes: str) -> None:
    jobs = lublin(40, 16, load=1.1, seed=3)
    first, second = (played(jobs, cluster_of(4), policy, runtimes, window=8) for _ in range(2))
    assert first.replayed.start_time.tobytes() == second.replayed.start_time.tobytes()
    assert first.replayed.pieces.tobytes() == second.replayed.pieces.tobytes()
    assert first.counts() == second.counts() and summarise(first.replayed).mean_waiting_time > 0
    assert first.plans.keys() == {policy}


def test_a_planner_that_knows_the_run_times_uses_them() -> None:
    """A short job may pass one that waits for all nodes, if it is known to end in time."""
    rows = [(0.0, 10.0, 100.0, 4), (1.0, 10.0, 10.0, 8), (2.0, 5.0, 100.0, 4)]
    told = {
        kind: played(workload_of(rows), cluster_of(2), "lookahead", kind).replayed for kind in ("walltime", "actual")
    }
    assert told["actual"].start_time.tolist() == [0.0, 10.0, 2.0]
    assert told["actual"].finish_time.tolist() == [10.0, 20.0, 7.0]
    assert told["walltime"].rejected.sum() == 0


@pytest.fixture
def broken() -> str:
    def fail(simulation, request):
        raise ZeroDivisionError("the production bug")

    POLICIES["broken"] = fail
    return "broken"


def test_a_policy_that_raises_is_replaced_and_named(broken: str) -> None:
    rows = [(float(i), 5.0, 10.0, 1 + i % 5) for i in range(20)]
    failed, plain = (played(workload_of(rows), cluster_of(2), policy) for policy in (broken, "slf"))
    assert failed.replayed.start_time.tolist() == plain.replayed.start_time.tolist()
    assert failed.plans.keys() == {"slf"} and failed.failures.keys() == {
        "policy broken failed: ZeroDivisionError: the production bug"
    }
    assert "times" in failed.lines()[1]


def test_jobs_that_no_policy_can_plan_are_given_up(broken: str) -> None:
    told = TraceJobs(jobs := workload_of([(0.0, 5.0, 10.0, 1), (9.0, 5.0, 10.0, 2)]), site := cluster_of(1), "actual")
    adapter = SimulatedAdapter(site, truth=told.truth)
    guard = Guard(bound=0.5, window=20, fallback=broken)
    done = TraceRun(told, adapter, Options(policy=broken), guard).run(progress=lambda now: None, clock=lambda: 0.0)
    assert done.replayed.rejected.all() and sum(done.not_started.values()) == len(jobs)
    assert done.replayed.instants < 200


def test_tasks_that_move_data_contend_and_die_at_their_walltimes() -> None:
    rows = [(0.0, 10.0, 15.0, 2), (0.0, 10.0, 100.0, 2)]
    jobs = workload_of(rows, more={"volume": np.array([1e11, 1e11])})  # each task alone takes all of the bandwidth
    done = played(jobs, cluster_of(1), runtimes="actual").replayed
    assert done.overran.tolist() == [True, False] and done.finish_time[0] == 15.0
    assert done.finish_time[1] > 15.0


def test_a_job_follows_its_predecessors() -> None:
    rows = [(0.0, 10.0, 20.0, 1), (0.0, 30.0, 20.0, 1), (1.0, 5.0, 20.0, 1), (2.0, 5.0, 20.0, 1)]
    after = Dependencies(np.array([0, 1]), np.array([2, 3]))
    done = played(workload_of(rows, dependencies=after), cluster_of(1)).replayed
    assert done.submit_time.tolist()[2] == 10.0 and done.start_time.tolist()[2] == 10.0
    assert done.stranded.tolist() == [False, False, False, True] and done.rejected[3]


def test_memory_spreads_a_job() -> None:
    jobs = workload_of([(0.0, 5.0, 10.0, 4)], more={"memory": np.array([4e9])})
    job = TraceJobs(jobs, cluster_of(4), "walltime").job(0)
    assert job is not None and (job.nodes, job.profile.threads, job.memory) == (2, 2, 8e9)


def test_names_that_occur_twice_are_told_apart() -> None:
    jobs = replace(workload_of([(0.0, 5.0, 10.0, 1), (0.0, 7.0, 10.0, 1)]), id=np.array([3, 3]))
    assert played(jobs, cluster_of(1)).replayed.finish_time.tolist() == [5.0, 7.0]


def test_what_cannot_be_replayed_is_said() -> None:
    endless = workload_of([(0.0, 5.0, 10.0, 1), (0.0, 5.0, math.inf, 1)])
    with pytest.raises(ConfigError, match=r"job 1: it has no walltime to plan with \(1 of 2 jobs\).*--runtimes actual"):
        TraceJobs(endless, cluster_of(1), "walltime")
    assert played(endless, cluster_of(1), runtimes="actual").replayed.finish_time.tolist() == [5.0, 5.0]
    with pytest.raises(ConfigError, match="it communicates"):
        TraceJobs(workload_of([(0.0, math.nan, 10.0, 1)]), cluster_of(1), "walltime")
    with pytest.raises(ConfigError, match="oversubscription"):
        TraceJobs(endless, cluster_of(1, oversubscription=math.inf), "actual")


def always(**seconds: float) -> DrawnDelays:
    """Delays that are always the same; those not named are 0."""
    return DrawnDelays(Delays({phase: [seconds.get(phase, 0.0)] for phase in PHASES}), 0)


def test_each_delay_of_the_site_comes_where_it_belongs() -> None:
    """One core: the second job starts once the end of the first was seen, and its launch has taken its time."""
    jobs, one = workload_of([(0.0, 10.0, 60.0, 1), (0.0, 20.0, 20.0, 1)]), cluster_of(1, 1)
    delays = always(submitted=1.0, seen=2.0, decided=0.25, sent=0.5, started=0.75)
    done = played(jobs, one, delays=delays)
    launch_s = 1.5
    first = 1.0 + launch_s
    assert done.replayed.start_time.tolist() == pytest.approx([first, first + 10.0 + 2.0 + launch_s], abs=1e-4)
    ran = done.replayed.finish_time - done.replayed.start_time
    assert ran.tolist() == pytest.approx([10.0, 20.0], abs=1e-4)
    assert not done.replayed.overran.any() and done.measured_starts == 1
    assert "delays drawn from those of the site, measured on 1 start" in done.lines()


def test_a_job_that_outlasts_its_walltime_is_killed_then_with_delays_too() -> None:
    done = played(workload_of([(0.0, 50.0, 20.0, 1)]), cluster_of(1, 1), delays=always(seen=2.0, started=3.0)).replayed
    assert done.overran.all() and done.finish_time - done.start_time == pytest.approx([20.0], abs=1e-4)


def test_ends_before_one_look_are_seen_together() -> None:
    """Two jobs end at 10 and 11 s; a look at 12 s shows both, so the third begins then, and not a look later."""
    jobs = workload_of([(0.0, 10.0, 60.0, 1), (0.0, 11.0, 60.0, 1), (0.0, 5.0, 60.0, 2)])
    done = played(jobs, cluster_of(1, 2), delays=always(seen=2.0)).replayed
    assert done.start_time.tolist() == pytest.approx([0.0, 0.0, 12.0], abs=1e-4)
    assert done.finish_time.tolist() == pytest.approx([10.0, 11.0, 17.0], abs=1e-4)


@settings(max_examples=20)
@given(rows_of(WHOLE), st.lists(st.floats(0.0, 5.0), min_size=1, max_size=5))
def test_the_same_seed_draws_the_same_delays_and_none_starts_a_job_early(rows: list[Row], seconds: list[float]) -> None:
    jobs, where = workload_of(rows), cluster_of(2, 9)
    one, two = (
        played(jobs, where, delays=DrawnDelays(Delays(dict.fromkeys(PHASES, seconds)), 3)).replayed for _ in range(2)
    )
    assert np.array_equal(one.start_time, two.start_time, equal_nan=True)
    begun = ~np.isnan(one.start_time)
    assert (one.start_time[begun] >= one.submit_time[begun] + 3 * min(seconds) - 1e-6).all()
    assert np.allclose(
        one.finish_time[begun] - one.start_time[begun], np.minimum(jobs.run_time, jobs.walltime)[begun], atol=1e-3
    )
