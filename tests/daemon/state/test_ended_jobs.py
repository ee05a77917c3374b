"""Jobs that are not shown any more are unknown until the records say how they ended."""

from __future__ import annotations

import dataclasses
import logging
from itertools import pairwise

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon.state import queue
from pilotfish.daemon.state.ended_jobs import GAP_S, MOST, EndedJobs
from pilotfish.daemon.state.queue_entry import busy
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.model.snapshot import JobState, JobView


def ended(key: str, state: JobState = JobState.COMPLETED, code: int | None = 0) -> JobView:
    job = Job(key, DEFAULT_PROFILE)
    return JobView(key, job, state, ("n1",), start_time=1000.0, finish_time=1003.0, exit_code=code)


class Records:
    """Records of ended jobs, and the requests for them; `down` is the error of a request."""

    name = "memory"

    def __init__(self) -> None:
        self.now, self.down = 0.0, ""
        self.known: dict[str, JobView] | None = {}
        self.asked: list[tuple[float, list[str]]] = []
        self.ended_jobs = EndedJobs(self, lambda: self.now)

    def recall(self, since: dict[str, float]) -> dict[str, JobView] | None:
        self.asked.append((self.now, sorted(since)))
        if self.down:
            raise AdapterError(self.down, transient=True)
        return None if self.known is None else {key: self.known[key] for key in since if key in self.known}

    def look(self, *missing: str):
        self.now += 1.0
        return self.ended_jobs.look_up(dict.fromkeys(missing, 0.0))


def test_no_request_is_sent_while_no_job_is_missing() -> None:
    records = Records()
    assert [records.look() for _ in range(9)] == [{}] * 9 and records.asked == []


def test_gaps_grow_until_another_job_is_missing() -> None:
    records = Records()
    for _ in range(300):
        assert records.look("a") == {"a": None}
    times = [time for time, _ in records.asked]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[:6] == [2.0, 4.0, 8.0, 16.0, 32.0, GAP_S[1]] and set(gaps[6:]) == {GAP_S[1]}
    records.look("a", "b")
    assert records.asked[-1] == (records.now, ["a", "b"])


def test_many_jobs_are_asked_for_in_turns() -> None:
    records, keys = Records(), [f"k{number}" for number in range(3 * MOST)]
    answers = [len(records.look(*keys) or {}) for _ in range(3)]
    assert answers == [MOST, 2 * MOST, 3 * MOST]
    assert {len(asked) for _, asked in records.asked} == {MOST}
    assert len({key for _, asked in records.asked for key in asked}) == 3 * MOST


def test_unreadable_records_are_logged_once_and_answer_nothing(caplog) -> None:
    records = Records()
    records.look("a")
    records.down = "sacct: Connection refused"
    for _ in range(100):
        found = records.look("a", "b")
    assert found == {} and len(records.asked) < 10
    assert caplog.text.count("cannot be read: sacct: Connection refused; 2 jobs that the queue does not show are") == 1
    records.down, records.known = "", {"a": ended("a")}
    for _ in range(61):
        found = records.look("a", "b")
    assert found == {"a": ended("a"), "b": None}
    assert caplog.text.count("can be read again") == 1


def test_missing_records_support_is_logged_once(caplog) -> None:
    records = Records()
    records.known = None
    assert [records.look("a") for _ in range(100)] == [None] * 100
    assert caplog.text.count("memory keeps no record") == 1


def lose(bench, *names: str):
    """Submit a workflow whose jobs start and then leave the manager's queue; the manager keeps records."""
    manager = bench.manager
    manager.records = {}
    bench.restart(clock=lambda: manager.time)
    flow = bench.submit(*(Job(name, DEFAULT_PROFILE, command=("true",)) for name in names))
    bench.run()
    for name in names:
        del manager.views[f"{flow}/{name}"]
    return flow


@pytest.mark.parametrize(
    ("state", "code"),
    [(JobState.COMPLETED, 0), (JobState.FAILED, 3), (JobState.TIMEOUT, None), (JobState.CANCELLED, None)],
)
def test_the_true_end_is_taken_from_the_records(bench, state: JobState, code: int | None) -> None:
    flow = lose(bench, "a")
    bench.manager.records = {f"{flow}/a": ended(f"{flow}/a", state, code)}
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    bench.run()
    assert (entry.state, entry.exit_code, entry.finish_time) == (state, code, 1003.0)
    assert bench.manager.runs == {f"{flow}/a": 1}


