"""Work in steps: a generator that yields between two steps, and returns its result at the last.

Rule: other work is done between two steps, and may change what the next one finds. A step leaves no lock and no
transaction behind.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

Result = TypeVar("Result")
Steps: TypeAlias = Generator[None, None, Result]


def finish(steps: Steps[Result]) -> Result:
    """Go through all steps at once, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
