"""Checks of the options of adapters, which come from a configuration file.

Rule: an option of the wrong type or size is an error of the operator's that names what was found and what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, NamedTuple

from ...simulate.errors import ConfigError

#: Fewest requests in a minute; with fewer, reading the queue would take too long.
LEAST_REQUESTS = 60


class OptionKind(NamedTuple):
    """A test whether the value of an option is valid, and what is allowed."""

    fits: Callable[[Any], bool]
    allowed: str


def seconds(least: float = 0.0, longest: float = math.inf) -> OptionKind:
    """Return the kind of a finite time of more than 0 and at least `least` seconds, at most `longest`."""
    lower = f"{least:g} or more" if least else "above 0"
    upper = "" if math.isinf(longest) else f", at most {longest:g}"

    def fits(value: Any) -> bool:
        return type(value) in (int, float) and 0 < value < math.inf and least <= value <= longest

    return OptionKind(fits, f"seconds, {lower}{upper}")


def number_from(least: int) -> OptionKind:
    """Return the kind of a whole number that is not less."""
    return OptionKind(lambda value: type(value) is int and value >= least, f"a whole number from {least}")


def or_none(kind: OptionKind) -> OptionKind:
    """Return the kind that also allows no value."""
    return OptionKind(lambda value: value is None or kind.fits(value), kind.allowed)


WORDS = OptionKind(
    lambda value: isinstance(value, (list, tuple)) and all(isinstance(word, str) and word for word in value),
    "a list of texts, such as [name]",
)
TEXT = OptionKind(lambda value: isinstance(value, str), "text")
SWITCH = OptionKind(lambda value: isinstance(value, bool), "true or false")
PATH = or_none(OptionKind(lambda value: isinstance(value, (str, PathLike)), "a path"))
REQUESTS = number_from(LEAST_REQUESTS)


def check(adapter: str, kinds: Mapping[str, OptionKind], options: Mapping[str, Any]) -> None:
    """Raise ConfigError for the first invalid option.

    Args:
        adapter: Name of the adapter.
        kinds: Kind of each option.
        options: Values by option.
    """
    for name, value in options.items():
        if not kinds[name].fits(value):
            raise ConfigError(f"adapter {adapter}", name, f"found {value!r}", kinds[name].allowed)
