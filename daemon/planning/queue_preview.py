"""A preview: what the daemon would do with a resource manager's queue as it is now.

Rule: it is one dry cycle of the daemon, with a journal in memory; nothing is written anywhere.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

from ...adapters.base import Adapter
from ...simulate.model.job import Job
from ...simulate.model.plan import Plan, Rejection, Start
from ...simulate.model.snapshot import JobState
from ..apply import Recording, describe
from ..assembly import assemble
from ..learning.profile_learning import LearnedProfiles
from ..report.metrics import Metrics
from ..state.journal import Journal
from .guard import Guard
from .problem import Options


@dataclass(frozen=True)
class QueuePreview:
    """What one cycle decided.

    Args:
        plan: of the waiting jobs that were handed over; None = there is nothing to plan.
        starts: what would start now.
        actions: everything that would be done, each as one line.
        commands: the command lines that would be run for `actions`.
        rejected: actions that the check dropped.
        waits: why a job is not planned, by key.
        jobs: the waiting jobs that were handed over, under their keys.
    """

    plan: Plan | None
    starts: tuple[Start, ...]
    actions: tuple[str, ...]
    commands: tuple[str, ...]
    rejected: tuple[Rejection, ...]
    waits: dict[str, str]
    jobs: tuple[Job, ...]


def look(adapter: Adapter, options: Options, profiles: Path) -> QueuePreview:
    """Return what the daemon would do now. Raises AdapterError.

    Args:
        adapter: whose queue is read.
        options: how to plan.
        profiles: a profile store that may be written to, such as a copy.
    """
    journal = Journal(Path(":memory:"), in_memory=True)
    try:
        if adapter.capabilities.offers:
            journal.keep_handed_over(adapter.name, time.time())
        guard = Guard(bound=math.inf, window=1, fallback=options.policy, enabled=False)
        recording, learned = Recording(lambda line: None), LearnedProfiles(profiles)
        clock = time.monotonic
        cycle = assemble(adapter, recording, journal, Metrics(), guard, options, clock, profiles=learned)
        began = time.perf_counter()
        report = cycle.run()
        took = time.perf_counter() - began
        tracker = cycle.tracker
        waiting = {entry.key: entry for entry in tracker.queue.active() if entry.state is JobState.PENDING}
        planned = {job.id for job in report.plan.jobs} if report.plan else set()
        waits = {key: entry.waits for key, entry in waiting.items() if entry.waits and key not in planned}
        waits |= tracker.stuck
        actions = [applied.action for applied in report.applied]
        commands = [line for action in actions for line in adapter.preview(action)]
        plan = report.plan and replace(
            report.plan,
            jobs=tuple(job for job in report.plan.jobs if job.id in waiting and job.id not in waits),
            simulated_in=took,
        )
        return QueuePreview(
            plan,
            tuple(action for action in actions if isinstance(action, Start)),
            tuple(map(describe, actions)),
            tuple(commands),
            tuple(report.rejected),
            waits,
            tuple(replace(entry.job, id=key) for key, entry in waiting.items()),
        )
    finally:
        journal.close()
