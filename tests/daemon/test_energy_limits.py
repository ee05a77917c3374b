"""Limits of power and energy in the service: as in a replay, never above what has accrued, over restarts, too."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.cli.output.service_state import limit_line
from pilotfish.daemon.apply import Live
from pilotfish.daemon.assembly import Deciding, assemble
from pilotfish.daemon.learning.guard_rail import Guard
from pilotfish.daemon.one_off import WorkflowRun, beginning_with
from pilotfish.daemon.planning.guarded_planner import simulate_plan
from pilotfish.daemon.planning.problem import WINDOW, Options
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.trace_run import DaemonReplay, TraceJobs, TraceRun
from pilotfish.formats.entry_points import register_mapping_policy
from pilotfish.simulate.model.cluster import Cluster, Contention, Node, NodeType, Power
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.machine import machine_of
from pilotfish.simulate.model.plan import RunningJob
from pilotfish.simulate.model.snapshot import JobState, JobView, NodeState, Snapshot
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.queue_policies.energy.kept_limit import KeptLimit
from pilotfish.simulate.queue_policies.energy.power_limits import Budget
from pilotfish.simulate.queue_policies.node_backfill import NO_ENERGY, NO_POWER
from pilotfish.simulate.queue_policies.policy_specs import Saving, parse
from pilotfish.simulate.replay.replay import replay
from pilotfish.simulate.world.replay_result import Replayed

NODES, CORES, IDLE_W, CORE_W = 3, 4, 10.0, 5.0
KIND = NodeType("t", CORES, 8e9, 1e10, contention=Contention.NONE, power=Power(IDLE_W, CORE_W))
CLUSTER = Cluster("lab", tuple(Node(f"n{i}", KIND) for i in range(NODES)), source="lab.yaml")
FULL_W = NODES * (IDLE_W + CORES * CORE_W)
#: The last job comes after the end of each limit: in a replay, a limit ends with the last submission at the latest.
END, LAST = 900.0, 1000.0
#: Submission, run time, walltime over run time, processors.
ROWS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(1, 60), st.integers(1, 3), st.integers(1, 9)), min_size=1, max_size=12
).map(sorted)
#: More than what idle nodes draw: they consume it whatever starts.
SHARES = st.sampled_from([40, 50, 60, 80, 100])
BUDGETS = st.sampled_from(["easy+energybud", "easy+reducepc", "strict+energybud", "easy:order=sjf+energybud"])


def jobs_of(rows: list[tuple[int, int, int, int]]) -> Workload:
    """Return jobs that use no memory, the first at 0 s and the last at LAST."""
    rows = [(0, *rows[0][1:]), *rows[1:], (int(LAST), 1, 1, 1)]
    submit, run, factor, size = (np.array(column) for column in zip(*rows, strict=True))
    times = submit.astype(float), run.astype(float), (run * factor).astype(float)
    return Workload("trace", np.arange(len(rows)), *times, size, more={"memory": np.zeros(len(rows))})


class Restarted(TraceRun):
    """A service that is killed after each instant at which its journal was written, and started again."""

    restarts = 0

    def _run_cycles(self) -> None:
        super()._run_cycles()
        if self._journal.kept().get("until") == self._now:
            self.restarts += 1
            adapter, options = self._adapter, self._cycle.planner.options
            guard = Guard(bound=0.5, window=20, fallback="slf")
            self._cycle = assemble(
                adapter,
                Live(adapter),
                self._journal,
                Metrics(),
                Deciding(guard, options),
                lambda: self._now,
                planner=self._plan,
            )
            super()._run_cycles()


def served(jobs: Workload, policy: str, kind: type[TraceRun] = TraceRun) -> tuple[DaemonReplay, TraceRun]:
    """Run a trace under the service."""
    register_mapping_policy(policy, service=True, renew=True)
    told = TraceJobs(jobs, CLUSTER, "walltime", None)
    adapter = SimulatedAdapter(CLUSTER, truth=told.truth)
    guard = Guard(bound=0.5, window=20, fallback="slf")
    run = kind(told, adapter, Options(policy=policy, objective="turnaround", window=WINDOW), guard)
    done = run.run(progress=lambda now: None, clock=lambda: 0.0)
    assert not done.failures and not done.not_started
    return done, run


def replayed(jobs: Workload, policy: str) -> Replayed:
    """Replay the trace without the service."""
    return replay(jobs, machine_of(CLUSTER), parse(policy), contention=True, run_times="walltime")  # fmt: skip


def consumed(done: Replayed, time: float) -> float:
    """Return the energy from 0 s until then, joules, by the powers of the cluster file."""
    ran = np.clip(np.minimum(done.finish_time, time) - done.start_time, 0.0, None)
    return float(NODES * IDLE_W * time + CORE_W * (done.workload.size * ran).sum())


@given(ROWS, BUDGETS, SHARES, st.sampled_from([20, 600]))
@settings(max_examples=8, deadline=None)
def test_it_decides_as_in_a_replay_and_consumes_no_more_than_has_accrued(
    rows: list[tuple[int, int, int, int]], policy: str, share: int, stage: int
) -> None:
    jobs, policy = jobs_of(rows), f"{policy}:budget={share}%,begin=0,end={END:g},stage={stage}"
    live, plain = served(jobs, policy)[0].replayed, replayed(jobs, policy)
    assert np.abs(live.start_time - plain.start_time).max() <= stage + 1.0
    for time in (*live.start_time, *live.finish_time):
        if time <= END:
            assert consumed(live, time) <= share / 100 * FULL_W * time + 1e-6


@given(ROWS, st.sampled_from([40, 60, 90]), st.sampled_from([(0, 900), (30, 120), (60, 61)]))
@settings(max_examples=8, deadline=None)
def test_a_cap_holds_between_its_begin_and_its_end_as_in_a_replay(
    rows: list[tuple[int, int, int, int]], share: int, window: tuple[int, int]
) -> None:
    jobs, policy = jobs_of(rows), f"easy+powercap:cap={share}%,begin={window[0]},end={window[1]}"
    live = served(jobs, policy)[0].replayed
    np.testing.assert_allclose(live.start_time, replayed(jobs, policy).start_time, atol=1e-4)
    for time in live.start_time:
        if window[0] <= time < window[1]:
            on = (live.start_time <= time) & (live.finish_time > time)
            assert NODES * IDLE_W + CORE_W * jobs.size[on].sum() <= share / 100 * FULL_W + 1e-6


@given(ROWS, BUDGETS)
@settings(max_examples=8, deadline=None)
def test_an_unlimited_budget_is_none(rows: list[tuple[int, int, int, int]], policy: str) -> None:
    jobs, base = jobs_of(rows), policy.partition("+")[0]
    limited = served(jobs, f"{policy}:budget=300%,begin=0,end={END:g}")[0].replayed
    np.testing.assert_array_equal(limited.start_time, served(jobs, base)[0].replayed.start_time)


@given(ROWS, BUDGETS, SHARES)
@settings(max_examples=8, deadline=None)
def test_restarts_change_nothing(rows: list[tuple[int, int, int, int]], policy: str, share: int) -> None:
    jobs, policy = jobs_of(rows), f"{policy}:budget={share}%,end={END:g},stage=20"
    through = served(jobs, policy)[0].replayed
    done, run = served(jobs, policy, Restarted)
    assert isinstance(run, Restarted) and run.restarts
    np.testing.assert_allclose(done.replayed.start_time, through.start_time, atol=1e-4)


# --- what is counted ---
def kept(options: str = "budget=60%,end=1000", state: dict[str, float] | None = None) -> KeptLimit:
    policy = parse(f"easy+energybud:{options}")
    assert isinstance(policy, Saving)
    found = KeptLimit(policy)
    found.restore(state or {})
    return found


def view(key: str, threads: int = 2, start: float | None = None, finish: float | None = None, **more: Any) -> JobView:
    state = JobState.RUNNING if finish is None else JobState.COMPLETED
    job = Job(key, Profile((ThreadGroup(threads, 9.0),)))
    return JobView(key, job, more.pop("state", state), ("n0",), start_time=start, finish_time=finish, **more)


def sees(found: KeptLimit, time: float, *views: JobView) -> float:
    """Let it see a snapshot; return what was consumed by then, less the idle power of the nodes."""
    found.observe(Snapshot(time, int(time), CLUSTER, (NodeState.UP, NodeState.DOWN, NodeState.ASLEEP), views))
    state = found.state()
    return float(state["joules"] - NODES * IDLE_W * (state["until"] - state["begin"]))


def test_each_job_counts_for_as_long_as_it_had_its_cores() -> None:
    found = kept()
    assert sees(found, 100.0, view("a", start=40.0)) == 0.0  # the budget begins with the first snapshot
    assert sees(found, 110.0, view("a", start=40.0)) == pytest.approx(2 * CORE_W * 10)
    joules = 2 * CORE_W * 10 + 2 * CORE_W * 4 + 3 * CORE_W * 5 + CORE_W * 2
    both = view("a", start=40.0, finish=114.0), view("b", 3, start=115.0), view("short", 1, start=112.0, finish=114.0)
    assert sees(found, 120.0, *both) == pytest.approx(joules)
    assert sees(found, 125.0, *both[:1], *both[2:]) == pytest.approx(joules + 3 * CORE_W * 5)  # seen to be gone by then


def test_a_job_whose_start_or_end_is_not_known_counts_for_the_whole_time() -> None:
    found = kept()
    sees(found, 0.0)
    assert sees(found, 10.0, view("a")) == pytest.approx(2 * CORE_W * 10)
    assert sees(found, 20.0) == pytest.approx(2 * CORE_W * 20)


def test_after_a_kill_nothing_is_lost_or_counted_twice_and_the_time_between_counts_in_full() -> None:
    found = kept()
    sees(found, 0.0)
    before = sees(found, 10.0, view("a", start=0.0))
    state = found.state()
    again = kept(state=state)
    assert again.state() == state, "before the first snapshot, too"
    assert sees(again, 10.0, view("a", start=0.0)) == pytest.approx(before)
    late = kept(state=state)
    assert sees(late, 70.0) == pytest.approx(before + NODES * CORES * CORE_W * 60)


def test_of_the_time_before_the_first_start_nothing_is_known() -> None:
    assert sees(kept("begin=0,end=1000"), 100.0) == pytest.approx(NODES * CORES * CORE_W * 100)
    assert sees(kept("begin=200,end=1000"), 100.0) == 0.0


@pytest.mark.parametrize("options", ["budget=90%,end=1000", "budget=90%,begin=0,end=1000"])
def test_another_amount_for_the_same_time_goes_on_and_another_time_begins_anew(options: str) -> None:
    state = {"begin": 0.0, "end": 1000.0, "until": 50.0, "joules": 5000.0}
    again = kept(options, state)
    sees(again, 50.0)
    assert again.state() == pytest.approx(state)
    other = kept(options.replace("1000", "2000"), state)
    sees(other, 50.0)
    assert other.state()["begin"] == (0.0 if "begin" in options else 50.0)


def test_a_clock_that_is_set_back_gives_nothing_out() -> None:
    found = kept()
    sees(found, 100.0)
    sees(found, 110.0)
    before = found.state()
    sees(found, 105.0)
    assert found.state() == before


def test_a_budget_that_is_over_limits_nothing() -> None:
    found = kept("end=50")
    found.observe(Snapshot(100.0, 1, CLUSTER, (NodeState.UP,) * NODES, ()))
    assert found.state() == {}


# --- the service ---
def use(bench: Any, policy: str) -> None:
    """Configure a policy, as the service does."""
    register_mapping_policy(policy, service=True)
    planner = bench.cycle.planner
    planner.make_plan = simulate_plan
    planner.use(dataclasses.replace(planner.options, policy=policy))


def test_a_kill_in_the_service_keeps_the_balance(bench: Any, kit: Any) -> None:
    """Each second pays for a second of one core. A job of two cores that takes 8 s may start after 8 s."""
    manager = bench.manager
    cores = sum(node.type.cores for node in manager.cluster.nodes)
    manager.cluster = dataclasses.replace(
        manager.cluster,
        nodes=tuple(
            dataclasses.replace(node, type=dataclasses.replace(node.type, power=Power(0.0, CORE_W)))
            for node in manager.cluster.nodes
        ),
    )
    begin = manager.time
    policy = f"easy+energybud:budget={CORE_W * 10 * cores:g},end={begin + 10 * cores!r},stage=1"  # CORE_W watts

    use(bench, policy)
    bench.submit(kit.job("a", seconds=5.0, threads=2, walltime=8.0))
    bench.run(4)
    bench.restart()
    use(bench, policy)
    lost = 4.0 * cores  # all cores count since the journal was written, in the first cycle: seconds of the budget
    bench.run(12 + int(lost))
    (found,) = manager.views.values()
    assert begin + 8.0 <= found.start_time <= begin + 8.0 + lost
    limit = bench.cycle.planner.kept.kept._limit
    assert isinstance(limit, Budget) and limit.consumed <= CORE_W * (manager.time - begin) + 1e-6
    assert math.isclose(limit.begin, begin)


@pytest.mark.parametrize("limit", ["powercap:cap=60%", "powercap:cap=60%,end=1e9"])
def test_a_workflow_that_runs_stays_below_the_limit(limit: str) -> None:
    """Each job has a node of its own, and there is power for one of them at a time."""
    policy, adapter = f"easy+{limit}", SimulatedAdapter(CLUSTER)
    register_mapping_policy(policy)
    profile, here = Profile((ThreadGroup(CORES, 9.0),)), [frozenset((node.name,)) for node in CLUSTER.nodes]
    jobs = tuple(Job(f"j{i}", profile, walltime=10.0, allowed=node) for i, node in enumerate(here))
    flow = Workflow("w", jobs)
    planner = beginning_with(plan(flow, CLUSTER, policy=policy), "r.1", flow, lambda: adapter.time)
    run = WorkflowRun("r.1", flow, adapter, Metrics(), lambda: adapter.time, Options(policy), planner=planner)
    done = run.until_ended(lambda report: None, lambda: False)
    run.close()
    assert done.state is JobState.COMPLETED
    ran = sorted((entry.start_time or 0.0, entry.finish_time or 0.0) for entry in done.entries.values())
    for (_, end), (start, _) in itertools.pairwise(ran):
        assert start >= end - 1e-6


def test_a_cap_is_one_of_the_whole_cluster_whatever_takes_jobs_now() -> None:
    """It lets the cores of one node compute. A job that runs on a node that takes no more jobs is one of them."""
    policy = "easy+powercap:cap=60%"
    register_mapping_policy(policy)
    jobs = tuple(Job(name, Profile((ThreadGroup(CORES, 9.0),)), walltime=10.0) for name in "abc")
    made = plan(Workflow("w", jobs), CLUSTER, policy=policy, available=("n0", "n1"))
    assert [job.start_time for job in made.jobs] == pytest.approx([0.0, 9.0, 18.0])
    after = plan(
        Workflow("w", jobs), CLUSTER, policy=policy, available=("n0", "n1"), underway=[RunningJob("a", ("n2",))]
    )
    assert [job.start_time for job in after.jobs] == pytest.approx([0.0, 9.0, 18.0])


def test_where_a_policy_with_a_limit_fails_nothing_starts(bench: Any, kit: Any) -> None:
    """The fallback would start the job at once."""
    manager, policy = bench.manager, "easy+powercap:cap=60%"
    unknown = dataclasses.replace(manager.cluster.nodes[0].type, power=None)
    nodes = tuple(dataclasses.replace(node, type=unknown) for node in manager.cluster.nodes)
    manager.cluster = dataclasses.replace(manager.cluster, nodes=nodes)
    planner = bench.cycle.planner
    planner.make_plan, planner.options = simulate_plan, dataclasses.replace(planner.options, policy=policy)
    register_mapping_policy(policy, service=True)
    bench.submit(kit.job("a", walltime=20.0))
    reports = bench.run(3)
    assert not manager.views and "the power of this machine is not known" in reports[0].failures[0]
    assert planner.trouble == "no policy can make a plan; the log has the reason"


def test_status_metrics_and_explain_show_a_budget(bench: Any, kit: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Two nodes of two cores: 20 W idle, 40 W in all; the job needs 5 W for 20 s, and 5 W are left of 25."""
    begin, ask = bench.manager.time, kit.requests(bench)
    use(bench, f"easy+energybud:budget=25000,begin={begin!r},end={begin + 1000!r},stage=100")
    flow = bench.submit(kit.job("a", seconds=500.0, threads=2, walltime=600.0))
    bench.run(11)
    assert bench.value("power_limit_watts", kind="budget") == 25.0
    assert bench.value("energy_budget_joules", part="balance") == pytest.approx(50.0)
    assert bench.value("energy_budget_joules", part="consumed") == pytest.approx(200.0)
    shown = ask("status")["limit"]
    assert shown["kind"] == "energy budget" and shown["holds"] and shown["consumption"] == "estimated"
    assert (shown["balance_j"], shown["consumed_j"]) == pytest.approx((50.0, 200.0))
    assert "25 W on average" in limit_line(**shown) and "50.0 J left now, 200 J consumed (est" in limit_line(**shown)
    assert ask("explain", job=f"{flow}/a")["waits"] == NO_ENERGY
    use(bench, "mom")
    bench.run(1)
    assert ask("status")["limit"] is None and bench.value("energy_budget_joules", part="balance") == 0.0


