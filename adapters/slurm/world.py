"""From Slurm's records to a snapshot.

Rule: pure; every job that holds nodes is seen, ours or not, because it takes part in the contention; only those that
were handed over are offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ...simulate.job import Job, Profile, Provenance, ThreadGroup
from ...simulate.platform import Cluster
from ...simulate.snapshot import JobState, JobView, NodeState
from .handover import Selection, Standing, standing
from .judge import Verdict
from .records import SlurmJob, SlurmNode
from .submission import key_in, profile_in
from .update import pin_in

PREFIX = "slurm/"
#: run time that is assumed of a job without a time limit, seconds
NO_LIMIT_S = 3600.0


def key_of(job: SlurmJob, uid: int) -> str:
    """The key of a job: that of its comment if we submitted it (`uid`), else `slurm/ID`. Users cannot forge ours."""
    ours = key_in(job.comment) if job.uid == uid else None
    return ours or f"{PREFIX}{job.id}"


def id_in(key: str) -> int | None:
    """Slurm's id in `slurm/ID`."""
    number = key.removeprefix(PREFIX)
    return int(number) if key.startswith(PREFIX) and number.isdigit() else None


def job_of(job: SlurmJob, cores: int = 0) -> Job:
    """What a job asks for, as far as Slurm knows: its cores (0 = those that it asks for) are taken as busy until its
    time limit."""
    threads = cores or job.cores
    demand = job.time_limit or NO_LIMIT_S
    note = f"from Slurm: {threads} cores busy for the time limit"
    name = profile_in(job.comment)
    profile = Profile((ThreadGroup(threads, demand),), name=name, provenance=Provenance("default", note=note))
    return Job(
        str(job.id), profile, _dependencies(job.dependency), nodes=job.nodes, memory=job.memory, walltime=job.time_limit
    )


def views(
    jobs: Iterable[SlurmJob],
    selection: Selection,
    now: float,
    uid: int,
    known: Mapping[str, Job],
    verdicts: Mapping[int, Verdict],
    kind: Callable[[SlurmJob], str] = lambda job: "",
) -> tuple[JobView, ...]:
    """A view of every job but those of others that have ended, in Slurm's order of starting. O(jobs log jobs).

    Args:
        known: what was asked for of the jobs that we submitted, by key.
        verdicts: on the waiting jobs of ours, by id.
        kind: what a job keeps apart from others by, see `Job.apart`.
    """
    last: dict[str, SlurmJob] = {}
    for job in sorted(jobs, key=lambda job: job.id):  # of several under one key the last counts
        key = key_of(job, uid)
        if not job.state.ended or selection.takes(job) or id_in(key) is None:
            last[key] = job
    ordered = sorted(last.items(), key=lambda item: (-item[1].priority, item[1].id))
    seen = (_view(key, job, selection, now, known, verdicts.get(job.id)) for key, job in ordered)
    return tuple(
        view if view.state.ended else replace(view, job=replace(view.job, apart=kind(job)))
        for view, (_, job) in zip(seen, ordered, strict=True)
    )


def _view(
    key: str,
    job: SlurmJob,
    selection: Selection,
    now: float,
    known: Mapping[str, Job],
    verdict: Verdict | None,
) -> JobView:
    begun = job.state is not JobState.PENDING
    seen = JobView(
        key=key,
        job=known.get(key) or job_of(job),
        state=job.state,
        nodes=job.placed,
        submit_time=job.submit,
        start_time=job.start if begun and job.placed else None,
        finish_time=job.end if job.state.ended else None,
        exit_code=job.exit_code if job.state.ended and job.state is not JobState.CANCELLED else None,
        signal=job.signal if job.state.ended else None,
        reason=job.reason if job.reason != "None" else "",
    )
    if begun or key != f"{PREFIX}{job.id}":
        return seen
    mark, (what, why) = pin_in(job.admin_comment, job.id, job.uid), standing(job, selection, now)
    if mark and job.wanted:
        reason = "placed; Slurm is about to start it"
        return replace(seen, nodes=job.wanted, pinned_since=float(mark.time), offered=True, reason=reason)
    if what is Standing.NEIGHBOUR or verdict is None:
        return replace(seen, waits=why)
    return replace(
        seen,
        job=replace(job_of(job, verdict.cores), allowed=verdict.allowed),
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


def _dependencies(text: str) -> tuple[str, ...]:
    """Ids of the jobs in `afterok:12(unfulfilled),afterany:13:14`."""
    ids: list[str] = []
    for clause in text.replace("?", ",").split(","):
        kind, _, rest = clause.partition(":")
        if kind.startswith("after"):
            ids += [part.partition("(")[0].partition("+")[0].partition("_")[0] for part in rest.split(":")]
    return tuple(dict.fromkeys(filter(str.isdigit, ids)))
