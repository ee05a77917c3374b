"""The findings of an examination, for a terminal: a line or two each, what would mend them below.

Rule: 80 columns, but commands are never broken; colour only underlines what the word says.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from ...adapters.findings import NOTE, OK, PROBLEM, WARNING, Finding
from .screen import Screen
from .text import clean, count

_STYLE = {OK: "green", NOTE: "", WARNING: "yellow", PROBLEM: "bold red"}
_LEVEL, _TOPIC = 9, 12
#: What would mend it is a line of a file, and no command.
_OF_A_FILE = "   # in "
_MARGIN = " " * (_LEVEL + _TOPIC)


def show(found: Sequence[Finding]) -> None:
    """Print them all, and how many of each kind there are."""
    screen = Screen()
    for finding in found:
        for line in lines(finding, screen.cells, ascii_only=screen.ascii_only):
            text = Text(line)
            text.stylize(_STYLE[finding.level], 0, _LEVEL if line.startswith(finding.level) else 0)
            screen.put(text)
        for line in finding.mend:  # whole, however wide: it is there to be copied
            print(f"{' ' * _LEVEL}{'' if _OF_A_FILE in line else '$ '}{line}")
    many = Counter(finding.level for finding in found)
    words = (count(many[level], level) for level in (PROBLEM, WARNING, NOTE) if many[level])
    screen.put("", ", ".join(words) or "all is well")


def lines(finding: Finding, cells: int = 80, *, ascii_only: bool = False) -> list[str]:
    """What a finding says, as lines of at most `cells`."""
    says, width = clean(finding.says, ascii_only=ascii_only), max(30, cells - len(_MARGIN))
    first, *others = textwrap.wrap(says, width, break_on_hyphens=False) or [""]  # hyphens are mostly those of paths
    head = f"{finding.level:<{_LEVEL}}{clean(finding.topic):<{_TOPIC}}"
    return [head + first, *(_MARGIN + line for line in others)]
