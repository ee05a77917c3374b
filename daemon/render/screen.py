"""Where results are printed: stdout, as wide as the terminal, at most 120 cells; 80 where there is none.

Rule: colour only on a terminal and never under NO_COLOR; no markup; no blanks at the ends of lines.
"""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.text import Text

WIDEST = 120


class Screen:
    """stdout for people."""

    def __init__(self) -> None:
        self._console = Console(markup=False, highlight=False, emoji=False)
        self.cells: int = min(self._console.width, WIDEST)
        #: The encoding cannot carry more than ASCII.
        self.ascii_only: bool = self._console.options.ascii_only
        #: Colours will be seen.
        self.colour: bool = self._console.color_system is not None and not self._console.no_color

    def put(self, *renderables: RenderableType) -> None:
        """Print each on lines of its own."""
        for renderable in renderables:
            with self._console.capture() as capture:
                self._console.print(renderable, width=self.cells)
            for line in capture.get().splitlines():
                print(line.rstrip())

    def title(self, text: str) -> None:
        """Print a heading and an empty line."""
        self.put(Text(text, style="bold"), "")
