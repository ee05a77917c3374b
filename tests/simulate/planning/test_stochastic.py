"""Draws have the stated moments; the dominant mapping is the one of most replicates."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import Cluster, Node, NodeType
from pilotfish.simulate.model.job import Distribution, Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.plan import Plan
from pilotfish.simulate.planning import stochastic
from pilotfish.simulate.planning.planner import plan
from pilotfish.simulate.planning.stochastic import LEAST, QUANTILES, replicate, sample
from tests.support import effort

KIND = NodeType("t", 4, 64e9, 40e9)
LAB = Cluster("lab", (Node("n0", KIND), Node("n1", KIND)), oversubscription=4.0)


def jobs(count: int, *demands: Distribution | float, after: tuple[str, ...] = ()) -> tuple[Job, ...]:
    profile = Profile(tuple(ThreadGroup(2, demand) for demand in demands))
    return tuple(Job(f"j{i}", profile, after if i else ()) for i in range(count))


def drawn(workflow: Workflow, seed: int = 0) -> list[list[float]]:
    return [[group.demand for group in job.profile.groups] for job in sample(workflow, seed).jobs]


@pytest.mark.parametrize(
    ("distribution", "mean", "std"),
    effort.some(
        [
            (Distribution("lognormal", mean=20.0, cv=0.5), 20.0, 10.0),
            (Distribution("normal", mean=20.0, cv=0.1), 20.0, 2.0),
            (Distribution("uniform", low=5.0, high=11.0), 8.0, 6.0 / np.sqrt(12.0)),
            (Distribution("empirical", values=(1.0, 2.0, 6.0)), 3.0, np.sqrt(14.0 / 3.0)),
        ]
    ),
)
def test_moments(distribution: Distribution, mean: float, std: float) -> None:
    values = np.ravel(drawn(Workflow("w", jobs(20_000, distribution))))
    assert values.mean() == pytest.approx(mean, rel=0.02)
    assert values.std() == pytest.approx(std, rel=0.04)


def test_draws_always_have_work() -> None:
    values = np.ravel(drawn(Workflow("w", jobs(2000, Distribution("normal", mean=10.0, cv=3.0)))))
    assert values.min() == pytest.approx(LEAST * 10.0)


def test_one_draw_a_group_and_the_seed_decides() -> None:
    uniform, lognormal = Distribution("uniform", low=1.0, high=2.0), Distribution("lognormal", 5.0, 1.0)
    workflow = Workflow("w", jobs(3, uniform, lognormal, 7.0))
    first, again, other = drawn(workflow, 1), drawn(workflow, 1), drawn(workflow, 2)
    assert first == again != other
    assert all(row[0] != row[1] and row[2] == 7.0 for row in first)


def test_equal_draws_share_a_profile_and_known_ones_keep_theirs() -> None:
    known, few = jobs(4, 3.0), jobs(40, Distribution("empirical", values=(1.0, 2.0)))
    kept = sample(Workflow("w", known), 0).jobs
    assert all(a.profile is b.profile for a, b in zip(known, kept, strict=True))
    shared = sample(Workflow("w", few), 0).jobs
    assert len({id(job.profile) for job in shared}) == len({job.profile for job in shared}) == 2


def test_replicates_are_deterministic_and_their_shares_add_up() -> None:
    workflow = Workflow("w", jobs(7, Distribution("lognormal", mean=10.0, cv=0.6), after=("j0",)))
    shown, again = (replicate(workflow, LAB, 30, seed=4, policy="let") for _ in range(2))
    assert shown == again
    assert shown.makespans != replicate(workflow, LAB, 30, seed=5, policy="let").makespans
    seeds = np.random.SeedSequence(4).generate_state(30, np.uint64).tolist()
    plans = [plan(sample(workflow, s), LAB, seed=s, policy="let") for s in seeds]
    counts = Counter(tuple(job.nodes for job in made.jobs) for made in plans)
    assert shown.makespans == tuple(made.makespan for made in plans)
    assert shown.dominant
    assert shown.distinct == len(counts) > 1
    assert shown.share == max(counts.values()) / 30
    assert counts[tuple(job.nodes for job in shown.plan.jobs)] == max(counts.values())
    for i, job in enumerate(workflow.jobs):
        votes = Counter(made.jobs[i].nodes for made in plans)
        nodes, share = shown.agreement[job.id]
        assert share == votes[nodes] / 30 == max(votes.values()) / 30
        assert sum(votes.values()) == 30


def test_summary_of_makespans() -> None:
    flow = Workflow("w", jobs(1, Distribution("uniform", low=10.0, high=20.0)))
    shown = replicate(flow, LAB, 50, policy="slf")
    assert (shown.share, shown.distinct) == (1.0, 1)
    assert shown.mean == pytest.approx(np.mean(shown.makespans))
    assert shown.std == pytest.approx(np.std(shown.makespans, ddof=1))
    assert [shown.quantiles[q] for q in QUANTILES] == sorted(shown.quantiles.values())
    assert min(shown.makespans) <= shown.quantiles[0.5] <= max(shown.makespans)
    assert abs(shown.plan.makespan - shown.mean) == min(abs(m - shown.mean) for m in shown.makespans)


def test_ties_between_mappings_go_to_the_least_mean_makespan() -> None:
    made = plan(Workflow("w", jobs(2, 5.0)), LAB, policy="slf")
    swapped = made.jobs[1].nodes, made.jobs[0].nodes
    turned = _with(made, swapped, made.makespan - 1.0)
    shown = stochastic._summary(Workflow("w", jobs(2, 5.0)), [made, turned, made, turned], 0)
    assert tuple(job.nodes for job in shown.plan.jobs) == swapped
    assert shown.share == 0.5


def test_without_agreement_the_most_central_mapping_is_kept() -> None:
    flow = Workflow("w", jobs(3, 5.0))
    made = plan(flow, LAB, policy="slf")
    a, b = ("n0",), ("n1",)
    plans = [_with(made, nodes, 9.0) for nodes in ((b, b, b), (a, a, a), (a, a, b), (b, a, a))]
    shown = stochastic._summary(flow, plans, 0)
    assert not shown.dominant
    assert shown.share == 0.25
    assert tuple(job.nodes for job in shown.plan.jobs) == (a, a, a)
    assert any("most central" in note for note in shown.plan.warnings)


def test_known_demands_and_bad_counts() -> None:
    flow = Workflow("w", jobs(3, 5.0))
    shown = replicate(flow, LAB, 3, policy="mom")
    assert any("no service demand is a distribution" in note for note in shown.plan.warnings)
    with pytest.raises(ConfigError, match="1 or more"):
        replicate(flow, LAB, 0)


def _with(made: Plan, nodes: tuple[tuple[str, ...], ...], makespan: float) -> Plan:
    from dataclasses import replace

    moved = tuple(replace(job, nodes=where) for job, where in zip(made.jobs, nodes, strict=True))
    return replace(made, jobs=moved, makespan=makespan)
