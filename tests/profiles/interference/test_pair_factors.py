"""Scores in the store: they survive restarts, and plans use them for pairs that the memory model does not cover."""

import json
from contextlib import closing
from dataclasses import replace

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.profiles.interference.scores import MOST, PressureEffect, Scores, added, with_scores
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.cluster import Cluster, Contention, CoRun, Node, NodeType
from pilotfish.simulate.model.job import Profile, ThreadGroup

KIND = NodeType("t", 2, 1e10, 1e12)


def scores(name, times, pressure=1.0, **more):
    level = PressureEffect(1.0, 1e10, times, times, times, 1.0)
    return Scores(name, (level,), pressure, 3, "2026-01-02T03:04:05Z", **{"cpu_model": "cpu", **more})


def site(*kinds):
    return Cluster("lab", tuple(Node(f"n{i}", kind) for i, kind in enumerate(kinds or (KIND,))))


def pairs(cluster, place=0):
    return {(pair.job, pair.neighbour): pair.factor for pair in cluster.nodes[place].type.co_run_inflation}


def unknown(name):
    return False


def test_scored_programs_slow_each_other_by_their_scores():
    found = with_scores(site(), [scores("a", 1.5), scores("b", 1.2)], unknown)
    assert pairs(found) == {("a", "a"): 1.5, ("a", "b"): 1.5, ("b", "a"): 1.2, ("b", "b"): 1.2}
    assert added(site(), found) == 4


def test_given_pairs_stay_and_nothing_is_counted_twice():
    given = replace(KIND, co_run_inflation=(CoRun("a", "b", 3.0),))
    both = [scores("a", 1.5), scores("b", 1.2)]
    assert pairs(with_scores(site(given), both, unknown))["a", "b"] == 3.0
    assert set(pairs(with_scores(site(), both, {"a"}.__contains__))) == {("a", "b"), ("b", "a"), ("b", "b")}
    cluster = site()
    assert with_scores(cluster, both, {"a", "b"}.__contains__) is cluster
    blind = replace(KIND, contention=Contention.NONE)
    assert len(pairs(with_scores(site(blind), both, {"a", "b"}.__contains__))) == 4


def test_scores_hold_for_their_type_of_node_and_processor():
    other = replace(KIND, name="u")
    cluster = site(KIND, other)
    found = with_scores(cluster, [scores("a", 1.5), scores("b", 1.2, node_type="u"), scores("c", 1.3, node_type="x")],
                        unknown)  # fmt: skip
    assert pairs(found) == {("a", "a"): 1.5} and pairs(found, 1) == {("b", "b"): 1.2}
    mixed = with_scores(site(), [scores("a", 1.5), scores("b", 1.2, cpu_model="another")], unknown)
    assert set(pairs(mixed)) == {("a", "a"), ("b", "b")}


def test_pairs_are_bounded():
    found = with_scores(site(), [scores(f"p{i:03}", 1.5) for i in range(MOST + 5)], unknown)
    assert len(pairs(found)) == MOST**2 and ("p004", "p004") not in pairs(found)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("PILOTFISH_STATE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    with closing(ProfileStore(tmp_path / "profiles.sqlite")) as opened:
        yield opened


def test_scores_are_stored_and_the_latest_of_a_processor_counts(store):
    store.put_scores(scores("a", 1.5, node_type="t"))
    store.put_scores(scores("a", 1.7, cpu_model="another"))
    store.put_scores(replace(scores("a", 1.6), date="2026-02-02T00:00:00Z"))
    with closing(ProfileStore(store.path)) as again:
        assert [(one.sensitivity, one.cpu_model, one.rounds) for one in again.scores("a")] == [
            (1.7, "another", 3), (1.6, "cpu", 3),
        ]  # fmt: skip
        assert again.scores("b") == ()


def test_unreadable_scores_are_left_out(store):
    for name in ("a", "b"):
        store.put_scores(scores(name, 1.5))
    with store._file.writing() as connection:
        connection.execute("UPDATE score SET document = '{}' WHERE name = 'a'")
    assert [each.name for each in store.scores()] == ["b"]


def test_known_bandwidths_leave_the_pair_to_the_model(store):
    for name in ("a", "b"):
        store.put_scores(scores(name, 1.5))
        store.put(Profile((ThreadGroup(1, 1.0, bandwidth=1e9),), name=name))
    assert store.scored(site()) == site()
    store.put(Profile((ThreadGroup(1, 1.0),), name="b"))
    assert set(pairs(store.scored(site()))) == {("a", "b"), ("b", "a"), ("b", "b")}
    assert set(pairs(store.scored(site(), {"b"}))) == {("b", "b")}


FLOW = """
schema: pilotfish/workflow/v1
name: two
jobs:
  one: {command: "true", profile: a}
  two: {command: "true", profile: b}
"""
LAB = """
schema: pilotfish/cluster/v1
name: lab
node_types: {t: {cores: 2, memory: 4GiB, memory_bandwidth: 10GB/s, frequency: 1GHz}, slow: {cores: 2, memory: 4GiB,
  memory_bandwidth: 10GB/s, frequency: 0.7GHz}}
nodes: [{names: x, type: t}, {names: y, type: slow}]
"""


def test_a_plan_changes_because_of_scores(store, tmp_path, capsys):
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "lab.yaml").write_text(LAB)
    for name in ("a", "b"):
        store.put(Profile((ThreadGroup(1, 10.0),), name=name, measured_on="t"))

    def planned():
        argv = ["plan", str(tmp_path / "flow.yaml"), "--cluster", str(tmp_path / "lab.yaml"), "--json"]
        assert main(argv) == 0
        captured = capsys.readouterr()
        found = json.loads(captured.out)
        return {job["id"]: job["nodes"] for job in found["jobs"]}, found["makespan"], captured.err

    nodes, makespan, err = planned()
    assert nodes == {"one": ["x"], "two": ["x"]} and makespan == pytest.approx(10.0)
    assert "scores" not in err
    store.put_scores(scores("a", 1.9))
    store.put_scores(scores("b", 1.9))
    nodes, makespan, err = planned()
    assert sorted(nodes.values()) == [["x"], ["y"]]
    assert 10.0 < makespan < 19.0
    assert "4 pairs of programs slow each other by their relative scores" in err


def test_the_daemon_uses_scores_and_keeps_its_node_objects(store):
    from pilotfish.daemon.learning.profile_learning import LearnedProfiles

    profiles, cluster = LearnedProfiles(store.path), site()
    assert profiles.with_interference(cluster) is cluster
    store.put_scores(scores("a", 1.5))
    found = profiles.with_interference(cluster)
    assert pairs(found) == {("a", "a"): 1.5}
    store.put(Profile((ThreadGroup(1, 1.0),), name="other"))  # the store has changed, the pairs have not
    assert profiles.with_interference(cluster) is found


def test_show_labels_relative_scores(store, capsys):
    store.put_scores(replace(scores("a", 1.5), pressure=0.25))
    assert main(["profile", "show", "a"]) == 0
    out = capsys.readouterr().out
    assert "1.500x next to a whole streamer" in out and "0.25 of a streamer" in out and "3 x each" in out
    assert "relative" in out and all(len(line) <= 80 for line in out.splitlines())
    assert main(["profile", "show", "--json", "a"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"][0]["source"] == "relative score"
    assert main(["profile", "pairs"]) == 0
    assert "{a: 1.125}" in capsys.readouterr().out
