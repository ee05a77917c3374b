"""Lists as changes: whatever follows whatever, what is read is what was written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.formats.record.changes import ChangeReader, ChangeWriter
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.observed_queue import ObservedJob
from pilotfish.simulate.model.snapshot import JobState, JobView

KEYS = st.sampled_from([f"slurm/{number}" for number in range(8)])
PROFILE = Profile((ThreadGroup(2, 3.5),), name="app")
VIEWS = st.builds(
    JobView, KEYS, st.builds(Job, st.sampled_from("ab"), st.just(PROFILE), allowed=st.none() | st.just(frozenset("xy"))),
    st.sampled_from(JobState), st.lists(st.sampled_from(["n1", "n2"]), max_size=2).map(tuple),
    start_time=st.none() | st.floats(0, 2e9), priority=st.none() | st.floats(0, 1e9), reason=st.sampled_from(["", "x|\n"]),
    usage=st.just(()) | st.just((("cpu_seconds", 2.5),)), offered=st.booleans(),
)  # fmt: skip
QUEUED = st.builds(
    ObservedJob, KEYS, st.sampled_from(JobState), where=st.frozensets(st.sampled_from("ab")), tasks=st.integers(1, 3)
)


@pytest.mark.parametrize(("kind", "values"), [(JobView, VIEWS), (ObservedJob, QUEUED)], ids=["views", "queue"])
def test_each_list_comes_back(kind, values):
    @given(st.lists(st.lists(values, max_size=8), max_size=5))
    def holds(lists):
        writer, reader = ChangeWriter(), ChangeReader(kind)
        for one in lists:
            change = json.loads(json.dumps(writer.change(one), default=sorted))
            assert reader.values(change) == one

    holds()


def test_what_is_the_same_is_no_change_and_one_field_is_a_small_one():
    jobs = [JobView(f"k{i}", Job(f"j{i}", PROFILE), JobState.PENDING, priority=1.0) for i in range(100)]
    writer = ChangeWriter()
    writer.change(jobs)
    assert writer.change(list(jobs)) == {}
    later = [*jobs[:50], JobView("k50", jobs[50].job, JobState.RUNNING, ("n1",), priority=1.0), *jobs[51:]]
    assert writer.change(later) == {"changed": {"k50": [{"state": "running", "nodes": ["n1"]}]}}
    assert writer.change(later[::-1])["order"][0] == [99, 1]


@pytest.mark.parametrize(
    "change",
    [{"gone": ["x"]}, {"changed": {"x": [{}]}}, {"order": [[0, 5]]}, {"new": {"x": {"state": "odd"}}}, {"order": [[0, 0]]},
     {"new": {"x": 5}}, {"changed": {"k": []}}],
)  # fmt: skip
def test_a_damaged_change_is_an_error(change):
    reader = ChangeReader(ObservedJob)
    reader.values({"new": {"k": {"key": "k", "state": "pending"}}})
    with pytest.raises((KeyError, IndexError, TypeError, ValueError)):
        reader.values(change)
