"""The cluster file: the meaning of every key, and reading back what was written."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotfish.formats.cluster import dump_cluster, parse_cluster, read_cluster
from pilotfish.formats.documents.files import parse_yaml
from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.cluster import (
    Cluster,
    ContendingThreads,
    Contention,
    CoRun,
    CpuSharing,
    Node,
    NodeType,
    PiecewiseLinear,
    Power,
    PowerState,
    Transition,
)
from pilotfish.simulate.model.job import Job, Profile, ThreadGroup, Workflow
from pilotfish.simulate.model.network import Tree
from pilotfish.simulate.planning.planner import plan

FULL = """
schema: pilotfish/cluster/v1
name: lab
node_types:
  xeon56:
    sockets: 2
    cores: 56
    frequency: 2.4e9
    memory: 256GiB
    memory_bandwidth: 80GB/s
    contention: equal-share
    contending_threads: all
    cpu_sharing: per-thread
    remote_access_penalty: 1.3
    queueing: 0.2
    co_run_inflation: {align: {stream: 1.25, align: 1.1}, stream: {align: 1.09}}
    power:
      idle: 95
      per_core: 1.7
      per_socket: 5.0
      off: 9.75
      switch_on: {watts: 125.17, seconds: 151.52}
      switch_off: {watts: 101.0, seconds: 6.1}
      states:
        suspend: {watts: 12, enter: {watts: 80, seconds: 5}, leave: {watts: 90, seconds: 10}}
        slow: {frequency: 1.7GHz, watts: 90, full_watts: 150}
  i5:
    cores: 4
    memory: 8e9
    memory_bandwidth: 38.4GB/s
    speed: 1.5
    contention: piecewise-linear
    piecewise: {b: -1.85e-5, c: 32000, da: 1.75, db: 3500, dc: 45000, dd: 3000, n_max: 3}
    power: {idle: 95.0, computing: 190.74, budget_idle: 100.0, budget_computing: 203.12}
nodes:
  - {names: "s[1-3]", type: xeon56}
  - {names: a, type: i5, cpus: "0-3,6", memory_domain: host0}
  - {names: b, type: i5, cpus: "8-11", memory_domain: host0}
