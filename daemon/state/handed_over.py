"""Jobs that the resource manager's users hand over to us: they stay in its queue, and are followed in ours.

Rule: a job is followed as soon as it is handed over, in the resource manager's order. One that is let go, or taken back
by its user before it was placed, is no longer ours: no plan has it, and until its end it is only noted how far it has
come. Dependencies, and what a failure means for other jobs, are the resource manager's: a job is planned after its
predecessors if all of them are followed here, else once nothing keeps it. A cycle takes in a bounded number of jobs,
those of all users in turns. The others are as jobs that were submitted a moment later, and one that its user has
changed is not started before the change is taken in.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field

from ...simulate.model.bounded import in_turns
from ...simulate.model.job import Job, Workflow
from ...simulate.model.snapshot import JobState, JobView, JobViews, Snapshot
from .job_stages import FINAL, JobStage
from .queue import MISSED_S, UNRECORDED_S, Queue, Records, Submission
from .queue_entry import Entry

#: Why a job is no longer ours if its user decided that; how one ended that never began; an end without a record.
TAKEN_BACK, NEVER_BEGAN = "its user took it back", "it was cancelled in the resource manager before it began"
NOT_RECORDED = "it has left the queue, and no record says that it began"
UNKNOWN_END = "it has left the queue, and how it ended is not known"
#: Why a job that its user has changed does not start before the change is taken in.
CHANGED = "its user changed it a moment ago"
#: Most jobs that a cycle takes in: each takes 0.1 to 0.3 ms, mostly to predict its needs. Names of nodes in a list of
#: allowed nodes that count as another job: the list is compared with the nodes once in a cycle.
MOST_TAKEN_IN, NAMES_PER_JOB = 500, 500
Profiled = Callable[[Job], Job]


@dataclass(frozen=True, slots=True)
class TakenIn:
    """Outcome of an intake: `news`: there is something new to plan; `unfinished`: jobs wait for the next cycle."""

    news: bool
    unfinished: bool


@dataclass(slots=True)
class HandedOver(Submission):
    """All jobs handed over through one resource manager; it never ends.

    `asked`: each job as its user submitted it. `put_off`: the new and the changed jobs for which the last cycle had no
    time. `sorted_by`: the views, and `sorted_keys` the jobs, of the last sorting.
    """

    asked: dict[str, Job] = field(default_factory=dict)
    put_off: Set[str] = frozenset()
    sorted_by: JobViews = field(default_factory=JobViews)
    sorted_keys: frozenset[str] = frozenset()

    offered = True

    @property
    def state(self) -> JobState:
        """Always RUNNING."""
        return JobState.RUNNING

    @property
    def ended(self) -> bool:
        """Always False."""
        return False

    def drop_ended(self) -> None:
        """Drop the jobs that have ended, and set those apart that are no longer ours."""
        self.let_go |= {name: entry for name, entry in self.entries.items() if entry.stage is JobStage.LET_GO}
        self.let_go = {name: entry for name, entry in self.let_go.items() if entry.finish_time is None}
        self.entries = {name: entry for name, entry in self.entries.items() if entry.stage not in FINAL}
        self.asked = {name: job for name, job in self.asked.items() if name in self.entries}

    def follow(
        self, queue: Queue, snapshot: Snapshot, with_profile: Profiled, records: Records | None, most: float
    ) -> TakenIn:
        """Follow its jobs; the arguments and the result are those of `take_in`."""
        views = snapshot.jobs.by_key
        news = False
        for entry in self.let_go.values():
            if _goes_on(entry, views.get(entry.key) or _ended(entry.key, records), records, snapshot.time):
                queue.dirty[entry.key] = entry
        for entry in self.entries.values():
            view = views.get(entry.key) or _ended(entry.key, records)
            if view is None and records is not None and entry.key not in records:
                entry.wait_reason = "the resource manager does not show it any more"
            elif entry.stage not in FINAL and not _stays(entry, view):
                _leave(entry, view, snapshot.time)
                queue.dirty[entry.key] = entry
                news = True
        self.drop_ended()
        news = self._take_in(snapshot.jobs, queue, with_profile, most) or news
        self._sort(snapshot.jobs)
        return TakenIn(news, bool(self.put_off))

    def _take_in(self, views: JobViews, queue: Queue, with_profile: Profiled, most: float) -> bool:
        """Add jobs and note what has changed, as far as one cycle may; return whether anything has."""
        prefix, news = f"{self.id}/", False
        offered = {view.key.removeprefix(prefix): view for view in views.offered if view.key.startswith(prefix)}
        jobs = {name: self._followed(view.job, offered) for name, view in offered.items()}
        names = [name for name in jobs if name not in self.entries]  # they go first: changed ones may wait for them
        names += [name for name in jobs if name in self.entries and self.asked.get(name) != jobs[name]]
        self.put_off = beyond({name: jobs[name] for name in names}, most)
        followed = offered.keys() - (self.put_off - self.entries.keys())
        for name, view in offered.items():
            if name not in self.put_off:
                job = self._followed(view.job, followed) if view.job.after else jobs[name]
                news = self._update(name, view, job, queue, with_profile) or news
            elif (entry := self.entries.get(name)) and entry.wait_reason != CHANGED:
                entry.wait_reason, news = CHANGED, True
        return news

    def _followed(self, job: Job, offered: Collection[str]) -> Job:
        """Return a job as it is planned: without dependencies, unless all predecessors are followed or `offered`."""
        followed = all(name in self.entries or name in offered for name in job.after)
        return job if followed else dataclasses.replace(job, after=())

    def _update(self, name: str, view: JobView, job: Job, queue: Queue, with_profile: Profiled) -> bool:
        """Add a job, or note what has changed. Return whether anything has."""
        entry, before = self.entries.get(name), self.asked.get(name)
        self.asked[name] = job
        if entry is None:
            again = self.let_go.pop(name, None)
            entry = self.entries[name] = Entry(self.id, with_profile(job), len(self.entries), offered=True)
            entry.since = again.since if again else None
            queue.dirty[entry.key] = entry
        elif before != job:
            entry.change(with_profile(job))
        changed = before != job or entry.wait_reason != view.waits
        entry.wait_reason, entry.held = view.waits, view.due is not None
        entry.since = view.submit_time if entry.since is None else entry.since  # a requeue is no new submission
        return changed

    def _sort(self, views: JobViews) -> None:
        """Sort into the resource manager's order, and note the successors of each job."""
        entries = {entry.key: (name, entry) for name, entry in self.entries.items()}
        if self.sorted_by is not views or self.sorted_keys != entries.keys():
            self.entries = dict(entries[key] for key in filter(entries.__contains__, views.by_key)) | self.entries
            self.sorted_by, self.sorted_keys = views, frozenset(entries)
        self.successors = {}
        for name, entry in self.entries.items():
            for before in entry.job.after:
                self.successors.setdefault(before, []).append(name)


