"""Slurm's own rules as a policy: the replay is that of the site, its numbers of CPUs are laws, and errors are clear."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.machine import Machine, machine_of
from pilotfish.simulate.model.workload import Dependencies, Workload
from pilotfish.simulate.queue_policies.policy_specs import parse
from pilotfish.simulate.replay.engines import Feature, engine_for, explain
from pilotfish.simulate.replay.metrics import summarise
from pilotfish.simulate.replay.replay import Replayed, check_machine, replay
from pilotfish.simulate.replay.replay_case import ReplayCase
from pilotfish.simulate.slurm.site import SiteLimits, SiteNode, SitePartition, SiteQos, SiteRules
from pilotfish.simulate.slurm.site_policy import SlurmRules
from pilotfish.simulate.slurm.trace_jobs import site_of_trace
from pilotfish.simulate.slurm.twin import replay_site
from tests.simulate.replay.test_replay import places, workload
from tests.simulate.slurm.small_sites import NODES, PARTITION, site
from tests.support.instances import rows_of

POLICY = SlurmRules("slurm:small", site([]))
JOBS = st.lists(
    rows_of([0.0, 0.5, 30.0, 400.0], [0.0, 1.5, 100.0, 900.0], [60.0, 61.0, 1200.0], range(1, 27)), max_size=25
)


def replayed(jobs: Workload, policy: SlurmRules = POLICY, machine: Machine | None = None, **options: Any) -> Replayed:
    return replay(jobs, machine or policy.machine, policy, **options)


@settings(max_examples=30, deadline=None)
@given(JOBS, st.integers(0, 3))
def test_the_starts_are_those_of_the_site_with_the_same_jobs(rows: list[Any], seed: int) -> None:
    jobs = workload(rows)
    trace = site_of_trace(POLICY, jobs, POLICY.machine)
    starts = {one.job: (one.start - trace.epoch, one.end) for one in replay_site(trace.site, seed).starts}
    result = replayed(jobs, seed=seed)
    assert {row for row in range(len(jobs)) if not result.rejected[row]} == starts.keys()
    for row, (start, end) in starts.items():
        assert (result.start_time[row], result.finish_time[row]) == (start, (end or math.nan) - trace.epoch)


@settings(max_examples=30, deadline=None)
@given(JOBS)
def test_a_cpu_has_one_job_at_a_time_and_a_job_the_cpus_that_it_asks_for(rows: list[Any]) -> None:
    jobs = workload(rows)
    result = replayed(jobs)
    owners: dict[int, list[tuple[float, float]]] = {}
    for row in range(len(jobs)):
        if result.rejected[row]:
            assert jobs.size[row] > POLICY.machine.processors
            continue
        numbers = places(result, row)
        assert len(set(numbers)) == len(numbers) == result.sizes[row] >= jobs.size[row]
        run = math.ceil(min(jobs.run_time[row], jobs.walltime[row]))
        assert (
            result.start_time[row] >= jobs.submit_time[row] and result.finish_time[row] - result.start_time[row] == run
        )
        for number in numbers:
            owners.setdefault(number, []).append((result.start_time[row], result.finish_time[row]))
    for spans in owners.values():
        spans.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert summarise(result).nb_jobs == len(jobs)


@pytest.mark.parametrize(
    ("feature", "words"),
    [(Feature.SHARED, "jobs share nodes"), (Feature.NETWORKED, "jobs communicate"),
     (Feature.TAKES_TIME, "decisions take time"), (Feature.PARTS, "the world has further parts")],
)  # fmt: skip
def test_a_part_that_slurm_does_not_have_is_refused_by_its_name(feature: Feature, words: str) -> None:
    assert engine_for(POLICY, {Feature.DEPENDS}).name == "slurm"
    with pytest.raises(ConfigError, match=f"no engine replays slurm:small where {words}"):
        engine_for(POLICY, {feature})


def test_the_engine_is_explained_as_a_compiled_one() -> None:
    sentence = explain(ReplayCase(workload([]), POLICY.machine, POLICY))
    assert sentence.startswith("The engine is slurm, with the compiled kernel slurm.site_requests")


def test_numbered_processors_are_no_nodes() -> None:
    for refuse in (lambda: check_machine(POLICY, Machine(7)), lambda: replayed(workload([]), machine=Machine(7))):
        with pytest.raises(ConfigError, match=r"slurm:small places jobs on nodes, and 7 processors have none"):
            refuse()
    with pytest.raises(ConfigError, match="it alone, for simulate or sweep"):
        parse("slurm:small+powercap")


def test_a_cluster_takes_the_place_of_the_nodes() -> None:
    kind = NodeType("box", cores=2, memory=2**30, memory_bandwidth=1e9)
    cluster = Cluster("boxes.yaml", tuple(Node(f"b{number}", kind) for number in range(3)))
    jobs = workload([(0.0, 600.0, 600.0, 6), (1.0, 60.0, 60.0, 7)])
    result = replayed(jobs, machine=machine_of(cluster))
    assert result.rejected.tolist() == [False, True] and places(result, 0) == list(range(6))
    by_node = replayed(workload([(0.0, 600.0, 600.0, 3)] * 2), machine=machine_of(cluster, whole_nodes=True))
    assert by_node.sizes.tolist() == [3, 3] and by_node.start_time[1] >= by_node.finish_time[0]
    assert any(
        "each partition has all of them" in text for text in site_of_trace(POLICY, jobs, machine_of(cluster)).unknown
    )
    same = Cluster("two.yaml", tuple(Node(node.name, kind) for node in NODES[:2]))
    trace = site_of_trace(POLICY, jobs, machine_of(same))
    assert [len(part.nodes) for part in trace.site.partitions] == [2] and not any(
        "each partition" in text for text in trace.unknown
    )


def test_a_delay_counts_from_the_end_of_the_job_before() -> None:
    jobs = replace(workload([(0.0, 300.0, 600.0, 1), (0.0, 60.0, 600.0, 1), (0.0, 1200.0, 600.0, 1), (0.0, 60.0, 600.0, 1)]),
                   dependencies=Dependencies(np.array([0, 2]), np.array([1, 3]), np.array([1000.0, 0.0])))  # fmt: skip
    result = replayed(jobs)
    assert (
        result.submit_time[1] == result.finish_time[0] + 1020.0 <= result.start_time[1] < result.finish_time[0] + 1200.0
    )
    assert result.overran.tolist() == [False, False, True, False]
    assert result.stranded.tolist() == [False, False, False, True] == result.rejected.tolist()


def test_users_groups_and_queues_are_those_of_the_same_name() -> None:
    names = {
        "user": np.array(["alice", "carol", "zoe"], object), "group": np.array(["", "x", "maths"], object),
        "queue": np.array(["high", "main", "night"], object),
    }  # fmt: skip
    policy = SlurmRules("slurm:small", site([], qos=[SiteQos("high", 9)]))
    jobs = replace(workload([(0.0, 1.0, 1.0, 1)] * 3), more=names)
    trace = site_of_trace(policy, jobs, policy.machine)
    assert [(job.user, job.account, job.qos, job.partitions) for job in trace.site.jobs] == [
        ("alice", "physics", "high", ()), ("carol", "chem", "", ("main",)), ("zoe", "maths", "", ()),
    ]  # fmt: skip
    assert [text.split(":")[0] for text in trace.unknown] == [
        "the site does not have 1 user of the trace", "the site has no account for 1 group of the trace",
        "the site has no partition and no QOS for 1 queue of the trace",
    ]  # fmt: skip


def test_numbers_are_names_and_closed_partitions_open_for_strangers() -> None:
    closed = SitePartition(
        "main", tuple(node.name for node in NODES), is_default=True, allow_accounts=frozenset({"chem"})
    )
    policy = SlurmRules("slurm:small", site([], partition=closed))
    jobs = replace(
        workload([(0.0, 5.0, 60.0, 1)] * 2), more={"user": np.array([3.0, -1.0]), "group": np.array([4.0, -1.0])}
    )
    trace = site_of_trace(policy, jobs, policy.machine)
    assert [(job.user, job.account) for job in trace.site.jobs] == [("3", "4"), ("", "")]
    assert any(text.startswith("AllowAccounts of main is left out") for text in trace.unknown)
    assert not replayed(jobs, policy).rejected.any()


def test_memory_counts_where_the_trace_or_the_site_says_it() -> None:
    rules = SiteRules(counts_memory=True)
    policy = SlurmRules("slurm:small", site([], rules=rules))
    jobs = workload([(0.0, 600.0, 600.0, 1)] * 4)
    silent = site_of_trace(policy, jobs, policy.machine)
    assert not silent.site.rules.counts_memory and any("memory is not counted" in text for text in silent.unknown)
    wide = replace(jobs, more={"requested_memory": np.full(4, 900.0 * 1024)})
    nodes = (SiteNode("n0", 4, 4, memory_mib=1000),)
    node = SlurmRules("slurm:one", replace(policy.site, nodes=nodes, partitions=(replace(PARTITION, nodes=("n0",)),)))
    assert [job.memory_per_cpu_mib for job in site_of_trace(policy, wide, policy.machine).site.jobs] == [900] * 4
    assert (np.diff(np.sort(replayed(wide, node).start_time)) >= 600).all()
    assert (np.diff(np.sort(replayed(jobs, node).start_time)) < 600).all()
    bytes_ = replace(jobs, more={"requested_memory": np.full(4, 900.0 * 2**20)})
    trace = site_of_trace(policy, bytes_, policy.machine)
    assert not any(job.memory_per_cpu_mib for job in trace.site.jobs)
    assert any("more memory than a node has" in text for text in trace.unknown)


def test_a_job_above_max_time_never_starts_and_is_counted() -> None:
    jobs = workload([(0.0, 60.0, 601.0 * 60, 1), (0.0, 60.0, 60.0, 1), (0.0, 60.0, math.inf, 1)])
    assert replayed(jobs).rejected.tolist() == [True, False, False]
    unknown = site_of_trace(POLICY, jobs, POLICY.machine).unknown
    assert "1 job with a walltime above MaxTime of the partition: never started" in unknown


def test_limits_of_a_user_count_where_the_trace_has_users() -> None:
    alone = SiteQos("normal", limits=SiteLimits(user_jobs=1))
    policy = SlurmRules("slurm:small", replace(site([]), qos=(alone,)))
    jobs = workload([(0.0, 600.0, 600.0, 1)] * 2)
    assert np.ptp(replayed(jobs, policy).start_time) < 600
    named = replace(jobs, more={"user": np.array([5, 5])})
    assert np.ptp(replayed(named, policy).start_time) >= 600
