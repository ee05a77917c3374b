"""Frozen values of the model as plain values for JSON: of a dataclass, the fields that differ from their defaults.

Rule: a plain value that is validated against its type gives an equal value. A set stays a set; write it with
`default=sorted`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from ...simulate.model.job import Profile

_ATOMS = frozenset((str, int, float, bool, type(None)))
_REQUIRED = dataclasses.MISSING


def plain(part: Any, shared: dict[int, Any]) -> Any:
    """Return a value for JSON. O(size).

    Args:
        part: the value.
        shared: by identity, the profiles that were converted before, because jobs share them; they must stay alive.
    """
    kind: Any = type(part)
    if kind is tuple:
        return [item if type(item) is str else plain(item, shared) for item in part]
    if not hasattr(kind, "__dataclass_fields__"):
        return part
    if (copy := shared.get(id(part))) is not None:
        return copy
    names, defaults, values = _fields(kind)
    changed = {
        name: value if type(value) in _ATOMS else plain(value, shared)
        for name, default, value in zip(names, defaults, values(part), strict=True)
        if default is _REQUIRED or value != default
    }
    if kind is Profile:
        shared[id(part)] = changed
    return changed


@cache
def _fields(kind: Any) -> tuple[tuple[str, ...], tuple[Any, ...], Callable[[Any], tuple[Any, ...]]]:
    """Return the names of a dataclass's fields, their defaults, and what reads them from a value."""
    every = dataclasses.fields(kind)
    names = tuple(member.name for member in every)
    read = attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)
    return names, tuple(member.default for member in every), read
