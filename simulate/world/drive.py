"""The clock of a simulated world: run it to its end, and call its policy at each instant.

Rule: the instants are those of `replay`: all ends, then all submissions, then one call. A job of zero run time ends at
the instant at which it starts, and another call follows.
With predicted run times, a running job that outlasts its expected end is an instant, too.
If deciding takes time, the decisions of a call at t that took d seconds are applied at t + d, after the ends and
submissions of that instant. Ends and submissions in between are shown at the next call, which then follows at once: a
policy is never called while it decides. If d is zero, or too small to change the clock, decisions are applied at t.
Source: thesis of Poquet (2017), 4.2, decisions applied at the end of the procedure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ..errors import ConfigError
from ..model.workload import LONGEST
from . import slices
from .replay_result import Replayed


class Loop(Protocol):
    """A world that calls a queue policy; `drive` runs it."""

    def next_time(self, before: float) -> float:
        """Return the time of the next event, inf if none is left; events after `before` need not be known.

        Wake-ups without remaining jobs are ignored.
        """
        ...

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        ...

    def has_changed(self) -> bool:
        """Return whether something happened since the last call that the policy must see."""
        ...

    #: Whether the last decisions ask for another call at this instant.
    again: bool

    def call_policy(self) -> list[Any]:
        """Call the policy and return its decisions. Raises PolicyError."""
        ...

    def apply(self, decisions: Iterable[Any], now: float) -> None:
        """Apply the decisions of the last call at this time. Raises PolicyError."""
        ...

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        ...


def drive(
    loop: Loop, replay_began: float, *, decision_time: float | None, clock: Callable[[], float],
    progress: Callable[[float], None],
) -> Replayed:  # fmt: skip
    """Run a world to its end. O(instants), plus the time of the world and of the policy.

    Args:
        loop: the world.
        replay_began: by the clock, seconds.
        decision_time: simulated seconds that each call takes, 0 or more; None: its duration by `clock`.
        clock: returns seconds.
        progress: called now and then with the simulated time.

    Raises:
        ConfigError: `decision_time` is out of range.
        PolicyError: the policy raised an exception, made an invalid decision, or left jobs waiting forever.
    """
    if decision_time is not None and not 0.0 <= decision_time <= LONGEST:
        raise ConfigError("decision_time", "", f"{decision_time:g}", f"seconds from 0 to {LONGEST:g}")
    instants, apply_at, decisions = 0, math.inf, list[Any]()
    size = slice_end = slices.FIRST
    slice_began = clock()
    while True:
        now = loop.next_time(apply_at)
        if now > apply_at:
            now = apply_at
        if now == math.inf:
            break
        if instants == slice_end:
            size, slice_began = slices.next_slice(size, clock() - slice_began), clock()
            slice_end += size
            progress(now)
        loop.advance_to(now)
        instants += 1
        if apply_at < math.inf:
            if now < apply_at:
                continue
            loop.apply(decisions, now)
            apply_at = math.inf
            if not loop.has_changed():
                continue
        began = clock() if decision_time is None else 0.0
        decisions = loop.call_policy()
        spent = clock() - began if decision_time is None else decision_time
        if now + spent > now:
            apply_at = now + spent
            continue
        if decisions:
            loop.apply(decisions, now)
        while loop.again:
            loop.apply(loop.call_policy(), now)
    return loop.result(instants, clock() - replay_began)
