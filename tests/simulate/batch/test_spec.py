"""Policies by name."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pilotfish.simulate.batch.spec import POLICIES, Conservative, Easy, Strict, parse, text_of
from pilotfish.simulate.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("easy", Easy()),
        ("easy:order=sjf", Easy("sjf")),
        ("strict:order=random", Strict("random")),
        ("easy:", Easy()),
        ("conservative:allocation=local,order=sjf", Conservative("sjf", "local")),
    ],
)
def test_specs(text: str, policy: object) -> None:
    assert parse(text) == policy


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_written_is_read(name: str) -> None:
    kind = POLICIES[name]
    for option in fields(kind):
        for word in option.metadata["allowed"]:
            policy = kind(**{option.name: word})
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
        ("conservative:order=wfp3", "fcfs, sjf"),
        ("conservative:allocation=left", "best-effort-local"),
    ],
)
def test_what_is_no_policy_is_said(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(text)
