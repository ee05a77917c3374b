"""One look at a resource manager's queue as it is now: what the daemon would do with it, once.

Rule: it is the daemon's own cycle, dry, with a journal in memory; nothing is written anywhere.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

from ..adapters.base import Adapter
from ..simulate.job import Job
from ..simulate.plan import Plan, Rejection, Start
from ..simulate.snapshot import JobState
from .apply import Recording, describe
from .cycle import Cycle
from .exporter import Metrics
from .guard import Guard
from .journal import Journal
from .memory import Memory
from .planning import Options


@dataclass(frozen=True)
class Glance:
    """What one cycle decided.

    Args:
        plan: of the jobs that were handed over and wait, without those that run; None: there is nothing to plan.
        starts: what would start now.
        commands: one for each line that would be run, for all of `actions`.
        actions: each as one line.
        waits: key -> why it is not planned.
        handed_over: jobs that wait and were handed over.
        jobs: those that wait, by their keys.
    """

    plan: Plan | None
    starts: tuple[Start, ...]
    actions: tuple[str, ...]
    commands: tuple[str, ...]
    rejected: tuple[Rejection, ...]
    waits: dict[str, str]
    handed_over: int
    jobs: tuple[Job, ...]


def look(adapter: Adapter, options: Options, profiles: Path) -> Glance:
    """Decide once on what is there. Raises AdapterError.

    Args:
        profiles: a profile store that may be written to, such as a copy.
    """
    journal = Journal(Path(":memory:"), in_memory=True)
    try:
        if adapter.capabilities.offers:
            journal.keep_offers(adapter.name, time.time())
        guard = Guard(bound=math.inf, window=1, fallback=options.policy, enabled=False)
        recording = Recording(lambda line: None)
        cycle = Cycle(adapter, recording, journal, Metrics(), guard, options, time.monotonic)
        memory = Memory(profiles)
        cycle.know, cycle.company = memory.named, memory.company
        began = time.perf_counter()
        report = cycle.run()
        took = time.perf_counter() - began
        waiting = {entry.key: entry for entry in cycle.queue.active() if entry.state is JobState.PENDING}
        planned = {job.id for job in report.plan.jobs} if report.plan else set()
        waits = {key: entry.waits for key, entry in waiting.items() if entry.waits and key not in planned} | cycle.stuck
        actions = [applied.action for applied in report.applied]
        commands = [line for action in actions for line in adapter.preview(action)]
        plan = report.plan and replace(
            report.plan,
            jobs=tuple(job for job in report.plan.jobs if job.id in waiting and job.id not in waits),
            simulated_in=took,
        )
        return Glance(
            plan,
            tuple(action for action in actions if isinstance(action, Start)),
            tuple(map(describe, actions)),
            tuple(commands),
            tuple(report.rejected),
            waits,
            len(waiting),
            tuple(replace(entry.job, id=key) for key, entry in waiting.items()),
        )
    finally:
        journal.close()
