"""Old records go in steps: each is bounded, all of them together leave what is not old, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotfish.daemon.state import old_records
from pilotfish.daemon.state.journal import Journal
from pilotfish.daemon.state.queue import Submission
from pilotfish.daemon.state.unsaved import Unsaved
from pilotfish.simulate.model.job import Workflow
from pilotfish.simulate.model.snapshot import JobState

TABLES = ("workflows", "jobs", "story", "intents", "queued", "changes", "would_be", "accounting", "members")


def counts(journal: Journal) -> dict[str, int]:
    return {table: journal._read(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


def fill(journal: Journal, kit, ends: list[tuple[int, float]]) -> None:
    """Write workflows, each with a number of jobs and the time of its end, and rows of the other tables."""
    for number, (size, end) in enumerate(ends):
        name = f"w.{number}"
        submission = Submission(name, Workflow(name, tuple(kit.job(f"j{i}") for i in range(size))), 1.0)
        journal.submit(submission, None)
        for entry in submission.entries.values():
            entry.state, entry.finish_time = JobState.COMPLETED, end
        stories = [(f"{name}/j{i}", end, 1, "ended", "", None) for i in range(size)]
        journal.save(submission.entries.values(), ended=[submission], unsaved=Unsaved(stories))
        run = journal._db.execute
        run("INSERT INTO intents (key, action, time, outcome) VALUES (?, 'start', ?, 'done')", (f"{name}/j0", end))
        run("INSERT INTO changes (time, kind, target, by, why) VALUES (?, 'cancel', ?, 'x', '')", (end, name))
        run(
            "INSERT INTO queued (key, name, account, queue, size, learned, said_guessed, finish_time) "
            "VALUES (?, '', '', '', 1, 0, 0, ?)",
            (f"rjms/{number}", end),
        )


@pytest.fixture
def in_twos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_records, "AT_ONCE", 2)


@given(ends=st.lists(st.tuples(st.integers(1, 5), st.sampled_from((10.0, 20.0, 30.0))), max_size=8))
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_old_goes_and_the_rest_stays(kit, in_twos, ends) -> None:
    journal = Journal(Path("journal.sqlite"), in_memory=True)
    fill(journal, kit, ends)
    keys = [key for part in journal.prune_steps(20.0) for key in part]
    staying = [(number, size) for number, (size, end) in enumerate(ends) if end >= 20.0]
    dropped = [(number, size) for number, (size, end) in enumerate(ends) if end < 20.0]
    assert sorted(keys) == sorted(f"w.{number}/j{i}" for number, size in dropped for i in range(size))
    rows, jobs = len(staying), sum(size for _, size in staying)
    expected = {"workflows": rows, "jobs": jobs, "story": jobs, "intents": rows, "queued": rows, "changes": rows}
    assert counts(journal) | expected == counts(journal)
    for number, _ in staying:
        assert journal.records(f"w.{number}/j0")
    journal.close()


def test_each_step_is_bounded_and_names_the_jobs_before_they_go(kit, in_twos) -> None:
    journal = Journal(Path("journal.sqlite"), in_memory=True)
    fill(journal, kit, [(1, 10.0)] * 9)
    before = counts(journal)
    for keys in journal.prune_steps(20.0):
        now = counts(journal)
        assert all(before[table] - now[table] <= 2 for table in TABLES)
        assert all(journal.records(key) for key in keys)
        before = now
    assert set(counts(journal).values()) == {0}
    journal.close()


def test_a_name_that_begins_like_another_loses_nothing(kit) -> None:
    journal = Journal(Path("journal.sqlite"), in_memory=True)
    for name, end in (("w", 10.0), ("w.1", 30.0), ("w0", 30.0), ("v", 30.0)):
        submission = Submission(name, Workflow(name, (kit.job("a"),)), 1.0)
        journal.submit(submission, None)
        submission.entries["a"].state, submission.entries["a"].finish_time = JobState.COMPLETED, end
        story = [(f"{name}/a", end, 1, "ended", "", None)]
        journal.save(submission.entries.values(), ended=[submission], unsaved=Unsaved(story))
    journal.prune(20.0)
    assert [bool(journal.records(f"{name}/a")) for name in ("w", "w.1", "w0", "v")] == [False, True, True, True]
    journal.close()
