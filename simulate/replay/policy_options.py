"""Options of policies: what each may be, and how it is written.

Rule: an option is a field of a frozen dataclass; its metadata are all that reading, listing and writing need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class Amount:
    """So many watts or joules, or a share of all there could be."""

    value: float
    share: bool = False

    def of(self, whole: float) -> float:
        """The amount itself."""
        return self.value * whole if self.share else self.value

    def __str__(self) -> str:
        return f"{self.value * 100:.12g}%" if self.share else f"{self.value:.12g}"


def choice(default: str, allowed: Mapping[str, str], help: str) -> Any:
    """A field that is one of these words."""
    metadata = {"words": allowed, "allowed": ", ".join(allowed), "help": help, "read": _one_of(allowed)}
    return field(default=default, metadata=metadata)


def number(default: float, least: float, most: float, help: str) -> Any:
    """A field that is a number between these."""
    allowed = f"{least:g} to {most:g}" if math.isfinite(most) else f"{least:g} or more"
    metadata = {"allowed": allowed if math.isfinite(least) else "a number", "help": help, "read": _between(least, most)}
    return field(default=default, metadata=metadata)


def amount(help: str) -> Any:
    """A field that is a number, or a share."""
    metadata = {"allowed": "a number or a percentage, 0 or more", "help": help, "read": _amount}
    return field(default=Amount(1.0, share=True), metadata=metadata)


def read(kind: type[Any], name: str, text: str) -> Any:
    """A policy, or a part of one, with options like `order=sjf,t_idle=60`. Raises ConfigError."""
    known = {each.name: each for each in fields(kind)}
    chosen: dict[str, Any] = {}
    for word in filter(None, text.split(",")):
        key, equals, value = word.partition("=")
        if key not in known or not equals:
            raise ConfigError("policy", name, f"{word!r}", ", ".join(f"{key}=..." for key in known))
        if key in chosen:
            raise ConfigError("policy", f"{name}:{key}", "given twice", "once")
        chosen[key] = _value(f"{name}:{key}", value, known[key])
    return kind(**chosen)


def written(part: Any) -> str:
    """Its options that are not as by default, as they are read."""
    values = [(each.name, getattr(part, each.name), each.default) for each in fields(part)]
    return ",".join(f"{name}={_text(value)}" for name, value, default in values if value != default)


def _value(where: str, text: str, wanted: Field[Any]) -> Any:
    found = wanted.metadata["read"](text)
    if found is None:
        raise ConfigError("policy", where, f"{text!r}", wanted.metadata["allowed"])
    return found


def _text(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _one_of(allowed: Mapping[str, str]) -> Callable[[str], str | None]:
    return lambda text: text if text in allowed else None


def _between(least: float, most: float) -> Callable[[str], float | None]:
    def number(text: str) -> float | None:
        try:
            found = float(text)
        except ValueError:
            return None
        return found if least <= found <= most else None

    return number


def _amount(text: str) -> Amount | None:
    share = text.endswith("%")
    found = _between(0.0, math.inf)(text.removesuffix("%"))
    return None if found is None else Amount(found / 100.0 if share else found, share)
