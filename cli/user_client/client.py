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
from ...daemon.codec import asked_for, at_home, id_for, new_id
from ...daemon.learning.job_profiles import classes_of
from ...daemon.paths import state_dir
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
            made = _known(state, id, flow)
            if made is not None and made.stage == WHOLE:
                return id
            warn(*flow.warnings)
            if key is None:
                _refuse_after_half(state, flow)
            begun = made if made is not None and made.stage != TAKEN_BACK else None
            earlier = made.earlier + 1 if made is not None else 0
            holds_jobs = hold and self.own.begins
            made = begun or _intent(self.settings, flow, id, key or id, directory, earlier, hold=holds_jobs)
            submitter = Submitter(self.own, made, self.settings, note)
            if there := submitter.find_submitted():
                note(f"{there} of the {count(len(flow.jobs), 'job')} of {id} submitted before; submitting the others")
            _make_outputs(made.outputs, made.claims)
            if made is not begun:
                made.create(records.folder(state))
            submitter.submit()
        return id

    def status(self, workflow: str | None, chosen: Chosen) -> dict[str, Any]:
        """See DaemonClient."""
        found = read_workflows(self.own, records.known(state_dir(), warn))
        shown = [_find(found, workflow)] if workflow is not None else found
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
                there = f"{len(record.ids)} of {count(len(record.workflow.jobs), 'job')}"
                warn(
                    f"the submission of {record.id} was interrupted ({there}): the same command with "
                    f"`--key {record.key}` continues it, `pilotfish cancel {record.id}` takes it back"
                )
        view = f"the jobs and workflows of {me.partition(' (uid ')[0]}, without the service"
        return {"cluster": self.own.cluster(), "view": view, "time": time.time(), "blocked": "",
                "workflows": replies}  # fmt: skip

    def explain(self, job: str) -> dict[str, Any]:
        """See DaemonClient."""
        own = self.own
        found = read_workflows(own, records.known(state_dir(), warn))
        try:
            watched, name = _job(found, job)
        except InvalidJobError:  # no job of a workflow; perhaps a job that the user submitted in another way
            if (single := own.named(job)) is None:
                raise
            watched, name = Watched(own.manager.lower(), jobs={job: single}), job
        now, queued = time.time(), watched.jobs.get(name)
        with suppress(AdapterError):
            now = own.time()
        return {**log_reply(watched, name, own.manager, own.story(queued, now) if queued else Story()), "time": now}

    def cancel(self, target: str) -> dict[str, Any]:
        """See DaemonClient."""
        own, known = self.own, records.known(state_dir(), warn)
        begun = {record.id: record for record in known if record.stage == BEGUN}
        if target in begun:  # also if it cannot be asked: what it has not carried out yet does no work
            begun[target].reached(TAKEN_BACK)
        found = read_workflows(own, known)
        watched = _find(found, target.partition("/")[0])
        if watched.handed_over:
            what = f"a job that was handed over is cancelled in {own.manager} itself ({own.cancel_command} ID)"
            raise InvalidJobError(f"{target}: {what}")
        names = [_job(found, target)[1]] if "/" in target else watched.names
        alive = [watched.jobs[name] for name in names if name in watched.jobs and not watched.jobs[name].state.ended]
        if watched.id in begun and "/" not in target:
            begun[watched.id].reached(TAKEN_BACK)
        elif watched.id in begun and names[0] not in watched.jobs:
            raise InvalidJobError(f"{target} is not submitted: `pilotfish cancel {watched.id}` takes all of it back")
        elif not alive:
            reply = job_reply(watched, names[0]) if len(names) == 1 else workflow_reply(watched)
            raise InvalidJobError(f"{target} has ended already ({reply['state']})")
        own.cancel([job.id for job in alive])
        waiting = sum(job.state is JobState.PENDING for job in alive)
        return {"cancelled": waiting, "ending": len(alive) - waiting, "warning": ""}

    def poll(self, workflow: str, patience_s: float) -> dict[str, Any]:
        """See DaemonClient."""
        try:
            own, record = self.own, records.folder(state_dir()) / f"{workflow}.jsonl"
            reply = workflow_reply(_find(read_workflows(own, [records.read(record)]), workflow))
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


