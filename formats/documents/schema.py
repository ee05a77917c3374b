"""Check the shape of documents: mappings, lists, names and words.

Rule: the caller of a converter adds the key in front, so every error carries the whole dotted key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum, StrEnum
from typing import Any, TypeGuard, TypeVar, cast

from ...simulate.errors import ConfigError, did_you_mean
from .document_errors import Collector, bad, found, shown
from .quantities import Convert, is_number

T = TypeVar("T")
K = TypeVar("K", bound=Enum)
_UNFIT = re.compile("[\0\ud800-\udfff]")


def mapping(value: Any) -> dict[str, Any]:
    """Return `value` if it is a mapping with text keys. Raises ConfigError."""
    if not isinstance(value, dict):
        raise bad(found(value), "a mapping of keys to values")
    for key in value:
        if type(key) is not str:
            raise bad("a key that is not text", "text as keys", shown(key))
    return value


def require(data: Mapping[str, Any], keys: Collection[str], allowed: str = "") -> None:
    """Raise ConfigError for the first of `keys` that is missing, with all of them, or with what is `allowed`."""
    for key in keys:
        if key not in data:
            required = f"; required here: {', '.join(keys)}" if len(keys) > 1 and not allowed else ""
            raise bad(f"missing{required}", allowed, key)


def keyed(
    value: Any, known: Iterable[str], required: Collection[str] = (), aliases: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a mapping that has all `required` keys and only `known` ones.

    Args:
        value: what was read.
        known: allowed keys.
        required: keys that must be there.
        aliases: other word -> the key that it probably means, for the error.

    Raises:
        ConfigError: not a mapping; ConfigErrors: several unknown or missing keys.
    """
    data, known, wrong = mapping(value), dict.fromkeys(known), Collector()
    for key in data if not data.keys() <= known.keys() else ():
        if key not in known:
            meant = (aliases or {}).get(key)
            hint = f"; did you mean {meant!r}?" if meant in known else did_you_mean(key, known)
            wrong.add(bad(f"unknown key{hint}", ", ".join(known), shown(key)))
    wrong.read("", require, data, required)
    wrong.check()
    return data


def build(
    make: Callable[..., T],
    table: Mapping[str, Convert[Any]],
    value: Any,
    required: Collection[str] = (),
    aliases: Mapping[str, str] | None = None,
    **more: Any,
) -> T:
    """Convert each value of a mapping and return `make(**converted, **more)`.

    Args:
        make: called with the converted values.
        table: key -> converter; any other key is an error.
        value: the mapping.
        required: keys that must be there; the others are left to the defaults of `make`.
        aliases: see `keyed`.
        more: further arguments of `make`.

    Raises:
        ConfigError: not a mapping, an unknown or a missing key, or an error of a converter; ConfigErrors: several.
    """
    wrong = Collector()
    try:
        data = keyed(value, table, required, aliases)
    except ConfigError as error:
        wrong.add(error)
        data = {key: part for key, part in value.items() if key in table} if isinstance(value, dict) else {}
    for key, part in data.items():
        more[key] = wrong.read(key, table[key], part)
    wrong.check()
    return make(**more)


def one_of(value: Any, names: Collection[str], allowed: str = "") -> str:
    """Return `value` if it is one of `names`. Raises ConfigError; `allowed` replaces the list of all names."""
    if not isinstance(value, str) or value not in names:
        raise bad(found(value) + did_you_mean(value, names), allowed or ", ".join(names))
    return value


def choice(kind: type[K]) -> Convert[K]:
    """Return a converter of the values of a text enumeration to its members."""
    meanings = {member.value: member for member in kind}
    return lambda value: meanings[one_of(value, meanings)]


def flag(value: Any) -> bool:
    """Return true or false. Raises ConfigError."""
    if not isinstance(value, bool):
        raise bad(found(value), "true or false")
    return value


def name(value: Any) -> str:
    """Return a name: printable text of 1 to 255 characters; a whole number is accepted. Raises ConfigError."""
    if isinstance(value, int) and not isinstance(value, bool) and -1e18 < value < 1e18:
        value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= 255 or not value.isprintable() or value != value.strip():
        raise bad(found(value), "printable text of 1 to 255 characters, no blanks at its ends")
    return value


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether a value is text as `text` accepts it."""
    return isinstance(value, str) and (value.isprintable() or not _UNFIT.search(value))


def text(value: Any) -> str:
    """Return text that can be an argument of a process: no NUL, no lone surrogates. Raises ConfigError."""
    if not is_text(value):
        raise bad(found(value), "text (in quotes where it looks like something else)")
    return value


def word(value: Any) -> str:
    """Return a word of a command or the value of a variable: text, or a number as written. Raises ConfigError."""
    return str(value) if is_number(value) and -1e18 < value < 1e18 else text(value)


def listed(convert: Convert[T], *, least: int = 0) -> Convert[tuple[T, ...]]:
    """Return a converter of lists with at least `least` items, each converted by `convert`."""

    def convert_all(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list | tuple) or len(value) < least:
            raise bad(found(value), f"a list of at least {least}" if least else "a list")
        wrong = Collector(alike=True)
        every = [wrong.read(f"[{i}]", convert, part) for i, part in enumerate(value)]
        wrong.check()
        return tuple(cast("list[T]", every))

    return convert_all


def entries(value: Any, convert: Callable[[str, Any], T], least: str = "") -> dict[str, T]:
    """Return a mapping with each value replaced by `convert(key, value)`.

    Args:
        value: the mapping.
        convert: called with each key and its value.
        least: what an empty mapping lacks; empty = it may be empty.

    Raises:
        ConfigError: not a mapping, or an error of `convert`; ConfigErrors: several.
    """
    if not mapping(value) and least:
        raise bad(found(value), least)
    wrong, converted = Collector(alike=True), dict[str, T]()
    for key, part in value.items():
        try:
            converted[key] = convert(key, part)
        except ConfigError as error:
            wrong.add(error, shown(key))
    wrong.check()
    return converted


def dump(value: Any, leave_out: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of a frozen value that differ from their defaults, for `build` to read back.

    Args:
        value: a dataclass; those inside it become mappings, too.
        leave_out: names of fields.
    """
    parts = {field.name: getattr(value, field.name) for field in fields(value) if field.name not in leave_out}
    defaults = {field.name: field.default for field in fields(value)}
    return {key: _dumped(part) for key, part in parts.items() if part != defaults[key]}


def _dumped(part: Any) -> Any:
    if isinstance(part, tuple) and part and is_dataclass(part[0]):
        return [_dumped(item) for item in part]
    return dump(part) if is_dataclass(part) else str(part) if isinstance(part, StrEnum) else part
