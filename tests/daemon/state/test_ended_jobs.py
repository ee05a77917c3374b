"""Jobs that are not shown any more: unknown until the records say how they ended."""

from __future__ import annotations

import dataclasses
import logging
from itertools import pairwise

import pytest

from pilotfish.adapters.base import AdapterError
from pilotfish.daemon import queue
from pilotfish.daemon.recall import GAP_S, MOST, Recall
from pilotfish.simulate.job import DEFAULT_PROFILE, Job
from pilotfish.simulate.snapshot import JobState, JobView


def ended(key: str, state: JobState = JobState.COMPLETED, code: int | None = 0) -> JobView:
    job = Job(key, DEFAULT_PROFILE)
    return JobView(key, job, state, ("n1",), start_time=1000.0, finish_time=1003.0, exit_code=code)


class Records:
    """What is on record, and what was asked of it; `down` says why it cannot be read."""

    name = "memory"

    def __init__(self) -> None:
        self.now, self.down = 0.0, ""
        self.known: dict[str, JobView] | None = {}
        self.asked: list[tuple[float, list[str]]] = []
        self.recall_ = Recall(self, lambda: self.now)  # type: ignore[arg-type]

    def recall(self, since: dict[str, float]) -> dict[str, JobView] | None:
        self.asked.append((self.now, sorted(since)))
        if self.down:
            raise AdapterError(self.down, transient=True)
        return None if self.known is None else {key: self.known[key] for key in since if key in self.known}

    def look(self, *missing: str):
        self.now += 1.0
        return self.recall_.look(dict.fromkeys(missing, 0.0))


def test_nothing_is_asked_while_nothing_is_missing() -> None:
    records = Records()
    assert [records.look() for _ in range(9)] == [{}] * 9 and records.asked == []


def test_gaps_grow_and_end_when_another_is_missed() -> None:
    records = Records()
    for _ in range(300):
        assert records.look("a") == {"a": None}
    times = [time for time, _ in records.asked]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[:6] == [2.0, 4.0, 8.0, 16.0, 32.0, GAP_S[1]] and set(gaps[6:]) == {GAP_S[1]}
    records.look("a", "b")
    assert records.asked[-1] == (records.now, ["a", "b"])


def test_many_are_asked_for_in_turns() -> None:
    records, keys = Records(), [f"k{number}" for number in range(3 * MOST)]
    answers = [len(records.look(*keys) or {}) for _ in range(3)]
    assert answers == [MOST, 2 * MOST, 3 * MOST]
    assert {len(asked) for _, asked in records.asked} == {MOST}
    assert len({key for _, asked in records.asked for key in asked}) == 3 * MOST


def test_while_they_cannot_be_read_nothing_is_known_and_it_is_said_once(caplog) -> None:
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


def test_where_none_are_kept_it_is_said_once(caplog) -> None:
    records = Records()
    records.known = None
    assert [records.look("a") for _ in range(100)] == [None] * 100
    assert caplog.text.count("memory keeps no record") == 1


def lose(bench, *names: str):
    """A workflow whose jobs have begun and are then forgotten by the manager, which keeps records."""
    manager = bench.manager
    manager.records = {}
    bench.cycle.recall = Recall(manager, lambda: manager.time)
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
    entry = bench.cycle.queue.find(f"{flow}/a")
    bench.run()
    assert (entry.state, entry.exit_code, entry.finish_time) == (state, code, 1003.0)
    assert bench.manager.runs == {f"{flow}/a": 1}


def test_a_job_stays_unknown_while_the_records_are_away_and_after_a_restart(bench) -> None:
    flow = lose(bench, "a")
    bench.manager.records_down = "away"
    bench.run(cycles=100)
    assert bench.states(flow) == {"a": "unknown"}
    bench.kill()
    bench.start()
    bench.cycle.recall = Recall(bench.manager, lambda: bench.manager.time)
    bench.run(cycles=100)
    assert bench.states(flow) == {"a": "unknown"}
    bench.manager.records_down, bench.manager.records = "", {f"{flow}/a": ended(f"{flow}/a", JobState.FAILED, 3)}
    entry = bench.cycle.queue.find(f"{flow}/a")
    bench.run(cycles=70)
    assert (entry.state, entry.exit_code) == (JobState.FAILED, 3) and sum(bench.manager.runs.values()) == 1


