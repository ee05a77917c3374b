"""Policies by name."""

from __future__ import annotations

import pytest

from pilotfish.simulate.batch.orders import ORDERS
from pilotfish.simulate.batch.spec import POLICIES, Easy, Strict, parse, text_of
from pilotfish.simulate.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "policy"),
    [("easy", Easy()), ("easy:order=sjf", Easy("sjf")), ("strict:order=random", Strict("random")), ("easy:", Easy())],
)
def test_specs(text: str, policy: object) -> None:
    assert parse(text) == policy


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("order", ORDERS)
def test_what_is_written_is_read(name: str, order: str) -> None:
    policy = POLICIES[name](order)
    assert parse(text_of(policy)) == policy


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("esy", "did you mean easy"),
        ("", "unknown"),
        ("easy:sjf", "order=..."),
        ("easy:order=", "fcfs, sjf"),
        ("easy:order=sjf,order=fcfs", "given twice"),
        ("easy:size=3", "order=..."),
    ],
)
def test_what_is_no_policy_is_said(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(text)
