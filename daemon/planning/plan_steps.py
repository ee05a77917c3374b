"""The steps of a plan: how long clients had to wait between two moments at which they could be answered.

Rule: pilotfish's own policies make no step of more than about 0.2 s. A policy of a site cannot be cut: if a step takes
longer than LONG_S, the log names the policy and the seconds, at most once in WARN_S seconds for each policy.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ...formats.text import seconds

log = logging.getLogger("pilotfish.cycle")
#: Longest step that is not worth a warning, and the time between two warnings about one policy, seconds.
LONG_S, WARN_S = 0.5, 600.0
#: Jobs that are looked at between two breaths.
STEP_JOBS = 4096
Item = TypeVar("Item")


def in_steps(items: Iterable[Item], breathe: Callable[[], None]) -> Iterator[Item]:
    """Yield the items, and call `breathe` before each STEP_JOBS of them."""
    for number, item in enumerate(items):
        if number % STEP_JOBS == 0:
            breathe()
        yield item


class PlanSteps:
    """Measures the steps of a plan; a call ends a step, answers clients, and begins the next one.

    Args:
        breathe: answers clients.
        clock: seconds, monotonic.
    """

    def __init__(self, breathe: Callable[[], None], clock: Callable[[], float]) -> None:
        self._breathe, self._clock, self._began = breathe, clock, math.inf
        self.longest_s = 0.0  #: of the present or last plan
        self._warned: dict[str, float] = {}

    def begin(self) -> None:
        """Begin a plan."""
        self.longest_s, self._began = 0.0, self._clock()

    def __call__(self) -> None:
        """Answer clients between two steps."""
        self._end_step()
        self._breathe()
        self._began = self._clock()

    def end(self, policy: str) -> float:
        """End the plan of a policy, and return its longest step, seconds; warn if that is long."""
        self._end_step()
        self._began, now = math.inf, self._clock()
        if self.longest_s > LONG_S and now >= self._warned.get(policy, -math.inf) + WARN_S:
            self._warned[policy] = now
            log.warning(
                "policy %s kept clients waiting for %s, for example by one long call of `decide`",
                policy, seconds(self.longest_s, 1),
            )  # fmt: skip
        return self.longest_s

    def _end_step(self) -> None:
        self.longest_s = max(self.longest_s, self._clock() - self._began)