def test_a_job_that_the_records_have_as_running_stays_unknown_and_keeps_its_nodes(bench, caplog) -> None:
    flow = lose(bench, "a")
    view = dataclasses.replace(ended(f"{flow}/a", JobState.UNKNOWN), finish_time=None, reason="on record as running")
    bench.manager.records = {f"{flow}/a": view}
    bench.run(cycles=3 * int(queue.UNHEARD_S))
    entry = bench.cycle.queue.find(f"{flow}/a")
    assert entry.state is JobState.UNKNOWN and queue.busy(entry) and entry.nodes
    assert entry.reason == "on record as running" and caplog.text.count("on record as running") == 1


def test_a_job_that_the_records_do_not_know_has_failed_after_very_long(bench) -> None:
    flow = lose(bench, "a")
    entry = bench.cycle.queue.find(f"{flow}/a")
    bench.run(cycles=int(queue.UNHEARD_S))
    assert entry.state is JobState.UNKNOWN
    bench.run(cycles=5)
    assert entry.state is JobState.FAILED and "how it ended is not known" in entry.reason


def test_only_where_no_records_are_kept_it_has_failed_soon(bench) -> None:
    flow = lose(bench, "a")
    bench.manager.records = None
    entry = bench.cycle.queue.find(f"{flow}/a")
    bench.run(cycles=int(queue.MISSED_S))
    assert entry.state is JobState.UNKNOWN
    bench.run(cycles=5)
    assert entry.state is JobState.FAILED


def test_a_time_without_answers_does_not_count_as_missed(bench) -> None:
    flow = lose(bench, "a")
    entry = bench.cycle.queue.find(f"{flow}/a")
    bench.run(cycles=50)
    bench.manager.records_down = "away"
    bench.run(cycles=2 * int(queue.UNHEARD_S))
    bench.manager.records_down = ""
    bench.run(cycles=int(queue.UNHEARD_S) - 70)
    assert entry.state is JobState.UNKNOWN


def test_a_user_can_let_go_of_a_job_that_is_unknown(bench) -> None:
    flow = lose(bench, "a")
    bench.manager.records_down = "away"
    bench.run(cycles=2)
    entry = bench.cycle.queue.find(f"{flow}/a")
    bench.cycle.cancel([entry])
    bench.run(cycles=2)
    assert entry.state is JobState.CANCELLED


def uncertain(bench) -> str:
    """A workflow whose job was started without an answer, ran unseen, and has left the queue, the daemon being dead."""
    manager = bench.manager
    manager.records = {}
    flow = bench.submit(Job("a", DEFAULT_PROFILE, command=("true",)))
    manager.refuse[f"{flow}/a"] = AdapterError("no answer", transient=True, kind="timeout")
    bench.run()
    manager.refuse.clear()
    bench.kill()
    bench.start()
    bench.cycle.recall = Recall(manager, lambda: manager.time)
    return flow


def test_a_start_without_an_answer_that_took_place_is_not_repeated(bench) -> None:
    flow = uncertain(bench)
    bench.manager.records = {f"{flow}/a": ended(f"{flow}/a", JobState.FAILED, 3)}
    entry = bench.cycle.queue.find(f"{flow}/a")
    assert entry.intent is not None
    bench.run()
    assert (entry.state, entry.exit_code, entry.intent) == (JobState.FAILED, 3, None)
    assert not bench.manager.runs


def test_a_start_without_an_answer_is_not_repeated_before_the_records_say_that_it_may_be(bench) -> None:
    flow = uncertain(bench)
    bench.manager.records_down = "away"
    entry = bench.cycle.queue.find(f"{flow}/a")
    bench.run(cycles=100)
    assert entry.state is JobState.UNKNOWN and entry.intent is not None and not bench.manager.runs
    bench.kill()
    bench.start()
    bench.cycle.recall = Recall(bench.manager, lambda: bench.manager.time)
    entry = bench.cycle.queue.find(f"{flow}/a")
    bench.run(cycles=5)
    assert entry.state is JobState.UNKNOWN and entry.intent is not None and not bench.manager.runs
    bench.manager.records_down = ""
    bench.run(cycles=80)
    assert bench.manager.runs == {f"{flow}/a": 1}


def test_what_is_on_record_is_asked_for_with_the_time_of_submission(bench, caplog) -> None:
    caplog.set_level(logging.INFO)
    flow = lose(bench, "a", "b")
    bench.run()
    assert bench.manager.recalled == [{f"{flow}/a", f"{flow}/b"}]
