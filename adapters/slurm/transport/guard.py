"""The transport to Slurm with a request budget and circuit breakers, the controller and accounting each by itself.

Rule: see `request_guard`. Requests for the usage of jobs have a breaker of their own: jobs with many steps make
accounting slow, which must not hide how jobs ended.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

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
        self.jobs = _through(guard.read, "jobs", inner.jobs)
        self.excluded = _through(guard.read, "excluded", inner.excluded)
        self.nodes = _through(guard.read, "nodes", inner.nodes)
        self.resized = _through(guard.read, "resized", inner.resized)
        self.partitions = _through(guard.read, "partitions", inner.partitions)
        self.reservations = _through(guard.read, "reservations", inner.reservations)
        self.limits = _through(guard.read, "limits", inner.limits)
        self.settings = _through(guard.read, "settings", inner.settings)
        self.activity = _through(guard.read, "activity", inner.activity)
        self.time = _through(guard.read, "time", inner.time)
        self.ended = _through(partial(guard.look_up, service="accounting"), "ended", inner.ended)
        self.usage = _through(partial(guard.look_up_late, service="usage", also="accounting"), "usage", inner.usage)
        self.update = _through(guard.write, "update", inner.update)
        self.submit = _through(guard.write, "submit", inner.submit)
        self.cancel = _through(guard.write, "cancel", inner.cancel)
        self.switch = _through(guard.write, "switch", inner.switch)


def _through(
    how: Callable[[str, Callable[[], Result]], Result], call: str, ask: Callable[Parameters, Result]
) -> Callable[Parameters, Result]:
    """Return the request `ask` as it is sent through `how`, under the name `call`."""

    def asked(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        return how(call, lambda: ask(*args, **options))

    return asked
