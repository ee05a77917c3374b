"""A transport that is sparing with Slurm: requests are counted, kept within a budget, and held back from who is ill.

Rule: whoever does not answer is not asked for a while (see `breaker`), the controller and accounting each by itself.
Only reads try whether it is back, and only a read that failed at once is repeated, once; a change is never sent twice.
Above the budget a read waits for its turn, a change is put off.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import stamina

from ..base import AdapterError
from ..load import BreakerState, Load
from .books import Entry
from .breaker import Breaker
from .budget import Budget
from .limits import Limits
from .partitions import Partition
from .records import SlurmJob, SlurmNode
from .reservations import Reservation
from .settings import Settings
from .transport import Transport

Result = TypeVar("Result")
#: seconds within which a failure is worth another try, and the longest wait before that
AT_ONCE_S, AGAIN_S = 1.0, 0.3
logging.getLogger("stamina").setLevel(logging.ERROR)  # a second try is counted, and not worth a line


class Guarded:
    """The transport `inner`, spared.

    Args:
        per_minute: requests in a minute.
        clock: seconds, monotonic.
        draw: a number from [0, 1).
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
        self._inner, self._clock, self._sleep = inner, clock, sleep
        self.notes: Sequence[str] = inner.notes
        self._budget = Budget(per_minute, clock)
        self._controller, self._accounting = Breaker(clock, draw), Breaker(clock, draw)
        self._books = Breaker(clock, draw)
        self._breakers = {"controller": self._controller, "accounting": self._accounting}
        self._requests: dict[tuple[str, str], int] = {}
        self._seconds: dict[str, tuple[int, float]] = {}

    def load(self) -> Load:
        """What was asked so far; any thread may ask."""
        states = {name: breaker.state for name, breaker in self._breakers.items()}
        return Load(self._requests.copy(), self._seconds.copy(), states, max(0.0, self._budget.left))

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        """As `inner`."""
        some = list(ids)
        return self._read("jobs", lambda: self._inner.jobs(some))

    def excluded(self) -> dict[int, tuple[str, ...]]:
        """As `inner`."""
        return self._read("excluded", self._inner.excluded)

    def nodes(self) -> list[SlurmNode]:
        """As `inner`."""
        return self._read("nodes", self._inner.nodes)

    def partitions(self) -> dict[str, Partition]:
        """As `inner`."""
        return self._read("partitions", self._inner.partitions)

    def reservations(self) -> list[Reservation]:
        """As `inner`."""
        return self._read("reservations", self._inner.reservations)

    def limits(self) -> Limits:
        """As `inner`."""
        return self._read("limits", self._inner.limits)

    def settings(self) -> Settings:
        """As `inner`."""
        return self._read("settings", self._inner.settings)

    def time(self) -> float:
        """As `inner`."""
        return self._read("time", self._inner.time)

    def ended(self, ids: Iterable[int]) -> list[SlurmJob]:
        """As `inner`, once: who follows missing jobs asks again."""
        return self._send("ended", self._accounting, lambda: self._inner.ended(ids))

    def ended_as(self, names: Iterable[str], uid: int, since: float) -> list[SlurmJob]:
        """As `inner`, once."""
        return self._send("ended", self._accounting, lambda: self._inner.ended_as(names, uid, since))

    def books(self, which: Sequence[str]) -> list[Entry]:
        """As `inner`, once, and with requests to spare only: it can wait.

        What is slow because jobs had many steps must not hide how jobs ended: it has a breaker of its own.
        """
        if self._accounting.state is BreakerState.OPEN:
            raise self._not_sent("books", "open", self._closed_to("accounting", self._accounting))
        self._spare("books")
        return self._send("books", self._books, lambda: self._inner.books(which))

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """As `inner`, once."""
        self._write("update", lambda: self._inner.update(job, fields))

    def submit(self, argv: Sequence[str]) -> int:
        """As `inner`, once."""
        return self._write("submit", lambda: self._inner.submit(argv))

    def cancel(self, job: int) -> None:
        """As `inner`, once."""
        self._write("cancel", lambda: self._inner.cancel(job))

    def power_off(self, nodes: Sequence[str]) -> None:
        """As `inner`, once."""
        self._write("power_off", lambda: self._inner.power_off(nodes))

    def close(self) -> None:
        """As `inner`."""
        self._inner.close()

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

    def _write(self, call: str, ask: Callable[[], Result]) -> Result:
        if self._controller.state is not BreakerState.CLOSED:
            raise self._not_sent(call, "open", self._closed_to("the controller", self._controller))
        self._spare(call)
        return self._send(call, self._controller, ask)

    def _spare(self, call: str) -> None:
        """Raise AdapterError where what is left of the budget is for looking at the world."""
        if pause := self._budget.pause_s(read=False):
            raise self._not_sent(call, "budget", f"the budget of requests is used up for the next {pause:.1f} s")

    def _send(self, call: str, breaker: Breaker, ask: Callable[[], Result]) -> Result:
        """Send one request. Raises AdapterError: `open` if it must not be sent now, or as `ask` does."""
        if breaker.state is BreakerState.OPEN:
            who = "the controller" if breaker is self._controller else "accounting"
            raise self._not_sent(call, "open", self._closed_to(who, breaker))
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

    def _closed_to(self, who: str, breaker: Breaker) -> str:
        return (
            f"{who} has not been asked for {breaker.open_s:.0f} s, and will be in {breaker.left_s:.0f} s, "
            f"because: {breaker.why}"
        )

    def _count(self, call: str, outcome: str) -> None:
        self._requests[call, outcome] = self._requests.get((call, outcome), 0) + 1
