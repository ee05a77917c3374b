"""Plans as JSON."""

from __future__ import annotations

import json
from dataclasses import fields

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.plan import plan_to_dict
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
    st.none() | st.builds(RunnerUp, nodes, st.none() | st.floats(-1e6, 1e6)),
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
def test_a_plan_is_written_with_all_that_it_says(plan):
    data = json.loads(json.dumps(plan_to_dict(plan)))
    of_queue = ("plain_finish_times", "recheck_s", "switches", "forecast_by")
    names = [field.name for field in fields(Plan) if field.name not in of_queue]
    assert list(data) == ["schema", *names] and data.pop("schema") == "pilotfish/plan/v1"
    data["jobs"] = tuple(job_of(job) for job in data["jobs"])
    data["warnings"] = tuple(data["warnings"])
    data["makespan_within"] = data["makespan_within"] and tuple(data["makespan_within"])
    assert Plan(**data) == plan


def job_of(data):
    """Return the job that was written."""
    why, within = data.pop("why"), data.pop("within")
    why = why and RunnerUp(tuple(why["nodes"]), why["cost_s"])
    nodes = tuple(data.pop("nodes"))
    return PlannedJob(**data, nodes=nodes, why=why, within=within and PredictionInterval(**within))