def test_status_metrics_and_explain_show_a_cap(bench: Any, kit: Any) -> None:
    begin, ask = bench.manager.time, kit.requests(bench)
    use(bench, f"easy+powercap:cap=30,begin={begin + 5!r},end={begin + 50!r}")
    flow = bench.submit(kit.job("a", seconds=60.0, threads=2, walltime=90.0))
    bench.run(3)
    assert "it does not hold now" in limit_line(**ask("status")["limit"])
    later = bench.submit(kit.job("b", seconds=9.0, threads=1, walltime=9.0))
    bench.run(1)
    assert bench.value("power_limit_watts", kind="cap") == 0.0
    bench.run(2)
    last = bench.submit(kit.job("c", seconds=9.0, threads=1, walltime=9.0))
    bench.run(2)
    assert bench.value("power_limit_watts", kind="cap") == 30.0
    assert limit_line(**ask("status")["limit"]).startswith("power cap: 30 W from ")
    started = {view.key for view in bench.manager.views.values()}
    assert started == {f"{flow}/a", f"{later}/b"}, "they started before the cap began"
    assert ask("explain", job=f"{last}/c")["waits"] == NO_POWER
    bench.run(60)
    assert set(bench.states(last).values()) == {"completed"}


def test_a_plan_that_takes_too_long_decides_what_starts_now() -> None:
    """No other policy would keep the limit."""
    policy = "easy+energybud:budget=60%,end=1e5,stage=1"
    register_mapping_policy(policy)
    jobs = tuple(Job(name, Profile((ThreadGroup(1, 9.0),)), walltime=10.0) for name in "abcdef")
    limit = parse(policy)
    assert isinstance(limit, Saving)
    options: Any = {"policy": policy, "may_reject": True, "kept": KeptLimit(limit)}
    whole = plan(Workflow("w", jobs), CLUSTER, **options)
    made = plan(Workflow("w", jobs), CLUSTER, should_stop=lambda: True, **options)
    now = [job.id for job in whole.jobs if job.start_time == 0.0]
    assert made.truncated and 0 < len(now) < len(jobs) and [job.id for job in made.jobs] == now
    assert made.waits.keys() == {job.id for job in jobs} - {*now} and made.recheck_s == 1.0
