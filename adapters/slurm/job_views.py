"""Convert Slurm's records to a snapshot.

Rule: pure. Every job that holds nodes is shown, ours or not, because it takes part in the contention. Only jobs that
are handed over are offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Profile, Provenance, ThreadGroup
from ...simulate.model.snapshot import JobState, JobView, NodeState
from .ownership import Ownership, OwnershipCache, Selection, precursors, ready
from .placement.eligibility import Verdict
from .records import SlurmJob, SlurmNode
from .submission import key_in, name_for, profile_in

PREFIX = "slurm/"
#: Assumed run time of a job without a time limit, seconds.
NO_LIMIT_S = 3600.0


def key_of(job: SlurmJob, uid: int) -> str:
    """Return the key in a job's comment if `uid`, our user, submitted it, otherwise `slurm/ID`.

    Users cannot forge ours. Jobs that our account submitted as an ordinary user, by `pilotfish submit --adapter slurm`,
    keep the names of their workflow and are `slurm/ID`.
    """
    ours = key_in(job.comment) if job.uid == uid else None
    return ours if ours and job.name == name_for(ours) else f"{PREFIX}{job.id}"


def id_in(key: str) -> int | None:
    """Return Slurm's id in `slurm/ID`, None for any other key."""
    number = key.removeprefix(PREFIX)
    plain = key.startswith(PREFIX) and number.isascii() and number.isdecimal() and len(number) <= 10
    return int(number) if plain else None


def job_of(job: SlurmJob, cores: int = 0) -> Job:
    """Return what a job asks for: its cores on each node, or `cores` if not 0, busy until its time limit."""
    profile = _assumed(cores or job.cores, job.time_limit or NO_LIMIT_S, profile_in(job.comment))
    kind = f"{job.name} of {job.account or 'no account'}/{job.uid}" if job.name else ""
    asked = Job(str(job.id), profile, nodes=job.nodes, memory=job.memory, walltime=job.time_limit)
    return replace(asked, known_as=kind, owner=job.uid)


@lru_cache(4096)
def _assumed(threads: int, demand: float, name: str) -> Profile:
    """Return one profile for all equal jobs: the simulation distinguishes profiles by identity."""
    note = f"from Slurm: {threads} cores busy for the time limit"
    return Profile((ThreadGroup(threads, demand),), name=name, provenance=Provenance("default", note=note))


#: What a view is made of: record, job as we submitted it, ownership, verdict, whether its begin time is still to come.
Sources = tuple[SlurmJob, Job | None, tuple[Ownership, str], Verdict | None, bool]
CachedView = tuple[JobView, Sources]


def views(
    jobs: Iterable[SlurmJob],
    standings: OwnershipCache,
    now: float,
    uid: int,
    known: Mapping[str, Job],
    verdicts: Mapping[int, Verdict],
    kind: Callable[[SlurmJob], str],
    kept: dict[int, CachedView],
) -> tuple[JobView, ...]:
    """Return a view of every job except other users' ended ones, in Slurm's order of starting. O(jobs log jobs).

    Args:
        jobs: Slurm's records.
        standings: Ownership of the jobs.
        now: Controller's clock, epoch seconds.
        uid: User id of our own jobs.
        known: Key -> job as we submitted it.
        verdicts: Id -> verdict on a waiting job that is handed over.
        kind: Returns what a job must be kept apart by; see `Job.apart`.
        kept: Id -> view that is reused while what it was made of is unchanged; brought up to date.
    """
    last: dict[str, SlurmJob] = {}
    for job in sorted(jobs, key=lambda job: job.id):  # of several jobs under one key the last counts
        key = key_of(job, uid)
        if not job.state.ended or standings.selection.takes(job) or id_in(key) is None:
            last[key] = job
    ordered = sorted(last.items(), key=lambda item: (-item[1].priority, item[1].id))
    before = kept.copy()
    kept.clear()
    for key, job in ordered:
        later = job.begin is not None and job.begin > now
        made_of = job, known.get(key), standings.of(job, now), verdicts.get(job.id), later
        cached = before.get(job.id)
        if cached is None or cached[1] != made_of:
            view = _view(key, made_of, standings.selection, now)
            cached = replace(view, job=replace(view.job, apart="" if job.state.ended else kind(job))), made_of
        kept[job.id] = cached
    return tuple(view for view, _ in kept.values())


def progress_view(key: str, job: SlurmJob, asked: Job) -> JobView:
    """Return the progress of a job as Slurm reports it."""
    begun = job.state is not JobState.PENDING
    return JobView(
        key=key,
        job=asked,
        state=job.state,
        nodes=job.placed,
        submit_time=job.submit,
        start_time=job.start if begun and job.placed and job.state is not JobState.CONFIGURING else None,
        finish_time=job.end if job.state.ended else None,
        exit_code=job.exit_code if job.state.ended and job.state is not JobState.CANCELLED else None,
        signal=job.signal if job.state.ended else None,
        reason=job.reason if job.reason != "None" else "",
    )


def _view(key: str, made_of: Sources, selection: Selection, now: float) -> JobView:
    job, asked, (what, why), verdict, later = made_of
    begun, view = job.state is not JobState.PENDING, progress_view(key, job, asked or job_of(job))
    if begun or key != f"{PREFIX}{job.id}":
        return view
    if job.pinned is not None:
        reason = "placed; Slurm is about to start it"
        return replace(view, nodes=job.wanted, pinned_since=job.pinned, offered=True, reason=reason)
    if what is Ownership.NEIGHBOUR or verdict is None:
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
    found = []
    for name, cores, span in unseen:
        note = f"from Slurm: {cores} cores of {name} are taken"
        profile = Profile((ThreadGroup(cores, span),), provenance=Provenance("default", note=note))
        found.append(JobView(f"{PREFIX}+{name}", Job(f"+{name}", profile), JobState.RUNNING, (name,)))
    return tuple(found)


def node_states(cluster: Cluster, nodes: Iterable[SlurmNode]) -> tuple[NodeState, ...]:
    """Return the states of the cluster's nodes in its order; a node that Slurm does not have is down."""
    states = {node.name: node.state for node in nodes}
    return tuple(states.get(node.name, NodeState.DOWN) for node in cluster.nodes)
