"""The result of a replay of a site: each start of a job, in the order of the starts.

Rule: a job that was requeued has several starts; a job that never started has none. Times as in `site`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SiteStart:
    """A start of a job and the run that follows it."""

    job: int  # row of `Site.jobs`
    partition: str
    start: float
    end: float | None  # None: the job still ran when the replay ended
    nodes: tuple[str, ...]
    by: str  # main or backfill, the pass that started it
    priority: int = 0
    cpus: int = 0  # CPUs of all its nodes; 0: not stated


@dataclass(frozen=True, slots=True)
class SiteReplay:
    """A replay of a site with one seed."""

    starts: tuple[SiteStart, ...]
    seed: int = 0
