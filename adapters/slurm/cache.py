"""What was made once and is kept for as long as it is asked for.

Rule: what is not asked for from one `age` to the next is forgotten, so that a memory is as large as what is of use.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Lasting(Generic[Key, Value]):
    """Values, none of them None, by what they were made of."""

    def __init__(self) -> None:
        self._now: dict[Key, Value] = {}
        self._before: dict[Key, Value] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of this key, which `make` gives where there is none."""
        found = self._now.get(key)
        if found is None:
            found = self._before.get(key)
            found = self._now[key] = make() if found is None else found
        return found

    def age(self) -> None:
        """Forget what was not asked for since the last time."""
        self._before, self._now = self._now, {}
