"""When the next look at a node is paid for: pure arithmetic, no clock.

Rule: a look that took c seconds of CPU is followed by c / share seconds of rest, so that over any time all looks but
the last took at most that share of one core. Who looks at several jobs of a node has one pace for all of them.
"""

from __future__ import annotations

#: Of one core, for all looks at a node.
SHARE = 0.005


class Pace:
    """From when on a look is paid for.

    Args:
        share: of one core that looks may take, > 0.
    """

    def __init__(self, share: float = SHARE) -> None:
        self.share, self.due = share, float("-inf")

    def pay(self, cost_s: float, now: float) -> float:
        """Take a look's CPU seconds into account, made up to `now` (seconds of any clock); return when the next is due.

        A negative cost gives back what was paid for too much.
        """
        self.due = max(self.due, now) + cost_s / self.share
        return self.due
