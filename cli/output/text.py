"""Text for the terminal: the screen, tables, wrapped text, progress bars, classes of jobs, findings of an examination.

Rule: output is as wide as the terminal, 30 to 120 cells, 80 without a terminal or if it reports 0; colour only on a
terminal and never under NO_COLOR; no markup; no trailing blanks. If a table is too wide, names are shortened, numbers
and headings are not. Commands are never wrapped.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...adapters.findings import NOTE, OK, PROBLEM, WARNING, Finding
from ...formats.text import clean, count, fit, width
from ...profiles.classes import UNKNOWN
from ..streams import show

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

_NARROWEST, _USUAL, _WIDEST = 30, 80, 120
_LEAST_NAME, _LEAST_TEXT = 8, 10


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column of a table.

    Args:
        heading: its heading.
        right: aligned to the right, as numbers; such a column never gives way.
        most: cells that it may take; None = as many as it needs.
    """

    heading: str
    right: bool = False
    most: int | None = None


def numbers(*headings: str) -> list[TextColumn]:
    """Return columns of numbers."""
    return [TextColumn(heading, right=True) for heading in headings]


def cells_of(console: Console) -> int:
    """Return how many cells of a line are used on a console; some report that they have none."""
    return max(_NARROWEST, min(console.width or _USUAL, _WIDEST))


class Screen:
    """stdout for people.

    Rule: whatever a text contains, it takes its own lines: `put` and `grid` escape control characters.
    """

    def __init__(self) -> None:
        self._console = Console(markup=False, highlight=False, emoji=False)
        self.cells: int = cells_of(self._console)
        self._console.width = self.cells
        #: The encoding is limited to ASCII.
        self.ascii_only: bool = self._console.options.ascii_only
        #: The terminal shows colours.
        self.colour: bool = self._console.color_system is not None and not self._console.no_color

    def put(self, *lines: str | Text | Table) -> None:
        """Print each text and table (see `grid`) on its own lines."""
        for line in lines:
            for printed in self._printed(line):
                print(printed)

    def _printed(self, line: str | Text | Table) -> list[str]:
        with self._console.capture() as capture:
            self._console.print(line if isinstance(line, Table) else _cleaned(line), width=self.cells)
        return [printed.rstrip() for printed in capture.get().split("\n")[:-1]]

    def title(self, text: str) -> None:
        """Print a heading and an empty line."""
        self.put(Text(text, style="bold"), "")

    def table(self, columns: Sequence[TextColumn], rows: Sequence[Sequence[str]]) -> None:
        """Print a table, see `grid`."""
        self.put(grid(columns, rows, self))

    def named_table(self, columns: Sequence[TextColumn], rows: Sequence[Sequence[str]]) -> None:
        """Print a table whose first column are names; one that has no room there stands on a line above its row."""
        room = self.cells - needed(columns, [["", *row[1:]] for row in rows]) + width(columns[0].heading)
        above = [row[0] if width(clean(row[0])) > max(room, _LEAST_NAME) else "" for row in rows]
        below = [["" if head else row[0], *row[1:]] for head, row in zip(above, rows, strict=True)]
        for head, line in zip(["", *above], self._printed(grid(columns, below, self)), strict=True):
            if head:
                self.put(*hanging("", head, self.cells))
            print(line)


def _cleaned(line: str | Text) -> Text:
    text = Text(line) if isinstance(line, str) else line
    text.plain = clean(text.plain)
    return text


def grid(columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], screen: Screen) -> Table:
    """Return a table without lines.

    Args:
        columns: the columns.
        rows: one text for each column.
        screen: gives the width; names lose their middle where the table would be wider.
    """
    texts = [[clean(text, ascii_only=screen.ascii_only) for text in row] for row in rows]
    sizes = _sizes(columns, texts, screen.cells)
    while sum(sizes) + 2 * (len(sizes) - 1) > screen.cells:
        flexible = [
            i for i, column in enumerate(columns)
            if not column.right and sizes[i] > max(_LEAST_NAME, width(column.heading))
        ]  # fmt: skip
        if not flexible:
            break
        sizes[max(flexible, key=sizes.__getitem__)] -= 1
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(clean(column.heading), justify="right" if column.right else "left", no_wrap=True)
    for row in texts:
        table.add_row(*(Text(fit(*cell, ascii_only=screen.ascii_only)) for cell in zip(row, sizes, strict=True)))
    return table


