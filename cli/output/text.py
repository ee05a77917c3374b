"""Text for the terminal: the screen, the classes of jobs, the findings of an examination.

Rule: output is as wide as the terminal, at most 120 cells, 80 without a terminal; colour only on a terminal and never
under NO_COLOR; no markup; no trailing blanks. Commands are never wrapped.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from ...adapters.findings import NOTE, OK, PROBLEM, WARNING, Finding
from ...formats.text import clean, count, fit
from ...profiles.classes import UNKNOWN

WIDEST = 120


class Screen:
    """stdout for people."""

    def __init__(self) -> None:
        self._console = Console(markup=False, highlight=False, emoji=False)
        self.cells: int = min(self._console.width, WIDEST)
        #: The encoding is limited to ASCII.
        self.ascii_only: bool = self._console.options.ascii_only
        #: The terminal shows colours.
        self.colour: bool = self._console.color_system is not None and not self._console.no_color

    def put(self, *renderables: RenderableType) -> None:
        """Print each renderable on its own lines."""
        for renderable in renderables:
            with self._console.capture() as capture:
                self._console.print(renderable, width=self.cells)
            for line in capture.get().splitlines():
                print(line.rstrip())

    def title(self, text: str) -> None:
        """Print a heading and an empty line."""
        self.put(Text(text, style="bold"), "")


#: Jobs of each class that are named, and the length of a name.
_MOST, _CELLS = 3, 16


def tally(classes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the number and names of jobs of each class: `2 cpu-bound (a, b), 3 unknown (no memory bandwidth)`.

    Args:
        classes: job -> its class as a JSON object; jobs without one are left out. Unknown comes last.
    """
    members: dict[str, list[str]] = {}
    for name, about in classes.items():
        if "class" in about:
            members.setdefault(about["class"] or UNKNOWN, []).append(name)
    ordered = sorted(members, key=lambda kind: (kind == UNKNOWN, -len(members[kind]), kind))
    return ", ".join(f"{len(members[kind]):,} {kind}{_about(kind, members[kind], classes)}" for kind in ordered)


def class_lines(classes: Mapping[str, Mapping[str, Any]], cells: int = 80) -> list[str]:
    """Return `tally` as lines of a summary, at most `cells` wide; none without classes."""
    wrapped = textwrap.wrap(tally(classes), cells - 10, break_on_hyphens=False)
    return [("classes" if not i else "").ljust(10) + line for i, line in enumerate(wrapped)]


def _about(kind: str, names: list[str], classes: Mapping[str, Mapping[str, Any]]) -> str:
    whys = {classes[name]["class_why"] for name in names}
    if kind == UNKNOWN and len(whys) == 1:
        return f" ({clean(whys.pop())})"
    shown = ", ".join(fit(clean(name), _CELLS) for name in names[:_MOST])
    return f" ({shown}{', ...' if len(names) > _MOST else ''})"


_STYLE = {OK: "green", NOTE: "", WARNING: "yellow", PROBLEM: "bold red"}
_LEVEL, _TOPIC = 9, 12
#: Marks a line for a file; other lines are commands.
_OF_A_FILE = "   # in "
_MARGIN = " " * (_LEVEL + _TOPIC)


def show_findings(found: Sequence[Finding]) -> None:
    """Print all findings, and the number of each level."""
    screen = Screen()
    for finding in found:
        for line in lines(finding, screen.cells, ascii_only=screen.ascii_only):
            text = Text(line)
            text.stylize(_STYLE[finding.level], 0, _LEVEL if line.startswith(finding.level) else 0)
            screen.put(text)
        for line in finding.mend:  # not wrapped: it is meant to be copied
            print(f"{' ' * _LEVEL}{'' if _OF_A_FILE in line else '$ '}{line}")
    many = Counter(finding.level for finding in found)
    words = (count(many[level], level) for level in (PROBLEM, WARNING, NOTE) if many[level])
    screen.put("", ", ".join(words) or "all is well")


def lines(finding: Finding, cells: int = 80, *, ascii_only: bool = False) -> list[str]:
    """Return a finding as lines of at most `cells`."""
    sentence, width = clean(finding.says, ascii_only=ascii_only), max(30, cells - len(_MARGIN))
    first, *others = textwrap.wrap(sentence, width, break_on_hyphens=False) or [""]  # most hyphens are in paths
    head = f"{finding.level:<{_LEVEL}}{clean(finding.topic):<{_TOPIC}}"
    return [head + first, *(_MARGIN + line for line in others)]