def _known(state: Path, id: str, flow: Workflow) -> SubmissionRecord | None:
    """Return the earlier submission under this id. Raises InvalidJobError: it was another workflow."""
    path = records.folder(state) / f"{id}.jsonl"
    known = records.read(path) if path.exists() else None
    if known and asked_for(known.workflow.jobs) != asked_for(flow.jobs):
        raise InvalidJobError(f"the key was used for another workflow ({id})")
    return known


def _refuse_after_half(state: Path, flow: Workflow) -> None:
    """Refuse a workflow whose interrupted submission may have left jobs in the queue. Raises InvalidJobError."""
    for known in records.known(state, lambda problem: None):
        if known.stage == BEGUN and asked_for(known.workflow.jobs) == asked_for(flow.jobs):
            raise InvalidJobError(
                f"an earlier submission of this workflow, {known.id}, was not finished: "
                f"`pilotfish submit --key {known.id} ...` continues it, `pilotfish cancel {known.id}` takes it back"
            )


def _intent(
    to: SubmissionSettings, flow: Workflow, id: str, key: str, directory: Path, earlier: int, *, hold: bool
) -> SubmissionRecord:
    """Return the record of a submission, with a forecast where the nodes and the needs of the jobs are known."""
    outputs = (Path(to.output_dir).expanduser() if to.output_dir else directory) / id
    made = SubmissionRecord(id, key, flow, time.time(), directory / outputs, earlier=earlier)
    unknown = guessed(flow)
    if to.cluster and len(unknown) < len(flow.jobs):
        site = read_cluster(Path(to.cluster))
        plan = PlanRequest("lookahead", "makespan", 0, None, 10.0).plan(flow, site)
        classes = classes_of(plan, flow.jobs, site)
        for job in (job for job in plan.jobs if job.id not in unknown):
            made.forecast[job.id] = {
                "start": job.start_time, "run_time": job.finish_time - job.start_time, "nodes": list(job.nodes),
                "slowdown": job.contention_slowdown, **classes[job.id],
            }  # fmt: skip
    if hold:
        keys = {job.id: made.key_of(job.id) for job in flow.jobs}
        made.hold = holds(flow, {name: job["start"] for name, job in made.forecast.items()}, keys, to)
    return made


def _find(found: list[Watched], workflow: str) -> Watched:
    """Return the workflow of this id, or the latest of this name; one that has not ended comes first."""
    named = [w for w in found if w.id == workflow] or [w for w in found if w.id.rpartition(".")[0] == workflow]
    if not named:
        raise InvalidJobError(
            f"you have no workflow {workflow!r}{did_you_mean(workflow, [w.id for w in found], cutoff=0.5)}"
        )
    alive = [w for w in named if workflow_reply(w)["finish_time"] is None]
    return (alive or named)[-1]


def _job(found: list[Watched], target: str) -> tuple[Watched, str]:
    """Return the job WORKFLOW/JOB, or JOB of the latest workflow that has one, or the job with this id."""
    workflow, slash, name = target.partition("/")
    if not slash:
        for watched in reversed(found):
            by_id = {str(job.id): other for other, job in watched.jobs.items()}
            if target in watched.names or target in by_id:
                return watched, target if target in watched.names else by_id[target]
        raise InvalidJobError(f"no workflow of yours has a job {target!r} (name it as WORKFLOW/JOB)")
    watched = _find(found, workflow)
    if name not in watched.names:
        raise InvalidJobError(f"{watched.id} has no job {name!r}{did_you_mean(name, watched.names)}")
    return watched, name
