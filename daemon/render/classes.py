"""The classes of jobs in a line: how many are of which, and what those are called.

Rule: unknown is a class like the others, stands last, and says why where all agree.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from ...profiles.classes import UNKNOWN
from .text import clean, fit

#: Jobs that are named of each class, and letters of a name.
_MOST, _CELLS = 3, 16


def tally(classes: Mapping[str, Mapping[str, Any]]) -> str:
    """`2 cpu-bound (a, b), 3 unknown (its memory bandwidth is not known)`.

    Args:
        classes: job -> its class as `classes.told` has it; others are left out.
    """
    members: dict[str, list[str]] = {}
    for name, told in classes.items():
        if "class" in told:
            members.setdefault(told["class"] or UNKNOWN, []).append(name)
    ordered = sorted(members, key=lambda kind: (kind == UNKNOWN, -len(members[kind]), kind))
    return ", ".join(f"{len(members[kind]):,} {kind}{_about(kind, members[kind], classes)}" for kind in ordered)


def class_lines(classes: Mapping[str, Mapping[str, Any]], cells: int = 80) -> list[str]:
    """What `tally` says as lines of a summary, none where nothing has a class; `cells` wide at most."""
    said = textwrap.wrap(tally(classes), cells - 10, break_on_hyphens=False)
    return [("classes" if not i else "").ljust(10) + line for i, line in enumerate(said)]


def _about(kind: str, names: list[str], classes: Mapping[str, Mapping[str, Any]]) -> str:
    whys = {classes[name]["class_why"] for name in names}
    if kind == UNKNOWN and len(whys) == 1:
        return f" ({clean(whys.pop())})"
    shown = ", ".join(fit(clean(name), _CELLS) for name in names[:_MOST])
    return f" ({shown}{', ...' if len(names) > _MOST else ''})"