def test_a_job_stays_unknown_while_the_records_cannot_be_read(bench) -> None:
    flow = lose(bench, "a")
    bench.manager.records_down = "away"
    bench.run(cycles=100)
    assert bench.states(flow) == {"a": "unknown"}
    bench.restart()
    bench.run(cycles=100)
    assert bench.states(flow) == {"a": "unknown"}
    bench.manager.records_down, bench.manager.records = "", {f"{flow}/a": ended(f"{flow}/a", JobState.FAILED, 3)}
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    bench.run(cycles=70)
    assert (entry.state, entry.exit_code) == (JobState.FAILED, 3) and sum(bench.manager.runs.values()) == 1


def test_a_job_recorded_as_running_stays_unknown_and_keeps_its_nodes(bench, caplog) -> None:
    flow = lose(bench, "a")
    view = dataclasses.replace(ended(f"{flow}/a", JobState.UNKNOWN), finish_time=None, reason="on record as running")
    bench.manager.records = {f"{flow}/a": view}
    bench.run(cycles=3 * int(queue.UNRECORDED_S))
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    assert entry.state is JobState.UNKNOWN and busy(entry) and entry.nodes
    assert entry.reason == "on record as running" and caplog.text.count("on record as running") == 1


def test_a_job_without_a_record_fails_after_very_long(bench) -> None:
    flow = lose(bench, "a")
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    bench.run(cycles=int(queue.UNRECORDED_S))
    assert entry.state is JobState.UNKNOWN
    bench.run(cycles=5)
    assert entry.state is JobState.FAILED and "how it ended is not known" in entry.reason


def test_without_records_a_missing_job_fails_soon(bench) -> None:
    flow = lose(bench, "a")
    bench.manager.records = None
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    bench.run(cycles=int(queue.MISSED_S))
    assert entry.state is JobState.UNKNOWN
    bench.run(cycles=5)
    assert entry.state is JobState.FAILED


def test_time_without_answers_does_not_count_as_missing(bench) -> None:
    flow = lose(bench, "a")
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    bench.run(cycles=50)
    bench.manager.records_down = "away"
    bench.run(cycles=2 * int(queue.UNRECORDED_S))
    bench.manager.records_down = ""
    bench.run(cycles=int(queue.UNRECORDED_S) - 70)
    assert entry.state is JobState.UNKNOWN


def test_a_user_can_cancel_an_unknown_job(bench) -> None:
    flow = lose(bench, "a")
    bench.manager.records_down = "away"
    bench.run(cycles=2)
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    bench.cycle.tracker.cancel([entry])
    bench.run(cycles=2)
    assert entry.state is JobState.CANCELLED


def uncertain(bench) -> str:
    """Submit a workflow whose job was started without an answer and left the queue while the daemon was dead."""
    manager = bench.manager
    manager.records = {}
    flow = bench.submit(Job("a", DEFAULT_PROFILE, command=("true",)))
    manager.refuse[f"{flow}/a"] = AdapterError("no answer", transient=True, kind="timeout")
    bench.run()
    manager.refuse.clear()
    bench.restart(clock=lambda: manager.time)
    return flow


def test_an_unanswered_start_that_happened_is_not_repeated(bench) -> None:
    flow = uncertain(bench)
    bench.manager.records = {f"{flow}/a": ended(f"{flow}/a", JobState.FAILED, 3)}
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    assert entry.intent is not None
    bench.run()
    assert (entry.state, entry.exit_code, entry.intent) == (JobState.FAILED, 3, None)
    assert not bench.manager.runs


def test_an_unanswered_start_is_repeated_only_when_the_records_allow_it(bench) -> None:
    flow = uncertain(bench)
    bench.manager.records_down = "away"
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    bench.run(cycles=100)
    assert entry.state is JobState.UNKNOWN and entry.intent is not None and not bench.manager.runs
    bench.restart()
    entry = bench.cycle.tracker.queue.find(f"{flow}/a")
    bench.run(cycles=5)
    assert entry.state is JobState.UNKNOWN and entry.intent is not None and not bench.manager.runs
    bench.manager.records_down = ""
    bench.run(cycles=80)
    assert bench.manager.runs == {f"{flow}/a": 1}


def test_records_are_asked_for_with_the_time_of_submission(bench, caplog) -> None:
    caplog.set_level(logging.INFO)
    flow = lose(bench, "a", "b")
    bench.run()
    assert bench.manager.recalled == [{f"{flow}/a", f"{flow}/b"}]
