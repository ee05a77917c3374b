"""Two-generation cache.

Rule: a value that is not requested between one `age` and the next is dropped, so the cache holds only what is in use.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TwoGenerationCache(Generic[Key, Value]):
    """Values, none of them None, by key."""

    def __init__(self) -> None:
        self._now: dict[Key, Value] = {}
        self._before: dict[Key, Value] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of `key`; create it with `make` if it is missing."""
        value = self._now.get(key)
        if value is None:
            value = self._before.get(key)
            value = self._now[key] = make() if value is None else value
        return value

    def age(self) -> None:
        """Drop the values that were not requested since the last call."""
        self._before, self._now = self._now, {}
