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

    def begin(self, call: CallMeLater, now: float) -> float:
        """Return when a call comes first. Raises ConfigError: its id is in use."""
        assert call.call_id is not None, "it is periodic"
        if call.call_id in self._calls:
            raise bad(f"call {call.call_id!r:.60} is periodic already", "new ids, or StopCallMeLaterEvent first")
        return self._next(call, now)

    def _next(self, call: CallMeLater, now: float) -> float:
        assert call.call_id is not None and call.period_s is not None, "it is periodic"
        self._calls[call.call_id] = call
        return (math.floor((now + SAME_S) / call.period_s) + 1) * call.period_s

    def come(self, call: CallMeLater, now: float) -> tuple[RequestedCall, tuple[float, CallMeLater] | None] | None:
        """Return a call that is due, and the time and the form of its next one; None: it was stopped."""
        assert call.call_id is not None, "it is periodic"
        if self._calls.get(call.call_id) is not call:
            return None
        del self._calls[call.call_id]
        if call.times == 1:
            return RequestedCall(call.call_id, last=True), None
        following = call if call.times is None else replace(call, times=call.times - 1)
        return RequestedCall(call.call_id), (self._next(following, now), following)

    def stop(self, call: StopCalls) -> None:
        """Make no more calls of an id. Raises ConfigError: it has no calls."""
        if self._calls.pop(call.call_id, None) is None:
            raise bad(f"call {call.call_id!r:.60} is not periodic, or has ended", "calls that come again")
