"""Options of policies: their allowed values, parsing and printing.

Rule: an option is a field of a frozen dataclass; its metadata is all that parsing, listing and printing need.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

import numpy as np

from ..errors import ConfigError, did_you_mean
from .learned_order import MODEL_SUFFIX, OrderFile


@dataclass(frozen=True, slots=True)
class Amount:
    """An absolute amount in watts or joules, or a share of the maximum."""

    value: float
    share: bool = False

    def absolute(self, whole: float) -> float:
        """Return the amount in the unit of `whole`, the maximum."""
        return self.value * whole if self.share else self.value

    def __str__(self) -> str:
        return f"{self.value * 100:.12g}%" if self.share else f"{self.value:.12g}"


@dataclass(frozen=True, slots=True)
class Sharing:
    """Limit of the sharing of nodes: the largest factor by which jobs may slow each other down."""

    #: inf: by any factor; 0: not at all, each job has nodes of its own.
    bound: float = math.inf

    def __str__(self) -> str:
        return {math.inf: "any", 0.0: "none"}.get(self.bound, f"{self.bound:.12g}")


def sharing(help: str) -> Any:
    """Return a field that says how far jobs may share nodes; the default is by any factor."""
    metadata = {"allowed": "any, none, or a factor of 1 or more", "help": help, "read": _sharing}
    return field(default=Sharing(), metadata=metadata)


def _sharing(text: str) -> Sharing | None:
    if text in ("any", "none"):
        return Sharing(math.inf if text == "any" else 0.0)
    bound = _between(1.0, math.inf)(text)
    return None if bound is None else Sharing(bound)


def choice(default: str, allowed: Mapping[str, str], help: str) -> Any:
    """Return a field whose value is one of a set of words.

    Args:
        default: the default word.
        allowed: word -> description.
        help: description of the option.
    """
    read = {word: word for word in allowed}.get
    return field(
        default=default, metadata={"words": allowed, "allowed": ", ".join(allowed), "help": help, "read": read}
    )


def order_option(allowed: Mapping[str, str]) -> Any:
    """Return a field that is an order of the queue: one of a set of words, first come first served, or a model's file.

    Args:
        allowed: word -> description.
    """
    words = {word: word for word in allowed}
    metadata = {
        "words": allowed, "allowed": f"{', '.join(allowed)}, or the file of a model (*{MODEL_SUFFIX})",
        "help": "order of the queue",
        "read": lambda text: OrderFile(text) if text.endswith(MODEL_SUFFIX) else words.get(text),
    }  # fmt: skip
    return field(default="fcfs", metadata=metadata)


def number(default: float, least: float, most: float, help: str) -> Any:
    """Return a numeric field.

    Args:
        default: the default value.
        least: lower limit, inclusive; may be infinite.
        most: upper limit, inclusive; may be infinite.
        help: description of the option, with its unit.
    """
    allowed = f"{least:g} to {most:g}" if math.isfinite(most) else f"{least:g} or more"
    metadata = {"allowed": allowed if math.isfinite(least) else "a number", "help": help, "read": _between(least, most)}
    return field(default=default, metadata=metadata)


class Date(float):
    """A date, as seconds since 1970; printed as a date."""

    def __format__(self, spec: str) -> str:
        return f"{np.datetime64(round(self * 1000), 'ms')}Z".replace(".000Z", "Z")


def moment(default: float, help: str) -> Any:
    """Return a field that is a time in seconds, or a date with its zone; the default is infinite.

    Args:
        default: the default value.
        help: description of the option.
    """
    allowed = "seconds, or a date with its zone (2026-12-01T08:00Z, 2026-12-01T08:00+01:00)"
    return field(default=default, metadata={"allowed": allowed, "help": help, "read": _moment})


_DATE = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?:Z|([+-]\d\d):?([0-5]\d))")


def _moment(text: str) -> float | None:
    if (date := _DATE.fullmatch(text)) is None:
        return _between(-math.inf, math.inf)(text)
    local_time, hours, minutes = date.groups(default="0")
    try:
        seconds = float(np.datetime64(local_time, "us").astype(np.int64)) / 1e6
    except ValueError:  # 30 February
        return None
    east = 3600 * int(hours) + (60 if hours[0] != "-" else -60) * int(minutes)
    return Date(seconds - east)


def amount(help: str) -> Any:
    """Return a field that is a number or a percentage; the default is 100%."""
    metadata = {"allowed": "a number or a percentage, 0 or more", "help": help, "read": _amount}
    return field(default=Amount(1.0, share=True), metadata=metadata)


def parse_options(kind: type[Any], name: str, text: str) -> Any:
    """Create a policy, or a part of one, from its options.

    Args:
        kind: the dataclass to create.
        name: its name in errors.
        text: options such as `order=sjf,t_idle=60`.

    Raises:
        ConfigError: an option is unknown, given twice, or has an invalid value.
    """
    options = {option.name: option for option in fields(kind)}
    chosen: dict[str, Any] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        if key not in options or not equals:
            allowed = ", ".join(f"{key}=..." for key in options) or "no options"
            raise ConfigError("policy", name, f"{word!r}{did_you_mean(key, options, '{}=...'.format)}", allowed)
        if key in chosen:
            raise ConfigError("policy", f"{name}:{key}", "given twice", "once")
        chosen[key] = _value(f"{name}:{key}", value, options[key])
    return kind(**chosen)


def format_options(part: Any) -> str:
    """Return the text of all options that differ from their defaults."""
    values = [(option.name, getattr(part, option.name), option.default) for option in fields(part)]
    return ",".join(
        f"{name}={value:.12g}" if isinstance(value, float) else f"{name}={value}"
        for name, value, default in values
        if value != default
    )


def _value(where: str, text: str, option: Field[Any]) -> Any:
    value = option.metadata["read"](text)
    if value is None:
        hint = did_you_mean(text, option.metadata.get("words", ()), str)
        raise ConfigError("policy", where, f"{text!r}{hint}", option.metadata["allowed"])
    return value


def _between(least: float, most: float) -> Callable[[str], float | None]:
    def number(text: str) -> float | None:
        try:
            value = float(text)
        except ValueError:
            return None
        return value if least <= value <= most else None

    return number


def _amount(text: str) -> Amount | None:
    share = text.endswith("%")
    value = _between(0.0, math.inf)(text.removesuffix("%"))
    return None if value is None else Amount(value / 100.0 if share else value, share)
