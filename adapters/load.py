"""What an adapter has asked of its resource manager: counted where it happens, shown by whoever exports it.

Rule: plain values, copied when they are asked for; reading them asks nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class BreakerState(StrEnum):
    """Of a circuit breaker: CLOSED lets all pass, OPEN nothing, HALF_OPEN one request that tries."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True)
class Load:
    """Counts since the start.

    Args:
        requests: how many, by call and outcome: `ok`, or the kind of the AdapterError (`open` and `budget`: not sent).
        seconds: how many of a call were sent, and for how many seconds answers were waited for, by call.
        breakers: by the name of the service that is asked.
        budget_left: requests that may be sent now without a pause.
    """

    requests: Mapping[tuple[str, str], int] = field(default_factory=dict)
    seconds: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    breakers: Mapping[str, BreakerState] = field(default_factory=dict)
    budget_left: float = 0.0
