"""What a conversion gives: a file's text, and an account of what is not in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Converted:
    """A file's text.

    Args:
        what: is in it, in words.
        left_out: what could not be read: why -> how many.
        lost: what it cannot say -> of how many.
    """

    text: str
    what: str
    lost: Mapping[str, int]
    left_out: Mapping[str, int] = field(default_factory=dict)


def some(counts: Mapping[str, int]) -> dict[str, int]:
    """What there is of it."""
    return {name: count for name, count in counts.items() if count}
