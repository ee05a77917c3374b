"""XML, element by element, of files that nobody vouches for.

Rule: a document type, and with it every entity, is refused before it is read, so that nothing is expanded and nothing
fetched; and nothing is nested deeper than DEEPEST.
"""

from __future__ import annotations

from typing import Any

from .units import bad

DEEPEST = 64


class Elements:
    """Takes the parser's events: `start`, `end` and `characters` are there for who reads a format.

    `depth` is that of the element that is open, 1 for the root; elements are known by their local names, whatever
    their namespace.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._parser: Any = None

    def read(self, data: bytes) -> None:
        """Read a whole document. O(bytes). Raises ConfigError with the line."""
        from xml.parsers import expat

        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self.characters
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise bad(f"not XML: {expat.ErrorString(error.code)}", key=f"line {error.lineno}") from None
        except (ValueError, LookupError) as error:
            raise bad(f"not XML: {error}") from None

    @property
    def line(self) -> int:
        """Where the parser is."""
        return int(self._parser.CurrentLineNumber)

    def here(self) -> str:
        """The same as a key."""
        return f"line {self.line}"

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins; it is the one that is open."""

    def end(self, tag: str) -> None:
        """It ends; it still is the one that is open."""

    def characters(self, data: str) -> None:
        """Text in the element that is open."""

    def _refuse(self, *_: Any) -> None:
        raise bad("a document type or entity", "plain XML without them", key=self.here())

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise bad(f"nested more than {DEEPEST} deep", key=self.here())
        self.start(tag.rpartition(":")[2], attributes)

    def _end(self, tag: str) -> None:
        self.end(tag.rpartition(":")[2])
        self.depth -= 1
