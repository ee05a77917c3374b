"""A heap of items by their keys, the smallest key first.

Rule: the caller keeps the columns and the size. `keys`, `items`: the heap; they may be one column of numbers, which are
their own keys. `places`: [items], the position of each item in the heap: of equal keys, the smallest item comes first.
None: no positions are kept, and equal keys come in any order. Each call takes O(log size).
"""

from __future__ import annotations

from ..arrays import Array
from .jit import inlined as inner


@inner
def push(keys: Array, items: Array, places: Array | None, size: int, key: float, item: int) -> None:
    """Add an item to a heap of `size`."""
    _put(keys, items, places, _up(keys, items, places, size, key, item), key, item)


@inner
def remove_first(keys: Array, items: Array, places: Array | None, size: int) -> None:
    """Remove the first item of a heap that then has `size`."""
    if size > 0:
        replace_first(keys, items, places, size, keys[size], items[size])


@inner
def replace_first(keys: Array, items: Array, places: Array | None, size: int, key: float, item: int) -> None:
    """Put an item in the place of the first one, which may be the same with another key."""
    _put(keys, items, places, _down(keys, items, places, size, 0, key, item), key, item)


@inner
def rekey(keys: Array, items: Array, places: Array, size: int, key: float, item: int) -> None:
    """Change the key of an item."""
    at = _up(keys, items, places, places[item], key, item)
    _put(keys, items, places, _down(keys, items, places, size, at, key, item), key, item)


@inner
def _up(keys: Array, items: Array, places: Array | None, at: int, key: float, item: int) -> int:
    """Move the items down that come after this one, from a free position on; return the position that is then free."""
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] < key or (keys[above] == key and (places is None or items[above] < item)):
            break
        _put(keys, items, places, at, keys[above], items[above])
        at = above
    return at


@inner
def _down(keys: Array, items: Array, places: Array | None, size: int, at: int, key: float, item: int) -> int:
    """Move the items up that come before this one, from a free position on; return the position that is then free."""
    while 2 * at + 1 < size:
        child = 2 * at + 1
        other = child + 1
        if other < size:
            same = places is not None and keys[other] == keys[child]
            if keys[other] < keys[child] or (same and items[other] < items[child]):
                child = other
        if keys[child] > key or (keys[child] == key and (places is None or items[child] > item)):
            break
        _put(keys, items, places, at, keys[child], items[child])
        at = child
    return at


@inner
def _put(keys: Array, items: Array, places: Array | None, at: int, key: float, item: int) -> None:
    keys[at], items[at] = key, item
    if places is not None:
        places[item] = at
