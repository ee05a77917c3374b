"""The control loop: what is started, when it plans again, and how it handles faults."""

import dataclasses
import logging
import math
from itertools import pairwise

import pytest

from pilotfish.adapters.base import AdapterError, Capabilities
from pilotfish.daemon.apply import LONGEST_S, Recording, carry_out
from pilotfish.daemon.socket.rpc import UNSETTLED
from pilotfish.daemon.state.applied import describe
from pilotfish.simulate.model.job import Provenance
from pilotfish.simulate.model.plan import Cancel, Place, Release, Submit
from pilotfish.simulate.model.snapshot import JobState, NodeState
from tests.support import effort


def test_a_dag_runs_in_order_and_each_job_once(bench, kit):
    workflow = bench.submit(kit.job("a"), kit.job("b", "a"), kit.job("c", "a"), kit.job("d", "b", "c"))
    starts = []
    for report in bench.run(40):
        starts += [applied.action.key for applied in report.applied]
    assert starts == [f"{workflow}/{name}" for name in "abcd"]
    assert set(bench.states(workflow).values()) == {"completed"}
    assert workflow not in bench.cycle.tracker.queue.submissions
    assert bench.journal.find(workflow).exit_code == 0


@pytest.mark.parametrize("moment", ["before the problem", "before the plan", "after the plan"])
def test_what_clients_change_between_two_parts_of_a_cycle_holds(bench, kit, moment):
    cancelled, other = bench.submit(kit.job("a")), bench.submit(kit.job("b"))
    tracker, moments = bench.cycle.tracker, ["before the problem", "before the plan", "after the plan"]

    def breathe():
        if moments.pop(0) == moment:
            tracker.cancel(tracker.queue.submissions[cancelled].entries.values())
            bench.submit(kit.job("c"))

    bench.cycle.planner.breathe = breathe
    (report,) = bench.run()
    assert report.applied[0].action.key == f"{other}/b" and not moments
    assert bench.states(cancelled) == {"a": "cancelled"} and f"{cancelled}/a" not in bench.manager.runs
    bench.cycle.planner.breathe = lambda: None
    bench.run(40)
    assert bench.manager.runs == {f"{other}/b": 1, "w.3/c": 1}


def test_a_failed_job_cancels_its_descendants_and_nothing_else(bench, kit):
    bench.manager.exits["a"] = 3
    workflow = bench.submit(kit.job("a"), kit.job("b", "a"), kit.job("c", "b"), kit.job("free"))
    bench.run(15)
    assert bench.states(workflow) == {"a": "failed", "b": "cancelled", "c": "cancelled", "free": "completed"}
    done = bench.journal.find(workflow)
    assert done.entries["a"].exit_code == 3
    assert "'a'" in done.entries["c"].reason and "exit code 3" in done.entries["c"].reason
    assert done.exit_code == 1
    assert set(bench.manager.runs) == {f"{workflow}/a", f"{workflow}/free"}


def test_it_plans_only_when_something_changed(bench, kit):
    bench.submit(*(kit.job(f"j{i}", threads=2, seconds=1000) for i in range(3)))
    reports = bench.run(30)
    planned = [report.number for report in reports if report.plan]
    assert planned[:2] == [1, 6]  # at the start, and when the waiting job's forecast start had passed
    gaps = [later - earlier for earlier, later in pairwise(planned[1:])]
    assert gaps == sorted(gaps) and len(planned) <= 6


def test_nothing_to_start_means_no_plan(bench, kit):
    bench.submit(kit.job("only", seconds=50))
    reports = bench.run(20)
    assert sum(report.plan is not None for report in reports) == 1


def test_a_drained_node_gets_no_job_until_it_returns(bench, kit):
    bench.manager.states[:] = [NodeState.DRAINED, NodeState.DOWN]
    workflow = bench.submit(kit.job("a"))
    assert not bench.run(3)[-1].applied
    assert "usable" in bench.cycle.tracker.stuck[f"{workflow}/a"]
    bench.manager.states[1] = NodeState.UP
    (applied,) = bench.run()[0].applied
    assert applied.action.nodes == ("n2",)


