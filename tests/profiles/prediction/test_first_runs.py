"""Class and power are guessed before first runs from what ran before, and compared with these runs."""

from __future__ import annotations

from functools import partial

import pytest

from pilotfish.cli.__main__ import main
from pilotfish.profiles.classes import classify
from pilotfish.profiles.measurement import Measurement
from pilotfish.profiles.prediction.first_runs import first_runs, macro_f1
from pilotfish.profiles.store import ProfileStore
from pilotfish.simulate.model.cluster import NodeType
from pilotfish.simulate.model.job import ThreadGroup

NODE = NodeType("t", 8, 1e12, 80e9)
CPU, BANDWIDTH = {"ipc": 2.0, "bandwidth": 1e8}, {"ipc": 0.8, "bandwidth": 20e9}


def run(cpu_s: float = 10.0, **counted: float) -> Measurement:
    return Measurement((ThreadGroup(1, cpu_s),), cpu_s, cpu_s, cpu_s, 0.0, **counted)


def test_f1_is_the_mean_over_the_classes():
    pairs = [("cpu", "cpu"), ("cpu", "bandwidth"), ("bandwidth", "bandwidth"), ("bandwidth", None)]
    assert macro_f1(pairs) == pytest.approx((2 / 3 + 1 / 2) / 2) and macro_f1([]) is None
    assert macro_f1([("cpu", "cpu")]) == 1.0 and macro_f1([("cpu", None)]) == 0.0


def test_a_command_is_guessed_from_those_before_it_alone():
    runs = [
        ("cmd: sim 1", run(**CPU, power_watts=100.0)),  # nothing ran before
        ("cmd: sim 1", run(**BANDWIDTH)),  # no first run
        ("cmd: copy 1", run(**BANDWIDTH, power_watts=200.0)),
        ("cmd: copy 2", run(20.0, **BANDWIDTH, power_watts=250.0)),  # as the one before, but for its power
        ("cmd: copy 3", run(**CPU)),
        ("cmd: sleep 1", run()),  # of no known class
    ]
    found = first_runs(runs, partial(classify, node=NODE))
    assert (found.commands, found.classes, found.guessed) == (5, 4, 2)
    assert found.f1 == pytest.approx((0.0 + 2 * 1 / 4) / 2), "of each class two first runs; one guess is right"
    assert found.powers == 1 and found.power_error == pytest.approx(0.2)


def test_the_command_prints_it(tmp_path, capsys):
    store = ProfileStore(tmp_path / "p.sqlite")
    store.record_all([(f"cmd: copy {i}", run(**BANDWIDTH, power_watts=100.0, node_type="lone")) for i in range(1, 4)])
    (tmp_path / "c.yaml").write_text(
        "schema: pilotfish/cluster/v1\nname: c\n"
        "node_types: {lone: {cores: 8, memory: 8GiB, memory_bandwidth: 80GB/s}}\nnodes: [{names: n1, type: lone}]\n"
    )
    assert main(["predict", "classes", "--store", str(store.path), "--cluster", str(tmp_path / "c.yaml")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "class: 3 commands of 3 with a known class; 2 guessed; F1 0.80" in out
    assert "power: 2 commands measured and guessed; median error 0 %" in out