clusters: {c1: "s[1-3]", c2: "a,b"}
network: {port: 1.25GB/s, switch: 10GB/s, backbone: 20GB/s, latency: 1.0e-6}
oversubscription: unlimited
"""


def test_every_key_has_its_meaning(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(FULL)
    cluster = read_cluster(path)
    assert [node.name for node in cluster.nodes] == ["s1", "s2", "s3", "a", "b"]
    assert (cluster.name, cluster.oversubscription, cluster.source) == ("lab", math.inf, str(path))
    assert cluster.groups == {"c1": ("s1", "s2", "s3"), "c2": ("a", "b")}
    xeon, i5 = cluster.types
    assert (xeon.sockets, xeon.cores, xeon.frequency, xeon.memory) == (2, 56, 2.4e9, 256 * 2**30)
    assert (xeon.memory_bandwidth, xeon.remote_access_penalty, xeon.queueing) == (80e9, 1.3, 0.2)
    assert xeon.co_run_inflation == (
        CoRun("align", "stream", 1.25), CoRun("align", "align", 1.1), CoRun("stream", "align", 1.09)
    )  # fmt: skip
    assert xeon.contention is Contention.EQUAL_SHARE
    assert xeon.contending_threads is ContendingThreads.ALL
    assert xeon.cpu_sharing is CpuSharing.PER_THREAD
    assert xeon.power == Power(
        95.0,
        per_core=1.7,
        per_socket=5.0,
        off=9.75,
        switch_on=Transition(125.17, 151.52),
        switch_off=Transition(101.0, 6.1),
        states=(
            PowerState("suspend", 12, enter=Transition(80, 5), leave=Transition(90, 10)),
            PowerState("slow", 90, full_watts=150, frequency=1.7e9),
        ),
    )
    assert i5.piecewise == PiecewiseLinear(-1.85e-5, 32000, 1.75, 3500, 45000, 3000, 3)
    assert i5.power == Power(95.0, computing=190.74, budget_idle=100.0, budget_computing=203.12)
    assert i5.relative_speed == 1.5
    assert cluster.nodes[3] == Node("a", i5, "host0", (0, 1, 2, 3, 6))
    speeds, groups, cores = (2.4e9, 2.4e9, 2.4e9, 1.5, 1.5), (0, 0, 0, 1, 1), (56, 56, 56, 4, 4)
    assert cluster.wiring == Tree(1.25e9, 1e10, 2e10, 1e-6, speeds, groups, cores)


def test_defaults_are_those_of_the_format():
    data = {
        "schema": "pilotfish/cluster/v1",
        "node_types": {"t": {"cores": 2, "memory": "4GiB", "memory_bandwidth": 1e10}},
        "nodes": [{"names": "a", "type": "t"}],
    }
    cluster = parse_cluster(data, "f")
    assert cluster.nodes[0].type == NodeType("t", 2, 4 * 2**30, 1e10)
    assert cluster.oversubscription == 1.0
    assert cluster.nodes[0].type.power is None


@pytest.mark.parametrize("part", ["node_types", "nodes", "clusters", "network"])
@pytest.mark.parametrize("wrong", [True, 3, "t", [True], [], {"t": 3}, None])
def test_a_part_of_another_kind_is_one_error_next_to_right_ones(part, wrong):
    data = {
        "schema": "pilotfish/cluster/v1",
        "name": "lab",
        "node_types": {"t": {"cores": 2, "memory": "4GiB", "memory_bandwidth": 1e10}},
        "nodes": [{"names": "a", "type": "t"}],
    }
    with pytest.raises(ConfigError, match=f"^f: {part}"):
        parse_cluster(data | {part: wrong}, "f")


def test_an_error_names_file_key_and_what_was_found_and_is_allowed():
    data = parse_yaml(FULL, "f")
    data["node_types"]["xeon56"]["contention"] = "max-mun"
    with pytest.raises(ConfigError) as caught:
        parse_cluster(data, "lab.yaml")
    assert str(caught.value) == (
        "lab.yaml: node_types.xeon56.contention: found 'max-mun'; did you mean 'max-min'? "
        "(allowed: none, equal-share, max-min, piecewise-linear)"
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"align": {"stream": 0.99}}, r"co_run_inflation\.align\.stream: found 0\.99 \(allowed: a number from 1"),
        ({"align": 1.2}, r"co_run_inflation\.align: found 1\.2 \(allowed: a mapping"),
        ([["align", "stream", 1.2]], r"co_run_inflation: found .* \(allowed: a mapping"),
        ({"align": {" ": 1.2}}, r"co_run_inflation\.align\. : found ' ' \(allowed: printable text"),
        ({"align": {"stream": True}}, r"co_run_inflation\.align\.stream: found"),
    ],
)
def test_a_pair_that_makes_no_sense_is_refused(written, said):
    data = parse_yaml(FULL, "f")
    data["node_types"]["xeon56"]["co_run_inflation"] = written
    with pytest.raises(ConfigError, match=said):
        parse_cluster(data, "f")


amount = st.floats(0.001, 1e12)
watts = st.floats(0, 1e4)
transition = st.none() | st.builds(Transition, watts, watts)
state_names = st.text("abcdef", min_size=1, max_size=4)
sleeps = st.builds(PowerState, state_names, watts, enter=transition, leave=transition)
dvfs = st.builds(
    lambda name, low, more, hertz: PowerState(name, low, low + more, hertz), state_names, watts, watts, amount
)
states = st.lists(sleeps | dvfs, max_size=3, unique_by=lambda state: state.name).map(tuple)
by_cores = st.builds(Power, watts, watts, watts, idle_uncore=st.floats(0, 1), off=st.none() | watts, states=states)
by_state = st.builds(lambda low, more, on: Power(low, computing=low + more, switch_on=on), watts, watts, transition)
node_types = st.builds(
    NodeType,
    st.text("tuvw", min_size=1, max_size=3),
    st.integers(4, 64),
    amount,
    amount,
    sockets=st.integers(1, 4),
    frequency=amount,
    speed=st.none() | amount,
    contention=st.sampled_from([Contention.NONE, Contention.EQUAL_SHARE, Contention.MAX_MIN]),
    contending_threads=st.sampled_from(ContendingThreads),
    cpu_sharing=st.sampled_from(CpuSharing),
    remote_access_penalty=st.floats(1, 9),
    queueing=st.floats(0, 9),
    power=st.none() | by_cores | by_state,
    co_run_inflation=st.lists(
        st.builds(CoRun, state_names, state_names, st.floats(1, 1000)),
        max_size=4,
        unique_by=lambda pair: (pair.job, pair.neighbour),
    ).map(lambda pairs: tuple(sorted(pairs, key=lambda pair: pair.job))),
)


@st.composite
def clusters(draw):
    kinds = draw(st.lists(node_types, min_size=1, max_size=3, unique_by=lambda kind: kind.name))
    numbers = draw(st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True))
    nodes = []
    for number in numbers:
        kind = draw(st.sampled_from(kinds))
        domain = draw(st.sampled_from([None, f"domain-{kind.name}"]))
        cpus = draw(st.sampled_from([(), tuple(range(kind.cores))]))
        nodes.append(Node(f"n{number}", kind, domain, cpus))
    names = tuple(node.name for node in nodes)
    groups = draw(st.sampled_from([{}, {"all": names}, {"g": names[:1], "h": names[::-1]}]))
    return Cluster("c", tuple(nodes), draw(st.just(math.inf) | amount), groups, "source")


@settings(max_examples=50, deadline=None)
@given(clusters())
def test_a_written_cluster_reads_back(cluster):
    assert parse_cluster(dump_cluster(cluster), "source") == cluster
    assert parse_cluster(parse_yaml(yaml.safe_dump(dump_cluster(cluster), sort_keys=False), "f"), "source") == cluster


@pytest.mark.parametrize(
    ("memory", "bandwidth", "words"),
    [
        (4 * 2.0**30, 1e10, ("4GiB", "10GB/s")),
        (257000 * 2.0**20, 2.5e9 * 56, ("257000MiB", "140GB/s")),
        (1e9 + 1, 1234567891.0, (1e9 + 1, 1234567891.0)),
    ],
)
def test_amounts_have_units_if_that_is_exact(memory, bandwidth, words):
    cluster = Cluster("c", (Node("n1", NodeType("t", 4, memory, bandwidth)),))
    kind = dump_cluster(cluster)["node_types"]["t"]
    assert (kind["memory"], kind["memory_bandwidth"]) == words


def test_the_full_file_is_read_back():
    cluster = parse_cluster(parse_yaml(FULL, "f"), "f")
    assert parse_cluster(dump_cluster(cluster), "f") == cluster


VARIED = """schema: pilotfish/cluster/v1
node_types: {t: {cores: 4, memory: 1GiB, memory_bandwidth: 10GB/s}}
nodes: [{names: "s[1-2]", type: t, relative_speed: 0.8}, {names: f1, type: t, relative_speed: 1.25}]
"""


def test_nodes_of_one_type_may_differ_in_speed(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(VARIED)
    cluster = read_cluster(tmp_path / "c.yaml")
    assert parse_cluster(dump_cluster(cluster), "") == replace(cluster, source="")
    job = Job("a", Profile((ThreadGroup(1, 10.0),), measured_on="t"))
    ends = {}
    for policy in ("mom", "slf"):
        one = plan(Workflow("w", (job,)), cluster, policy=policy).jobs[0]
        ends[policy] = one.nodes, one.finish_time
    assert ends == dict.fromkeys(("mom", "slf"), (("f1",), pytest.approx(8.0)))
    plain = replace(job, profile=Profile((ThreadGroup(1, 10.0),)))
    assert plan(Workflow("w", (plain,)), cluster, policy="mom").jobs[0].finish_time == pytest.approx(8.0)


@pytest.mark.parametrize("pace", ["0", "-1", "fast", "1000"])
def test_a_wrong_relative_speed_is_named(tmp_path: Path, pace: str) -> None:
    (tmp_path / "c.yaml").write_text(VARIED.replace("1.25", pace))
    with pytest.raises(ConfigError, match=r"nodes\[1\].relative_speed"):
        read_cluster(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("hertz", "text"), [(2.4e9, "2.4GHz"), (2596118000.0, "2.596118GHz"), (2 / 3 * 1e9, 2 / 3 * 1e9), (1.0, 1.0)]
)
def test_a_frequency_is_written_in_ghz_where_that_is_exact(hertz, text):
    kind = {"cores": 1, "memory": "1GiB", "memory_bandwidth": "10GB/s", "frequency": hertz}
    document = {"schema": "pilotfish/cluster/v1", "node_types": {"t": kind}, "nodes": [{"names": "a", "type": "t"}]}
    written = dump_cluster(parse_cluster(document, "lab.yaml"))
    assert written["node_types"]["t"]["frequency"] == text
    assert parse_cluster(written, "lab.yaml").types[0].frequency == hertz
