"""Energy counters of processor packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotfish.profiles.calibration.power_line import joules, package_energy
from pilotfish.profiles.probes.power import EnergyCounter


def zone(root: Path, name: str, label: str, energy: str, span: str = "262143328850") -> None:
    (root / name).mkdir()
    for key, text in (("name", label), ("energy_uj", energy), ("max_energy_range_uj", span)):
        (root / name / key).write_text(f"{text}\n")


def test_packages_are_read_and_nothing_else(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", "100")
    zone(tmp_path, "intel-rapl:1", "package-1", "200")
    zone(tmp_path, "intel-rapl:0:0", "core", "50")
    zone(tmp_path, "intel-rapl:2", "psys", "900")
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", "100")
    zone(tmp_path, "intel-rapl:1:0", "dram", "70")
    found = {zone.name: (energy, zone.range_j) for zone, energy in package_energy(tmp_path).items()}
    assert found == {"package-0": (pytest.approx(1e-4), 262143.32885), "package-1": (pytest.approx(2e-4), 262143.32885)}


@pytest.mark.parametrize("energy", ["", "many", "1.5"])
def test_an_invalid_counter_is_ignored(tmp_path: Path, energy: str) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", energy)
    assert package_energy(tmp_path) == {}


def test_without_counters_the_result_is_empty(tmp_path: Path) -> None:
    assert package_energy(tmp_path / "nowhere") == {}


def test_energy_between_two_readings() -> None:
    one, other = EnergyCounter(Path("a"), "package-0", 9.0), EnergyCounter(Path("b"), "package-1", 9.0)
    assert joules({one: 1.0}, {one: 3.5}) == 2.5
    assert joules({one: 8.0}, {one: 0.5}) == 1.5  # the counter wrapped
    assert joules({one: 1.0, other: 1.0}, {one: 2.0, other: 3.0}) == 3.0
    assert joules({one: 0.0}, {other: 1.0}) is None
    assert joules({}, {}) is None
