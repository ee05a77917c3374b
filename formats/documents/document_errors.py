"""Errors of documents: what was found, where, and all errors of a file at once.

Rule: an error is made without a file, with the key relative to the value that is checked; its callers add the file and
the keys around it. What a user wrote is shortened and printable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...simulate.errors import ConfigError, ConfigErrors

T = TypeVar("T")


def found(value: object) -> str:
    """Return `found VALUE`, the value shortened to a readable length."""
    if value is None:
        return "found nothing"
    if isinstance(value, bool):
        return f"found {str(value).lower()}"
    if isinstance(value, dict | list | tuple):
        kind = "a mapping" if isinstance(value, dict) else "a list"
        return f"found {kind} of {len(value)}" if value else f"found {kind} that is empty"
    if isinstance(value, int) and value.bit_length() > 200:
        return "found a number of more than 60 digits"
    text = repr(value)
    return f"found {text}" if len(text) <= 60 else f"found {text[:56]}...{text[-1]}"


def bad(problem: str, allowed: str = "", key: str = "") -> ConfigError:
    """Return a ConfigError without a file.

    Callers add the file and the keys around `key` (see `inside`, `from_source`).

    Args:
        problem: what was found.
        allowed: what is allowed; may be empty.
        key: where, relative to the value that is checked.
    """
    return ConfigError("", key, problem, allowed)


def join(key: str, rest: str) -> str:
    """Join two parts of a dotted key; list positions are written [i]."""
    return f"{key}.{rest}" if key and rest and rest[0] != "[" else key + rest


def shown(key: object) -> str:
    """Return a key in a form that is safe to print."""
    text = str(key)
    return text if text.isprintable() and 0 < len(text) <= 100 else ascii(text[:100])


def inside(key: str, convert: Callable[..., T], *args: Any) -> T:
    """Call `convert`, and put `key` in front of the key of each ConfigError that it raises."""
    try:
        return convert(*args)
    except ConfigError as error:
        raise _moved(error, lambda one: _inside(key, one)) from None


def from_source(source: str, convert: Callable[..., T], *args: Any) -> T:
    """Call `convert`, and name `source` as the file of each ConfigError that it raises."""
    try:
        return convert(*args)
    except ConfigError as error:
        raise _moved(error, lambda one: ConfigError(source, one.key, one.problem, one.allowed, one.more)) from None


def _inside(key: str, one: ConfigError) -> ConfigError:
    return ConfigError(one.source, join(key, one.key), one.problem, one.allowed, one.more)


def _moved(error: ConfigError, move: Callable[[ConfigError], ConfigError]) -> ConfigError:
    return ConfigErrors([move(one) for one in error.errors]) if isinstance(error, ConfigErrors) else move(error)


#: Errors of one file that are collected before reading stops.
MOST_ERRORS = 20


class Collector:
    """Collects the errors of the parts of a file, so that they are reported together.

    Args:
        alike: the parts are of one kind, such as jobs: the same problem of several of them is one error.
    """

    def __init__(self, *, alike: bool = False) -> None:
        self.errors: list[ConfigError] = []
        self._first_errors: dict[tuple[str, str, str], ConfigError] | None = {} if alike else None

    def add(self, error: ConfigError, key: str = "") -> None:
        """Add an error of the part `key`. Raises ConfigError: there are MOST_ERRORS different ones."""
        for part in error.errors if isinstance(error, ConfigErrors) else (error,):
            moved = _inside(key, part)
            if self._first_errors is not None:
                earlier = self._first_errors.setdefault((part.key, part.problem, part.allowed), moved)
                if earlier is not moved:
                    earlier.more += 1 + part.more
                    continue
            self.errors.append(moved)
        if len(self.errors) >= MOST_ERRORS:
            del self.errors[MOST_ERRORS:]
            self.check()

    def read(self, key: str, convert: Callable[..., T], *args: Any) -> T | None:
        """Return what `convert` returns, or None and keep its error; see `inside`."""
        try:
            return convert(*args)
        except ConfigError as error:
            self.add(error, key)
            return None

    def check(self) -> None:
        """Raise the errors, if there are any: ConfigError for one, ConfigErrors for several."""
        if self.errors:
            raise ConfigErrors(self.errors) if len(self.errors) > 1 else self.errors[0]
