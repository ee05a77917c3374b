"""The intake of workflows: a submission is checked, planned with the best known profiles, and written to the journal.

Rule: a workflow is accepted whole or not at all. The work is done in steps, between which the service goes through
cycles and answers other users; quotas are judged in the last one, with the queue as it is then.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, TypeAlias

from ...simulate.errors import InvalidJobError
from ...simulate.model.capacity import EmptyNodes
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Workflow
from ..learning.job_profiles import GivenProfiles
from ..loop import Cycle
from ..state.audit import AuditedChange
from ..state.codec import JOBS_AT_ONCE, asked_for, check_submitted, decode_steps, encode, new_id
from ..state.divided_work import Steps
from ..state.journal import Journal
from ..state.profile_labels import profile_of
from ..state.queue import Submission
from ..state.queue_entry import shape_of
from ..state.users import Peer
from .access import Access

#: Jobs whose commands are named in one step.
NAMED_AT_ONCE = 20
#: The steps of a request; the last one returns the reply.
Answer: TypeAlias = Steps[dict[str, Any]]


def text_of(request: dict[str, Any], name: str, longest: int | None = 4096) -> str:
    """Return an argument of a request.

    Args:
        request: of a user.
        name: of the argument.
        longest: characters; None: any number, and also unprintable ones.

    Raises:
        InvalidJobError: it is missing, or no such text.
    """
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidJobError(f"{name}: found {type(value).__name__} (allowed: text)")
    if longest is not None and (len(value) > longest or not value.isprintable()):
        raise InvalidJobError(f"{name}: too long, or not printable")
    return value


class Intake:
    """Takes in workflows; the arguments are those of `rpc.Requests`."""

    def __init__(
        self, cycle: Cycle, journal: Journal, cluster: Cluster, profiles: GivenProfiles, access: Access
    ) -> None:
        self._tracker, self._adapter, self._journal = cycle.tracker, cycle.adapter, journal
        self._empty, self._profiles, self._access = EmptyNodes(cluster), profiles, access

    def steps(self, request: dict[str, Any], peer: Peer) -> Answer:
        """Take in the workflow of a request, in steps; return the reply. Raises PilotfishError: it is refused."""
        directory = text_of(request, "directory")
        if not directory.startswith("/"):
            raise InvalidJobError(f"directory: found {directory!r} (allowed: an absolute path)")
        key = text_of(request, "key") if request.get("key") is not None else None
        self._check_quotas(peer, None)
        text = text_of(request, "workflow", longest=None)
        self._access.check_size(text)
        workflow = yield from decode_steps(text, directory)
        self._check_quotas(peer, workflow)
        yield
        check_submitted(workflow)
        yield
        jobs = workflow.jobs
        if not self._adapter.capabilities.here:  # the resource manager sets it
            workflow = replace(workflow, base_environment=None, umask=None)
        workflow = yield from self._profiles.profile_steps(workflow)
        for first in range(0, len(workflow.jobs), NAMED_AT_ONCE):
            yield
            for job in workflow.jobs[first : first + NAMED_AT_ONCE]:
                profile_of(job)  # the name is kept; a cycle or a reply would otherwise make many at once
        yield
        self._check_fits(workflow)
        yield
        definition = encode(workflow)
        yield
        submission = Submission(new_id(workflow.name), workflow, self._tracker.now or time.time(), owner=peer.uid)
        yield
        if key is not None and (earlier := self._journal.submitted_as(key, peer.uid)):
            return (yield from _again(*earlier, jobs, key))
        self._check_quotas(peer, workflow)
        return self._accept(submission, definition, key, peer)

    def _check_quotas(self, peer: Peer, workflow: Workflow | None) -> None:
        jobs = workflow.jobs if workflow else ()
        kept_bytes, total_bytes = self._journal.bytes_of(peer.uid), self._journal.total_bytes()
        present = self._tracker.queue.submissions.values()
        self._access.check_submit(peer, jobs, present, kept_bytes, total_bytes)

    def _check_fits(self, workflow: Workflow) -> None:
        obstacles: dict[object, str | None] = {}
        for job in workflow.jobs:
            if job.command is None and not self._adapter.capabilities.virtual_time:
                raise InvalidJobError(f"{workflow.name}: job {job.id!r} has no command: it can be planned, not run")
            shape = shape_of(job)
            if shape not in obstacles:
                obstacles[shape] = self._empty.never_fits(job)
            if reason := obstacles[shape]:
                raise InvalidJobError(f"{workflow.name}: job {job.id!r} can never run here: {reason}")

    def _accept(self, submission: Submission, definition: str, key: str | None, peer: Peer) -> dict[str, Any]:
        """Write a checked workflow to the journal and the queue."""
        workflow = submission.workflow
        change = AuditedChange(submission.submit_time, "submit", str(peer), submission.id, submission.owner)
        self._journal.note_change(change)
        self._journal.submit(submission, key, definition)  # last: what the journal has is run after a restart
        self._tracker.add(submission)
        return {
            "id": submission.id, "jobs": len(workflow.jobs), "again": False, "warnings": list(workflow.warnings),
            "exported": workflow.base_environment is not None,
        }  # fmt: skip


def _again(id: str, definition: str, jobs: tuple[Job, ...], key: str) -> Answer:
    """Return the reply to a submission whose key names a workflow already. Raises InvalidJobError: another one.

    Args:
        id: of the workflow that is there.
        definition: its text.
        jobs: that are submitted now.
        key: of both.
    """
    earlier = yield from decode_steps(definition)
    alike = len(earlier.jobs) == len(jobs)
    for first in range(0, len(jobs) if alike else 0, JOBS_AT_ONCE):
        yield
        part = slice(first, first + JOBS_AT_ONCE)
        alike = alike and asked_for(earlier.jobs[part]) == asked_for(jobs[part])
    if not alike:
        raise InvalidJobError(f"key {key!r} was used for another workflow ({id})")
    return {"id": id, "jobs": len(jobs), "again": True}
