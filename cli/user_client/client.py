"""The client of `submit`, `status`, `explain` and `cancel` over Slurm or OAR itself, for a user on a login node.

Rule: it needs no daemon and asks the resource manager as the user.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...adapters import registry
from ...adapters.base import AdapterError
from ...adapters.user_jobs import Story, UserJobs
from ...daemon.learning.job_profiles import classes_of
from ...daemon.paths import state_dir
from ...daemon.state.codec import asked_for, at_home, id_for, new_id
from ...daemon.state.users import user_name
from ...formats.text import count
from ...simulate.errors import ConfigError, InvalidJobError, did_you_mean
from ...simulate.model.job import Workflow
from ...simulate.model.snapshot import JobState
from ...trust import make_own_folder
from ..inputs import Profiles, read_cluster, working_directory
from ..service.daemon_client import EndUnknownError, UnreachableError
from ..streams import note, warn
from ..workflows.plan_request import PlanRequest
from . import submission_records as records
from .submission_records import BEGUN, TAKEN_BACK, WHOLE, SubmissionRecord
from .submit import Submitter, guessed, holds
from .watch import Watched, job_reply, log_reply, read_workflows, workflow_reply

if TYPE_CHECKING:
    from ...daemon.report.selection import Chosen
    from .settings import SubmissionSettings

#: Ended workflows that `status` shows, and records of workflows that are kept.
RECENT, KEPT = 20, 500


@dataclass(frozen=True)
class UserClient:
    """A client of a resource manager with the methods of `DaemonClient`, and with the settings of this login node."""

    settings: SubmissionSettings
    poll_s = (1.0, 15.0)

    @cached_property
    def own(self) -> UserJobs:
        """The user's jobs."""
        return registry.user_jobs(self.settings.adapter, self.settings.timeout_seconds)

    def submit(self, path: Path, store: Path | None, key: str | None, *, hold: bool, export: str | None = None) -> str:
        """See DaemonClient; without `hold` the jobs may start at once. `export` has no meaning here."""
        directory = working_directory()
        flow = at_home(Profiles(store).read_workflow(path), str(directory))
        state = state_dir()
        id = id_for(flow.name, key) if key is not None else new_id(flow.name)
        with records.alone(state, id):
            records.forget(state, KEPT)
            record = _earlier_record(state, id, flow)
            if record is not None and record.stage == WHOLE:
                return id
            warn(*flow.warnings)
            if key is None:
                _refuse_after_half(state, flow)
            resumed = record if record is not None and record.stage != TAKEN_BACK else None
            earlier = record.earlier + 1 if record is not None else 0
            holds_jobs = hold and self.own.begins
            record = resumed or _intent(self.settings, flow, id, key or id, directory, earlier, hold=holds_jobs)
            submitter = Submitter(self.own, record, self.settings, note)
            if job_count := submitter.find_submitted():
                note(
                    f"{job_count} of the {count(len(flow.jobs), 'job')} of {id} submitted before; submitting the others"
                )
            _make_outputs(record.outputs, record.claims)
            if record is not resumed:
                record.create(records.folder(state))
            submitter.submit()
        return id

    def status(self, workflow: str | None, chosen: Chosen) -> dict[str, Any]:
        """See DaemonClient."""
        workflows = read_workflows(self.own, records.known(state_dir(), warn))
        shown = [_find(workflows, workflow)] if workflow is not None else workflows
        replies = [workflow_reply(watched) for watched in shown]
        me = user_name(os.getuid())
        for job in (job for reply in replies if reply["handed_over"] for job in reply["jobs"]):
            job["owner"] = me
        replies = chosen.documents(replies, me)
        if workflow is None:
            old = [reply["id"] for reply in replies if reply["finish_time"] is not None][:-RECENT]
            replies = [reply for reply in replies if reply["id"] not in old]
        for record in (watched.record for watched in shown):
            if record and record.stage == BEGUN:
                progress = f"{len(record.ids)} of {count(len(record.workflow.jobs), 'job')}"
                warn(
                    f"the submission of {record.id} was interrupted ({progress}): the same command with "
                    f"`--key {record.key}` continues it, `pilotfish cancel {record.id}` takes it back"
                )
        view = f"the jobs and workflows of {me.partition(' (uid ')[0]}, without the service"
        return {"cluster": self.own.cluster(), "view": view, "time": time.time(), "blocked": "",
                "workflows": replies}  # fmt: skip

    def explain(self, job: str) -> dict[str, Any]:
        """See DaemonClient."""
        user_jobs = self.own
        workflows = read_workflows(user_jobs, records.known(state_dir(), warn))
        try:
            watched, name = _job(workflows, job)
        except InvalidJobError:  # no job of a workflow; perhaps a job that the user submitted in another way
            if (single := user_jobs.named(job)) is None:
                raise
            watched, name = Watched(user_jobs.manager.lower(), jobs={job: single}), job
        now, queued = time.time(), watched.jobs.get(name)
        with suppress(AdapterError):
            now = user_jobs.time()
        return {
            **log_reply(watched, name, user_jobs.manager, user_jobs.story(queued, now) if queued else Story()),
            "time": now,
        }

    def cancel(self, target: str) -> dict[str, Any]:
        """See DaemonClient."""
        user_jobs, submissions = self.own, records.known(state_dir(), warn)
        begun = {record.id: record for record in submissions if record.stage == BEGUN}
        if target in begun:  # also if it cannot be asked: what it has not carried out yet does no work
            begun[target].reached(TAKEN_BACK)
        workflows = read_workflows(user_jobs, submissions)
        watched = _find(workflows, target.partition("/")[0])
        if watched.handed_over:
            advice = (
                f"a job that was handed over is cancelled in {user_jobs.manager} itself ({user_jobs.cancel_command} ID)"
            )
            raise InvalidJobError(f"{target}: {advice}")
        names = [_job(workflows, target)[1]] if "/" in target else watched.names
        alive = [watched.jobs[name] for name in names if name in watched.jobs and not watched.jobs[name].state.ended]
        if watched.id in begun and "/" not in target:
            begun[watched.id].reached(TAKEN_BACK)
        elif watched.id in begun and names[0] not in watched.jobs:
            raise InvalidJobError(f"{target} is not submitted: `pilotfish cancel {watched.id}` takes all of it back")
        elif not alive:
            reply = job_reply(watched, names[0]) if len(names) == 1 else workflow_reply(watched)
            raise InvalidJobError(f"{target} has ended already ({reply['state']})")
        user_jobs.cancel([job.id for job in alive])
        waiting = sum(job.state is JobState.PENDING for job in alive)
        return {"cancelled": waiting, "ending": len(alive) - waiting, "warning": ""}

    def poll(self, workflow: str, patience_s: float) -> dict[str, Any]:
        """See DaemonClient."""
        try:
            user_jobs, record = self.own, records.folder(state_dir()) / f"{workflow}.jsonl"
            reply = workflow_reply(_find(read_workflows(user_jobs, [records.read(record)]), workflow))
        except AdapterError as error:
            raise UnreachableError(str(error)) from None
        if reply["exit_code"] is None and reply["state"] == JobState.UNKNOWN:
            raise EndUnknownError("jobs have left the queue")
        return reply


