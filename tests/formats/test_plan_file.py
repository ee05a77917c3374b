"""Plans as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.plan import parse_plan, plan_to_dict
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.plan import Plan, PlannedJob, PredictionInterval, RunnerUp

amount = st.floats(0, 1e12)
nodes = st.lists(st.sampled_from(["n1", "n2", "host.a"]), min_size=1, max_size=3, unique=True).map(tuple)
jobs = st.builds(
    lambda number, where, start, more, alone, slow, energy, why, within: PlannedJob(
        f"job {number}", where, start, start + more, alone, slow, energy, why, within
    ),
    st.integers(0, 99),
    nodes,
    amount,
    amount,
    amount,
    amount,
    st.none() | amount,
    st.none() | st.builds(RunnerUp, nodes, st.floats(-1e6, 1e6)),
    st.none() | st.builds(PredictionInterval, amount, amount, amount, amount),
)
plans = st.builds(
    Plan,
    workflow=st.just("w"),
    cluster=st.just("c"),
    policy=st.sampled_from(["mom", "lookahead"]),
    seed=st.integers(-5, 2**40),
    makespan=amount,
    energy_j=st.none() | amount,
    lower_bound=amount,
    simulated_in=amount,
    truncated=st.booleans(),
    evaluations=st.integers(0, 10**6),
    jobs=st.lists(jobs, max_size=4, unique_by=lambda job: job.id).map(tuple),
    warnings=st.lists(st.text("ab \n", max_size=5), max_size=2).map(tuple),
    makespan_within=st.none() | st.tuples(amount, amount).map(sorted).map(tuple),
)


@settings(max_examples=50, deadline=None)
@given(plans)
def test_a_written_plan_is_read_back(plan):
    assert parse_plan(json.loads(json.dumps(plan_to_dict(plan))), "f") == plan


EXAMPLE = {
    "schema": "pilotfish/plan/v1", "workflow": "dag-1", "cluster": "lab", "policy": "mom", "seed": 0,
    "makespan": 123.4, "energy_j": 56789.0, "lower_bound": 98.7, "simulated_in": 0.0021, "truncated": False,
    "jobs": [{"id": "prepare", "nodes": ["s1"], "start_time": 0.0, "finish_time": 12.5,
              "isolated_run_time": 12.5, "contention_slowdown": 1.0}],
    "warnings": [],
}  # fmt: skip


def test_the_example_of_the_format_is_a_plan():
    plan = parse_plan(EXAMPLE, "f")
    assert plan.jobs == (PlannedJob("prepare", ("s1",), 0.0, 12.5, 12.5, 1.0),)
    assert EXAMPLE.items() <= {**plan_to_dict(plan), "jobs": EXAMPLE["jobs"]}.items()
    assert list(plan_to_dict(plan))[:4] == ["schema", "workflow", "cluster", "policy"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"makespan": -1}, "makespan"),
        ({"makespan": float("nan")}, "makespan"),
        ({"truncated": "no"}, "truncated"),
        ({"seed": 1.5}, "seed"),
        ({"polcy": "mom"}, "polcy"),
        ({"jobs": {}}, "jobs"),
        ({"jobs": [{}]}, "jobs[0].id"),
        ({"jobs": [*EXAMPLE["jobs"], *EXAMPLE["jobs"]]}, "jobs[1].id"),
        ({"jobs": [{**EXAMPLE["jobs"][0], "nodes": []}]}, "jobs[0].nodes"),
        ({"jobs": [{**EXAMPLE["jobs"][0], "nodes": ["s1;reboot"]}]}, "jobs[0].nodes[0]"),
        ({"jobs": [{**EXAMPLE["jobs"][0], "nodes": ["s[1-2]"]}]}, "jobs[0].nodes[0]"),
        ({"jobs": [{**EXAMPLE["jobs"][0], "start_time": 99}]}, "jobs[0].finish_time"),
        ({"schema": "pilotfish/plan/v9"}, "schema"),
    ],
)
def test_a_bad_plan_names_its_key(change, key):
    with pytest.raises(ConfigError) as caught:
        parse_plan({**EXAMPLE, **change}, "f")
    assert caught.value.key == key
