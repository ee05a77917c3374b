"""From Slurm's records to a snapshot.

Rule: pure; every job that holds nodes is seen, ours or not, because it takes part in the contention; only those that
were handed over are offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from ...simulate.job import Job, Profile, Provenance, ThreadGroup
from ...simulate.platform import Cluster
from ...simulate.snapshot import JobState, JobView, NodeState
from .handover import Selection, Standing, Standings, precursors, ready
from .judge import Verdict
from .records import SlurmJob, SlurmNode
from .submission import key_in, name_for, profile_in
from .update import pin_of

PREFIX = "slurm/"
#: run time that is assumed of a job without a time limit, seconds
NO_LIMIT_S = 3600.0


def key_of(job: SlurmJob, uid: int) -> str:
    """The key of a job: that of its comment if we submitted it (`uid`), else `slurm/ID`. Users cannot forge ours.

    Jobs of ours are called by their keys; those of a workflow that our own account submitted over Slurm as any user
    does, `pilotfish submit --adapter slurm`, are called what they are in the workflow.
    """
    ours = key_in(job.comment) if job.uid == uid else None
    return ours if ours and job.name == name_for(ours) else f"{PREFIX}{job.id}"


def id_in(key: str) -> int | None:
    """Slurm's id in `slurm/ID`."""
    number = key.removeprefix(PREFIX)
    return int(number) if key.startswith(PREFIX) and number.isdigit() else None


def job_of(job: SlurmJob, cores: int = 0) -> Job:
    """What a job asks for, as far as Slurm knows: its cores (0 = those that it asks for) are taken as busy until its
    time limit."""
    profile = _assumed(cores or job.cores, job.time_limit or NO_LIMIT_S, profile_in(job.comment))
    kind = f"{job.name} of {job.account or 'no account'}/{job.uid}" if job.name else ""
    return Job(
        str(job.id), profile, nodes=job.nodes, memory=job.memory, walltime=job.time_limit, known_as=kind
    )


@lru_cache(4096)
def _assumed(threads: int, demand: float, name: str) -> Profile:
    """One for all jobs that are alike: the simulation tells profiles apart by identity."""
    note = f"from Slurm: {threads} cores busy for the time limit"
    return Profile((ThreadGroup(threads, demand),), name=name, provenance=Provenance("default", note=note))


class Kept(NamedTuple):
    """A view, and all that it was made of; of a waiting job its standing is another one when its begin time has passed.

    Args:
        asked: what was asked for of a job that we submitted.
    """

    record: SlurmJob
    asked: Job | None
    standing: tuple[Standing, str]
    verdict: Verdict | None
    view: JobView


def views(
    jobs: Iterable[SlurmJob],
    standings: Standings,
    now: float,
    uid: int,
    known: Mapping[str, Job],
    verdicts: Mapping[int, Verdict],
    kind: Callable[[SlurmJob], str] = lambda job: "",
    kept: dict[int, Kept] | None = None,
) -> tuple[JobView, ...]:
    """A view of every job but those of others that have ended, in Slurm's order of starting. O(jobs log jobs).

    Args:
        known: what was asked for of the jobs that we submitted, by key.
        verdicts: on the waiting jobs of ours, by id.
        kind: what a job keeps apart from others by, see `Job.apart`.
        kept: views that stay as they are while what they are made of does, by Slurm's id; it is brought up to date.
    """
    last: dict[str, SlurmJob] = {}
    for job in sorted(jobs, key=_number):  # of several under one key the last counts
        key = key_of(job, uid)
        if not job.state.ended or standings.selection.takes(job) or id_in(key) is None:
            last[key] = job
    ordered = sorted(last.items(), key=lambda item: (-item[1].priority, item[1].id))
    before, after = kept or {}, dict[int, Kept]()
    for key, job in ordered:
        asked, what, verdict = known.get(key), standings.of(job, now), verdicts.get(job.id)
        old = before.get(job.id)
        same = old is not None and old.record is job and old.asked is asked and old.standing is what
        if old is None or not same or old.verdict != verdict:
            view = _view(key, job, standings.selection, now, asked, what, verdict)
            view = replace(view, job=replace(view.job, apart="" if job.state.ended else kind(job)))
            old = Kept(job, asked, what, verdict, view)
        after[job.id] = old
    if kept is not None:
        kept.clear()
        kept |= after
    return tuple(each.view for each in after.values())


def _number(job: SlurmJob) -> int:
    return job.id


def seen(key: str, job: SlurmJob, asked: Job) -> JobView:
    """How far a job has come, as Slurm says."""
    begun = job.state is not JobState.PENDING
    return JobView(
        key=key,
        job=asked,
        state=job.state,
        nodes=job.placed,
        submit_time=job.submit,
        start_time=job.start if begun and job.placed else None,
        finish_time=job.end if job.state.ended else None,
        exit_code=job.exit_code if job.state.ended and job.state is not JobState.CANCELLED else None,
        signal=job.signal if job.state.ended else None,
        reason=job.reason if job.reason != "None" else "",
    )


def _view(
    key: str,
    job: SlurmJob,
    selection: Selection,
    now: float,
    asked: Job | None,
    standing: tuple[Standing, str],
    verdict: Verdict | None,
) -> JobView:
    begun, view = job.state is not JobState.PENDING, seen(key, job, asked or job_of(job))
    if begun or key != f"{PREFIX}{job.id}":
        return view
    mark, (what, why) = pin_of(job), standing
    if mark and job.wanted:
        reason = "placed; Slurm is about to start it"
        return replace(view, nodes=job.wanted, pinned_since=float(mark.time), offered=True, reason=reason)
    if what is Standing.NEIGHBOUR or verdict is None:
        later = job.begin is not None and job.begin > now
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
    """Cores that are taken on a node by no job that we see, each time as a job that runs there (see `Judge.unseen`)."""
    found = []
    for name, cores, span in unseen:
        note = f"from Slurm: {cores} cores of {name} are taken"
        profile = Profile((ThreadGroup(cores, span),), provenance=Provenance("default", note=note))
        found.append(JobView(f"{PREFIX}+{name}", Job(f"+{name}", profile), JobState.RUNNING, (name,)))
    return tuple(found)


def node_states(cluster: Cluster, nodes: Iterable[SlurmNode]) -> tuple[NodeState, ...]:
    """The states of the cluster's nodes in its order; one that Slurm does not have is down."""
    states = {node.name: node.state for node in nodes}
    return tuple(states.get(node.name, NodeState.DOWN) for node in cluster.nodes)