def test_the_check_drops_actions_outdated_by_planning_time(bench, kit):
    def slow(problem, cluster, options):
        bench.manager.states[0] = NodeState.DRAINED
        return kit.first_fit(problem, cluster, options)

    bench.cycle.planner.make_plan = slow
    bench.submit(kit.job("a"))
    report = bench.run()[0]
    assert [rejection.reason for rejection in report.rejected] == ["n1 is drained"]
    assert not bench.manager.runs
    (applied,) = bench.run()[0].applied
    assert applied.action.nodes == ("n2",)
    assert bench.value("decisions_total", action="submit", outcome="rejected") == 1


def test_a_refused_start_fails_the_job_and_a_transient_one_is_tried_again(bench, kit):
    bench.manager.refuse["w.1/bad"] = AdapterError("no such program", kind="spawn")
    bench.manager.refuse["w.1/busy"] = AdapterError("try later", transient=True)
    workflow = bench.submit(kit.job("bad"), kit.job("child", "bad"), kit.job("busy"))
    bench.run(2)
    assert bench.states(workflow) == {"bad": "failed", "child": "cancelled", "busy": "pending"}
    assert "no such program" in bench.cycle.tracker.queue.find("w.1/bad").reason
    del bench.manager.refuse["w.1/busy"]
    bench.run(30)
    assert bench.states(workflow)["busy"] == "completed"
    assert bench.manager.runs == {"w.1/busy": 1}


@pytest.mark.parametrize("restart", [None, 1, 100])
@pytest.mark.parametrize("cancel", [None, 3])
@pytest.mark.parametrize("delay", effort.some([1, 5, 60, 299, math.inf], 2))
def test_a_submission_that_is_carried_out_late_runs_once(bench, kit, delay, cancel, restart):
    """Its answer is lost; it is submitted again only when it cannot be carried out any more, also after a restart."""
    manager = bench.manager
    manager.capabilities, submit, late = Capabilities(late_s=330.0), manager.apply, []

    def apply(action):
        if late or isinstance(action, Cancel):
            return submit(action)
        late.append((manager.time + delay, action))
        raise AdapterError("sbatch did not answer", transient=True, kind="timeout")

    manager.apply = apply
    workflow = bench.submit(kit.job("a", seconds=150), kit.job("other", "a"))
    for second in range(600):
        bench.run()
        if second == restart:
            bench.restart()
        if second == cancel:
            entries = bench.cycle.tracker.queue.submissions[workflow].entries.values()
            bench.cycle.tracker.cancel(list(entries))
        if late and manager.time >= late[0][0] and late[0][0] < math.inf:
            manager.runs[f"{workflow}/a"] += f"{workflow}/a" in manager.views  # it knows no keys
            submit(late[0][1])
            late[0] = (math.inf, late[0][1])
    assert manager.runs[f"{workflow}/a"] == (0 if cancel and delay == math.inf else 1)
    assert set(bench.states(workflow).values()) == {"cancelled" if cancel else "completed"}
    assert all(view.state.ended for view in manager.views.values())


@pytest.mark.parametrize("restart", [False, True])
def test_explain_says_why_an_unclear_submission_is_not_tried_again_yet(bench, kit, restart, monkeypatch):
    manager = bench.manager
    manager.capabilities = Capabilities(late_s=330.0)
    workflow = bench.submit(kit.job("a", seconds=20))

    def lose(action):
        raise AdapterError("sbatch did not answer", transient=True, kind="timeout")

    with monkeypatch.context() as lost:
        lost.setattr(manager, "apply", lose)
        bench.run(2)
    if restart:
        bench.restart()
    bench.run(5)
    assert kit.requests(bench)("explain", job=f"{workflow}/a")["waits"] == UNSETTLED
    bench.run(400)
    reply = kit.requests(bench)("explain", job=f"{workflow}/a")
    assert (reply["job"]["state"], reply["waits"]) == ("completed", "")


