"""Forecasters of the starts of the jobs that the resource manager decides about.

Rule: an oracle never keeps the loop waiting, and says of each job a forecast or why it has none. A job whose start it
does not know is forecast by a replay under EASY backfilling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...simulate.model.observed_queue import ObservedJob, ObservedQueue
from ...simulate.replay.queue_forecast import ExpectedRun, QueueForecast

#: Returns the expected run time of a job; None: only its walltime is known.
Expected = Callable[[ObservedJob], ExpectedRun | None]
Planned = Callable[[ObservedJob], float | None]
Answers = Mapping[str, QueueForecast]
#: The forecaster of all jobs that no oracle knows.
EASY = "EASY"


@dataclass(frozen=True, slots=True)
class OracleState:
    """Origin of forecasts.

    Args:
        by: who forecasts, for people.
        why_not: why the resource manager's own rules do not; "": they do, or they are not known at all.
        unfollowed: rules that the resource manager follows and the forecasts do not, one sentence each.
    """

    by: str = EASY
    why_not: str = ""
    unfollowed: tuple[str, ...] = ()


class QueueOracle:
    """An oracle that knows nothing. Derive from it."""

    @property
    def state(self) -> OracleState:
        """Origin of its forecasts now."""
        return OracleState()

    @property
    def is_busy(self) -> bool:
        """True if `proceed` should be called within about a second."""
        return False

    def proceed(self, queue: ObservedQueue, expected: Expected, planned: Planned) -> bool:
        """Go on with what it does meanwhile; return whether `forecasts` has something new.

        It is called often, takes no longer than to look, and once for each answer O(jobs).

        Args:
            queue: as it was seen last.
            expected: returns the expected run time of a job.
            planned: returns when a job that is handed over is planned to begin, epoch seconds; None: it is not.
        """
        return False

    def note_queue(self, queue: ObservedQueue) -> None:
        """Note that the queue was seen, and may have changed."""

    def forecasts(self, queue: ObservedQueue) -> Answers:
        """Return the newest forecasts of jobs, by key; a job that is missing, or `unknown`, is not known.

        Args:
            queue: as it was seen last.
        """
        return {}

    def close(self) -> None:
        """End what it does."""
        return
