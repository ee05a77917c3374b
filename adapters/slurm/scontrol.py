"""What `scontrol --oneliner show` prints of partitions, reservations and the configuration, read into words.

Rule: pure, and only for what administrators alone can write: words are taken apart at blanks, so that a value may not
be a user's.
Source: scontrol(1) of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base import ParseError


def command(what: str) -> list[str]:
    """The argv that shows all of `partition`, `reservation`, ..., one to a line."""
    return ["scontrol", "--oneliner", "--all", "show", what]


def lines(text: str, first: str, argv: tuple[str, ...] = ("scontrol",)) -> Iterator[dict[str, str]]:
    """Each line that begins with the key `first`, as key -> value; a word without `=` goes on with the value before.

    Raises:
        ParseError: there are lines, and none begins so, unless Slurm says that there is none.
    """
    found = 0
    for line in text.splitlines():
        if not line.startswith(f"{first}="):
            continue
        found += 1
        words: dict[str, str] = {}
        last = first
        for word in line.split():
            key, equals, value = word.partition("=")
            if equals:
                last = key
                words.setdefault(key, value)
            else:
                words[last] += f" {word}"
        yield words
    if not found and text.strip() and not text.strip().startswith("No "):
        raise ParseError(f"scontrol: there is no {first}", argv=argv, stderr_tail=text[:200])


def names(text: str) -> frozenset[str] | None:
    """The names in `a,b`; None for `ALL`, and for a value that is not there."""
    return None if text in ("", "ALL", "(null)", "N/A") else frozenset(text.split(","))
