"""The transport to Slurm with a request budget and circuit breakers, the controller and accounting each by itself.

Rule: see `request_guard`. Requests for the usage of jobs have a breaker of their own: jobs with many steps make
accounting slow, which must not hide how jobs ended.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar, cast

from ...request_guard import RequestGuard
from .command_transport import Transport

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
#: The services; that of `usage` is no service of its own in the metrics.
SERVICES = (("controller", "the controller"), ("accounting", "accounting"), ("usage", ""))


class GuardedTransport:
    """The transport `inner` with a budget and breakers.

    Args:
        inner: Transport that sends the requests.
        per_minute: Requests per minute.
        sleep: Sleeps for so many seconds; `clock` and `draw` are those of `Breaker`.
    """

    def __init__(
        self,
        inner: Transport,
        per_minute: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        guard = RequestGuard(per_minute, SERVICES, clock=clock, draw=draw, sleep=sleep)
        self.notes: Sequence[str] = inner.notes
        self.load, self.close = guard.load, inner.close
        self.may_ask_aside, self.note_aside = guard.may_ask_aside, guard.note_aside
        self.jobs = _through(guard.read, inner.jobs, "jobs")
        self.excluded = _through(guard.read, inner.excluded, "excluded")
        self.nodes = _through(guard.read, inner.nodes, "nodes")
        self.resized = _through(guard.read, inner.resized, "resized")
        self.partitions = _through(guard.read, inner.partitions, "partitions")
        self.reservations = _through(guard.read, inner.reservations, "reservations")
        self.limits = _through(guard.read, inner.limits, "limits")
        self.settings = _through(guard.read, inner.settings, "settings")
        self.activity = _through(guard.read, inner.activity, "activity")
        self.time = _through(guard.read, inner.time, "time")
        self.ended = _through(guard.look_up, inner.ended, "accounting", "ended")
        self.usage = _through(guard.look_up_late, inner.usage, "usage", "accounting", "usage")
        self.update = _through(guard.write, inner.update, "update")
        self.submit = _through(guard.write, inner.submit, "submit")
        self.cancel = _through(guard.write, inner.cancel, "cancel")
        self.switch = _through(guard.write, inner.switch, "switch")


def _through(
    how: Callable[..., Result], ask: Callable[Parameters, Result], *words: str
) -> Callable[Parameters, Result]:
    """Return the request `ask` as it is sent through a method of the guard, to which `words` are given first."""
    return cast("Callable[Parameters, Result]", partial(how, *words, ask))
