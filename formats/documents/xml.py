"""Read XML files from untrusted sources.

Rule: document types and entities are refused before they are read, so that nothing is expanded and nothing is fetched;
elements nest at most DEEPEST deep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .document_errors import bad

DEEPEST = 64


@dataclass(slots=True)
class Element:
    """An element: its local name without a namespace, attributes, line, elements inside, and the text before them."""

    tag: str
    attributes: dict[str, str]
    line: int
    inner: list[Element] = field(default_factory=list)
    text: str = ""


def parse_xml(data: bytes) -> Element:
    """Return an element that has the root of the document inside. O(bytes). Raises ConfigError with the line."""
    from xml.parsers import expat

    parser = expat.ParserCreate()
    parser.buffer_text = True
    top = Element("", {}, 0)
    opened = [top]

    def refuse(*_: Any) -> None:
        raise bad("a document type or entity", "plain XML without them", key=f"line {parser.CurrentLineNumber}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag.rpartition(":")[2], attributes, parser.CurrentLineNumber)
        if len(opened) > DEEPEST:
            raise bad(f"nested more than {DEEPEST} deep", key=f"line {element.line}")
        opened[-1].inner.append(element)
        opened.append(element)

    def characters(text: str) -> None:
        if not opened[-1].inner:
            opened[-1].text += text

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, lambda tag: opened.pop()
    parser.CharacterDataHandler = characters
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise bad(f"not XML: {expat.ErrorString(error.code)}", key=f"line {error.lineno}") from None
    except (ValueError, LookupError) as error:
        raise bad(f"not XML: {error}") from None
    return top
