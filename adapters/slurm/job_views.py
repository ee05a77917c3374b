"""Convert Slurm's records to a snapshot.

Rule: pure. Every job that holds nodes is shown, ours or not, because it takes part in the contention. Only jobs that
are handed over are offered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from ...formats.text import count
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Profile, Provenance, ThreadGroup
from ...simulate.model.snapshot import JobState, JobView, JobViews, NodeState
from .. import keys
from .handed_over.ownership import NEIGHBOUR, Ownership, SlurmSelection, precursors, ready
from .placement.eligibility import Eligibility, EligibilityCache, Verdict
from .placement.queue_state import Ranking
from .records import SlurmJob, SlurmNode
from .submission import key_in, name_for, profile_in, script_in

PREFIX = "slurm/"
#: Assumed run time of a job without a time limit, seconds.
NO_LIMIT_S = 3600.0


def key_of(job: SlurmJob, uid: int) -> str:
    """Return the key in a job's comment if `uid`, our user, submitted it, otherwise `slurm/ID`.

    Users cannot forge ours. Jobs that our account submitted as an ordinary user, by `pilotfish submit --adapter slurm`,
    keep the names of their workflow and are `slurm/ID`.
    """
    key = key_in(job.comment) if job.uid == uid else None
    return key if key and id_in(key) is None and job.name == name_for(key) else f"{PREFIX}{job.id}"


def id_in(key: str) -> int | None:
    """Return Slurm's id in `slurm/ID`, None for any other key."""
    return keys.id_in(key, PREFIX, 10)


def job_of(job: SlurmJob, cores: int = 0) -> Job:
    """Return what a job asks for: its cores on each node, or `cores` if not 0, busy until its time limit."""
    profile = _assumed(cores or job.cores, job.time_limit or NO_LIMIT_S, profile_in(job.comment))
    script = script_in(job.comment)
    name = f"{job.name} #{script}" if job.name and script else job.name
    kind = f"{name} of {job.account or 'no account'}/{job.uid}" if name else ""
    job_request = Job(str(job.id), profile, nodes=job.nodes, memory=job.memory, walltime=job.time_limit)
    values = {"user": str(job.uid), "group": job.account, "executable": job.name, "queue": job.partition}
    values |= {"script": script}
    traits = tuple((name, value) for name, value in values.items() if value)
    return replace(job_request, known_as=kind, traits=traits, owner=job.uid)


@lru_cache(4096)
def _assumed(threads: int, demand: float, name: str) -> Profile:
    """Return one profile for all equal jobs: the simulation distinguishes profiles by identity."""
    note = f"from Slurm: {count(threads, 'core')} busy for the time limit"
    return Profile((ThreadGroup(threads, demand),), name=name, provenance=Provenance("default", note=note))


#: What a view is made of: record, job as we submitted it, ownership, verdict, whether its begin time is still to come.
Sources = tuple[SlurmJob, Job | None, tuple[Ownership, str], Verdict | None, bool]


