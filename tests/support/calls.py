"""Work counted as calls of Python and C functions: the same on every machine."""

from __future__ import annotations

import sys
from typing import Any


class Calls:
    """Counts calls while it is entered; `number` so far, and `most` between two calls of `step`."""

    def __init__(self) -> None:
        self.number = self.most = self.steps = self._before = 0

    def __enter__(self) -> Calls:
        self._outer = sys.getprofile()
        sys.setprofile(self._count)
        return self

    def _count(self, frame: Any, event: str, argument: Any) -> None:
        self.number += event in ("call", "c_call")

    def step(self) -> None:
        """Begin another step."""
        self.most, self._before = max(self.most, self.number - self._before), self.number
        self.steps += 1

    def __exit__(self, *problem: object) -> None:
        sys.setprofile(self._outer)
        self.step()
