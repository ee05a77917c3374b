"""A calibration as a node type, and as a file that is read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.formats.cluster import read_cluster
from pilotfish.profiles.calibration.report import cluster_text, rows
from pilotfish.profiles.calibration.result import Calibration, node_type
from pilotfish.profiles.calibration.statistics import Constant
from pilotfish.simulate.model.cluster import ContendingThreads, Contention, NodeType
from tests.profiles.calibration.calibrations import BARE, FULL, GRID


@pytest.mark.parametrize("found", [BARE, FULL])
def test_the_file_is_read_back_as_the_node_type(found: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "n.yaml"
    path.write_text(cluster_text(found, "fast"))
    (node,) = read_cluster(path).nodes
    assert (node.name, node.type, node.cpus) == ("fast", node_type(found, "fast"), found.cpus)
    assert node.type.speed is None, "steps of a loop are no flops"
    assert node.type.loop_speed == pytest.approx(found.speed.value, rel=0.005)


def test_every_number_of_the_file_has_its_accuracy() -> None:
    text = cluster_text(FULL, "fast")
    for words in ("Calibrated on 2026-03-01", "Some CPU", "R2 0.", "loop_speed: 5e+08 steps/s (+- 0.2 %, 20 runs)",
                  "remote access: 1.41 (+- 1.4 %, 5 runs)", "under contention: 1.5 (1.45 to 1.55", "queueing: 0.58",
                  "contention: piecewise-linear (81 mixes)", "max-min: off by 6.2 % (unseen mixes)",
                  "power per_core: 6.1", "piecewise dd: 3000 (2999 to 3001)",
                  "Note: power is not known: no counter."):  # fmt: skip
        assert words in text


def test_a_host_name_stays_in_its_comment() -> None:
    text = cluster_text(replace(BARE, model="x\nnode_types: {}\x1b[2J"), "fast")
    assert "\x1b" not in text and "\nnode_types: {}" not in text


def test_unmeasured_values_keep_the_default() -> None:
    kind = node_type(BARE, "fast")
    plain = NodeType("fast", 4, 1.0, 1.0)
    assert kind.power is None and kind.contention is Contention.MAX_MIN
    assert (kind.frequency, kind.cpu_sharing, kind.remote_access_penalty) == (
        plain.frequency, plain.cpu_sharing, plain.remote_access_penalty,
    )  # fmt: skip


def test_a_model_that_is_not_clearly_better_is_not_named() -> None:
    assert FULL.choice is not None
    default = replace(FULL.choice, contention=Contention.MAX_MIN)
    kind = node_type(replace(FULL, choice=default), "fast")
    assert (kind.contention, kind.piecewise) == (Contention.MAX_MIN, None)
    equal = replace(FULL.choice, contention=Contention.EQUAL_SHARE, contending_threads=ContendingThreads.ALL)
    kind = node_type(replace(FULL, choice=equal), "fast")
    assert (kind.contention, kind.contending_threads) == (Contention.EQUAL_SHARE, ContendingThreads.ALL)
    kind = node_type(FULL, "fast")
    assert (kind.contention, kind.piecewise) == (Contention.PIECEWISE_LINEAR, GRID.constants)


def test_undetermined_constants_are_not_used() -> None:
    assert FULL.waiting is not None and FULL.unbound is not None
    assert node_type(FULL, "fast").queueing == pytest.approx(0.58, abs=0.01)
    assert node_type(FULL, "fast").remote_access_penalty == 1.5
    vague = Constant(0.7, 0.1, 1.3)
    waiting, unbound = replace(FULL.waiting, strength=vague), replace(FULL.unbound, penalty=vague)
    doubtful = replace(FULL, waiting=waiting, unbound=unbound)
    assert node_type(doubtful, "fast").queueing == NodeType("t", 1, 1.0, 1.0).queueing
    assert node_type(doubtful, "fast").remote_access_penalty == 1.41


def test_unknown_values_are_labelled() -> None:
    said = {row.key.strip(): row.value for row in rows(BARE)}
    assert said["power"] == said["cpu_sharing"] == "unknown"
