"""Submissions that are due ahead of a start, so that the resource manager has the job when its nodes become free."""

from __future__ import annotations

from operator import itemgetter

from ..simulate.model.plan import SubmitAhead
from .state.forecasts import NOW_S
from .state.job_stages import JobStage
from .state.queue import Queue
from .state.queue_entry import busy

#: Most jobs that are submitted ahead in a cycle: it lasts for as long as the resource manager takes for each.
MOST_AHEAD = 2


def due_ahead(queue: Queue, now: float, within_s: float) -> list[SubmitAhead]:
    """Return submissions of the jobs of ours that the last plan starts soon, the first ones first, MOST_AHEAD at most.

    The jobs before them have completed, or the resource manager has them.

    Args:
        queue: the jobs.
        now: epoch seconds.
        within_s: soon is within so many seconds.
    """
    due = list[tuple[float, SubmitAhead]]()
    for entry in queue.active() if within_s else ():
        if entry.outlook is None or entry.offered or entry.stage is not JobStage.WAITING or entry.cancel_wanted:
            continue
        at, before = entry.outlook.time + entry.outlook.planned.start_time, queue.unmet(entry)
        later = entry.outlook.planned.start_time > NOW_S and at <= now + within_s and entry.not_before <= now
        if later and all(busy(other) or other.stage is JobStage.AHEAD for other in before):
            after = tuple((other.key, other.job) for other in before)
            due.append((at, SubmitAhead(entry.key, entry.job, after, entry.followed)))
    return [submission for _, submission in sorted(due, key=itemgetter(0))[:MOST_AHEAD]]
