"""The list of policies: queue policies with their options, and mapping policies, each with what takes it.

Rule: what is listed of a queue policy comes from its dataclass; continuation lines are indented.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from ...simulate.errors import ConfigError
from ...simulate.queue_policies.policy_specs import PARTS, POLICIES, goes_with, parse_planned
from ..options import mapping_policy_names
from ..streams import show
from .text import Screen, hanging

REPLAYS, PLANS = ("simulate", "sweep"), ("plan", "run", "daemon")
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


def mapping_commands(name: str) -> tuple[str, ...]:
    """Return the commands that take a mapping policy."""
    return PLANS + (REPLAYS if name in _MAPPING else REPLAYS[:1])


def _listed(words: Iterable[str]) -> str:
    *first_words, last = words
    return f"{', '.join(first_words)} and {last}"


def queue_policies() -> dict[str, dict[str, Any]]:
    """Return all queue policies, and the parts that are added with `+`, by name, as JSON objects."""
    policies = {name: _described(kind, name in PARTS) for name, kind in (POLICIES | PARTS).items()}
    for name in POLICIES:
        policies[name]["for"] += PLANS if _decides_plans(name) else ()
        policies[name]["for"] += ["edc"] * POLICIES[name].queueing
    for name in PARTS:
        policies[name]["goes_with"] = [*goes_with(name)]
        spec = f"easy+{name}:end=1" if "end" in policies[name]["options"] else f"easy+{name}"
        policies[name]["for"] += PLANS if _decides_plans(spec) else ()
        if "daemon" not in policies[name]["for"] and _decides_plans(spec, service=True):
            policies[name]["for"].append("daemon")
    return policies


def _described(kind: type[Any], is_part: bool) -> dict[str, Any]:
    options = {}
    for field in fields(kind):
        value: Any = field.default
        number = isinstance(value, float)
        default = "" if number and math.isinf(value) else format(value, "g" if number else "")
        options[field.name] = {"help": field.metadata["help"], "allowed": field.metadata["allowed"], "default": default}
    summary = (kind.__doc__ or "").splitlines()[0]
    return {"summary": summary, "source": kind.source, "part": is_part, "options": options, "for": [*REPLAYS]}


def _decides_plans(name: str, *, service: bool = False) -> bool:
    try:
        parse_planned(name, service=service)
    except ConfigError:
        return False
    return True


def _words(name: str) -> dict[str, dict[str, str]]:
    """Return word -> meaning of each option of a policy that takes words."""
    return {
        field.name: field.metadata["words"] for field in fields((POLICIES | PARTS)[name]) if "words" in field.metadata
    }


def show_policies() -> None:
    """Print all policies, and the meanings of their options' words."""
    every = queue_policies()
    titles = {
        False: "Queue policies, for `simulate` and `sweep`, and where it says so for `plan`, `run`, `daemon` and `edc`",
        True: "Added with +, as in easy+energybud:budget=60%+opportunistic:t_idle=300",
    }
    for is_part, title in titles.items():
        _title(title)
        for name, policy in every.items():
            if policy["part"] is is_part:
                _put_policy(name, policy, indent="  ")
    _title("Slurm's own rules, for `simulate` and `sweep`")
    show("  slurm:SITE, the folder of a site; see the guide on another slurm.conf")
    _title("A learned order with guard rails, for all of these")
    show("  learned:FILE, the file of a model (*.pfmodel.json)")
    _title("Your own queue policy, a class, for all of these")
    show("  ./mine.py:Class, package.module:Class; options as in ./mine.py:Class:depth=3")
    _title(f"Mapping policies, for `plan`, `run`, `daemon` and `simulate`; {_listed(_MAPPING)} also for `sweep`")
    _put_words(mapping_policies())
    words: dict[str, dict[str, str]] = {}
    for name in every:
        for option, meanings in _words(name).items():
            words.setdefault(option, {}).update(meanings)
    _put_values(words)


def show_policy(name: str) -> None:
    """Print one policy, and the command that takes it."""
    if name in mapping_policies():
        commands = [f"`{command}`" for command in mapping_commands(name)]
        _put(f"{name} (mapping policy, for {_listed(commands)}): {mapping_policies()[name]}")
        return
    policy = queue_policies()[name]
    role = "part of a queue policy, added with +" if policy["part"] else "queue policy"
    _put_policy(name, policy, f" ({role})")
    _put_values(_words(name))


def _title(text: str) -> None:
    show("")
    _put(f"{text}:")


def _put_policy(name: str, policy: Mapping[str, Any], kind: str = "", indent: str = "") -> None:
    _put(f"{name}{kind}: {policy['summary']}", indent)
    deeper = f"{indent}  "
    _put(f"source: {policy['source']}; for: {', '.join(policy['for'])}", deeper)
    if policy["part"]:
        _put(f"goes with: {', '.join(policy['goes_with'])}", deeper)
    for option, about in policy["options"].items():
        default = f" (default: {about['default']})" if about["default"] else ""
        _put(f"{option}: {about['help']}; {about['allowed']}{default}", deeper)


def _put_values(words: Mapping[str, Mapping[str, str]]) -> None:
    for option, meanings in words.items():
        _title(f"Values of {option}")
        _put_words(meanings)


def _put_words(meanings: Mapping[str, str]) -> None:
    longest = max(map(len, meanings))
    for word, meaning in meanings.items():
        _put(f"{word:<{longest}}  {meaning}", "  ", longest + 2)


def _put(text: str, indent: str = "", more: int = 4) -> None:
    """Print a text, wrapped; the lines after the first are indented by `more` cells."""
    screen = Screen()
    screen.put(*hanging(indent, text, screen.cells, len(indent) + more))
