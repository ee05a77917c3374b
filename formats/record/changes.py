"""Lists of values with keys, such as the jobs of successive snapshots, as what changed from one to the next.

Rule: a change is small if little changed, and the first one holds everything. Values that are the same object as before
cost one comparison. What is read gives equal values in the same order, and the same objects where nothing changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

from ..documents.plain_values import plain


class Keyed(Protocol):
    """A frozen dataclass with a key; two values of a list may have the same one."""

    @property
    def key(self) -> str:
        """Its key."""


Value = TypeVar("Value", bound=Keyed)
Change = dict[str, Any]


def _labels(values: Iterable[Keyed]) -> list[str]:
    """Return a different label for each value: its key, and a number after it where the key is there already."""
    labels, counts = list[str](), dict[str, int]()
    for value in values:
        number = counts[value.key] = counts.get(value.key, 0) + 1
        labels.append(value.key if number == 1 else f"{value.key}\n{number}")
    return labels


class ChangeWriter:
    """Turns each list into its change to the list before."""

    def __init__(self) -> None:
        self._values, self._plain = dict[str, Any](), dict[str, dict[str, Any]]()

    def change(self, values: Sequence[Keyed]) -> Change:
        """Return the change to the list before as plain values for JSON. O(values), fast where they are the same.

        Args:
            values: the list.
        """
        labels, before, shared = _labels(values), self._values, dict[int, Any]()
        after = dict(zip(labels, values, strict=True))
        new, changed = dict[str, Any](), dict[str, Any]()
        for label, value in after.items():
            old = before.get(label)
            if old is value:
                continue
            if old is None:
                new[label] = self._plain[label] = plain(value, shared)
            elif old != value:
                old_plain, self._plain[label] = self._plain[label], plain(value, shared)
                changed[label] = _difference(old_plain, self._plain[label])
        absent = [label for label in before if label not in after]
        for label in absent:
            del self._plain[label]
        appended = [*(label for label in before if label in after), *new]
        self._values = after
        parts = {"gone": absent, "new": new, "changed": changed, "order": _runs(appended, labels)}
        return {name: part for name, part in parts.items() if part}


def _difference(old: dict[str, Any], new: dict[str, Any]) -> list[Any]:
    """Return the fields that differ, and, if there are any, the names of those that have their default again."""
    fields = {name: value for name, value in new.items() if name not in old or old[name] != value}
    dropped = sorted(old.keys() - new.keys())
    return [fields, dropped] if dropped else [fields]


def _runs(appended: list[str], labels: list[str]) -> list[list[int]]:
    """Return the order of `labels` as runs of `appended`, each its first position and its length; []: the same."""
    if appended == labels:
        return []
    place = {label: position for position, label in enumerate(appended)}
    positions = [place[label] for label in labels]
    cuts = [0, *(row for row, (one, next_one) in enumerate(pairwise(positions), 1) if next_one != one + 1), len(labels)]
    return [[positions[first], end - first] for first, end in pairwise(cuts)]


@cache
def _reader_of(kind: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


class ChangeReader(Generic[Value]):
    """Turns changes back into lists.

    Args:
        kind: dataclass of the values.
    """

    def __init__(self, kind: type[Value]) -> None:
        self._kind, self._values, self._plain = kind, dict[str, Value](), dict[str, dict[str, Any]]()

    def values(self, change: Change) -> list[Value]:
        """Return the list after a change. O(values).

        Args:
            change: as `ChangeWriter.change` returns it.

        Raises:
            KeyError, IndexError, TypeError, ValueError: it is no change to the list before.
        """
        for label in change.get("gone", ()):
            del self._values[label], self._plain[label]
        for label, (fields, *dropped) in change.get("changed", {}).items():
            merged = self._plain[label] | fields
            for name in dropped[0] if dropped else ():
                del merged[name]
            self._keep(label, merged)
        for label, fields in change.get("new", {}).items():
            if label in self._values:
                raise ValueError(f"{label!r} is there already")
            self._keep(label, fields)
        if runs := change.get("order"):
            appended = list(self._values)
            labels = [appended[place] for first, length in runs for place in range(first, first + length)]
            if len(set(labels)) != len(self._values):
                raise ValueError("its order has not each value once")
            self._values = {label: self._values[label] for label in labels}
        return list(self._values.values())

    def _keep(self, label: str, fields: dict[str, Any]) -> None:
        self._values[label] = _reader_of(self._kind).validate_python(fields)
        self._plain[label] = fields
