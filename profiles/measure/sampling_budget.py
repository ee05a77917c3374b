"""Budget of sampling, which gives the time of a node's next sample: pure arithmetic, no clock.

Rule: a sample that took c seconds of CPU is followed by c / share seconds of pause, so that over any time all samples
but the last use at most that share of one core. All samples of a node share one budget.
"""

from __future__ import annotations

#: Share of one core for all samples of a node.
SHARE = 0.005


class SamplingBudget:
    """The time from which the next sample is affordable.

    Args:
        share: of one core that samples may use, > 0.
    """

    def __init__(self, share: float = SHARE) -> None:
        self.share, self.due = share, float("-inf")

    def charge(self, cost_s: float, now: float) -> float:
        """Charge a sample and return the time of the next one.

        Args:
            cost_s: its CPU seconds; a negative cost returns an overcharge.
            now: seconds of any clock.
        """
        self.due = max(self.due, now) + cost_s / self.share
        return self.due
