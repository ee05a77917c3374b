"""Jobs that have left the queue, as accounting knows them: how they ended, and what they used.

Rule: accounting is believed about ends only. A job that it has as waiting or running, and that the queue does not
show, is UNKNOWN; one that has the name of ours is ours only if our account submitted it, and not before it was decided
on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from ...simulate.booked import Booked
from ...simulate.job import Job
from ...simulate.snapshot import JobState, JobView
from ..base import AdapterError
from . import sacct
from .books import Entry
from .records import SlurmJob
from .submission import name_for
from .transport import Transport
from .world import id_in, job_of, seen

#: seconds by which a job may seem to have been submitted before it was decided on
SLACK_S = 60.0
Record = TypeVar("Record", SlurmJob, Entry)


def recall(
    transport: Transport, since: Mapping[str, float], uid: int, known: Mapping[str, Job]
) -> dict[str, JobView] | None:
    """See `Adapter.recall`: one request for jobs of Slurm's users, by id, and one for our own, by name.

    Args:
        uid: whose jobs ours are.
        known: what was asked for of the jobs that we submitted, by key.
    """
    records = _by_key(since, uid, transport.ended, lambda names, first: transport.ended_as(names, uid, first))
    if records is None:
        return None
    return {key: _view(key, job, known.get(key) or job_of(job)) for key, job in records.items()}


def books(transport: Transport, since: Mapping[str, float], uid: int) -> dict[str, Booked] | None:
    """See `Adapter.books`: requests as for `recall`."""
    records = _by_key(
        since,
        uid,
        lambda ids: transport.books(sacct.of_ids(ids)),
        lambda names, first: transport.books(sacct.of_names(names, uid, first)),
    )
    return None if records is None else {key: entry.booked for key, entry in records.items()}


def _by_key(
    since: Mapping[str, float],
    uid: int,
    of_ids: Callable[[Collection[int]], list[Record]],
    of_names: Callable[[Collection[str], float], list[Record]],
) -> dict[str, Record] | None:
    """The records of these jobs; None where accounting keeps none. Raises AdapterError."""
    ids = {number: key for key in since if (number := id_in(key)) is not None}
    names = {name_for(key): key for key in since if id_in(key) is None}
    try:
        users = of_ids(ids) if ids else []
        ours = of_names(names, min(since[key] for key in names.values()) - SLACK_S) if names else []
    except AdapterError as error:
        if error.kind == "unrecorded":
            return None
        raise
    records = {ids[job.id]: job for job in users if job.id in ids}
    for job in sorted(ours, key=lambda job: (job.submit or 0.0, job.id)):
        key = names.get(job.name)
        if key and job.uid == uid and (job.submit or 0.0) >= since[key] - SLACK_S:
            records[key] = job
    return records


def _view(key: str, job: SlurmJob, asked: Job) -> JobView:
    if job.state.ended:
        return seen(key, job, asked)
    why = f"the queue does not show it, and accounting has it as {job.state}"
    return JobView(key, asked, JobState.UNKNOWN, job.placed, job.submit, job.start if job.placed else None, reason=why)
