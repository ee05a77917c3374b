"""Classes of the published benchmarks, and of jobs with unknown numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.profiles import library
from pilotfish.profiles.classes import JobClass, classify, classify_on
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import DEFAULT_PROFILE, Phase, Profile, ThreadGroup

NODE = NodeType("t", 4, 1e10, 40e9)  # a core's share: 10 GB/s


def profile(utilisation: float = 1.0, bandwidth: float = 0.0, ipc: float | None = None, **more) -> Profile:
    return Profile((ThreadGroup(1, 10.0, utilisation, bandwidth=bandwidth, **more),), ipc=ipc)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ep.C", "cpu-bound"), ("is.C", "latency-bound"), ("bt.C", "mixed"), ("lu.C", "bandwidth-bound"),
        ("sp.C", "bandwidth-bound"), ("ua.C", "bandwidth-bound"), ("cg.C", "bandwidth-bound"),
    ],
)  # fmt: skip
def test_the_nas_benchmarks(name, kind):
    assert str(classify(library.profiles()[name], library.node_types()["i5-7500"]).kind) == kind


@pytest.mark.parametrize(
    ("job", "kind", "why"),
    [
        (profile(0.2), JobClass.SLEEPING, "20 %"),
        (profile(0.2, 50e9), JobClass.SLEEPING, "20 %"),
        (profile(1.0), None, "bandwidth is not known"),
        (profile(1.0, 1e9), None, "IPC is not known"),
        (profile(1.0, 1e9, 2.0), JobClass.CPU, "0.1 times"),
        (profile(1.0, 1e9, 0.4), JobClass.LATENCY, "0.4 instructions"),
        (profile(0.6, 1e9, 2.0), JobClass.MIXED, "60 %"),
        (profile(1.0, 10e9), JobClass.BANDWIDTH, "1 times"),
        (DEFAULT_PROFILE, None, "no profile"),
    ],
)
def test_each_class_says_why(job, kind, why):
    found = classify(job, NODE)
    assert found.kind is kind and why in found.why


@pytest.mark.parametrize("bandwidth", [0.0, 1e9])
@pytest.mark.parametrize(("threads", "utilisation"), [(2, 0.47), (3, 0.3), (8, 0.05)])
def test_threads_that_together_keep_a_core_busy_do_not_sleep(threads, utilisation, bandwidth):
    """The threads of `sort` work in turns; each is idle half of the time, the job never is."""
    group = ThreadGroup(threads, 10.0, utilisation, bandwidth=bandwidth)
    found = classify(Profile((group,), ipc=2.0), NODE)
    assert (found.kind is JobClass.SLEEPING) is (threads * utilisation < 0.8)
    assert found.kind is (JobClass.SLEEPING if threads == 8 else JobClass.MIXED if bandwidth else None)


def test_without_a_node_only_sleeping_jobs_are_classified():
    assert classify(profile(0.2), None).kind is JobClass.SLEEPING
    assert classify(profile(1.0, 1e9, 2.0), None).kind is None


def test_phases_and_groups_that_differ_are_mixed_unless_they_are_short():
    phases = (Phase(0.5, 0.1, 0.0), Phase(0.5, 1.0, 20e9))
    assert classify(profile(phases=phases), NODE).kind is JobClass.MIXED
    quiet = (Phase(0.5, 1.0, 0.0), Phase(0.5, 1.0, 9e9))
    nothing_moved_is_known = classify(profile(phases=quiet, ipc=2.0), NODE)
    assert nothing_moved_is_known.why == "parts of it are mixed, cpu-bound"
    short = (Phase(0.05, 0.1, 0.0), Phase(0.95, 1.0, 20e9))
    assert classify(profile(phases=short), NODE).kind is JobClass.BANDWIDTH
    helper = replace(profile(1.0, 20e9), groups=(ThreadGroup(2, 10.0, bandwidth=20e9), ThreadGroup(1, 0.1, 0.1)))
    assert classify(helper, NODE).kind is JobClass.BANDWIDTH


def test_a_faster_core_is_more_bandwidth_bound():
    slow, fast = replace(NODE, name="slow", frequency=1e9), replace(NODE, name="fast", frequency=4e9)
    cluster = Cluster("lab", (Node("a", slow), Node("b", fast)))
    job = replace(profile(1.0, 4e9, 2.0), measured_on="slow")
    assert classify_on(job, cluster, ["a"]).kind is JobClass.MIXED
    assert classify_on(job, cluster, ["b"]).kind is JobClass.BANDWIDTH
    assert classify_on(job, cluster) == classify_on(job, cluster, ["gone"]) == classify_on(job, cluster, ["a"])


def test_other_load_on_a_node_does_not_change_the_class_and_is_not_named():
    job = replace(profile(1.0, 4e9), measured_on=NODE.name)
    for origin in (NODE.name, None):
        busy = Cluster("lab", (Node("a", NODE.at_pace(0.1423)),))
        classified = classify_on(replace(job, measured_on=origin), busy, ["a"])
        assert classified == classify_on(replace(job, measured_on=origin), Cluster("lab", (Node("a", NODE),)), ["a"])
        assert classified.kind is JobClass.MIXED and "@" not in classified.why and NODE.name in classified.why


@given(st.floats(0.01, 1.0), st.floats(0.0, 1e12), st.none() | st.floats(0.01, 10.0), st.integers(1, 200))
def test_more_cores_never_make_a_job_less_bandwidth_bound(utilisation, bandwidth, ipc, cores):
    job = profile(utilisation, bandwidth, ipc)
    if classify(job, replace(NODE, cores=cores)).kind is JobClass.BANDWIDTH:
        assert classify(job, replace(NODE, cores=cores + 1)).kind is JobClass.BANDWIDTH
    assert classify(job, NODE).why
