"""Objectives: parsing, errors and values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotfish.simulate.errors import ConfigError
from pilotfish.simulate.model.objective import KINDS, Objective


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_parsed(kind: str) -> None:
    assert Objective.parse(kind) == Objective(kind)
    assert Objective.parse(kind).needs_energy == (kind in ("energy", "edp", "mix"))


@given(st.floats(0.0, 1.0))
def test_a_mix_has_a_weight(weight: float) -> None:
    assert Objective.parse(f"mix:{weight!r}") == Objective("mix", weight)


@pytest.mark.parametrize("text", ["", "time", "Makespan", "energy:1", "makespan:0.5", ":", "mix :1", " mix"])
def test_an_unknown_objective_is_refused(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"is not an objective.*allowed: makespan, turnaround, slowdown, energy, edp, mix"
    ):
        Objective.parse(text)


@pytest.mark.parametrize("text", ["mix:-0.1", "mix:1.1", "mix:nan", "mix:inf", "mix:x", "mix:0,5", "mix:0.5:1"])
def test_a_weight_is_a_number_from_0_to_1(text: str) -> None:
    with pytest.raises(ConfigError, match=r"weight .*allowed: a number from 0"):
        Objective.parse(text)


def test_values() -> None:
    assert Objective().value(10.0, 500.0) == 10.0
    assert Objective("energy").value(10.0, 500.0) == 500.0
    assert Objective("edp").value(10.0, 500.0) == 5000.0
    assert Objective("mix", 0.25).value(10.0, 500.0, (20.0, 1000.0)) == pytest.approx(0.5)
    assert Objective("mix", 1.0).value(10.0, 500.0, (5.0, 1.0)) == 2.0


def test_energy_of_unknown_power_does_not_spoil_the_makespan() -> None:
    assert Objective().value(10.0, float("nan")) == 10.0


@given(st.floats(0.0, 1.0).map(lambda w: round(w, 3)))
def test_a_written_objective_reads_back(weight: float) -> None:
    for objective in (Objective("mix", weight), Objective("edp")):
        assert Objective.parse(str(objective)).kind == objective.kind
    assert Objective.parse(str(Objective("mix", weight))).weight == pytest.approx(weight)
