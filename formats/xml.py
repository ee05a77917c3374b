"""Read XML files from untrusted sources, element by element.

Rule: document types and entities are refused before they are read, so that nothing is expanded and nothing is fetched;
elements nest at most DEEPEST deep.
"""

from __future__ import annotations

from typing import Any

from .schema import bad

DEEPEST = 64


class XmlReader:
    """Parse XML with the methods `start`, `end` and `characters` of a subclass.

    `depth` is the depth of the open element, 1 for the root. Elements are known by their local names; namespaces are
    ignored.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._parser: Any = None

    def read(self, data: bytes) -> None:
        """Parse a whole document. O(bytes). Raises ConfigError with the line."""
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
        """Current line of the parser."""
        return int(self._parser.CurrentLineNumber)

    def here(self) -> str:
        """Return the current line as a key: `line N`."""
        return f"line {self.line}"

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the beginning of an element, which is now the open one."""

    def end(self, tag: str) -> None:
        """Handle the end of an element, which is still the open one."""

    def characters(self, data: str) -> None:
        """Handle text in the open element."""

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
