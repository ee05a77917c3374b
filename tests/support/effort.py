"""How much a test tries: with --quick a fifth of what it tries otherwise, at least one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

Case = TypeVar("Case")

#: Which share of the examples a test tries; conftest.py sets it before the tests are imported.
share = 1.0
#: The share with --quick.
QUICK = 0.2


def of(number: int) -> int:
    """Return how many of `number` examples, cases or rounds to try, 1 or more."""
    return max(1, round(share * number))


def some(cases: Iterable[Case], first: int = 0) -> Sequence[Case]:
    """Return the cases to try: all, or with --quick every fifth from number `first` on."""
    step = round(1.0 / share)
    return tuple(cases)[first % step :: step]
