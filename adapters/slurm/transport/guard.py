"""Transport with a request budget and circuit breakers.

Rule: a service that does not answer is not asked for a while, the controller and accounting each by itself. Only reads
test whether it is back, and only a read that failed at once is repeated, once; a change is never sent twice. Above the
budget a read waits for its turn and a change is put off; the last part of the budget is for reads only. All is pure but
for its clock and its random numbers.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import stamina

from ...base import AdapterError, BreakerState, Load
from .command_transport import Transport

#: Bad answers in a row that open a breaker.
TRIPS = 3
#: Seconds after which an answer is late.
LATE_S = 5.0
#: Shortest and longest pause, seconds; each is drawn from its upper half, so that the daemons of a site do not
#: all return at once.
FIRST_S, LONGEST_S = 2.0, 60.0


class Breaker:
    """Circuit breaker of one service.

    It opens after TRIPS answers in a row that were late or missing, or after one wait in vain. Then a single request
    tries, after a pause that doubles up to LONGEST_S, and an answer closes it. A late answer is an answer: if all are
    late, requests pass in short bursts with growing pauses.

    Args:
        clock: Monotonic clock, seconds.
        draw: Returns a random number in [0, 1).
    """

    def __init__(self, clock: Callable[[], float], draw: Callable[[], float] = random.random) -> None:
        self._clock, self._draw = clock, draw
        self._bad, self._pauses, self._since = 0, 0, 0.0
        self._until: float | None = None
        self.why = ""

    @property
    def state(self) -> BreakerState:
        """What it lets pass now."""
        if self._until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._clock() < self._until else BreakerState.HALF_OPEN

    @property
    def open_s(self) -> float:
        """Seconds since it opened; 0 while it is closed."""
        return 0.0 if self._until is None else self._clock() - self._since

    @property
    def left_s(self) -> float:
        """Seconds until a request may try; 0 if one may now."""
        return 0.0 if self._until is None else max(0.0, self._until - self._clock())

    def answered(self, seconds: float) -> None:
        """Note an answer, possibly a refusal, after so many seconds."""
        self._until = None
        if seconds <= LATE_S:
            self._bad = self._pauses = 0
        else:
            self._count(f"an answer took {seconds:.0f} s")

    def failed(self, seconds: float, why: str) -> None:
        """Note a missing answer after so many seconds of waiting."""
        if seconds > LATE_S or self._until is not None:
            self._open(why)
        else:
            self._count(why)

    def _count(self, why: str) -> None:
        self._bad += 1
        if self._bad >= TRIPS:
            self._open(why)

    def _open(self, why: str) -> None:
        now = self._clock()
        pause = min(FIRST_S * 2.0 ** min(self._pauses, 16), LONGEST_S) * (0.5 + self._draw() / 2)
        self._since = now if self._until is None else self._since
        self._until, self._bad, self.why = now + pause, 0, why
        self._pauses += 1


#: Share of a minute's requests that changes leave for reads.
KEPT_FOR_READS = 0.1


class Budget:
    """Budget of so many requests per minute; unused ones are kept for at most a minute. `clock`: see `Breaker`."""

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._most, self._clock = float(per_minute), clock
        self._left, self._at = self._most, clock()

    @property
    def left(self) -> float:
        """Requests that may be sent now."""
        return min(self._most, self._left + (self._clock() - self._at) * self._most / 60.0)

    def pause_s(self, *, read: bool) -> float:
        """Return the seconds until one more request may be sent; 0 if it may now."""
        floor = 0.0 if read else KEPT_FOR_READS * self._most
        return max(0.0, floor + 1.0 - self.left) * 60.0 / self._most

    def spend(self) -> None:
        """Note a request."""
        self._left, self._at = self.left - 1.0, self._clock()


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
#: Seconds within which a failure is worth a retry, and the longest wait before it.
AT_ONCE_S, AGAIN_S = 1.0, 0.3
logging.getLogger("stamina").setLevel(logging.ERROR)  # a retry is counted, not logged


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
        self._clock, self._sleep = clock, sleep
        self.notes: Sequence[str] = inner.notes
        self._budget = Budget(per_minute, clock)
        self._controller, self._accounting = Breaker(clock, draw), Breaker(clock, draw)
        self._usage = Breaker(clock, draw)
        self._breakers = {"controller": self._controller, "accounting": self._accounting}
        self._requests: dict[tuple[str, str], int] = {}
        self._seconds: dict[str, tuple[int, float]] = {}
        self.jobs = _through(self._read, "jobs", inner.jobs)
        self.excluded = _through(self._read, "excluded", inner.excluded)
        self.nodes = _through(self._read, "nodes", inner.nodes)
        self.resized = _through(self._read, "resized", inner.resized)
        self.partitions = _through(self._read, "partitions", inner.partitions)
        self.reservations = _through(self._read, "reservations", inner.reservations)
        self.limits = _through(self._read, "limits", inner.limits)
        self.settings = _through(self._read, "settings", inner.settings)
        self.activity = _through(self._read, "activity", inner.activity)
        self.time, self.close = _through(self._read, "time", inner.time), inner.close
        self.ended = _through(self._look_up, "ended", inner.ended)
        self.usage = _through(self._look_up_usage, "usage", inner.usage)
        self.update = _through(self._write, "update", inner.update)
        self.submit = _through(self._write, "submit", inner.submit)
        self.cancel = _through(self._write, "cancel", inner.cancel)
        self.power_off = _through(self._write, "power_off", inner.power_off)

    def load(self) -> Load:
        """Return the requests so far. Safe to call from any thread."""
        states = {name: breaker.state for name, breaker in self._breakers.items()}
        return Load(self._requests.copy(), self._seconds.copy(), states, max(0.0, self._budget.left))

    def _read(self, call: str, ask: Callable[[], Result]) -> Result:
        began = self._clock()

        def worth_it(error: Exception) -> bool:
            quick = self._clock() - began < AT_ONCE_S and self._controller.state is BreakerState.CLOSED
            return isinstance(error, AdapterError) and error.transient and quick

        tries = stamina.retry_context(on=worth_it, attempts=2, wait_initial=AGAIN_S / 3, wait_jitter=AGAIN_S / 3)
        for attempt in tries:
            with attempt:
                return self._send(call, self._controller, ask)
        raise AssertionError("there is always a first try")

    def _look_up(self, call: str, ask: Callable[[], Result]) -> Result:
        """Ask accounting, without a retry: the caller asks again for missing jobs."""
        return self._send(call, self._accounting, ask)

    def _look_up_usage(self, call: str, ask: Callable[[], Result]) -> Result:
        """Ask accounting for usage, without a retry, and only within the budget of changes: it can wait.

        Jobs with many steps make it slow; it has its own breaker, so that this does not hide how jobs ended.
        """
        self._check(call, self._accounting)
        self._spare(call)
        return self._send(call, self._usage, ask)

    def _write(self, call: str, ask: Callable[[], Result]) -> Result:
        self._check(call, self._controller, BreakerState.OPEN, BreakerState.HALF_OPEN)
        self._spare(call)
        return self._send(call, self._controller, ask)

    def _check(self, call: str, breaker: Breaker, *closed: BreakerState) -> None:
        """Raise AdapterError if the breaker is OPEN, or in one of these states."""
        if breaker.state in (closed or (BreakerState.OPEN,)):
            who = "the controller" if breaker is self._controller else "accounting"
            since = f"{who} has been left alone for {breaker.open_s:.0f} s and will be tried in {breaker.left_s:.0f} s"
            raise self._not_sent(call, "open", f"{since}, because: {breaker.why}")

    def _spare(self, call: str) -> None:
        """Raise AdapterError if the rest of the budget is reserved for reads."""
        if pause := self._budget.pause_s(read=False):
            raise self._not_sent(call, "budget", f"the request budget is used up for the next {pause:.1f} s")

    def _send(self, call: str, breaker: Breaker, ask: Callable[[], Result]) -> Result:
        """Send one request. Raises AdapterError: `open` if it must not be sent now, otherwise as `ask` does."""
        self._check(call, breaker)
        if pause := self._budget.pause_s(read=True):
            self._sleep(pause)
        self._budget.spend()
        began, outcome = self._clock(), "ok"
        try:
            result = ask()
        except AdapterError as error:
            outcome, seconds = error.kind, self._clock() - began
            breaker.failed(seconds, str(error)) if error.transient else breaker.answered(seconds)
            raise
        else:
            breaker.answered(self._clock() - began)
            return result
        finally:
            self._count(call, outcome)
            many, total = self._seconds.get(call, (0, 0.0))
            self._seconds[call] = (many + 1, total + self._clock() - began)

    def _not_sent(self, call: str, kind: str, why: str) -> AdapterError:
        self._count(call, kind)
        return AdapterError(f"{call}: {why}", transient=True, kind=kind)

    def _count(self, call: str, outcome: str) -> None:
        self._requests[call, outcome] = self._requests.get((call, outcome), 0) + 1


def _through(
    how: Callable[[str, Callable[[], Result]], Result], call: str, ask: Callable[Parameters, Result]
) -> Callable[Parameters, Result]:
    """Return the request `ask` as it is sent through `how`, under the name `call`."""

    def asked(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        return how(call, lambda: ask(*args, **options))

    return asked
