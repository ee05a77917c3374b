"""Time of the next cycle: when there is a reason to look; without counts of what happens, at a fixed cadence.

Rule: times are seconds of one monotonic clock. `every_s` is the fastest cadence. Where the resource manager counts what
happens (`Activity`), only the counts are read at that cadence, half as often while they rest, and every IDLE_COUNT_S
while nothing is handed over. A cycle follows as soon as

- the counts have moved, and a few times after that (FOLLOW_S): Slurm frees nodes and dependencies a little later;
- an event was heard (LOOKS_S), or the daemon itself has something new to plan;
- a time comes at which something changes by itself, or an action is unsettled;
- `longest_s` have passed, ten times as many while nothing is handed over: not everything is counted.

Looking takes at most a share of the time: LARGEST_SHARE after events (but the first look after a while is at once),
POLL_SHARE at the cadence, unless LONGEST_REST_S have passed. While nothing is handed over it is IDLE_SHARE, unless
`longest_s` have passed; the share is kept over `longest_s`, so that the first look after a quiet time is at once.
A user who asks a question is answered after a look wherever the daemon would look if jobs were handed over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...adapters.base import Activity

#: Least seconds between the starts of two cycles.
LEAST_GAP_S = 0.02
#: Seconds from an event to the looks at what it was: Slurm reports the end of a job on one node 30 to 100 ms before the
#: node is free (measured, 22.05), and that of a cancelled job on several nodes seconds before.
LOOKS_S = (0.05, 0.3, 1.0, 3.0, 10.0)
#: Seconds from counts that moved to the looks after the first one.
FOLLOW_S = (1.0, 3.0, 10.0)
LARGEST_SHARE, POLL_SHARE, IDLE_SHARE = 0.25, 0.125, 0.01
#: The cycle before does not put off the look at an event once in so many seconds, and in so many times its length.
PROMPT_EVERY_S, PROMPT_EVERY = 1.0, 8.0
#: Longest pause, seconds, that a costly look makes necessary.
LONGEST_REST_S = 10.0
#: Seconds between two counts while nothing happens, and while nothing is handed over.
QUIET_COUNT_S, IDLE_COUNT_S = 2.0, 12.0
#: Seconds for which counts that moved, or a forecast end that is near, make the counts worth reading at the cadence.
LIVELY_S, NEAR_S = 30.0, 10.0
#: Least age of a look that nodes which reported make old, seconds: nodes also report when nothing has happened.
NODES_S = 10.0
#: While nothing is handed over, a whole look is so much rarer.
IDLE_FACTOR = 10.0


@dataclass(frozen=True, slots=True)
class Need:
    """The changes that a cycle leaves to look for.

    Args:
        idle: nothing is handed over, and no job of ours waits or runs.
        unsettled: the outcome of an action is open, or cannot be written.
        change_s: seconds until something changes by itself; may be negative.
        end_s: seconds until the next forecast end of a job.
    """

    idle: bool = False
    unsettled: bool = False
    change_s: float = math.inf
    end_s: float = math.inf


class Cadence:
    """Says when the next cycle is due, and when to read the counts.

    Args:
        every_s: least seconds between two cycles that no event causes, and between two readings of the counts.
        longest_s: most seconds between two cycles while jobs are handed over.
    """

    def __init__(self, every_s: float, longest_s: float = 30.0) -> None:
        self.every_s, self.longest_s = every_s, longest_s
        self._began, self._gap_s, self._look_s = -math.inf, LEAST_GAP_S, 0.0
        self._rested_at = -math.inf  # when all looks so far have taken IDLE_SHARE of the time
        self._prompt_at = self._again_at = -math.inf
        self._looks: list[float] = []
        self._follow: list[float] = []
        self._need, self._change_at, self._end_at = Need(), math.inf, math.inf
        self._counts: Activity | None = None  # the last ones, and those before the last look
        self._looked_at: Activity | None = None
        self._counted_at, self._moved_at = -math.inf, -math.inf

    def fail(self, now: float, again_s: float) -> None:
        """Note that the cycle failed: the next one is due in so many seconds, at the cadence at most."""
        self._again_at = now + max(again_s, self.every_s)

    def begin(self, now: float) -> None:
        """Note the start of a cycle."""
        self._again_at = -math.inf
        self._began, self._looked_at = now, self._counts
        self._looks = [look for look in self._looks if look > now]
        self._follow = [look for look in self._follow if look > now]

    def end(self, now: float, need: Need = Need(), look_s: float = 0.0) -> None:
        """Note the end of a cycle.

        Args:
            now: when it ended.
            need: what it leaves to look for.
            look_s: how long it looked, without planning and acting, seconds.
        """
        self._gap_s, self._look_s = max(LEAST_GAP_S, (now - self._began) / LARGEST_SHARE), look_s
        self._need, self._change_at, self._end_at = need, now + need.change_s, now + need.end_s
        self._rested_at = max(self._rested_at, self._began) + min(look_s / IDLE_SHARE, self.longest_s)

    def hear(self, now: float) -> None:
        """Note that something has happened in the resource manager."""
        if now >= self._prompt_at:
            every_s = max(PROMPT_EVERY_S, PROMPT_EVERY * LARGEST_SHARE * self._gap_s)
            self._prompt_at, self._gap_s = now + every_s, LEAST_GAP_S
        self._looks = sorted([*self._looks[:1], *(now + after for after in LOOKS_S if after < self.every_s)])
        self._follow = [now + after for after in LOOKS_S if after >= self.every_s]

    def count(self, now: float, found: Activity | None) -> None:
        """Note the counts that were read; None: they are not known, so that each cycle looks."""
        before, self._counts, self._counted_at = self._counts, found, now
        if before is None or found is None or (found.arrivals, found.others) == (before.arrivals, before.others):
            return
        self._moved_at = now
        self._follow = [now + after for after in FOLLOW_S]

    def counts_serve(self, now: float) -> bool:
        """Return whether the counts are of just now, so that a cycle can begin without new ones."""
        return self._counts is not None and now - self._counted_at < self.every_s / 2

    def question_counts_due(self) -> float:
        """Return when the counts are too old for the answer to a question; inf while they are not known."""
        return math.inf if self._counts is None else self._counted_at + self.every_s

    def question_due(self) -> float:
        """Return from when on a question is answered only after another look."""
        return self._busy()

    def count_due(self) -> float:
        """Return when to read the counts again; inf while they are not known."""
        if self._counts is None:
            return math.inf
        fast = self._counted_at + self.every_s
        slow = max(fast, self._counted_at + (IDLE_COUNT_S if self._need.idle else QUIET_COUNT_S))
        if self._need.idle:
            return slow
        if self._counted_at - self._moved_at < LIVELY_S:
            return fast
        return min(slow, max(fast, self._end_at - NEAR_S)) if fast <= self._end_at + NEAR_S else slow

    def due(self, *, changed: bool) -> float:
        """Return when the next cycle is due; `changed`: the daemon itself has something new to plan."""
        if self._again_at > -math.inf:
            return self._again_at
        if changed:
            return self._began + LEAST_GAP_S
        look = max(self._looks[0], self._began + self._gap_s) if self._looks else math.inf
        return min(look, self._idle() if self._need.idle else self._busy())

    def _busy(self) -> float:
        soonest = self._began + max(self.every_s, min(self._look_s / POLL_SHARE, LONGEST_REST_S))
        if self._counts is None or self._looked_at is None or self._need.unsettled:
            return soonest
        if (self._counts.arrivals, self._counts.others) != (self._looked_at.arrivals, self._looked_at.others):
            return soonest
        look_at = min([self._began + self.longest_s, self._change_at, *self._follow[:1]])
        if self._counts.nodes != self._looked_at.nodes:
            look_at = min(look_at, self._began + NODES_S)
        return max(soonest, look_at)

    def _idle(self) -> float:
        soonest = max(self._began + self.every_s, self._rested_at - self.longest_s)
        if self._counts is None or self._looked_at is None:
            return max(soonest, self._began + IDLE_COUNT_S)
        if self._counts.arrivals != self._looked_at.arrivals:
            return soonest
        return max(soonest, self._began + IDLE_FACTOR * self.longest_s)
