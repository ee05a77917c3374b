"""When the jobs of a queue were read: against a list of all that happened."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pilotfish.adapters.manager.read_times import ReadTimes
from pilotfish.adapters.slurm.queue_reads import QueueReads
from tests.support.slurm_jobs import JOB

EVENTS = st.tuples(st.sampled_from(("whole", "alone", "change", "void", "wait")), st.integers(1, 3))


def age_of(job: int | None, events: list[tuple[str, int]]) -> float:
    """Return the age of a job by going back through the events; None: of the whole queue."""
    elapsed, whole_counts = 0.0, True
    for kind, number in reversed(events):
        if kind == "wait":
            elapsed += number
        elif kind == "whole":
            return elapsed if whole_counts else math.inf
        elif kind == "void":
            whole_counts = False
        elif job is None and kind == "change":
            later = events[len(events) - events[::-1].index((kind, number)) :]
            if ("alone", number) not in later:
                return math.inf
        elif job == number:
            return elapsed if kind == "alone" else math.inf
    return math.inf


@given(st.lists(EVENTS, max_size=12))
def test_the_age_is_that_of_the_last_read_since_the_last_change(events: list[tuple[str, int]]) -> None:
    seconds = [5.0]
    reads = ReadTimes(lambda: seconds[0])
    for kind, number in events:
        if kind == "whole":
            reads.note_whole()
        elif kind == "alone":
            reads.note_alone([number])
        elif kind == "change":
            reads.note_change(number)
        elif kind == "void":
            reads.void()
        else:
            seconds[0] += number
    assert [reads.age_s(job) for job in (None, 1, 2)] == [age_of(job, events) for job in (None, 1, 2)]


def test_jobs_whose_evaluation_failed_are_evaluated_at_the_next_read() -> None:
    reads, answer = QueueReads(lambda: 0.0), [JOB, replace(JOB, id=8)]
    first = reads.renew(answer, ())
    assert first == reads.renew(answer, ())  # nothing was noted: the evaluation failed
    reads.note_whole()
    assert reads.renew(answer, ()) == ([], set())
    reads.doubt([8, 9])
    assert reads.renew(answer, ()) == ([answer[1]], {9})
