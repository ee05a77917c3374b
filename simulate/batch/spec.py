"""Policies by name: `easy`, `easy:order=sjf`, `fcfs`.

Rule: a policy is a frozen dataclass, its options are its fields; what is listed, checked and said of them comes from
there alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar

from ..errors import ConfigError
from .orders import CHANGING, ORDERS


def choice(default: str, allowed: Mapping[str, str], help: str) -> Any:
    """A field that is one of these words."""
    return field(default=default, metadata={"allowed": allowed, "help": help})


@dataclass(frozen=True, slots=True)
class Strict:
    """Starts jobs in the queue's order; the first that does not fit holds up all behind it."""

    source: ClassVar = "Poquet 2017, 2.2"
    backfills: ClassVar = False
    order: str = choice("fcfs", ORDERS, "of the queue")


@dataclass(frozen=True, slots=True)
class Easy:
    """EASY backfilling: the first that does not fit has a reservation, and what does not delay it goes before it."""

    source: ClassVar = "Lifka 1995; Poquet 2017, 2.2"
    backfills: ClassVar = True
    order: str = choice("fcfs", ORDERS, "of the queue")


ALLOCATIONS = {
    "basic": "the lowest numbers that are free when the job starts",
    "best-effort-contiguous": "neighbours, the lowest; else as basic",
    "contiguous": "neighbours, the lowest; holes that have none are refused",
    "best-effort-local": "all in one cluster, the lowest; else as basic",
    "local": "all in one cluster, the lowest; holes that have none are refused",
}


@dataclass(frozen=True, slots=True)
class Conservative:
    """Conservative backfilling: each job that waits has a reservation, which only ever moves to an earlier time."""

    source: ClassVar = "Mu'alem and Feitelson 2001; Poquet 2017, 2.2 and 5"
    order: str = choice("fcfs", {name: what for name, what in ORDERS.items() if name not in CHANGING}, "of the queue")
    allocation: str = choice("basic", ALLOCATIONS, "which resources a job takes in a hole")


Policy = Strict | Easy | Conservative
POLICIES: dict[str, type[Policy]] = {"easy": Easy, "conservative": Conservative, "strict": Strict}


def parse(text: str) -> Policy:
    """The policy that a SPEC names, with its options. Raises ConfigError."""
    name, _, rest = text.partition(":")
    kind = POLICIES.get(name)
    if kind is None:
        near = difflib.get_close_matches(name, POLICIES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError("policy", "", f"{name!r} is unknown{hint}", ", ".join(POLICIES))
    known = {each.name: each for each in fields(kind)}
    chosen: dict[str, Any] = {}
    for word in filter(None, rest.split(",")):
        key, equals, value = word.partition("=")
        if key not in known or not equals:
            raise ConfigError("policy", name, f"{word!r}", ", ".join(f"{key}=..." for key in known))
        if key in chosen:
            raise ConfigError("policy", f"{name}:{key}", "given twice", "once")
        chosen[key] = _value(f"{name}:{key}", value, known[key])
    return kind(**chosen)


def _value(where: str, text: str, wanted: Field[Any]) -> Any:
    allowed = wanted.metadata["allowed"]
    if text not in allowed:
        raise ConfigError("policy", where, f"{text!r}", ", ".join(allowed))
    return text


def text_of(policy: Policy) -> str:
    """The SPEC of a policy, without what is as by default."""
    name = next(name for name, kind in POLICIES.items() if isinstance(policy, kind))
    words = [f"{each.name}={getattr(policy, each.name)}" for each in fields(policy)
             if getattr(policy, each.name) != each.default]  # fmt: skip
    return f"{name}:{','.join(words)}" if words else name
