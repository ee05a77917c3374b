"""The periodic calls that a decision component of protocol 5 has asked for.

Rule: the calls come at the multiples of their period, as in Batsim.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...formats.batsim.messages import CallMeLater, RequestedCall, StopCalls
from ...formats.documents.document_errors import bad

#: Times that differ by less are the same, seconds.
SAME_S = 1e-6


class PeriodicCalls:
    """The calls that go on, by id."""

    def __init__(self) -> None:
        self._calls: dict[str, CallMeLater] = {}

    def begin(self, given: CallMeLater, now: float) -> float:
        """Return when a call comes first. Raises ConfigError: its id is in use."""
        assert given.call_id is not None, "it is periodic"
        if given.call_id in self._calls:
            raise bad(f"call {given.call_id!r:.60} is periodic already", "new ids, or StopCallMeLaterEvent first")
        return self._next(given, now)

    def _next(self, call: CallMeLater, now: float) -> float:
        assert call.call_id is not None and call.period_s is not None, "it is periodic"
        self._calls[call.call_id] = call
        return (math.floor((now + SAME_S) / call.period_s) + 1) * call.period_s

    def come(self, given: CallMeLater, now: float) -> tuple[RequestedCall, tuple[float, CallMeLater] | None] | None:
        """Return a call that is due, and the time and the form of its next one; None: it was stopped."""
        assert given.call_id is not None, "it is periodic"
        if self._calls.get(given.call_id) is not given:
            return None
        del self._calls[given.call_id]
        if given.times == 1:
            return RequestedCall(given.call_id, last=True), None
        following = given if given.times is None else replace(given, times=given.times - 1)
        return RequestedCall(given.call_id), (self._next(following, now), following)

    def stop(self, given: StopCalls) -> None:
        """Make no more calls of an id. Raises ConfigError: it has no calls."""
        if self._calls.pop(given.call_id, None) is None:
            raise bad(f"call {given.call_id!r:.60} is not periodic, or has ended", "calls that come again")
