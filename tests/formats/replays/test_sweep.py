"""The sweep file: what it may contain, and one clear error for everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.replays.sweep import read_sweep
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.queue_policies.policy_specs import text_of
from pilotfish.simulate.replay.select import Select
from pilotfish.simulate.sweep import ClusterMachine, Sweep


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "traces").mkdir()
    for name in ("a.swf", "b.swf", "traces/c.swf", "traces/d.swf.gz", "odd[1].swf", "lab.yaml"):
        (tmp_path / name).write_text("; a trace\n")
    return tmp_path


def read(folder: Path, **keys: Any) -> Sweep:
    data = {"schema": "pilotfish/sweep/v1", "workloads": ["a.swf"], "policies": ["easy"]} | keys
    (folder / "s.yaml").write_text(json.dumps({key: value for key, value in data.items() if value is not ...}))
    return read_sweep(folder / "s.yaml")


def test_the_smallest_sweep(folder: Path) -> None:
    sweep = read(folder)
    assert [(trace.file, trace.select, trace.loads) for trace in sweep.traces] == [("a.swf", Select(), (1.0,))]
    assert (sweep.machines, sweep.seeds, len(sweep)) == ((None,), (0,), 1)


def test_every_key(folder: Path) -> None:
    workload = {"file": "b.swf", "from": 10, "until": 20, "users": [4, 2], "min_size": 2, "max_size": 8,
                "load": [1, 1.5], "skip_invalid": True}  # fmt: skip
    options = {"order": ["fcfs", "sjf"], "allocation": ["basic", "local"]}
    policies = ["easy:order=sjf", {"policy": "conservative", **options}]
    machines = [16, "lab.yaml", {"cluster": "lab.yaml", "resource": "node"}]
    sweep = read(folder, workloads=["a.swf", workload], machines=machines, policies=policies, seeds=[3, 1])
    trace = sweep.traces[1]
    assert trace.select == Select(10.0, 20.0, (4, 2), 2, 8) and trace.loads == (1.0, 1.5) and trace.skip_invalid
    assert [text_of(policy) for policy in sweep.policies] == [
        "easy:order=sjf", "conservative", "conservative:allocation=local", "conservative:order=sjf",
        "conservative:order=sjf,allocation=local",
    ]  # fmt: skip
    assert sweep.machines == (16, ClusterMachine("lab.yaml"), ClusterMachine("lab.yaml", whole_nodes=True))
    assert (sweep.seeds, len(sweep)) == ((3, 1), 3 * 3 * 5 * 2)


def test_policies_that_choose_cores_need_machines_with_cores(folder: Path) -> None:
    policies = ["pairs", {"policy": "nodes", "rule": ["fastest", "biggest"]}]
    assert len(read(folder, machines=["lab.yaml"], policies=policies)) == 3
    for machines in (..., [8], ["lab.yaml", 8], [{"cluster": "lab.yaml", "resource": "node"}]):
        with pytest.raises(ConfigError, match=r"machines: pairs chooses among cores of nodes; .* has none"):
            read(folder, machines=machines, policies=["easy", *policies])


def test_a_pattern_stands_for_its_files_in_order(folder: Path) -> None:
    sweep = read(folder, workloads=["traces/*", {"file": "?.swf", "load": 2}, "odd[1].swf"], seeds=2)
    names = [trace.file for trace in sweep.traces]
    assert names == ["traces/c.swf", "traces/d.swf.gz", "a.swf", "b.swf", "odd[1].swf"]
    assert [trace.key for trace in sweep.traces][1:3] == ["workloads[0]", "workloads[1]"]
    assert sweep.seeds == (0, 1)


def test_a_file_may_appear_twice_with_different_selections(folder: Path) -> None:
    parts = ["a.swf", {"file": "a.swf", "load": 2}, {"file": "a.swf", "from": 5}]
    assert len(read(folder, workloads=parts).traces) == 3


@pytest.mark.parametrize(
    ("keys", "where", "what"),
    [
        ({"workload": ["a.swf"]}, "workload", "did you mean 'workloads'"),
        ({"workloads": ...}, "workloads", "missing"),
        ({"policies": ...}, "policies", "missing"),
        ({"workloads": []}, "workloads", "at least 1"),
        ({"workloads": "a.swf"}, "workloads", "a list"),
        ({"workloads": [3]}, "workloads[0]", "text"),
        ({"workloads": ["gone.swf"]}, "workloads[0]", "no such file: gone.swf"),
        ({"workloads": ["traces"]}, "workloads[0]", "no such file"),
        ({"workloads": ["x" * 5000]}, "workloads[0]", "no such file"),
        ({"workloads": ["*.gone"]}, "workloads[0]", "a pattern that matches a file"),
        ({"workloads": ["a.swf", "*.swf"]}, "workloads", "a.swf is given twice"),
        ({"workloads": ["a.swf", {"file": "a.swf", "load": [2, 1]}]}, "workloads", "a.swf is given twice"),
        ({"workloads": [{"load": 2}]}, "workloads[0].file", "missing"),
        ({"workloads": [{"file": "a.swf", "lod": 2}]}, "workloads[0].lod", "did you mean 'load'"),
        ({"workloads": [{"file": "a.swf", "load": 0}]}, "workloads[0].load", "above 0"),
        ({"workloads": [{"file": "a.swf", "load": []}]}, "workloads[0].load", "at least 1"),
        ({"workloads": [{"file": "a.swf", "load": [1, 1.0]}]}, "workloads[0].load", "1.0 is given twice"),
        ({"workloads": [{"file": "a.swf", "load": "2"}]}, "workloads[0].load", "above 0"),
        ({"workloads": [{"file": "a.swf", "from": 9, "until": 9}]}, "workloads[0].until", "more than from, 9"),
        ({"workloads": [{"file": "a.swf", "min_size": 9, "max_size": 8}]}, "workloads[0].max_size", "at least"),
        ({"workloads": [{"file": "a.swf", "users": [1.5]}]}, "workloads[0].users[0]", "a whole number"),
        ({"workloads": [{"file": "a.swf", "skip_invalid": 1}]}, "workloads[0].skip_invalid", "true or false"),
        ({"machines": 16}, "machines", "a list"),
        ({"machines": []}, "machines", "at least 1"),
        ({"machines": [0]}, "machines[0]", "a cluster file, or {cluster: FILE"),
        ({"machines": [1.5]}, "machines[0]", "a cluster file, or {cluster: FILE"),
        ({"machines": ["gone.yaml"]}, "machines[0]", "no such file"),
        ({"machines": [4, 4]}, "machines", "4 is given twice"),
        ({"machines": ["lab.yaml", {"cluster": "lab.yaml"}]}, "machines", "lab.yaml is given twice"),
        ({"machines": [{"cluster": "lab.yaml", "resource": "nodes"}]}, "machines[0].resource", "core, node"),
        ({"machines": [{"cluster": "lab.yaml", "resource": ["node"]}]}, "machines[0].resource", "core, node"),
        ({"machines": [{"resource": "node"}]}, "machines[0].cluster", "missing"),
        ({"machines": [{"cluster": "gone.yaml"}]}, "machines[0].cluster", "no such file"),
        ({"machines": [{"cluster": "lab.yaml", "kind": "node"}]}, "machines[0].kind", "unknown key"),
        ({"policies": ["pairs:job=slow"]}, "policies[0]", "pairs:job: 'slow'"),
        ({"policies": ["esy"]}, "policies[0]", "did you mean easy"),
        ({"policies": ["easy:order=esjf"]}, "policies[0]", "easy:order: 'esjf'"),
        ({"policies": [7]}, "policies[0]", "{policy: easy, order: [fcfs, sjf]}"),
        ({"policies": [{"order": ["sjf"]}]}, "policies[0].policy", "missing"),
        ({"policies": [{"policy": "easy", "oder": "sjf"}]}, "policies[0]", "order=..."),
        ({"policies": [{"policy": "easy", "order": []}]}, "policies[0].order", "at least 1"),
        ({"policies": [{"policy": "easy", "order": [["sjf"]]}]}, "policies[0].order[0]", "text"),
        ({"policies": [{"policy": "easy", "order": ["sjf", "nope"]}]}, "policies[0]", "'nope'"),
        ({"policies": ["easy", "easy:order=fcfs"]}, "policies", "easy is given twice"),
        ({"policies": [{"policy": "easy"} | {c: ["x"] * 100 for c in "abcd"}]}, "policies[0]", "too many"),
        ({"seeds": 0}, "seeds", "from 1"),
        ({"runtimes": []}, "runtimes", "at least 1"),
        ({"runtimes": ["walltime", "guess"]}, "runtimes[1]", "allowed: walltime, predicted, actual"),
        ({"runtimes": ["actual", "actual"]}, "runtimes", "actual is given twice"),
        ({"contention": "yes"}, "contention", "true or false"),
        ({"contention": [True, True]}, "contention", "is given twice"),
        (
            {"policies": ["conservative:allocation=local,share=1.1"]},
            "policies[0]",
            "allocation and share do not go together",
        ),
        ({"machines": [4], "contention": True}, "machines", "contends on the cores of nodes; machine 4 has none"),
        ({"machines": [4], "policies": ["lookahead"]}, "machines", "lookahead chooses among cores of nodes"),
        ({"policies": [{"policy": "lookahead", "depth": [1]}]}, "policies[0]", "'lookahead' is unknown"),
        ({"seeds": [-1]}, "seeds[0]", "from 0"),
        ({"seeds": [1, 1]}, "seeds", "1 is given twice"),
        ({"seeds": "3"}, "seeds", "a whole number"),
        ({"machines": list(range(1, 1001)), "seeds": 201}, "", "the sweep has 201,000 runs"),
        ({"schema": "pilotfish/cluster/v1"}, "schema", "pilotfish/sweep/v1"),
    ],
)
def test_an_error_names_the_key(folder: Path, keys: dict[str, Any], where: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(folder, **keys)
    assert (caught.value.source, caught.value.key) == (str(folder / "s.yaml"), where)
    assert what in str(caught.value)


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["a.swf", "easy", "*.swf", "order", "policy", "file", "lab.yaml"]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(
        st.sampled_from(["file", "load", "policy", "order", "users", "cluster", "resource", "x"]), inner, max_size=3)),
    max_leaves=6,
)  # fmt: skip


@given(st.sampled_from(["workloads", "machines", "policies", "seeds"]), values)
@settings(deadline=None)
def test_random_documents_are_a_sweep_or_one_error(folder: Path, key: str, value: Any) -> None:
    try:
        assert len(read(folder, **{key: value})) > 0
    except ConfigError as error:
        assert error.source == str(folder / "s.yaml")


def test_listed_options_belong_to_the_last_part(tmp_path: Path) -> None:
    (tmp_path / "a.swf").write_text("")
    text = "{policy: easy:order=sjf+opportunistic, t_idle: [0, 300]}"
    path = tmp_path / "study.yaml"
    path.write_text(f"schema: pilotfish/sweep/v1\nworkloads: [a.swf]\npolicies:\n  - {text}\n")
    assert [text_of(policy) for policy in read_sweep(path).policies] == [
        "easy:order=sjf+opportunistic", "easy:order=sjf+opportunistic:t_idle=300"
    ]  # fmt: skip