def _make_outputs(*folders: Path) -> None:
    """Make the folders of a submission; their names can be foreseen. Raises ConfigError: another user made one."""
    try:
        for folder in folders:
            make_own_folder(folder)
    except OSError as error:
        raise ConfigError(str(folder), "", f"cannot hold the outputs: {error.strerror}") from None


def _earlier_record(state: Path, id: str, flow: Workflow) -> SubmissionRecord | None:
    """Return the earlier submission under this id. Raises InvalidJobError: it was another workflow."""
    path = records.folder(state) / f"{id}.jsonl"
    record = records.read(path) if path.exists() else None
    if record and asked_for(record.workflow.jobs) != asked_for(flow.jobs):
        raise InvalidJobError(f"the key was used for another workflow ({id})")
    return record


def _refuse_after_half(state: Path, flow: Workflow) -> None:
    """Refuse a workflow whose interrupted submission may have left jobs in the queue. Raises InvalidJobError."""
    for record in records.known(state, lambda problem: None):
        if record.stage == BEGUN and asked_for(record.workflow.jobs) == asked_for(flow.jobs):
            raise InvalidJobError(
                f"an earlier submission of this workflow, {record.id}, was not finished: "
                f"`pilotfish submit --key {record.id} ...` continues it, `pilotfish cancel {record.id}` takes it back"
            )


def _intent(
    to: SubmissionSettings, flow: Workflow, id: str, key: str, directory: Path, earlier: int, *, hold: bool
) -> SubmissionRecord:
    """Return the record of a submission, with a forecast where the nodes and the needs of the jobs are known."""
    outputs = (Path(to.output_dir).expanduser() if to.output_dir else directory) / id
    record = SubmissionRecord(id, key, flow, time.time(), directory / outputs, earlier=earlier)
    unknown = guessed(flow)
    if to.cluster and len(unknown) < len(flow.jobs):
        site = read_cluster(Path(to.cluster))
        plan = PlanRequest("lookahead", "makespan", 0, None, 10.0).plan(flow, site)
        classes = classes_of(plan, flow.jobs, site)
        for job in (job for job in plan.jobs if job.id not in unknown):
            record.forecast[job.id] = {
                "start": job.start_time, "run_time": job.finish_time - job.start_time, "nodes": list(job.nodes),
                "slowdown": job.contention_slowdown, **classes[job.id],
            }  # fmt: skip
    if hold:
        keys = {job.id: record.key_of(job.id) for job in flow.jobs}
        record.hold = holds(flow, {name: job["start"] for name, job in record.forecast.items()}, keys, to)
    return record


def _find(workflows: list[Watched], workflow: str) -> Watched:
    """Return the workflow of this id, or the latest of this name; one that has not ended comes first."""
    named = [w for w in workflows if w.id == workflow] or [w for w in workflows if w.id.rpartition(".")[0] == workflow]
    if not named:
        raise InvalidJobError(
            f"you have no workflow {workflow!r}{did_you_mean(workflow, [w.id for w in workflows], cutoff=0.5)}"
        )
    alive = [w for w in named if workflow_reply(w)["finish_time"] is None]
    return (alive or named)[-1]


def _job(workflows: list[Watched], target: str) -> tuple[Watched, str]:
    """Return the job WORKFLOW/JOB, or JOB of the latest workflow that has one, or the job with this id."""
    workflow, slash, name = target.partition("/")
    if not slash:
        for watched in reversed(workflows):
            by_id = {str(job.id): job_name for job_name, job in watched.jobs.items()}
            if target in watched.names or target in by_id:
                return watched, target if target in watched.names else by_id[target]
        raise InvalidJobError(f"no workflow of yours has a job {target!r} (name it as WORKFLOW/JOB)")
    watched = _find(workflows, workflow)
    if name not in watched.names:
        raise InvalidJobError(f"{watched.id} has no job {name!r}{did_you_mean(name, watched.names)}")
    return watched, name
