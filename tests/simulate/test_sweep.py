"""The runs of a sweep: each combination once, in a fixed order, with an identity."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.queue_policies.policy_specs import parse, text_of
from pilotfish.simulate.replay.select import Select
from pilotfish.simulate.sweep import (
    ClusterMachine,
    Sweep,
    SweepRun,
    Trace,
    columns,
    described,
    identity,
    options_of,
    runs,
)

SPECS = ("easy", "easy:order=sjf", "strict", "conservative:allocation=local")
MACHINES = (None, 1, 8, ClusterMachine("lab.yaml"), ClusterMachine("lab.yaml", whole_nodes=True))
SWEEPS = st.builds(
    lambda loads, machines, specs, seeds, known: Sweep(
        "s.yaml",
        tuple(Trace(f"{i}.swf", f"workloads[{i}]", loads=tuple(each)) for i, each in enumerate(loads)),
        tuple(map(parse, specs)), tuple(machines), tuple(range(seeds)), tuple(known),
    ),
    st.lists(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=1, max_size=3, unique=True), min_size=1, max_size=3),
    st.lists(st.sampled_from(MACHINES), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(SPECS), min_size=1, max_size=3, unique=True),
    st.integers(1, 3),
    st.lists(st.sampled_from(["walltime", "predicted", "actual"]), min_size=1, max_size=3, unique=True),
)  # fmt: skip


@given(SWEEPS)
def test_each_combination_is_one_run_and_workloads_stay_together(sweep: Sweep) -> None:
    found = list(runs(sweep))
    assert [run.number for run in found] == list(range(len(sweep)))
    assert len({(run.trace.file, run.load, run.machine, run.policy, run.seed, run.runtimes) for run in found}) == len(
        sweep
    )
    changes = sum(one.trace != other.trace for one, other in pairwise(found))
    assert changes == len(sweep.traces) - 1
    assert all(run.select.load == run.load for run in found)


@given(SWEEPS)
def test_every_run_has_its_values(sweep: Sweep) -> None:
    names = columns(sweep)
    said = [described(run, names) for run in runs(sweep)]
    assert all(tuple(row) == names for row in said)
    assert len({tuple(row[name] for name in names if name != "run") for row in said}) == len(sweep)
    for row in said:
        assert text_of(parse(row["policy"])) == row["policy"]
        assert row["policy_order"] == parse(row["policy"]).order


def test_a_selection_is_a_column_only_if_set() -> None:
    plain, chosen = Trace("a", "workloads[0]"), Trace("b", "workloads[1]", Select(begin=5.0, users=(3, 4)))
    policies = (parse("easy"), parse("conservative"))
    assert columns(Sweep("s", (plain,), policies)) == (
        "run", "workload", "load", "machine", "policy", "policy_order", "policy_share", "policy_allocation", "seed",
    )  # fmt: skip
    sweep = Sweep("s", (plain, chosen), policies)
    first, *_, last = (described(run, columns(sweep)) for run in runs(sweep))
    assert (first["from"], first["users"], first["policy_allocation"]) == (None, None, None)
    assert (last["from"], last["users"], last["policy_allocation"], last["machine"]) == (5.0, "3 4", "basic", "trace")


def test_a_policy_made_of_parts_has_the_options_of_all() -> None:
    assert options_of(parse("strict+opportunistic:t_idle=300")) == {"order": "fcfs", "t_idle": 300.0}
    capped = options_of(parse("easy+powercap:cap=60%,begin=5"))
    assert capped == {"order": "fcfs", "share": "any", "cap": "60%", "begin": 5.0, "end": math.inf}


RUN = SweepRun(
    0, Trace("a.swf", "workloads[0]", Select(users=(1, 2))), 1.0, ClusterMachine("lab.yaml"), parse("easy"), 0
)
CONTENTS = {"a.swf": "aa", "b.swf": "bb", "lab.yaml": "cc"}


def known(
    run: SweepRun = RUN, contents: dict[str, str] = CONTENTS, version: str = "1", numbers: Any = ("makespan",)
) -> str:
    return identity(run, text_of(run.policy), contents, version, numbers)


@pytest.mark.parametrize(
    "other",
    [
        known(replace(RUN, load=1.5)),
        known(replace(RUN, machine=8)),
        known(replace(RUN, runtimes="actual")),
        known(replace(RUN, machine=ClusterMachine("lab.yaml", whole_nodes=True))),
        known(replace(RUN, machine=None)),
        known(replace(RUN, policy=parse("easy:order=sjf"))),
        known(replace(RUN, seed=1)),
        known(replace(RUN, trace=replace(RUN.trace, file="b.swf"))),
        known(replace(RUN, trace=replace(RUN.trace, skip_invalid=True))),
        known(replace(RUN, trace=replace(RUN.trace, select=Select(users=(1,))))),
        known(replace(RUN, trace=replace(RUN.trace, select=Select(begin=1.0)))),
        known(contents=CONTENTS | {"a.swf": "other"}),
        known(contents=CONTENTS | {"lab.yaml": "other"}),
        known(version="2"),
        known(numbers=("makespan", "energy")),
    ],
)
def test_what_can_change_the_result_changes_the_identity(other: str) -> None:
    assert other != known()


@pytest.mark.parametrize(
    "same",
    [
        known(replace(RUN, number=7)),
        known(replace(RUN, trace=replace(RUN.trace, file="moved.swf")), CONTENTS | {"moved.swf": "aa"}),
        known(replace(RUN, trace=replace(RUN.trace, key="workloads[3]"))),
        known(replace(RUN, trace=replace(RUN.trace, select=Select(users=(2, 1))))),
        known(contents=CONTENTS | {"b.swf": "other"}),
    ],
)
def test_what_cannot_change_the_result_keeps_the_identity(same: str) -> None:
    assert same == known()