def test_a_missing_job_is_unknown_and_never_started_again(bench, kit):
    workflow = bench.submit(kit.job("a", seconds=500))
    bench.run(2)
    gone = bench.manager.views.pop(f"{workflow}/a")
    bench.run(5)
    assert bench.states(workflow) == {"a": "unknown"}
    bench.manager.views[gone.key] = gone
    bench.run(1)
    assert bench.states(workflow) == {"a": "running"}
    assert bench.manager.runs == {f"{workflow}/a": 1}


def test_a_job_missing_for_long_fails_and_ends_its_workflow(bench, kit):
    workflow = bench.submit(kit.job("a", seconds=500), kit.job("child", "a"), kit.job("free", seconds=5))
    bench.run(2)
    gone = bench.manager.views.pop(f"{workflow}/a")
    bench.run(25)
    bench.manager.views[gone.key] = gone  # shown once in between: the count starts over
    bench.run(1)
    del bench.manager.views[gone.key]
    bench.run(25)
    assert bench.states(workflow)["a"] == "unknown"
    bench.run(10)
    assert bench.states(workflow) == {"a": "failed", "child": "cancelled", "free": "completed"}
    done = bench.journal.find(workflow)
    assert done.exit_code == 1 and "how it ended is not known" in done.entries["a"].reason
    assert done.entries["a"].exit_code is None
    assert bench.manager.runs == {f"{workflow}/a": 1, f"{workflow}/free": 1}


def test_a_few_quick_snapshots_do_not_fail_a_missing_job(bench, kit):
    workflow = bench.submit(kit.job("a", seconds=500))
    bench.run(2)
    bench.manager.views.pop(f"{workflow}/a")
    bench.run(100, step_s=0.1)
    assert bench.states(workflow) == {"a": "unknown"}
    bench.manager.advance(1000.0)  # one snapshot after a long time does not fail it either
    bench.kill()
    bench.start()
    bench.run(3)
    assert bench.states(workflow) == {"a": "unknown"}


def test_cancel_ends_running_jobs_and_drops_waiting_ones(bench, kit):
    workflow = bench.submit(kit.job("a", seconds=500), kit.job("b", "a"), kit.job("c", seconds=5))
    bench.run(8)
    entries = bench.cycle.tracker.queue.submissions[workflow].entries
    bench.cycle.tracker.cancel([entries["a"]])
    report = bench.run(2)[0]
    assert [describe(applied.action) for applied in report.applied] == [f"cancel {workflow}/a"]
    assert bench.states(workflow) == {"a": "cancelled", "b": "cancelled", "c": "completed"}


def test_jobs_that_fit_nowhere_are_logged_in_one_line(bench, kit, caplog):
    bench.manager.states[:] = [NodeState.DOWN, NodeState.DOWN]
    bench.submit(kit.job("a"), kit.job("b"), kit.job("c"))
    with caplog.at_level(logging.WARNING, "pilotfish"):
        bench.run(3)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("3 jobs (") and "0 of 0 usable ones fit it" in said


def test_a_failing_planner_is_replaced_by_the_fallback(bench, kit, caplog):
    def broken(problem, cluster, options):
        if options.policy == "mom":
            raise ZeroDivisionError("a bug")
        return kit.first_fit(problem, cluster, options)

    bench.cycle.planner.make_plan = broken
    bench.submit(kit.job("a"))
    with caplog.at_level(logging.ERROR, "pilotfish"):
        report = bench.run()[0]
    assert report.policy == "slf" and len(report.applied) == 1
    assert "a bug" in caplog.text


def test_bad_forecasts_trip_the_guard_and_good_ones_reset_it(bench, kit):
    bench.manager.takes |= {f"slow{i}": 40.0 for i in range(3)}
    bench.submit(*(kit.job(f"slow{i}") for i in range(3)))
    bench.run(45)
    assert bench.cycle.mode == "fallback"
    assert bench.value("mode", mode="fallback") == 1
    workflow = bench.submit(*(kit.job(f"fine{i}") for i in range(3)))
    reports = bench.run(30)
    assert next(report.policy for report in reports if report.plan) == "slf"
    assert set(bench.states(workflow).values()) == {"completed"}
    assert bench.cycle.mode == "live"
    assert bench.value("forecast_error_factor_count", kind="run_time", direction="longer") == 6
    assert bench.value("forecast_error_factor_count", kind="finish_time", direction="longer") == 6