class ViewTable:
    """The views of all jobs except other users' ended ones; only those of jobs that have changed are made again.

    Args:
        cache: The queue and the ownership of its jobs.
        uid: User id of our own jobs.
    """

    def __init__(self, cache: EligibilityCache, uid: int) -> None:
        self._queue, self._standings, self._uid = cache.queue, cache.standings, uid
        self._submitted_jobs: Mapping[str, Job] = {}
        self._made_of: dict[int, Sources] = {}
        self._views: dict[tuple[float, int], JobView] = {}  # by priority and id
        self._ranks: dict[int, tuple[float, int]] = {}
        self._ranking = Ranking()
        self._keys: dict[int, str] = {}  # of the jobs that were submitted under a key
        self._ids: dict[str, set[int]] = defaultdict(set)
        self._unseen: tuple[JobView, ...] = ()
        self._removed: list[JobView] = []  # views that have gone since the last were returned
        self._new: list[JobView] = []
        self._last = JobViews()

    def update(self, eligibility: Eligibility, submitted: Mapping[str, Job]) -> JobViews:
        """Return the views in Slurm's order of starting, the very same while none changes. O(changed jobs).

        Args:
            eligibility: Of all jobs in the queue now.
            submitted: Key -> job as we submitted it.
        """
        queue, self._submitted_jobs = self._queue, submitted
        if self._removed or self._new:  # the last update has failed
            self._last = JobViews()
        numbers = queue.touched | queue.ours.keys() | self._keys.keys()
        for number in queue.touched:
            numbers |= self._note_key(number)
        queue.touched.clear()
        verdicts = eligibility.verdicts()
        for number in numbers:
            self._renew(number, verdicts.get(number), eligibility)
        unseen = unseen_views(eligibility.unseen())
        if unseen != self._unseen:
            self._removed += self._unseen
            self._new += unseen
            self._unseen = unseen
        if self._removed or self._new:
            views = (*map(self._views.__getitem__, self._ranking.order), *unseen)
            self._last = self._last.followed_by(views, self._removed, self._new)
            self._removed, self._new = [], []
        return self._last

    def clear(self) -> None:
        """Make all views again."""
        self._queue.touched.update(self._queue.jobs, self._made_of)
        self._made_of.clear()

    def _note_key(self, number: int) -> set[int]:
        """Note under which key a job was submitted, if any; return the ids of the jobs under its old or new key."""
        job, before = self._queue.jobs.get(number), self._keys.pop(number, None)
        key = None if job is None else key_of(job, self._uid)
        if key is not None and id_in(key) is None:
            self._keys[number] = key
            self._ids[key].add(number)
        if before is not None and before != key:
            self._ids[before].discard(number)
        return (self._ids[before] if before else set()) | (self._ids[key] if number in self._keys and key else set())

    def _renew(self, number: int, verdict: Verdict | None, eligibility: Eligibility) -> None:
        """Make the view of a job again if what it was made of has changed."""
        job, key, now = self._queue.jobs.get(number), self._keys.get(number, f"{PREFIX}{number}"), eligibility.now
        if job is None or not self._shown(job):
            self._made_of.pop(number, None)
            self._drop(number)
            return
        later = job.begin is not None and job.begin > now
        standing = self._standings.of(job, now) if number in self._queue.ours else NEIGHBOUR
        made_of = job, self._submitted_jobs.get(key), standing, verdict, later
        if self._made_of.get(number) == made_of:
            return
        self._drop(number)
        view = _view(key, made_of, self._standings.selection, now)
        view = replace(view, job=replace(view.job, apart="" if job.state.ended else eligibility.kind(job)))
        self._made_of[number], self._ranks[number] = made_of, (-job.priority, number)
        self._views[self._ranks[number]] = view
        self._ranking.add(self._ranks[number])
        self._new.append(view)

    def _drop(self, number: int) -> None:
        rank = self._ranks.pop(number, None)
        if rank is not None:
            self._ranking.drop(rank)
            self._removed.append(self._views.pop(rank))

    def _shown(self, job: SlurmJob) -> bool:
        """Return whether a job has a view; of several jobs under one key the last has."""
        if job.id in self._keys:
            return job.id == max(self._ids[self._keys[job.id]])
        return not job.state.ended or self._standings.selection.takes(job)


def progress_view(key: str, job: SlurmJob, requested: Job) -> JobView:
    """Return the progress of a job as Slurm reports it."""
    begun = job.state is not JobState.PENDING
    return JobView(
        key=key,
        job=requested,
        state=job.state,
        nodes=job.placed,
        submit_time=job.submit,
        start_time=job.start if begun and job.placed and job.state is not JobState.CONFIGURING else None,
        finish_time=job.end if job.state.ended else None,
        exit_code=job.exit_code if job.state.ended and job.state is not JobState.CANCELLED else None,
        signal=job.signal if job.state.ended else None,
        reason=job.reason if job.reason != "None" else "",
        priority=None if begun or job.priority <= 0 else float(job.priority),
    )


def _view(key: str, made_of: Sources, selection: SlurmSelection, now: float) -> JobView:
    job, submitted, (ownership, why), verdict, later = made_of
    begun, view = job.state is not JobState.PENDING, progress_view(key, job, submitted or job_of(job))
    if key != f"{PREFIX}{job.id}":
        return view
    if begun:
        return replace(view, due_why=job.left_to_slurm) if job.left_to_slurm and selection.takes(job) else view
    if job.pinned is not None:
        reason = "placed; Slurm is about to start it"
        return replace(view, nodes=job.wanted, pinned_since=job.pinned, offered=True, reason=reason)
    if ownership is Ownership.NEIGHBOUR or verdict is None:
        return replace(view, waits="" if ready(job) and not later else f"Slurm says {job.reason}", due_why=why)
    after = tuple(map(str, precursors(job, selection, now)))
    return replace(
        view,
        job=replace(job_of(job, verdict.cores), after=after, allowed=verdict.allowed),
        offered=True,
        restartable=True,
        waits=verdict.waits,
        due=verdict.due,
        due_why=verdict.why,
    )


def unseen_views(unseen: Iterable[tuple[str, int, float]]) -> tuple[JobView, ...]:
    """Return cores that are allocated on a node to no visible job as jobs that run there; see `Eligibility.unseen`."""
    views = []
    for name, cores, span in unseen:
        note = f"from Slurm: {count(cores, 'core is', 'cores are')} taken on {name}"
        profile = Profile((ThreadGroup(cores, span),), provenance=Provenance("default", note=note))
        views.append(JobView(f"{PREFIX}+{name}", Job(f"+{name}", profile), JobState.RUNNING, (name,)))
    return tuple(views)


def node_states(cluster: Cluster, nodes: Iterable[SlurmNode]) -> tuple[NodeState, ...]:
    """Return the states of the cluster's nodes in its order; a node that Slurm does not have is down."""
    states = {node.name: node.state for node in nodes}
    return tuple(states.get(node.name, NodeState.DOWN) for node in cluster.nodes)
