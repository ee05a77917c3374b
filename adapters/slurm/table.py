"""Tables as Slurm's commands print them, read so that nothing a user wrote can pass for a field or a line.

Rule: every field is followed by a mark that is drawn anew for each call. A comment may hold blanks, newlines, `|` or
`JobState=RUNNING`; it cannot hold the mark. What does not divide evenly into rows was cut off, and is an error.
Source: squeue(1) and sinfo(1), `--Format=type[:[.][size][suffix]]`; a size of 0 prints a field whole.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from ..base import ParseError


def draw_mark() -> str:
    """A word that nobody can foresee, of characters that mean nothing in a format."""
    return f"@{secrets.token_hex(8)}@"


def format_of(fields: Sequence[str], mark: str) -> str:
    """The `--Format` that prints these fields, each followed by the mark."""
    return ",".join(f"{field}:0{mark}" for field in fields)


def rows(text: str, fields: Sequence[str], mark: str, argv: Sequence[str] = ()) -> list[dict[str, str]]:
    """Each row as field -> value, blanks around values removed. O(length).

    Raises:
        ParseError: the text ends within a row, or says something else.
    """
    values = text.split(mark)
    rest = values.pop()
    if rest.strip() or len(values) % len(fields):
        who, tail = argv[0] if argv else "Slurm", text[-200:].replace(mark, "|")
        raise ParseError(f"{who}: the table is cut off or garbled", argv=argv, stderr_tail=tail)
    width = len(fields)
    return [
        dict(zip(fields, map(str.strip, values[start : start + width]), strict=True))
        for start in range(0, len(values), width)
    ]
