"""Policies by name: `easy`, `easy:order=sjf`, `easy+energybud:budget=60%+opportunistic:t_idle=300`.

Rule: a policy is a frozen dataclass, its options are its fields; what is listed, checked and said of them comes from
there alone. What saves energy is a part that is added to a policy with `+`; of each kind there is one at most.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import ConfigError
from .options import choice, read, written
from .orders import CHANGING, ORDERS
from .own import Own
from .pairs import Contending, Nodes, Pairs
from .saving import EnergyBudget, Inertial, Opportunistic, PowerCap, Proportional, ReducePC


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

    @property
    def local(self) -> bool:
        """Whether it looks at the clusters of a machine."""
        return self.allocation.endswith("local")


@dataclass(frozen=True, slots=True)
class Saving:
    """A policy with parts that save energy.

    Args:
        shutdown: of machines that are idle. limit: of power or energy. keeper: of machines that are off.
    """

    base: Easy | Strict
    shutdown: Opportunistic | None = None
    limit: PowerCap | EnergyBudget | None = None
    keeper: Proportional | Inertial | None = None


Policy = Strict | Easy | Conservative | Saving
POLICIES: dict[str, type[Any]] = {
    "easy": Easy, "conservative": Conservative, "strict": Strict, "pairs": Pairs,
    "nodes": Nodes,
}
PARTS: dict[str, type[Any]] = {
    "opportunistic": Opportunistic,
    "powercap": PowerCap,
    "energybud": EnergyBudget,
    "reducepc": ReducePC,
    "proportional": Proportional,
    "inertial": Inertial,
}
_NAMES = {kind: name for name, kind in (POLICIES | PARTS).items()}
_PLACES = {Opportunistic: "shutdown", PowerCap: "limit", EnergyBudget: "limit", ReducePC: "limit"}


def parse(text: str) -> Policy | Contending:
    """The policy that a SPEC names, with its options. Raises ConfigError."""
    first, *others = text.split("+")
    base: Strict | Easy | Conservative | Contending = _part(first, POLICIES)
    if not others:
        return base
    if not isinstance(base, Easy | Strict):
        raise ConfigError("policy", "", f"{first!r} does not go with {others[0]!r}", "easy+..., strict+...")
    found: dict[str, Any] = {}
    for other in others:
        part = _part(other, PARTS)
        place = _PLACES.get(type(part), "keeper")
        if place in found:
            problem = f"{_NAMES[type(found[place])]!r} and {_NAMES[type(part)]!r} do not go together"
            raise ConfigError("policy", "", problem, "one of them")
        if place == "limit" and part.begin >= part.end:
            where = f"{_NAMES[type(part)]}:end"
            raise ConfigError("policy", where, f"'{part.end:g}'", f"more than begin={part.begin:g}")
        found[place] = part
    return Saving(base, **found)


def _part(text: str, kinds: Mapping[str, type[Any]]) -> Any:
    name, _, rest = text.partition(":")
    kind = kinds.get(name)
    if kind is None:
        near = difflib.get_close_matches(name, kinds, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ConfigError("policy", "", f"{name!r} is unknown{hint}", ", ".join(kinds))
    return read(kind, name, rest)


def text_of(policy: Policy | Contending | Own) -> str:
    """The SPEC of a policy, without what is as by default."""
    if isinstance(policy, Own):
        return str(policy)
    parts: list[Any] = [policy]
    if isinstance(policy, Saving):
        parts = [part for part in (policy.base, policy.shutdown, policy.limit, policy.keeper) if part is not None]
    return "+".join(":".join(filter(None, (_NAMES[type(part)], written(part)))) for part in parts)
