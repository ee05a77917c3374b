"""A request budget and circuit breakers for the requests to a resource manager.

Rule: a service that does not answer is not asked for a while; each service has its own breaker. Only reads test whether
it is back, and only a read that failed at once is repeated, once; a change is never sent twice. Above the budget a read
waits for its turn and a change is put off; the last part of the budget is for reads only. Everything is pure except for
the clock and the random numbers.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import stamina

from .base import AdapterError, BreakerState, Load

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
        """State of the breaker, which decides which requests pass now."""
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


class RequestBudget:
    """Budget of so many requests per minute; unused ones are kept for at most a minute. `clock`: see `Breaker`."""

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._capacity, self._clock = float(per_minute), clock
        self._remaining, self._at = self._capacity, clock()

    @property
    def left(self) -> float:
        """Requests that may be sent now."""
        return min(self._capacity, self._remaining + (self._clock() - self._at) * self._capacity / 60.0)

    def pause_s(self, *, read: bool) -> float:
        """Return the seconds until one more request may be sent; 0 if it may now."""
        floor = 0.0 if read else KEPT_FOR_READS * self._capacity
        return max(0.0, floor + 1.0 - self.left) * 60.0 / self._capacity

    def spend(self) -> None:
        """Note a request."""
        self._remaining, self._at = self.left - 1.0, self._clock()


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
#: Seconds within which a failure is worth a retry, and the longest wait before it.
AT_ONCE_S, AGAIN_S = 1.0, 0.3
logging.getLogger("stamina").setLevel(logging.ERROR)  # a retry is counted, not logged


class RequestGuard:
    """Sends requests within a budget and past breakers, and counts them.

    Each method calls the function `ask` with the arguments that follow it, under the name `call` in the counts.

    Args:
        per_minute: Requests per minute.
        services: Their names in the metrics, and for people; the first is the one that changes are sent to.
        sleep: Sleeps for so many seconds; `clock` and `draw` are those of `Breaker`.
    """

    def __init__(
        self,
        per_minute: float,
        services: Sequence[tuple[str, str]],
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._budget = RequestBudget(per_minute, clock)
        self._breakers = {name: Breaker(clock, draw) for name, _ in services}
        self._service_names = dict(services)
        self._main = services[0][0]
        self._requests: dict[tuple[str, str], int] = {}
        self._seconds: dict[str, tuple[int, float]] = {}

    def load(self) -> Load:
        """Return the requests so far. Safe to call from any thread."""
        states = {name: breaker.state for name, breaker in self._breakers.items() if self._service_names[name]}
        return Load(self._requests.copy(), self._seconds.copy(), states, max(0.0, self._budget.left))

    def read(
        self, call: str, ask: Callable[Parameters, Result], *args: Parameters.args, **options: Parameters.kwargs
    ) -> Result:
        """Read; after a failure at once, read once more."""
        began = self._clock()

        def worth_it(error: Exception) -> bool:
            quick = self._clock() - began < AT_ONCE_S and self._breakers[self._main].state is BreakerState.CLOSED
            return isinstance(error, AdapterError) and error.transient and quick

        tries = stamina.retry_context(on=worth_it, attempts=2, wait_initial=AGAIN_S / 3, wait_jitter=AGAIN_S / 3)
        for attempt in tries:
            with attempt:
                return self._send(call, self._main, ask, *args, **options)
        raise AssertionError("there is always a first try")

    def look_up(
        self, service: str, call: str, ask: Callable[Parameters, Result],
        *args: Parameters.args, **options: Parameters.kwargs,
    ) -> Result:  # fmt: skip
        """Read from another service, without a retry: the caller asks again for what is missing."""
        return self._send(call, service, ask, *args, **options)

    def look_up_late(
        self, service: str, also: str, call: str, ask: Callable[Parameters, Result],
        *args: Parameters.args, **options: Parameters.kwargs,
    ) -> Result:  # fmt: skip
        """Read what can wait: without a retry, within the budget of changes, and while the service `also` answers."""
        self._check(call, also)
        self._spare(call)
        return self._send(call, service, ask, *args, **options)

    def write(
        self, call: str, ask: Callable[Parameters, Result], *args: Parameters.args, **options: Parameters.kwargs
    ) -> Result:
        """Change something: once, and only while the main service answers."""
        self._check(call, self._main, BreakerState.OPEN, BreakerState.HALF_OPEN)
        self._spare(call)
        return self._send(call, self._main, ask, *args, **options)

    def may_ask_aside(self) -> bool:
        """Return whether a question that can wait may be sent now, for which its caller does not wait; count it if so.

        No breaker learns from its answer, because the answer depends on the question and not only on the service.
        """
        allowed = self._breakers[self._main].state is BreakerState.CLOSED and not self._budget.pause_s(read=False)
        if allowed:
            self._budget.spend()
        return allowed

    def note_aside(self, call: str, outcome: str, seconds: float) -> None:
        """Count the answer to such a question.

        Args:
            call: Name of the request.
            outcome: `ok`, or the kind of an AdapterError.
            seconds: Time until the answer, seconds.
        """
        self._count(call, outcome)
        number, total = self._seconds.get(call, (0, 0.0))
        self._seconds[call] = (number + 1, total + seconds)

    def _check(self, call: str, service: str, *closed: BreakerState) -> None:
        """Raise AdapterError if the breaker is OPEN, or in one of these states."""
        breaker = self._breakers[service]
        if breaker.state in (closed or (BreakerState.OPEN,)):
            since = f"has not been asked for {breaker.open_s:.0f} s, and " if breaker.open_s >= 1.0 else ""
            retry = f"is asked again in {max(1.0, breaker.left_s):.0f} s, because it failed: {breaker.why}"
            raise self._not_sent(call, "open", f"{self._service_names[service]} {since}{retry}", breaker.left_s)

    def _spare(self, call: str) -> None:
        """Raise AdapterError if the rest of the budget is reserved for reads."""
        if pause := self._budget.pause_s(read=False):
            raise self._not_sent(call, "budget", f"the request budget is used up for the next {pause:.1f} s", pause)

    def _send(
        self, call: str, service: str, ask: Callable[Parameters, Result],
        *args: Parameters.args, **options: Parameters.kwargs,
    ) -> Result:  # fmt: skip
        """Send one request. Raises AdapterError: `open` if it must not be sent now, otherwise as `ask` does."""
        self._check(call, service)
        if pause := self._budget.pause_s(read=True):
            self._sleep(pause)
        self._budget.spend()
        breaker, began, outcome = self._breakers[service], self._clock(), "ok"
        try:
            result = ask(*args, **options)
        except AdapterError as error:
            outcome, seconds = error.kind, self._clock() - began
            breaker.failed(seconds, str(error)) if error.transient else breaker.answered(seconds)
            error.again_s = breaker.left_s
            raise
        else:
            breaker.answered(self._clock() - began)
            return result
        finally:
            self.note_aside(call, outcome, self._clock() - began)

    def _not_sent(self, call: str, kind: str, why: str, again_s: float) -> AdapterError:
        self._count(call, kind)
        error = AdapterError(f"{call}: {why}", transient=True, kind=kind)
        error.again_s = again_s
        return error

    def _count(self, call: str, outcome: str) -> None:
        self._requests[call, outcome] = self._requests.get((call, outcome), 0) + 1
