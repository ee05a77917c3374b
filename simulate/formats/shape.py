"""Converters: small functions from what was written to what is meant, and ways to combine them.

Rule: a converter takes a plain value and returns the meaning or raises ConfigError with problem and allowed;
who calls it on a part adds the part's key in front, so an error always carries the whole dotted key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar

from ..errors import ConfigError
from .units import LARGEST, bad, found

T = TypeVar("T")
K = TypeVar("K", bound=Enum)
Convert = Callable[[Any], T]
_UNFIT = re.compile("[\0\ud800-\udfff]")


def join(key: str, rest: str) -> str:
    """Join two parts of a dotted key; list positions are written [i]."""
    return f"{key}.{rest}" if key and rest and rest[0] != "[" else key + rest


def shown(key: object) -> str:
    """A key as it may be printed in a message."""
    text = str(key)
    return text if text.isprintable() and 0 < len(text) <= 100 else ascii(text[:100])


def inside(key: str, convert: Callable[..., T], *args: Any) -> T:
    """Call `convert`, and put `key` in front of the key of the ConfigError that it may raise."""
    try:
        return convert(*args)
    except ConfigError as error:
        raise ConfigError(error.source, join(key, error.key), error.problem, error.allowed) from None


def from_source(source: str, convert: Callable[..., T], *args: Any) -> T:
    """Call `convert`, and name `source` as the file of the ConfigError that it may raise."""
    try:
        return convert(*args)
    except ConfigError as error:
        raise ConfigError(source, error.key, error.problem, error.allowed) from None


def nearest(wanted: str, names: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` where one of `names` is close to `wanted`, else nothing."""
    from difflib import get_close_matches

    near = get_close_matches(wanted[:100], list(names), n=1)
    return f"; did you mean {shown(near[0])!r}?" if near else ""


def mapping(value: Any) -> dict[str, Any]:
    """A mapping whose keys are text."""
    if not isinstance(value, dict):
        raise bad(found(value), "a mapping of keys to values")
    for key in value:
        if type(key) is not str:
            raise bad("a key that is not text", "text as keys", shown(key))
    return value


def keyed(value: Any, known: Iterable[str], required: Iterable[str] = ()) -> dict[str, Any]:
    """A mapping with all of the `required` keys, and none but the `known` ones."""
    data, known = mapping(value), dict.fromkeys(known)
    if not data.keys() <= known.keys():
        unknown = next(key for key in data if key not in known)
        raise bad(f"unknown key{nearest(unknown, known)}", ", ".join(known), shown(unknown))
    for key in required:
        if key not in data:
            raise bad("missing", f"required here: {', '.join(required)}", key)
    return data


def build(
    make: Callable[..., T],
    table: Mapping[str, Convert[Any]],
    value: Any,
    required: Iterable[str] = (),
    **more: Any,
) -> T:
    """Return `make(**meanings, **more)` of a mapping whose keys `table` knows.

    Args:
        table: key -> converter; any other key is an error.
        required: keys that must be there; the others are left to the defaults of `make`.

    Raises:
        ConfigError: not a mapping, an unknown or a missing key, or whatever a converter refuses.
    """
    data = keyed(value, table, required)
    for key, part in data.items():
        more[key] = inside(key, table[key], part)
    return make(**more)


def number(low: float = 0.0, high: float = LARGEST, *, above: bool = False) -> Convert[float]:
    """A finite number in [low, high], or (low, high] with `above`; negative ones where low is."""
    allowed = f"a number {'above' if above else 'from'} {low:g}" + (f" to {high:g}" if high < LARGEST else "")

    def convert(value: Any) -> float:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
            or (above and value == low)
        ):
            raise bad(found(value), allowed)
        return float(value)

    return convert


def whole(low: int, high: int = 1_000_000) -> Convert[int]:
    """A whole number in [low, high]."""
    allowed = f"a whole number from {low} to {high}"

    def convert(value: Any) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
            or value != int(value)
        ):
            raise bad(found(value), allowed)
        return int(value)

    return convert


def above_zero(convert: Convert[float]) -> Convert[float]:
    """Refuse a zero that `convert` accepts."""

    def positive(value: Any) -> float:
        result = convert(value)
        if result == 0:
            raise bad(found(value), "more than zero")
        return result

    return positive


def choice(kind: type[K]) -> Convert[K]:
    """One of the values of an enumeration of texts."""
    meanings = {member.value: member for member in kind}

    def convert(value: Any) -> K:
        if not isinstance(value, str) or value not in meanings:
            near = nearest(value, meanings) if isinstance(value, str) else ""
            raise bad(found(value) + near, ", ".join(meanings))
        return meanings[value]

    return convert


def name(value: Any) -> str:
    """A name: printable text of 1 to 255 characters; a whole number will do."""
    if isinstance(value, int) and not isinstance(value, bool) and -1e18 < value < 1e18:
        value = str(value)
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= 255
        or not value.isprintable()
        or value != value.strip()
    ):
        raise bad(found(value), "printable text of 1 to 255 characters, no blanks at its ends")
    return value


def text(value: Any) -> str:
    """Any text that a process can be handed: no NUL, no half characters."""
    if not isinstance(value, str) or _UNFIT.search(value):
        raise bad(found(value), "text (in quotes where it looks like something else)")
    return value


def word(value: Any) -> str:
    """A word of a command or the value of a variable: text, or a number as it was written."""
    if isinstance(value, int | float) and not isinstance(value, bool) and -1e18 < value < 1e18:
        return str(value)
    return text(value)


def listed(convert: Convert[T], *, least: int = 0) -> Convert[tuple[T, ...]]:
    """A list of what `convert` takes, with at least `least` parts."""

    def convert_all(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list | tuple) or len(value) < least:
            raise bad(found(value), f"a list of at least {least}" if least else "a list")
        return tuple(inside(f"[{i}]", convert, part) for i, part in enumerate(value))

    return convert_all