def needed(columns: Sequence[TextColumn], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table in which nothing gives way, cells."""
    return sum(_sizes(columns, rows, 2**31)) + 2 * (len(columns) - 1)


def narrowest(columns: Sequence[TextColumn], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table whose names give way as far as they may, cells."""
    sizes = zip(columns, _sizes(columns, rows, 2**31), strict=True)
    least = (size if one.right else min(size, max(_LEAST_NAME, width(one.heading))) for one, size in sizes)
    return sum(least) + 2 * (len(columns) - 1)


def _sizes(columns: Sequence[TextColumn], rows: Sequence[Sequence[str]], cells: int) -> list[int]:
    return [
        min(max([width(column.heading), *(width(row[i]) for row in rows)]), column.most or cells)
        for i, column in enumerate(columns)
    ]


def hanging(head: str, text: str, cells: int, indent: int | None = None) -> list[str]:
    """Return a text after `head`, as lines that are broken at blanks only: most hyphens are in paths.

    Args:
        head: begins the first line.
        text: its control characters are escaped.
        cells: width of the lines; a very narrow terminal has longer ones.
        indent: blanks before the other lines; None = as long as `head`.
    """
    after = " " * (len(head) if indent is None else indent)
    most = max(cells, len(after) + _LEAST_TEXT)
    wrapper = textwrap.TextWrapper(most, initial_indent=head, subsequent_indent=after, break_on_hyphens=False)
    return wrapper.wrap(clean(text))


def progress_bar(total: float, *columns: str | ProgressColumn, **fields: Any) -> Progress | None:
    """Return a running bar on stderr with one task, number 0; None if stderr is no terminal.

    Args:
        total: amount of work.
        columns: what stands between the bar and the remaining time; a text is formatted with `task`.
        fields: initial values of `task.fields`.
    """
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    bar = Progress(BarColumn(), *columns, TimeRemainingColumn(), console=console, transient=True)
    bar.add_task("", total=total, **fields)
    bar.start()
    return bar


def class_place(name: str) -> tuple[bool, int]:
    """Return the place of a class such as `5 to 16` or `over 1024` among its like."""
    sizes = [int(word) for word in name.split() if word.isdigit()]
    return not name[:1].isdigit(), sizes[0] if sizes else 0


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
    return hanging("classes".ljust(10), tally(classes), cells)


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


#: Commands that root alone may give.
_OF_ROOT = frozenset(
    ("chown", "groupadd", "install", "oarnotify", "oarproperty", "systemctl", "timedatectl", "useradd", "usermod")
)


def _prompt(command: str) -> str:
    """Return the prompt of the shell for a command: root's, or a user's."""
    word = command.partition(" ")[0]
    return "# " if word in _OF_ROOT and not command.startswith("systemctl status ") else "$ "


def show_findings(found: Sequence[Finding]) -> None:
    """Print all findings, and the number of each level."""
    screen = Screen()
    for finding in found:
        head = f"{finding.level:<{_LEVEL}}{finding.topic:<{_TOPIC}}"
        first, *continuation = map(Text, hanging(head, finding.says, screen.cells, _LEVEL + _TOPIC) or [head])
        first.stylize(_STYLE[finding.level], 0, _LEVEL)
        screen.put(first, *continuation)
        for line in finding.mend:  # not wrapped: it is meant to be copied
            show(f"{' ' * _LEVEL}{'' if _OF_A_FILE in line else _prompt(line)}{line}")
    counts = Counter(finding.level for finding in found)
    words = (count(counts[level], level) for level in (PROBLEM, WARNING, NOTE) if counts[level])
    screen.put("", ", ".join(words) or "all is well")
