"""Jobs that the resource manager's users hand to us: they stay in its queue, and are followed in ours.

Rule: what is offered is taken in as it is seen, in the resource manager's order; what is not offered any more and was
never placed is let go of, unless it is on record that it ran. Who depends on whom, and what a failure means for others,
is the resource manager's to say: a job is planned behind those that it waits for where all of them are followed here,
else once nothing keeps it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

from ..simulate.job import Job, Workflow
from ..simulate.snapshot import JobState, JobView, Snapshot
from .queue import Answers, Entry, Queue, Submission


@dataclass(slots=True)
class Offers(Submission):
    """All that is offered through one resource manager; it never ends. `asked`: each job as it came."""

    asked: dict[str, Job] = field(default_factory=dict)

    @property
    def state(self) -> JobState:
        """It goes on."""
        return JobState.RUNNING

    @property
    def offered(self) -> bool:
        """Whose jobs are the resource manager's."""
        return True

    def let_go(self) -> None:
        """Drop the jobs that have ended."""
        self.entries = {name: entry for name, entry in self.entries.items() if not entry.state.ended}
        self.asked = {name: job for name, job in self.asked.items() if name in self.entries}

    def follow(
        self, snapshot: Snapshot, queue: Queue, know: Callable[[Job], Job], records: Answers | None = None
    ) -> bool:
        """See `take_in`."""
        prefix = f"{self.id}/"
        views = {view.key.removeprefix(prefix): view for view in snapshot.jobs if view.key.startswith(prefix)}
        news = False
        for name, entry in self.entries.items():
            view = views.get(name) or _ended(entry.key, records)
            if view is None and records is not None and entry.key not in records:
                entry.waits = "the resource manager does not show it any more"
            elif not _stays(entry, view):
                entry.state, entry.finish_time, entry.reason = JobState.CANCELLED, snapshot.time, _left(view)
                queue.dirty[entry.key] = entry
                news = True
        self.let_go()
        for name, view in views.items():
            if view.offered:
                news = self._meet(name, view, views, queue, know) or news
        self._sort(views)
        return news

    def _meet(
        self, name: str, view: JobView, views: dict[str, JobView], queue: Queue, know: Callable[[Job], Job]
    ) -> bool:
        """Take a job in, or note what has changed; True if something has."""
        followed = all(before in self.entries or _offered(views.get(before)) for before in view.job.after)
        job = view.job if followed else dataclasses.replace(view.job, after=())
        entry, before = self.entries.get(name), self.asked.get(name)
        self.asked[name] = job
        if entry is None:
            entry = self.entries[name] = Entry(self.id, know(job), len(self.entries))
            queue.dirty[entry.key] = entry
        elif before != job:
            entry.change(know(job))
        changed = before != job or entry.waits != view.waits
        entry.waits, entry.since = view.waits, view.submit_time
        return changed

    def _sort(self, views: dict[str, JobView]) -> None:
        """Into the resource manager's order, and note who waits for whom."""
        here = self.entries
        self.entries = {name: here[name] for name in views if name in here} | here
        self.successors = {}
        for name, entry in self.entries.items():
            for before in entry.job.after:
                self.successors.setdefault(before, []).append(name)


def offers_of(name: str, now: float) -> Offers:
    """An empty one, for the resource manager of that name."""
    return Offers(name, Workflow(name, ()), now)


def take_in(
    queue: Queue, snapshot: Snapshot, know: Callable[[Job], Job], records: Answers | None = None
) -> bool:
    """Follow what is offered; True if there is something new to plan. O(jobs + dependencies).

    Args:
        know: gives a job the profile that is known for it.
        records: what is on record of jobs that are not shown any more; None where no records are kept.
    """
    news = False
    for submission in queue.submissions.values():
        if isinstance(submission, Offers):
            news = submission.follow(snapshot, queue, know, records) or news
    return news


def _left(view: JobView | None) -> str:
    """Why it is not offered any more."""
    return view.due_why if view is not None and view.due_why else "it was taken back"


def _ended(key: str, records: Answers | None) -> JobView | None:
    """How the job ended, if that is on record."""
    view = (records or {}).get(key)
    return view if view and view.state.ended else None


def _offered(view: JobView | None) -> bool:
    return view is not None and view.offered


def _stays(entry: Entry, view: JobView | None) -> bool:
    """Whether the job is still offered, or was placed, or has begun by itself."""
    placed = entry.handed or entry.intent is not None
    return placed or (view is not None and (view.offered or view.start_time is not None))
