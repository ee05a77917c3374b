"""The policy of a plan in which a lasting object decides the starts of now, and a forecast shows what comes later."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..queue_policies.interface import Decision, QueuePolicy, QueueView, Wake

#: When the forecast begins to start what is not started now, seconds.
LATER_S = 1.0


class NowAndLater:
    """The policy of one plan: the first call is answered by an object that lives on, all later ones by a forecast.

    Args:
        first: answers the first call.
        later: the policy that forecasts.
    """

    def __init__(self, first: Callable[[QueueView], Iterator[Decision]], later: QueuePolicy) -> None:
        self._first: Callable[[QueueView], Iterator[Decision]] | None = first
        self._later = later

    @property
    def compared(self) -> int:
        """Comparisons that the forecast has made, see `ConservativeBackfilling`."""
        return getattr(self._later, "compared", 0)

    def decide(self, now: QueueView) -> Iterator[Decision]:
        """Yield what is decided at this time of the plan."""
        first, self._first = self._first, None
        if first is not None and now.time <= 0.0:
            yield from first(now)
            yield Wake(now.time + LATER_S)
        elif now.time >= LATER_S:
            yield from self._later.decide(now) or ()
