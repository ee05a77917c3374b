"""Look up in accounting jobs that have left the queue: how they ended and what they used.

Rule: accounting is trusted only about ends. A job that it lists as waiting or running, and that the queue does not
show, is UNKNOWN. A job with the name of one of ours is ours only if our account submitted it, and not before we decided
to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ...simulate.model.accounting_record import AccountingRecord
from ...simulate.model.job import Job
from ...simulate.model.snapshot import JobState, JobView
from ..base import AdapterError
from .job_views import id_in, job_of, progress_view
from .records import SlurmJob
from .submission import name_for
from .transport import sacct
from .transport.command_transport import Transport
from .transport.sacct import UsageEntry

#: Seconds by which a job may seem to have been submitted before we decided to submit it.
SLACK_S = 60.0
Record = TypeVar("Record", SlurmJob, UsageEntry)


def ended_jobs(
    transport: Transport, since: Mapping[str, float], uid: int, submitted: Mapping[str, Job]
) -> dict[str, JobView] | None:
    """Look up ended jobs; see `Adapter.recall`. One request for users' jobs, by id, and one for our own, by name.

    Args:
        transport: Transport to Slurm.
        since: As for `recall`.
        uid: User id of our own jobs.
        submitted: Key -> job as we submitted it.
    """
    records = _by_key(since, uid, transport.ended)
    if records is None:
        return None
    return {key: _view(key, job, submitted.get(key) or job_of(job)) for key, job in records.items()}


def ended_usage(transport: Transport, since: Mapping[str, float], uid: int) -> dict[str, AccountingRecord] | None:
    """Look up what ended jobs used; see `Adapter.usage`. Requests and arguments as for `ended_jobs`."""
    records = _by_key(since, uid, transport.usage)
    return None if records is None else {key: entry.record for key, entry in records.items()}


def _by_key(
    since: Mapping[str, float], uid: int, look_up: Callable[[Sequence[str]], list[Record]]
) -> dict[str, Record] | None:
    """Return the records of these jobs; None if accounting keeps none. Raises AdapterError."""
    ids = {number: key for key in since if (number := id_in(key)) is not None}
    names = {name_for(key): key for key in since if id_in(key) is None}
    try:
        users = look_up(sacct.of_ids(ids)) if ids else []
        first = min((since[key] for key in names.values()), default=0.0) - SLACK_S
        own_records = look_up(sacct.of_names(names, uid, first)) if names else []
    except AdapterError as error:
        if error.kind == "unrecorded":
            return None
        raise
    records = {ids[job.id]: job for job in users if job.id in ids}
    for job in sorted(own_records, key=lambda job: (job.submit or 0.0, job.id)):
        key = names.get(job.name)
        if key and job.uid == uid and (job.submit or 0.0) >= since[key] - SLACK_S:
            records[key] = job
    return records


def _view(key: str, job: SlurmJob, requested: Job) -> JobView:
    if job.state.ended:
        return progress_view(key, job, requested)
    why = f"the queue does not show it, and accounting has it as {job.state}"
    return JobView(
        key, requested, JobState.UNKNOWN, job.placed, job.submit, job.start if job.placed else None, reason=why
    )
