"""Work in steps: a generator that yields between two steps, and returns its result at the last.

Rule: other work is done between two steps, and may change what the next one finds. A step leaves no lock and no
transaction behind.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias, TypeVar

Part = TypeVar("Part")
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


def in_parts(values: Sequence[Part], make: Callable[[Sequence[Part]], list[Result]], size: int) -> Steps[list[Result]]:
    """Return what is made of all values, in steps.

    Args:
        values: any number.
        make: returns what is made of a part of them.
        size: values in a part, >= 1.
    """
    results = list[Result]()
    for first in range(0, len(values), size):
        if first:
            yield
        results += make(values[first : first + size])
    return results