def test_bad_predictions_do_not_affect_measured_profiles(bench, kit):
    """Predicted jobs take four times as long: the fallback plans them, and only them."""

    def jobs(source, *names):
        about = Provenance(source)
        made = [kit.job(name) for name in names]
        return [dataclasses.replace(job, profile=dataclasses.replace(job.profile, provenance=about)) for job in made]

    bench.manager.takes |= {f"slow{i}": 40.0 for i in range(3)}
    bench.submit(*jobs("predicted", "slow0", "slow1", "slow2"))
    bench.run(45)
    bench.submit(*jobs("measured", "m0", "m1"))
    assert bench.cycle.mode == "live" and bench.cycle.planner.forecasts.guard.tripped
    assert [report.policy for report in bench.run(15) if report.plan] == ["mom"]
    bench.submit(*jobs("predicted", "p0"), *jobs("measured", "m2"))
    assert bench.cycle.mode == "fallback"
    assert [report.policy for report in bench.run(15) if report.plan] == ["slf"]


def test_an_adapter_error_changes_no_state(bench, kit):
    workflow = bench.submit(kit.job("a"))
    bench.manager.down = "no route"
    with pytest.raises(AdapterError):
        bench.run()
    bench.manager.down = ""
    bench.run(12)
    assert bench.states(workflow) == {"a": "completed"}


@pytest.mark.parametrize("read", ["snapshot", "refresh"])
def test_what_was_decided_before_a_read_failed_is_decided_again(bench, kit, monkeypatch, read):
    workflow = bench.submit(kit.job("a"))
    reads = getattr(bench.manager, read)
    errors = [AdapterError("no route", transient=True)]
    monkeypatch.setattr(bench.manager, read, lambda *given: _raise(errors.pop()) if errors else reads(*given))
    with pytest.raises(AdapterError):
        bench.run()
    bench.run(12)
    assert bench.states(workflow) == {"a": "completed"}


def _raise(error: Exception) -> None:
    raise error


def test_a_full_disk_stops_starts_is_logged_once_and_recovers(bench, kit, caplog):
    workflow = bench.submit(kit.job("first", seconds=4), kit.job("second", "first"))
    bench.run(1)
    database = bench.journal._db
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count={pages}")
    with caplog.at_level(logging.INFO, "pilotfish"):
        for i in range(40):
            bench.cycle.tracker.unsaved.records.append((f"filler/{i}", 0.0, 0, "filler", "x" * 3000, None))
            bench.run(1, step_s=0.25)
    assert bench.cycle.mode == "blocked" and bench.run(1, step_s=0.0)[0].why_not_ready.startswith("blocked: ")
    assert bench.cycle.tracker.queue.find(f"{workflow}/first").state is JobState.COMPLETED
    assert f"{workflow}/second" not in bench.manager.runs
    assert caplog.text.count("none is started until it can be written") == 1
    database.execute("PRAGMA max_page_count=1000000")
    assert bench.run(20)[-1].why_not_ready == ""
    assert bench.cycle.mode == "live"
    assert bench.states(workflow) == {"first": "completed", "second": "completed"}


