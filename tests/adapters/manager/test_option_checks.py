"""Checks of options: what fits, and what the operator reads otherwise."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pilotfish.adapters.manager import option_checks as checks
from pilotfish.adapters.manager.option_checks import OptionKind
from pilotfish.simulate.errors import ConfigError


@pytest.mark.parametrize(
    ("kind", "valid", "invalid", "allowed"),
    [
        (checks.seconds(), (0.1, 5, 1e9), (0, -1, math.inf, math.nan, True, "5", None), "seconds, above 0"),
        (checks.seconds(longest=15.0), (15.0,), (15.1,), "seconds, above 0, at most 15"),
        (checks.seconds(least=1.0), (1, 1.5), (0.5, 0), "seconds, 1 or more"),
        (checks.REQUESTS, (60, 3000), (59, 60.0, True, "60"), "a whole number from 60"),
        (checks.or_none(checks.number_from(1)), (None, 1), (0, False), "a whole number from 1"),
        (checks.WORDS, ([], ("a", "b")), ("a", [""], [1], None), "a list of texts, such as [name]"),
        (checks.PATH, (None, "a"), (1, b"a"), "a path"),
        (checks.SWITCH, (True, False), (1, "true"), "true or false"),
    ],
)  # fmt: skip
def test_options(kind: OptionKind, valid: tuple[Any, ...], invalid: tuple[Any, ...], allowed: str) -> None:
    for value in valid:
        checks.check("slurm", {"option": kind}, {"option": value})
    for value in invalid:
        with pytest.raises(ConfigError) as error:
            checks.check("slurm", {"option": kind}, {"option": value})
        assert f"found {value!r}" in str(error.value) and allowed in str(error.value)
