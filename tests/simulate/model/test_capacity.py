"""The capacity rule: memory and threads, to the last byte and thread."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import InvalidJobError
from pilotfish.simulate.model.capacity import EmptyNodes, Occupancy, memory_need, never_fits
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.planning.simulation import Simulation


def cluster(oversubscription=1.0):
    small, big = NodeType("small", 2, 100.0, 1e9), NodeType("big", 8, 1000.0, 1e9)
    return Cluster("lab", (Node("s1", small), Node("s2", small), Node("b1", big)), oversubscription)


def job(threads=1, memory=0.0, nodes=1, profile_memory=0.0):
    profile = Profile((ThreadGroup(threads, 1.0),), memory=profile_memory)
    return Job("j", profile, memory=memory, nodes=nodes)


def test_the_larger_memory_counts():
    assert memory_need(job(memory=3.0, profile_memory=5.0)) == 5.0
    assert memory_need(job(memory=7.0, profile_memory=5.0)) == 7.0


def test_resident_jobs_use_capacity():
    taken = Occupancy(cluster())
    taken.place(job(1, 60.0), ["s1", "b1", "not-here"])
    assert (taken.threads, taken.memory) == ([1, 0, 1], [60.0, 0.0, 60.0])
    assert taken.obstacle(job(1, 40.0), "s1") is None
    assert "memory of 100" in taken.obstacle(job(1, 41.0), "s1")
    assert "limit of 2" in taken.obstacle(job(2), "s1")
    assert "no node 'x'" in taken.obstacle(job(), "x")


def test_oversubscription_sets_the_thread_limit():
    assert Occupancy(cluster(1.5)).obstacle(job(3), "s1") is None
    assert Occupancy(cluster(1.5)).obstacle(job(4), "s1") is not None
    assert Occupancy(cluster(math.inf)).obstacle(job(10_000), "s1") is None


def test_a_job_that_never_fits_has_a_reason():
    assert never_fits(job(8), cluster()) is None
    assert never_fits(job(1, nodes=3), cluster()) is None
    assert "needs 2 nodes and 1 of 3 usable ones fit" in never_fits(job(8, nodes=2), cluster())
    assert "memory" in never_fits(job(1, 2000.0), cluster())
    assert "0 of 1 usable" in never_fits(job(8), cluster(), available={"s1"})
    assert never_fits(job(), cluster(), available=()) == "it needs 1 node and 0 of 0 usable ones fit it"


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 10),
    st.sampled_from([0.0, 99.0, 100.0, 100.5, 1000.0, 1001.0]),
    st.integers(1, 4),
    st.sampled_from([0.29, 1.0, 1.25, math.inf]),
    st.sets(st.sampled_from(["s1", "s2", "b1"])),
)
def test_the_engine_refuses_what_never_fits_and_nothing_else(threads, memory, nodes, oversubscription, available):
    wanted, site = job(threads, memory, nodes), cluster(oversubscription)
    if never_fits(wanted, site, available) is None:
        Simulation(Workflow("w", (wanted,)), site, available=available)
    else:
        with pytest.raises(InvalidJobError, match="'j' can never start on 'lab'"):
            Simulation(Workflow("w", (wanted,)), site, available=available)


NAMES = [f"n{number}" for number in range(6)]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 4]), min_size=6, max_size=6),
    st.lists(
        st.tuples(st.none() | st.frozensets(st.sampled_from([*NAMES, "elsewhere"])), st.integers(1, 5)), max_size=5
    ),
    st.sets(st.sampled_from(NAMES)),
)
def test_the_nodes_that_fit_are_counted_as_one_by_one(cores, wishes, available):
    kinds = {number: NodeType(f"t{number}", number, 100.0, 1e9) for number in (1, 2, 4)}
    site = Cluster("lab", tuple(Node(name, kinds[number]) for name, number in zip(NAMES, cores, strict=True)))
    empty, none = EmptyNodes(site, available), Occupancy(site)
    for allowed, threads in wishes:
        wanted = replace(job(threads, nodes=2), allowed=allowed)
        fitting = sum(none.obstacle(wanted, name) is None for name in available)
        reason = empty.never_fits(wanted)
        assert (reason is None) is (fitting >= 2)
        assert reason is None or reason.startswith(f"it needs 2 nodes and {fitting} of {len(available)} usable")