def handed_over(name: str, now: float) -> HandedOver:
    """Return an empty submission for the resource manager of that name; `now` in epoch seconds."""
    return HandedOver(name, Workflow(name, ()), now)


def take_in(
    queue: Queue, snapshot: Snapshot, with_profile: Profiled, records: Records | None = None, most: float = math.inf
) -> TakenIn:
    """Follow the jobs that are handed over. O(jobs + dependencies).

    Args:
        queue: holds the submissions; it is updated.
        snapshot: the jobs at this moment.
        with_profile: returns a job with the profile that is known for it.
        records: of jobs that are not shown any more; None if no records are kept.
        most: new and changed jobs that are taken in from each resource manager, see `beyond`.
    """
    submissions = [one for one in queue.submissions.values() if isinstance(one, HandedOver)]
    intakes = [one.follow(queue, snapshot, with_profile, records, most) for one in submissions]
    return TakenIn(any(one.news for one in intakes), any(one.unfinished for one in intakes))


def beyond(jobs: Mapping[str, Job], most: float) -> set[str]:
    """Return the names of the jobs that must wait for the next cycle; the others are those of all users in turns.

    Args:
        jobs: by name, in the order in which each user wants them; at least the first is never returned.
        most: jobs that one cycle takes in. A list of allowed nodes that differs from those before counts as more.
    """
    waiting, lists, cost = set[str](), set[int](), 0.0
    for name, job in in_turns(jobs.items(), lambda item: item[1].owner):
        if cost >= most:
            waiting.add(name)
            continue
        cost += 1.0
        if job.allowed is not None and id(job.allowed) not in lists:
            lists.add(id(job.allowed))
            cost += len(job.allowed) / NAMES_PER_JOB
    return waiting


def _ended(key: str, records: Records | None) -> JobView | None:
    """Return the record of the job's end, if there is one."""
    view = (records or {}).get(key)
    return view if view and view.state.ended else None


def _leave(entry: Entry, view: JobView | None, now: float) -> None:
    """Note that a job is no longer ours, or ended before it was placed and never began."""
    if view is None or (view.state.ended and view.start_time is None):
        finish_time = now if view is None or view.finish_time is None else view.finish_time
        entry.end(JobState.CANCELLED, finish_time, NOT_RECORDED if view is None else NEVER_BEGAN)
    else:
        entry.move(JobStage.LET_GO, entry.state)
        entry.let_go, entry.nodes = view.due_why or entry.released or TAKEN_BACK, ()
        entry.forecast = entry.promised = entry.expected = entry.plain_end = None  # of a start that is not ours now
        entry.show(view)


def _goes_on(entry: Entry, view: JobView | None, records: Records | None, now: float) -> bool:
    """Note how far a job has come that is no longer ours; return whether that has changed."""
    if view is not None:
        return entry.show(view)
    if entry.miss(now) < (MISSED_S if records is None else UNRECORDED_S):
        return False
    entry.state, entry.reason, entry.finish_time = JobState.UNKNOWN, UNKNOWN_END, now
    return True


def _stays(entry: Entry, view: JobView | None) -> bool:
    """Return whether the job is still handed over, or was placed, or has begun by itself without a release of ours."""
    if entry.stage is JobStage.UNSETTLED or entry.taken:
        return True
    begun = view is not None and (view.start_time is not None or view.state.takes_nodes)
    return view is not None and (view.offered or (begun and not entry.released))
