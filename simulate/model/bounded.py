"""A table with a bounded number of entries that belong to users.

Rule: if the table is full, the oldest entry of the user with the most entries is dropped, so that no user displaces
what is kept for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedByOwner(Generic[K, V]):
    """Values by key; a value that is put becomes the newest.

    Args:
        most: entries, >= 1.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._owners: dict[K, Hashable] = {}
        self._tables: dict[Hashable, dict[K, V]] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def __contains__(self, key: K) -> bool:
        return key in self._owners

    def get(self, key: K) -> V | None:
        """Return the value of a key, None without one."""
        return self._tables[self._owners[key]][key] if key in self._owners else None

    def pop(self, key: K) -> V | None:
        """Remove a key; return its value, None without one."""
        if key not in self._owners:
            return None
        owner = self._owners.pop(key)
        table = self._tables[owner]
        value = table.pop(key)
        if not table:
            del self._tables[owner]
        return value

    def put(self, key: K, value: V, owner: Hashable) -> None:
        """Set a value as the newest of its owner. O(owners) if the table is full.

        Args:
            key: of the value.
            value: to keep.
            owner: whose entry it is.
        """
        self.pop(key)
        self._owners[key] = owner
        self._tables.setdefault(owner, {})[key] = value
        while len(self._owners) > self.most:
            largest = max(self._tables.values(), key=len)
            self.pop(next(iter(largest)))

    def clear(self) -> None:
        """Remove everything."""
        self._owners.clear()
        self._tables.clear()

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield keys and values, those of each owner together, the oldest first."""
        for table in self._tables.values():
            yield from table.items()


def turns(owners: Sequence[Hashable]) -> list[int]:
    """Return the places of entries of these owners, the oldest first, in another order: the newest of each in turns."""
    return in_turns(reversed(range(len(owners))), owners.__getitem__)


def in_turns(values: Iterable[V], owner_of: Callable[[V], Hashable]) -> list[V]:
    """Return the values in turns: the first one of each owner, then the second ones, each time in the given order.

    Args:
        values: in the order in which each owner wants them.
        owner_of: returns whose value it is.
    """
    counts, ranked = Counter[Hashable](), list[tuple[int, V]]()
    for value in values:
        owner = owner_of(value)
        counts[owner] += 1
        ranked.append((counts[owner], value))
    return [value for _, value in sorted(ranked, key=itemgetter(0))]