@pytest.mark.parametrize("answer_s", [0.01, 1.0, 7.0])
def test_a_slow_resource_manager_makes_a_cycle_do_less_not_last_longer(tmp_path, kit, answer_s):
    """Starts of one cycle: as many as fit its time, the others later, each job once, and its log says so once."""
    bench = kit.Bench(tmp_path / "journal.sqlite", kit.Manager(kit.cluster(nodes=8)))
    now, slow = [0.0], bench.manager.apply

    def apply(action):
        now[0] += answer_s
        slow(action)

    bench.manager.apply = apply
    bench.restart(clock=lambda: now[0])
    workflow = bench.submit(*(kit.job(f"j{i}", seconds=300) for i in range(16)))
    cycles = 0
    while len(bench.manager.runs) < 16:
        cycles, began, before = cycles + 1, now[0], len(bench.manager.runs)
        report = bench.run()[0]
        assert now[0] - began <= LONGEST_S + 2 * answer_s
        assert len(bench.manager.runs) > before, "each cycle starts something"
        assert bench.cycle.trigger.changed or not any(not each.sent for each in report.applied)
        if cycles == 3:
            bench.restart()
    assert cycles == {0.01: 1, 1.0: 3, 7.0: 16}[answer_s]
    assert set(bench.manager.runs.values()) == {1}
    bench.run()
    kinds = [record["kind"] for record in bench.journal.records(f"{workflow}/j15")]
    assert len(kinds) <= 6 and kinds.count("applied") == 1
    bench.kill()


def test_the_present_goes_on_between_two_snapshots(bench):
    now = [50.0]
    bench.restart(clock=lambda: now[0])
    tracker = bench.cycle.tracker
    assert tracker.present == 0.0
    bench.run()
    seen = tracker.now
    now[0] += 40.0
    assert tracker.present == pytest.approx(seen + 40.0)


def test_actions_of_a_slow_resource_manager_do_not_keep_starts_waiting(kit):
    now, done = [0.0], []

    class Slow:
        def apply(self, action):
            now[0] += 3.0
            done.append(action)

    releases = [Release(f"slurm/{i}") for i in range(32)]
    starts = [Place(f"slurm/{i}", kit.job(f"j{i}"), ("n1",)) for i in range(40, 80)]
    results = carry_out([*releases, *starts], Slow(), lambda: now[0])
    assert done == [*releases[:2], *starts[:2]]
    assert [each.action for each in results] == [*releases, *starts]
    assert sum(each.sent for each in results) == 4 and all(each.transient for each in results if not each.sent)


def test_a_dry_run_prints_what_live_does_and_changes_nothing(tmp_path, kit):
    jobs = (kit.job("a", threads=2), kit.job("b", threads=2), kit.job("c", "a"))
    printed = []
    dry = kit.Bench(tmp_path / "dry.sqlite", kit.Manager(kit.cluster()))
    dry.kill()
    before = (tmp_path / "dry.sqlite").read_bytes()
    dry.start(in_memory=True, applier=Recording(printed.append))
    live = kit.Bench(tmp_path / "live.sqlite", kit.Manager(kit.cluster()))
    workflow = dry.submit(*jobs)
    live.submit(*jobs)
    dry.run(5)
    dry.submit(kit.job("other", seconds=1))  # plans again, with the same result for waiting jobs
    dry.run(5)
    live_starts = [describe(applied.action) for applied in live.run(1)[0].applied]
    assert printed == live_starts and len(printed) == 2
    assert [record["kind"] for record in dry.journal.records(f"{workflow}/a")] == ["chosen", "would"]
    assert not dry.manager.runs
    assert (tmp_path / "dry.sqlite").read_bytes() == before
    assert dry.cycle.mode == "dry-run"
    live.kill()


def test_neighbours_are_counted_and_planned_around(bench, kit):
    stranger = kit.job("x", threads=2, seconds=100)
    bench.manager.apply(Submit("someone/else", stranger, ("n1",)))
    seen = []

    def watching(problem, cluster, options):
        seen.append([(job.id, job.nodes) for job in problem.running])
        return kit.first_fit(problem, cluster, options)

    bench.cycle.planner.make_plan = watching
    bench.submit(kit.job("a", threads=2))
    (applied,) = bench.run()[0].applied
    assert applied.action.nodes == ("n2",)
    assert seen == [[("someone/else", ("n1",))]]


def test_the_job_log_has_choice_runner_up_and_outcome(bench, kit):
    workflow = bench.submit(kit.job("a"))
    bench.run(12)
    story = bench.journal.records(f"{workflow}/a")
    assert [record["kind"] for record in story] == ["chosen", "applied", "ended"]
    assert story[0]["data"]["runner_up"] == {"nodes": ["n2"], "cost_s": 1.5}
    assert story[-1]["text"] == "completed"
