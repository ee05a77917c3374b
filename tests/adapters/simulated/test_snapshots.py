"""Snapshots of the simulated adapter: what follows from the one before is what a first one shows."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.adapters.base import AdapterError
from pilotfish.adapters.simulated import SimulatedAdapter
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup
from pilotfish.simulate.model.plan import Cancel, Submit

NAMES = ("n0", "n1", "n2")
CLUSTER = Cluster("lab", tuple(Node(name, NodeType("t", 4, 4e9, 1e10)) for name in NAMES))
KEYS = st.integers(0, 4).map("w/{}".format)
STEP = (
    st.tuples(st.just("submit"), KEYS, st.sets(st.sampled_from(NAMES), min_size=1), st.integers(1, 9))
    | st.tuples(st.sampled_from(("cancel", "forget")), KEYS)
    | st.tuples(st.just("wait"), st.integers(0, 5))
)


def take(adapter: SimulatedAdapter, what: str, *values: Any) -> None:
    if what == "wait":
        adapter.advance(float(values[0]))
    elif what == "submit":
        key, nodes, seconds = values
        job = Job("j", Profile((ThreadGroup(1, float(seconds)),)), nodes=len(nodes), walltime=5.0)
        adapter.submit(Submit(key, job, tuple(sorted(nodes))))
    elif what == "cancel":
        adapter.cancel(Cancel(*values))
    else:
        try:
            adapter.forget(*values)
        except AdapterError:
            assert not next(view for view in adapter.snapshot().jobs if view.key == values[0]).state.ended


@given(st.lists(st.tuples(STEP, st.booleans()), max_size=15))
@settings(max_examples=60, deadline=None)
def test_earlier_snapshots_change_nothing(steps: list[tuple[tuple[Any, ...], bool]]) -> None:
    watched, unwatched = SimulatedAdapter(CLUSTER), SimulatedAdapter(CLUSTER)
    for step, looks in steps:
        for adapter in (watched, unwatched):
            take(adapter, *step)
        if looks:
            watched.snapshot().jobs.occupancy(CLUSTER)
    snapshot, expected = watched.snapshot(), unwatched.snapshot()
    assert (snapshot.time, snapshot.jobs) == (expected.time, expected.jobs)
    assert snapshot.jobs.by_key == expected.jobs.by_key and snapshot.jobs.holding == expected.jobs.holding
    assert snapshot.jobs.occupancy(CLUSTER) == expected.jobs.occupancy(CLUSTER)
    assert watched.snapshot().jobs is snapshot.jobs
