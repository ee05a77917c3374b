"""From a calibration to a node type, and to a file that is read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pilotfish.profiles.calibration.file import cluster_text
from pilotfish.profiles.calibration.result import Calibration, node_type
from pilotfish.profiles.calibration.words import rows
from pilotfish.simulate.formats.cluster import read_cluster
from pilotfish.simulate.platform import Contention, NodeType

from .calibrations import BARE, FULL, GRID


@pytest.mark.parametrize("found", [BARE, FULL])
def test_the_file_is_read_back_as_the_node_type(found: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "n.yaml"
    path.write_text(cluster_text(found, "fast"))
    (node,) = read_cluster(path).nodes
    assert (node.name, node.type, node.cpus) == ("fast", node_type(found, "fast"), found.cpus)


def test_every_number_of_the_file_says_how_well_it_is_known() -> None:
    text = cluster_text(FULL, "fast")
    for words in ("Calibrated on 2026-03-01", "Some CPU", "R2 0.", "speed: 5e+08 steps/s (+- 0.2%, 20 runs)",
                  "remote access: 1.41 (+- 1.4%, 5 runs)", "power per_core: 6.1", "piecewise dd: 3000 (2999 to 3001)",
                  "Note: power is not known: no counter."):  # fmt: skip
        assert words in text


def test_a_hosts_name_cannot_leave_its_comment() -> None:
    text = cluster_text(replace(BARE, model="x\nnode_types: {}\x1b[2J"), "fast")
    assert "\x1b" not in text and "\nnode_types: {}" not in text


def test_what_was_not_measured_is_left_to_the_default() -> None:
    kind = node_type(BARE, "fast")
    plain = NodeType("fast", 4, 1.0, 1.0)
    assert kind.power is None and kind.contention is Contention.MAX_MIN
    assert (kind.frequency, kind.cpu_sharing, kind.remote_access_penalty) == (
        plain.frequency, plain.cpu_sharing, plain.remote_access_penalty,
    )  # fmt: skip


def test_constants_that_the_grid_does_not_determine_are_not_used() -> None:
    doubtful = replace(GRID, quality=replace(GRID.quality, r2=0.3))
    assert node_type(replace(FULL, piecewise=doubtful), "fast").piecewise is None
    assert node_type(FULL, "fast").piecewise == GRID.constants


def test_unknown_is_said() -> None:
    said = {row.key.strip(): row.value for row in rows(BARE)}
    assert said["power"] == said["cpu_sharing"] == "unknown"
