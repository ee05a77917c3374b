"""The list of policies: queue policies with their options, and mapping policies.

Rule: what is listed of a queue policy comes from its dataclass; continuation lines are indented.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, fields
from typing import Any

from ...simulate.replay.policies import PARTS, POLICIES
from ..options import mapping_policy_names
from .text import Screen

_MAPPING = {
    "lookahead": "Search over simulations of the whole workflow; never worse in simulation than the others.",
    "mom": "The node whose last job ends first (DESiDE, Chahal et al. 2019).",
    "let": "The node on which the job ends first (DESiDE).",
    "slf": "The node with the fewest unfinished threads for its cores (DESiDE).",
    "loadavg": "The node with the lowest UNIX load average (baseline of DESiDE).",
}


def mapping_policies() -> dict[str, str]:
    """Return what each mapping policy does, by name."""
    return {name: _MAPPING.get(name, "") for name in reversed(mapping_policy_names())}


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a policy.

    Args:
        name: as it is written in a SPEC.
        help: what it sets.
        allowed: its values.
        default: as text; "" = none.
        words: word -> meaning, where it takes a word.
    """

    name: str
    help: str
    allowed: str
    default: str
    words: dict[str, str]


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """A queue policy, or a part that is added to one with `+`.

    Args:
        summary: what it does.
        source: where it was published.
        options: its options.
        is_part: it is added to a policy.
    """

    summary: str
    source: str
    options: tuple[Option, ...]
    is_part: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        names = ("help", "allowed", "default")
        options = {option.name: {name: getattr(option, name) for name in names} for option in self.options}
        return {"summary": self.summary, "source": self.source, "part": self.is_part, "options": options}


def queue_policies() -> dict[str, QueuePolicy]:
    """Return all queue policies and their parts by name."""
    return {name: _described(kind, name in PARTS) for name, kind in (POLICIES | PARTS).items()}


def _described(kind: type[Any], is_part: bool) -> QueuePolicy:
    options = []
    for each in fields(kind):
        about, default = each.metadata, each.default
        text = "" if isinstance(default, float) and math.isinf(default) else _text(default)
        options.append(Option(each.name, about["help"], about["allowed"], text, dict(about.get("words", {}))))
    return QueuePolicy((kind.__doc__ or "").splitlines()[0], kind.source, tuple(options), is_part)


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def show_policies() -> None:
    """Print all policies, and the meanings of their options' words."""
    every = queue_policies()
    _title("Queue policies, for `simulate` and `sweep`")
    for name, policy in every.items():
        if not policy.is_part:
            _put_policy(name, policy)
    _title("Added with +, as in easy+energybud:budget=60%+opportunistic:t_idle=300")
    for name, policy in every.items():
        if policy.is_part:
            _put_policy(name, policy)
    _title("Your own queue policy, a class")
    print("  ./mine.py:Class, package.module:Class; options as in ./mine.py:Class:depth=3")
    words: dict[str, dict[str, str]] = {}
    for policy in every.values():
        for option in policy.options:
            if option.words:
                words.setdefault(option.name, {}).update(option.words)
    for name, meanings in words.items():
        _title(f"Values of {name}")
        _put_words(meanings)
    _title("Mapping policies, for `plan` and `run`")
    _put_words(mapping_policies())


def show_policy(name: str) -> None:
    """Print one policy, and the command that takes it."""
    if name in mapping_policies():
        _put(f"{name} (mapping policy, for `pilotfish plan` and `run`): {mapping_policies()[name]}")
        return
    policy = queue_policies()[name]
    what = "part of a queue policy, added with +" if policy.is_part else "queue policy, for `pilotfish simulate`"
    _put_policy(name, policy, f" ({what})")
    for option in policy.options:
        if option.words:
            _title(f"Values of {option.name}")
            _put_words(option.words)


def _title(text: str) -> None:
    print()
    _put(f"{text}:")


def _put_policy(name: str, policy: QueuePolicy, kind: str = "") -> None:
    _put(f"{name}{kind}: {policy.summary}")
    _put(f"source: {policy.source}", "  ")
    for option in policy.options:
        default = f" (default: {option.default})" if option.default else ""
        _put(f"{option.name}: {option.help}; {option.allowed}{default}", "  ")


def _put_words(meanings: dict[str, str]) -> None:
    longest = max(map(len, meanings))
    for word, meaning in meanings.items():
        _put(f"{word:<{longest}}  {meaning}", "  ", longest + 2)


def _put(text: str, indent: str = "", more: int = 4) -> None:
    """Print a text, wrapped; the lines after the first are indented by `more` cells."""
    screen = Screen()
    after = indent + " " * more
    lines = textwrap.wrap(text, screen.cells, initial_indent=indent, subsequent_indent=after, break_on_hyphens=False)
    screen.put(*lines)
