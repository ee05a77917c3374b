"""The state of a user's workflows: the records of submissions combined with what the resource manager shows now.

Rule: it shows only the user's own jobs, and works without records: the key of a job names its workflow. The end of
a job that has left the queue is known from an earlier reply, from accounting, or because a successor has started;
otherwise it is reported as unknown. The replies have the shapes of the daemon's (see `daemon.socket.rpc`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...adapters.user_jobs import Story, UserJob, UserJobs
from ...daemon.state.endings import ending
from ...daemon.state.profile_labels import profile_of
from ...formats.hostlist import fold, with_cores
from ...profiles.classes import class_fields, classify_there
from ...simulate.model.snapshot import JobState
from .submission_records import BEGUN, TAKEN_BACK, SubmissionRecord, parts_of
from .submit import output_files

LOST = "it has left the queue; how it ended is unknown"
_RECORDED_KEYS = ("state", "nodes", "start_time", "finish_time", "exit_code", "signal", "reason")


@dataclass(slots=True)
class Watched:
    """A workflow: the record of its submission, if known, and its jobs in the queue by name.

    `handed_over`: it stands for the single jobs that the user handed over, by id, and has the resource manager's name.
    """

    id: str
    record: SubmissionRecord | None = None
    jobs: dict[str, UserJob] = field(default_factory=dict)
    handed_over: bool = False

    @property
    def names(self) -> list[str]:
        """Return its jobs in the order of the file, or of submission."""
        if self.record:
            return [job.id for job in self.record.workflow.jobs]
        return sorted(self.jobs, key=lambda name: self.jobs[name].id)

    @property
    def submit_time(self) -> float:
        """Epoch seconds."""
        if self.record:
            return self.record.time
        return min((job.submit for job in self.jobs.values() if job.submit is not None), default=0.0)

    def after(self, name: str) -> list[str]:
        """Return the known predecessors of a job: names, or ids of jobs of other workflows."""
        if self.record:
            return list(self.record.workflow.jobs[self.record.workflow.index[name]].after)
        by_id = {job.id: job_name for job_name, job in self.jobs.items()}
        return [by_id.get(number, str(number)) for number in (self.jobs[name].after if name in self.jobs else ())]


def read_workflows(own: UserJobs, records: Iterable[SubmissionRecord]) -> list[Watched]:
    """Return every workflow of the user, the oldest first, and last the jobs that were handed over, if there are any.

    Raises AdapterError: the queue cannot be read.
    """
    single = Watched(own.manager.lower(), handed_over=True)
    workflows = {record.id: Watched(record.id, record) for record in records}
    recorded = {number for watched in workflows.values() if watched.record for number in watched.record.ids.values()}
    for job in sorted(own.jobs(), key=lambda job: (job.id in recorded, parts_of(job.key)[1], job.id)):
        workflow, _, name = parts_of(job.key)
        if job.handed_over and not job.key:
            if not job.state.ended:
                single.jobs[str(job.id)] = job
        elif name:
            workflows.setdefault(workflow, Watched(workflow)).jobs[name] = job
    unknown = {
        number: (watched.jobs, name)
        for watched in workflows.values()
        if (record := watched.record)
        for name, number in record.ids.items()
        if name not in watched.jobs and name not in record.ended
    }
    for job in own.ended(unknown) if unknown else ():  # by one request to accounting
        if job.id in unknown:
            jobs, name = unknown[job.id]
            jobs[name] = job
    for watched in workflows.values():
        _record_ended(watched)
    flows = sorted(workflows.values(), key=lambda watched: watched.submit_time)
    return [*flows, single] if single.jobs else flows


def _record_ended(watched: Watched) -> None:
    """Record how jobs ended, before they are forgotten."""
    record = watched.record
    for name, job in watched.jobs.items() if record else ():
        if record and job.state.ended and name not in record.ended and name in record.workflow.index:
            shown = job_reply(watched, name)
            record.has_ended(name, {key: shown[key] for key in _RECORDED_KEYS})


def workflow_reply(watched: Watched) -> dict[str, Any]:
    """Return a workflow as `status` shows it."""
    jobs = [job_reply(watched, name) for name in watched.names]
    states = {JobState(job["state"]) for job in jobs}
    state = _overall(states)
    finish = max((job["finish_time"] or 0.0 for job in jobs), default=0.0)
    settled = state.ended or state is JobState.UNKNOWN
    return {
        "id": watched.id,
        "name": watched.record.workflow.name if watched.record else watched.id.rpartition(".")[0] or watched.id,
        "state": str(state),
        "submit_time": watched.submit_time,
        "finish_time": (finish or watched.submit_time) if settled else None,
        "exit_code": int(state is not JobState.COMPLETED) if state.ended else None,
        "handed_over": watched.handed_over,
        "jobs": jobs,
    }


def _overall(states: set[JobState]) -> JobState:
    """Return the state of a workflow; UNKNOWN if all jobs have ended, none failed, and some ends are unknown."""
    order = (JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED, JobState.UNKNOWN, JobState.COMPLETED)
    if all(state.ended or state is JobState.UNKNOWN for state in states):
        return next(state for state in order if state in states)
    return JobState.PENDING if states == {JobState.PENDING} else JobState.RUNNING


def job_reply(watched: Watched, name: str) -> dict[str, Any]:
    """Return a job as `status` shows it."""
    record, job = watched.record, watched.jobs.get(name)
    forecast = record.forecast.get(name) if record else None
    reply = {
        "id": name,
        "key": f"{watched.id}/{name}",
        "forecast_run_time": forecast["run_time"] if forecast else None,
        "forecast_finish_time": watched.submit_time + forecast["start"] + forecast["run_time"] if forecast else None,
        "contention_slowdown": forecast["slowdown"] if forecast else None,
        **(_queued(job) if job else _not_queued(watched, name)),
    }
    if job and watched.handed_over:
        reply |= {"name": job.name, "partition": job.partition, "priority": job.priority}
    if record:
        job_asked = record.workflow.jobs[record.workflow.index[name]]
        reply |= {"profile": profile_of(job_asked), **class_fields(classify_there(job_asked.profile))}
        reply |= {key: forecast[key] for key in ("class", "class_why") if forecast and key in forecast}
    files = output_files(record, name) if record and reply["start_time"] is not None else None
    return reply | {"stdout": str(files[0]) if files else None, "stderr": str(files[1]) if files else None}


def _queued(job: UserJob) -> dict[str, Any]:
    return {
        "state": str(job.state),
        "nodes": list(job.nodes),
        "start_time": job.start,
        "finish_time": job.end,
        "exit_code": job.exit_code,
        "signal": job.signal,
        "reason": job.reason,
        "manager_start_time": job.estimate,
    }


def _not_queued(watched: Watched, name: str) -> dict[str, Any]:
    """Return what is known of a job that is not in the queue."""
    record, state, reason = watched.record, JobState.UNKNOWN, LOST
    if record is None:
        pass
    elif record.stage == TAKEN_BACK:
        state, reason = JobState.CANCELLED, "its submission was taken back"
    elif name not in record.ids:
        if record.stage == BEGUN:
            state, reason = JobState.PENDING, "it is not submitted"
    elif any(_has_begun(watched, job.id) for job in record.workflow.jobs if name in job.after):
        state, reason = JobState.COMPLETED, ""
    recorded = record.ended.get(name, {}) if record else {}
    return {**dict.fromkeys(_RECORDED_KEYS), "state": str(state), "nodes": [], "reason": reason, **recorded}


def _has_begun(watched: Watched, name: str) -> bool:
    """Return whether a job has started, which implies that its predecessors have completed."""
    job = watched.jobs.get(name)
    if job:
        return job.follows
    return bool(watched.record and watched.record.ended.get(name, {}).get("start_time") is not None)


def log_reply(watched: Watched, name: str, manager: str, story: Story) -> dict[str, Any]:
    """Return the log of a job of a workflow, for `explain`.

    Args:
        watched: the workflow.
        name: of the job.
        manager: name of the resource manager.
        story: what that knows of the job.
    """
    job, shown = watched.jobs.get(name), job_reply(watched, name)
    began = (job.submit if job else None) or watched.submit_time
    return {
        "job": shown,
        "submit_time": began,
        "after": watched.after(name),
        "waits": story.waits if job else shown["reason"] if shown["state"] == JobState.PENDING else "",
        "story": [
            {"time": time, "cycle": None, "kind": kind, "text": text, "data": None}
            for time, kind, text in _log(watched, name, shown, began, manager, story)
        ],
    }


def _log(
    watched: Watched, name: str, shown: dict[str, Any], began: float, manager: str, story: Story
) -> list[tuple[float, str, str]]:
    entries: list[tuple[float, str, str]] = []
    job, record = watched.jobs.get(name), watched.record
    number = job.id if job else record.ids.get(name) if record else None
    hold = job.hold_s if job else record.hold.get(name) if record else None
    if number is not None:
        held = f", held for pilotfish for {hold} s at most" if hold else ""
        entries.append((began, "submitted", f"as job {number} of {manager}{held}"))
    forecast = record.forecast.get(name) if record else None
    if forecast:
        nodes, slow = fold(forecast["nodes"]), forecast["slowdown"]
        start = f"start after {forecast['start']:.1f} s on {nodes}, run for {forecast['run_time']:.1f} s"
        entries.append((began, "forecast", start + (f", slowdown {slow:.2f}" if slow >= 1.005 else "")))
    entries += story.before
    if shown["start_time"] is not None:
        where = with_cores(shown["nodes"], story.cores if all(story.cores) else ())
        entries.append((shown["start_time"], "started", f"on {where}"))
        entries += story.after
    if shown["finish_time"] is not None:
        text = ending(shown["state"], shown["exit_code"], shown["signal"], shown["reason"] or "")
        entries.append((shown["finish_time"], "ended", text))
    return entries
