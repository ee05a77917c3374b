"""Forecasts of the resource manager's own queue, and what became of them."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pilotfish.adapters.base import Adapter
from pilotfish.daemon.oracle.queue_oracle import Expected, OracleState, Planned, QueueOracle
from pilotfish.daemon.report.cycle_report import CycleReport
from pilotfish.daemon.report.metrics import Metrics
from pilotfish.daemon.report.queue_forecasts import LONGEST_S, SPARE_S, QueueForecasts
from pilotfish.daemon.report.start_accuracy import start_accuracy, starts_to_dict
from pilotfish.daemon.run_modes import RunMode
from pilotfish.daemon.state.forecasts import Outlook
from pilotfish.daemon.state.handed_over import handed_over
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Queue
from pilotfish.daemon.state.queue_entry import Entry
from pilotfish.daemon.state.recorded_outcome import QueueRecord
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.observed_queue import ObservedJob, ObservedQueue
from pilotfish.simulate.model.plan import PlannedJob
from pilotfish.simulate.model.snapshot import JobState, JobView, JobViews, NodeState, Snapshot
from pilotfish.simulate.model.workload import Workload
from pilotfish.simulate.queue_policies.policy_specs import Easy
from pilotfish.simulate.replay.queue_forecast import STEP, QueueForecast
from pilotfish.simulate.replay.replay import replay
from tests.support.clock import Clock

CLUSTER = Cluster("c", (Node("n1", NodeType("t", 1, 2.0**30, 1e10)),))
HERE = frozenset({"n1"})
NOW = 1000.0


class Watched(Adapter):
    """A resource manager with a queue that a test sets; each job takes the whole of its only node."""

    name = "rm"

    def __init__(self) -> None:
        self.jobs: dict[str, ObservedJob] = {}
        self.now, self.asked = NOW, 0

    def queue(self) -> ObservedQueue | None:
        self.asked += 1
        return ObservedQueue(self.now, tuple(self.jobs.values()), {"n1": (1, 2.0**30)})

    def put(self, name: str, state: JobState = JobState.PENDING, **changes: object) -> None:
        key = f"rm/{name}"
        new = ObservedJob(key, state, name="align", owner=5, walltime=3600.0, submit_time=self.now, where=HERE)
        self.jobs[key] = replace(self.jobs.get(key, new), state=state, **changes)

    def run(self, name: str) -> None:
        self.put(name, JobState.RUNNING, start_time=self.now)

    def end(self, name: str, state: JobState = JobState.COMPLETED) -> None:
        self.put(name, state, finish_time=self.now)


class Played:
    def __init__(self, past: list[QueueRecord] | None = None) -> None:
        self.manager = Watched()  # type: ignore[abstract]  # no other method is called
        self.queue, self.clock = Queue(), Clock()
        self.changed: dict[str, QueueRecord] = {}
        self.metrics = Metrics()
        self.made = QueueForecasts(self.manager, self.queue, self.changed, self.metrics, self.clock, past or [])

    def look(self, seconds: float = 0.0) -> None:
        self.manager.now += seconds
        queue = self.manager.queue()
        assert queue is not None
        self.made.update(queue)

    def start_of(self, name: str) -> float | None:
        return self.made.forecasts[f"rm/{name}"].start_time


def test_runs_that_ended_bring_later_starts_forward() -> None:
    played = Played()
    played.manager.run("a")
    for name in "bcd":
        played.manager.put(name)
    played.look()
    assert [played.start_of(name) for name in "bcd"] == [NOW + 3600 * k for k in (1, 2, 3)], "nothing is known yet"
    played.look(10.0)
    played.manager.end("a")
    played.manager.run("b")
    played.look()
    assert [played.start_of(name) for name in "cd"] == [NOW + 20.0, NOW + 30.0]
    again = Played(list(played.changed.values()))
    again.manager.put("e", JobState.RUNNING, start_time=NOW)
    again.manager.put("f")
    again.look()
    assert again.start_of("f") == NOW + 10.0, "a restart does not forget"


def test_which_jobs_wait_is_of_the_last_look_even_if_the_forecasts_are_older() -> None:
    played = Played()
    played.manager.run("a")
    for name in "bc":
        played.manager.put(name)
    played.look()
    played.manager.now += 30.0
    played.manager.end("a")
    played.manager.run("b")
    played.manager.put("d")
    snapshot = Snapshot(played.manager.now, 2, CLUSTER, (NodeState.UP,), JobViews())
    asked = played.manager.asked
    played.made.observe(snapshot)
    played.made.observe(snapshot)
    assert played.manager.asked == asked + 1, "once for each snapshot"
    assert played.made.find("rm/a") is None and played.made.waiting("rm/b") is None
    running, waiting, new = (played.made.document(played.made.find(f"rm/{name}")) for name in "bcd")
    assert (running["state"], running["start_time"], running["nodes"], running["plan"]) == (
        "running",
        NOW + 30.0,
        ["n1"],
        None,
    )
    assert waiting["plan"]["start_time"] == NOW + 2 * 3600.0 and played.made.time == NOW
    assert new["unknown"] == "it was submitted a moment ago"


def test_a_job_that_was_cancelled_teaches_nothing() -> None:
    played = Played()
    played.manager.run("a")
    played.manager.put("b")
    played.look(10.0)
    played.manager.end("a", JobState.CANCELLED)
    played.manager.run("b")
    played.manager.put("c")
    played.look()
    assert played.start_of("c") == played.manager.now + 3600.0


def test_the_first_words_of_both_are_kept_and_compared_with_the_start() -> None:
    played = Played()
    played.manager.run("a")
    played.manager.put("b")
    played.look()
    played.manager.put("b", manager_start=NOW + 3600.0)
    played.look(10.0)
    played.manager.put("b", manager_start=NOW + 5.0)
    played.look(10.0)
    played.manager.end("a")
    played.manager.run("b")
    played.look()
    record = played.changed["rm/b"]
    assert (record.said_time, record.said_start) == (NOW, NOW + 3600.0)
    assert (record.compared_time, record.manager_start, record.start_time) == (NOW + 10.0, NOW + 3600.0, NOW + 20.0)
    ours, both, theirs = start_accuracy([record])
    assert (ours.by, ours.compared, ours.within, ours.bias_s) == ("pilotfish", False, (0.0, 0.0), -3580.0)
    assert (both.by, theirs.by, theirs.compared, theirs.median_s) == ("pilotfish", "manager", True, 3580.0)
    assert (record.said_early, record.said_late) == (NOW, NOW + 3600.0 + SPARE_S)
    assert (ours.width, both.width) == ((3600.0 + SPARE_S) / 20.0, None), "it waited 20 s"
    assert ours.inside == 1.0 and starts_to_dict([record])["groups"][2]["by"] == "manager"
    for labels in (("pilotfish", "no"), ("pilotfish", "yes"), ("manager", "yes")):
        names = dict(zip(("by", "compared"), labels, strict=True))
        get = played.metrics.registry.get_sample_value
        assert get("pilotfish_start_forecast_error_seconds_count", names) == 1.0
        assert get("pilotfish_start_forecast_error_seconds_bucket", names | {"le": "600.0"}) == 0.0


def test_gaps_between_an_end_and_the_next_start_are_expected_again() -> None:
    played = Played()
    played.manager.run("a")
    for name in "bc":
        played.manager.put(name)
    played.look(10.0)
    played.manager.end("a")
    played.look(2.0)
    played.manager.run("b")
    played.look()
    assert played.start_of("c") == played.manager.now + 10.0 + 2.0


def test_intervals_hold_what_starts_were_off_by() -> None:
    """Each start is a hundred seconds after what was said: its wait of 90 s is twice as long, with the spare 10 s."""
    past = [
        QueueRecord(
            f"rm/{k}", "align", 5, said_time=0.0, said_start=90.0, start_time=190.0, finish_time=280.0, learned=True
        )
        for k in range(12)
    ]
    played = Played(past)
    played.manager.run("a")
    played.manager.put("b", walltime=60.0)
    played.manager.put("a", JobState.RUNNING, walltime=90.0)
    played.look()
    said = played.made.forecasts["rm/b"]
    assert said.start_time == NOW + 90.0
    assert said.start_within == pytest.approx((NOW + 90.0, NOW + 190.0)), "twice as long as said, never before now"
    assert said.finish_within == pytest.approx((NOW + 150.0, NOW + 250.0))
    played.look(10.0)
    later = played.made.forecasts["rm/b"]
    assert later.start_time == NOW + 90.0, "the first forecasts were too early; a later one knows more"
    assert later.start_within == pytest.approx((NOW + 45.0, NOW + 180.0)), "half as long as said, or twice"
    played.manager.put("b", begin=NOW + 80.0)
    played.look()
    assert played.made.forecasts["rm/b"].start_within == pytest.approx((NOW + 80.0, NOW + 180.0)), "its user set that"


def coverage(seed: int) -> list[float]:
    """Return the shares of starts inside their intervals: of forecasts in the first four minutes, later, and first ones.

    Nothing is known at first; 70 jobs of two users wait for eight nodes; their limits are 4 to 10 times their run times.
    """
    draw, played, nodes = random.Random(seed), Played(), {f"n{k}": (1, 2.0**30) for k in range(8)}
    runs = [draw.lognormvariate(4.0, 0.7) for _ in range(78)]
    limits = [run * draw.uniform(4.0, 10.0) for run in runs]
    work = Workload("q", np.arange(78), np.zeros(78), np.array(runs), np.array(limits), np.ones(78, np.int64))
    begins = [NOW + start for start in replay(work, 8, Easy()).start_time.tolist()]
    held, first = ([], []), dict[str, bool]()
    for now in np.arange(NOW, max(begins), 12.0).tolist():
        jobs = []
        for k, (begin, run, limit) in enumerate(zip(begins, runs, limits, strict=True)):
            job = ObservedJob(f"rm/{k}", JobState.PENDING, f"job{k % 7}", k % 2, walltime=limit, submit_time=NOW)
            if begin > now:
                jobs.append(replace(job, where=frozenset(nodes)))
            elif begin + run > now:
                where = frozenset({f"n{k % 8}"})
                jobs.append(replace(job, state=JobState.RUNNING, start_time=begin, where=where))
            elif begin + run > now - 60.0:
                times = {"start_time": begin, "finish_time": begin + run}
                jobs.append(replace(job, state=JobState.COMPLETED, where=frozenset({f"n{k % 8}"}), **times))
        played.made.update(ObservedQueue(now, tuple(jobs), nodes))
        for key, forecast in played.made.forecasts.items():
            early, late = forecast.start_within
            inside = early - 1e-6 <= begins[int(key.removeprefix("rm/"))] <= late + 1e-6
            held[now >= NOW + 240.0].append(inside)
            first.setdefault(key, inside)
    return [sum(each) / len(each) for each in (*held, first.values())]


@pytest.mark.parametrize("seed", range(2))
def test_starts_lie_inside_their_intervals_also_while_nothing_is_known(seed: int, record_property) -> None:
    shares = coverage(seed)
    record_property("measured", "of the starts lay inside: " + ", ".join(f"{share:.0%}" for share in shares))
    assert min(shares) >= 0.75


def test_before_any_start_was_seen_the_interval_allows_for_the_passes_of_the_manager() -> None:
    played = Played()
    played.manager.run("a")
    played.manager.put("b", walltime=60.0)
    played.manager.put("a", JobState.RUNNING, walltime=90.0)
    played.look()
    said = played.made.forecasts["rm/b"]
    assert said.start_within is not None and said.finish_within is not None
    early, late = said.start_within
    assert early <= said.start_time and late >= said.start_time + SPARE_S
    assert said.finish_within[1] >= late


def test_a_job_that_is_handed_over_begins_when_it_is_planned_to() -> None:
    played = Played()
    submission = handed_over("rm", NOW)
    job = Job("b", Profile((ThreadGroup(1, 1.0),)))
    entry = submission.entries["b"] = Entry("rm", job, 0, offered=True)
    entry.outlook = Outlook(PlannedJob("b", ("n1",), 50.0, 60.0, 10.0, 1.0), NOW)
    played.queue.add(submission)
    played.manager.put("b", begin=NOW + 600.0)
    played.look()
    assert played.start_of("b") == NOW + 50.0
    document = played.made.document(played.made.waiting("rm/b"))
    assert document["plan"]["start_time"] == NOW + 50.0 and document["unknown"] == ""


@pytest.mark.parametrize(
    ("planned", "dry", "first"),
    [(False, False, None), (True, True, NOW + 600.0), (True, False, NOW + 50.0)],
    ids=["only the end of its hold is known", "in shadow its resource manager starts it", "it is planned"],
)
def test_the_first_forecast_of_a_job_that_is_handed_over_is_a_start_that_will_be_made(
    planned: bool, dry: bool, first: float | None
) -> None:
    played, submission = Played(), handed_over("rm", NOW)
    job = Job("b", Profile((ThreadGroup(1, 1.0),)))
    entry = submission.entries["b"] = Entry("rm", job, 0, offered=True)
    if planned:
        entry.outlook = Outlook(PlannedJob("b", ("n1",), 50.0, 60.0, 10.0, 1.0), NOW)
    played.queue.add(submission)
    played.manager.put("b", begin=NOW + 600.0, manager_start=NOW + 600.0)
    played.manager.put("other", walltime=10.0)
    view = JobView("rm/b", job, JobState.PENDING)
    played.made.on_cycle(
        CycleReport(1, 0.0, RunMode.SHADOW if dry else RunMode.LIVE),
        Snapshot(NOW, 1, CLUSTER, (NodeState.UP,), (view,)),
    )
    record = played.changed.get("rm/b")
    assert (record and record.said_start) == first and (record and record.compared_start) == first
    assert played.changed["rm/other"].said_start is not None, "the resource manager starts this one"


def test_it_costs_a_bounded_share_of_the_time_and_nothing_where_there_is_no_queue() -> None:
    played = Played()
    view = JobView("rm/a", Job("a", Profile((ThreadGroup(1, 1.0),))), JobState.PENDING)
    first = Snapshot(NOW, 1, CLUSTER, (NodeState.UP,), (view,))
    played.made.on_cycle(CycleReport(1, 0.0), first)
    played.made.on_cycle(CycleReport(2, 0.0), first)
    assert played.manager.asked == 1, "nothing has changed"
    played.made.on_cycle(CycleReport(3, 0.0), replace_jobs(first, view))
    assert played.manager.asked == 2
    played.clock.now += LONGEST_S
    played.made.on_cycle(CycleReport(4, 0.0), first)
    assert played.manager.asked == 3
    quiet = Quiet()  # type: ignore[abstract]  # no other method is called
    nothing = QueueForecasts(quiet, Queue(), {}, Metrics(), played.clock)
    nothing.on_cycle(CycleReport(1, 0.0), first)
    assert nothing.observed is None and not nothing.forecasts


class Ruled(QueueOracle):
    """Knows the starts that a test sets."""

    def __init__(self) -> None:
        self.known, self.has_news = dict[str, QueueForecast](), False

    @property
    def state(self) -> OracleState:
        return OracleState("rules", unfollowed=("one",))

    def proceed(self, queue: ObservedQueue, expected: Expected, planned: Planned) -> bool:
        return self.has_news

    def forecasts(self, queue: ObservedQueue) -> dict[str, QueueForecast]:
        return self.known


def test_an_oracle_forecasts_what_it_knows_and_a_replay_the_rest() -> None:
    played, oracle = Played(), Ruled()
    replayed = Played()
    played.made = QueueForecasts(
        played.manager, played.queue, played.changed, played.metrics, played.clock, oracle=oracle
    )
    for world in (played, replayed):
        world.manager.run("a")
        for name in "bcd":
            world.manager.put(name)
        world.look()
    assert played.made.forecasts == replayed.made.forecasts, "it knows nothing"
    assert played.made.source()["jobs"] == 0
    at = NOW + 77.0
    oracle.known = {
        "rm/b": QueueForecast(at, at + 60.0, (at, at), (at, at + 60.0)),
        "rm/c": QueueForecast(unknown="why"),
    }
    played.made.proceed()
    assert played.made.forecasts == replayed.made.forecasts, "no news"
    oracle.has_news = True
    played.made.proceed()
    assert played.start_of("b") == at and played.start_of("c") == replayed.start_of("c")
    assert played.made.source() == {"by": "rules", "why_not": "", "unfollowed": ["one"], "jobs": 1}
    early, late = played.made.forecasts["rm/b"].start_within
    assert early <= at and late >= at + SPARE_S, "errors of starts widen the interval"


def test_clients_are_answered_while_a_long_queue_is_forecast() -> None:
    played, answers = Played(), list[str]()

    def answer() -> None:
        for name in ("w0", "w1"):
            job = played.made.waiting(f"rm/{name}")
            answers.append(str(job and played.made.document(job)["unknown"]))
        played.made.observe(snapshot)

    played.made = QueueForecasts(
        played.manager, played.queue, played.changed, played.metrics, played.clock, breathe=answer
    )
    for number in range(2 * STEP):
        played.manager.put(f"w{number}")
    snapshot = Snapshot(NOW, 1, CLUSTER, (NodeState.UP,), JobViews())
    played.made.on_cycle(CycleReport(1, 0.0), snapshot)
    assert len(answers) > 10 and set(answers) == {"it was submitted a moment ago"}
    assert played.manager.asked == 1 and played.start_of("w1") is not None and played.made.time == NOW


class Quiet(Adapter):
    """A resource manager that does not show its queue."""

    name = "quiet"


def replace_jobs(snapshot: Snapshot, *views: JobView) -> Snapshot:
    return Snapshot(snapshot.time, snapshot.version + 1, snapshot.cluster, snapshot.node_states, views)


def test_the_journal_keeps_what_was_said(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    early = QueueRecord(
        "rm/1", "align", 5, "lab", "main", 4, 60.0, 1.0, 2.0, 3.0, 2.5, 9.0, 4.0, 5.0, 6.0, 7.0, 8.0, True
    )
    late = QueueRecord("rm/2", submit_time=20.0)
    journal.save([], unsaved=Unsaved(queued={record.key: record for record in (late, early)}))
    journal.close()
    again = Journal(tmp_path / "journal.sqlite")
    assert again.queued(9) == [early, late] and again.queued(1) == [late]
    again.prune(10.0)
    assert again.queued(9) == [late]
    again.close()


@pytest.mark.parametrize("requeued", [True, False])
def test_a_job_that_is_requeued_has_not_begun(requeued: bool) -> None:
    played = Played()
    played.manager.run("a")
    played.look()
    if requeued:
        played.manager.put("a", start_time=None)
        played.look(5.0)
    assert (played.changed["rm/a"].start_time is None) is requeued


class Compared(float):
    """A time that counts its comparisons."""

    count = 0

    def __lt__(self, other: float) -> bool:
        Compared.count += 1
        return float.__lt__(self, other)

    def __gt__(self, other: float) -> bool:
        Compared.count += 1
        return float.__gt__(self, other)

    def __le__(self, other: float) -> bool:
        Compared.count += 1
        return float.__le__(self, other)

    def __ge__(self, other: float) -> bool:
        Compared.count += 1
        return float.__ge__(self, other)


def test_a_node_on_which_many_jobs_start_and_end_at_once_takes_no_product_of_them() -> None:
    played, jobs = Played(), 300
    for number in range(jobs):
        played.manager.put(f"before{number}", JobState.RUNNING, start_time=played.manager.now)
        played.manager.put(f"after{number}")
    played.made._follow(played.manager.queue())
    played.manager.now += 100.0
    for number in range(jobs):
        ended = Compared(played.manager.now + (number * 37) % jobs)
        played.manager.put(f"before{number}", JobState.COMPLETED, finish_time=ended)
        played.manager.put(f"after{number}", JobState.RUNNING, start_time=played.manager.now + number + 0.5)
    Compared.count = 0
    played.made._follow(played.manager.queue())
    assert set(played.made._gaps) == {0.5}
    assert jobs < Compared.count < 40 * jobs, "sorted once, and looked up for each start"
