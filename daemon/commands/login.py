"""`pilotfish submit`, `status`, `explain` and `cancel` over Slurm itself, for a user on a login node.

Rule: they need no daemon and ask Slurm as the user; with a daemon beside, its choices show in what Slurm says of a job.
Exit codes are those of the service's own commands: 0 done, 1 failed or refused, 75 not known.
"""

from __future__ import annotations

import difflib
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...adapters.base import AdapterError
from ...adapters.slurm.own import OwnJobs, own_jobs
from ...simulate.errors import InvalidJobError
from ...simulate.job import Workflow
from ...simulate.snapshot import JobState
from ..login import record as records
from ..login.holds import guessed, holds
from ..login.record import BEGUN, TAKEN_BACK, WHOLE, Record
from ..login.submitting import NotKnownError, Submitter
from ..login.watching import Watched, job_reply, look, story_reply, workflow_reply
from ..naming import asked_for, at_home, id_for, new_id
from ..paths import state_dir
from . import inputs

if TYPE_CHECKING:
    from ..login.model import Settings

NOT_KNOWN = 75
_POLL_S = (1.0, 15.0)
RECENT, KEPT_S = 20, 30 * 86_400.0


def submit(
    to: Settings, path: Path, store: Path | None, *, key: str | None, hold: bool, wait: bool, patience: float
) -> int:
    """Submit a workflow, and print the id that it got; see `service.submit`."""
    directory = inputs.working_directory()
    flow = at_home(inputs.Profiles(store).read_workflow(path), str(directory))
    own, state = own_jobs(to.timeout_seconds), state_dir()
    id = id_for(flow.name, key) if key is not None else new_id(flow.name)
    with records.alone(state, id):
        records.forget(state, time.time() - KEPT_S)
        known = _known(state, id, flow)
        if known is None or known.stage != WHOLE:
            for warning in flow.warnings:
                inputs.warn(warning)
            if key is None:
                _refuse_after_half(state, flow)
            try:
                known = _submit(own, to, state, known, flow, id, key or id, directory, hold=hold)
            except NotKnownError as error:
                inputs.note(f"error: {error}")
                return NOT_KNOWN
    print(known.id, flush=True)
    return _wait_for(own, state, known.id, patience) if wait else 0


def _known(state: Path, id: str, flow: Workflow) -> Record | None:
    """What was submitted under this id before. Raises InvalidJobError: it was another workflow."""
    path = records.folder(state) / f"{id}.jsonl"
    known = records.read(path) if path.exists() else None
    if known and asked_for(known.workflow) != asked_for(flow):
        raise InvalidJobError(f"the key was used for another workflow ({id})")
    return known


def _refuse_after_half(state: Path, flow: Workflow) -> None:
    """A submission of the same that was killed is finished or taken back first: its jobs may be there."""
    for known in records.known(state):
        if isinstance(known, Record) and known.stage == BEGUN and asked_for(known.workflow) == asked_for(flow):
            raise InvalidJobError(
                f"an earlier submission of this workflow, {known.id}, was not finished: "
                f"`pilotfish submit --key {known.id} ...` goes on with it, `pilotfish cancel {known.id}` takes it back"
            )


def _submit(
    own: OwnJobs, to: Settings, state: Path, known: Record | None, flow: Workflow, id: str, key: str, directory: Path,
    *, hold: bool,
) -> Record:  # fmt: skip
    again = known is not None and known.stage == TAKEN_BACK
    made = known if known is not None and not again else _intent(to, flow, id, key, directory, hold=hold)
    submitter = Submitter(own, made, to, inputs.note, again=again)
    there = submitter.look()
    if there:
        inputs.note(f"{there} of {len(flow.jobs)} jobs of {id} are there already; it goes on with the others")
    made.outputs.mkdir(parents=True, exist_ok=True)
    if made is not known:
        made.create(records.folder(state))
    submitter.submit()
    return made


def _intent(to: Settings, flow: Workflow, id: str, key: str, directory: Path, *, hold: bool) -> Record:
    """What is to be submitted, with the forecast where the nodes and what the jobs need are known."""
    outputs = (Path(to.output_dir).expanduser() if to.output_dir else directory) / id
    made = Record(id, key, flow, time.time(), directory / outputs)
    unknown = guessed(flow)
    if to.cluster and len(unknown) < len(flow.jobs):
        from ..classed import classes_of

        inputs.load_simulator()
        site = inputs.read_cluster(Path(to.cluster))
        plan = inputs.wishes("lookahead", "makespan", 0, None, 10.0).plan(flow, site)
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


def status(to: Settings, workflow: str | None, *, everything: bool, as_json: bool) -> int:
    """Show one's workflows; see `service.status`."""
    own = own_jobs(to.timeout_seconds)
    found = _look(own)
    chosen = [_find(found, workflow)] if workflow is not None else found
    replies = [workflow_reply(watched) for watched in chosen]
    if workflow is None:
        ended = [reply["id"] for reply in replies if reply["finish_time"] is not None][:-RECENT]
        replies = [reply for reply in replies if reply["id"] not in ended]
    reply = {"cluster": "slurm", "time": time.time(), "blocked": "", "workflows": replies}
    if as_json:
        print(json.dumps(reply, indent=1))
    else:
        from ..render.service import show_status

        show_status(reply, everything=everything or workflow is not None)
    for watched in chosen:
        if watched.record and watched.record.stage == BEGUN:
            there, of = len(watched.record.ids), len(watched.names)
            inputs.warn(
                f"{watched.id} was not submitted to its end ({there} of {of} jobs): the same with "
                f"`--key {watched.record.key}` goes on, `pilotfish cancel {watched.id}` takes it back"
            )
    return 0


def explain(to: Settings, target: str, *, as_json: bool) -> int:
    """Tell a job's story; see `service.explain`."""
    own = own_jobs(to.timeout_seconds)
    watched, name = _job(_look(own), target)
    try:
        now = own.time()
    except AdapterError:
        now = time.time()
    reply = story_reply(watched, name, now)
    if as_json:
        print(json.dumps(reply, indent=1))
    else:
        from ..render.service import show_story

        show_story(reply)
    return 0


def cancel(to: Settings, target: str) -> int:
    """Cancel a workflow or a job; see `service.cancel`."""
    own = own_jobs(to.timeout_seconds)
    found = _look(own)
    watched = _find(found, target.partition("/")[0])
    names = [_job(found, target)[1]] if "/" in target else watched.names
    alive = [watched.jobs[name] for name in names if name in watched.jobs and not watched.jobs[name].state.ended]
    if watched.record and watched.record.stage == BEGUN and "/" not in target:
        watched.record.reached(TAKEN_BACK)
    elif not alive:
        raise InvalidJobError(f"{target} has ended already ({_state(watched, names)})")
    own.cancel([job.id for job in alive])
    waiting = sum(job.state is JobState.PENDING for job in alive)
    print(f"{waiting} cancelled, {len(alive) - waiting} being ended")
    return 0


def _state(watched: Watched, names: list[str]) -> str:
    return str(job_reply(watched, names[0])["state"] if len(names) == 1 else workflow_reply(watched)["state"])


def _look(own: OwnJobs) -> list[Watched]:
    said: list[str] = []
    found = look(own, records.known(state_dir()), said)
    for problem in said:
        inputs.warn(problem)
    return found


def _find(found: list[Watched], workflow: str) -> Watched:
    """The workflow of this id, or the latest of this name, one that goes on before one that has ended."""
    named = [w for w in found if w.id == workflow] or [w for w in found if w.id.rpartition(".")[0] == workflow]
    if not named:
        near = difflib.get_close_matches(workflow, [w.id for w in found], n=1, cutoff=0.5)
        raise InvalidJobError(f"you have no workflow {workflow!r}{f'; did you mean {near[0]!r}?' if near else ''}")
    alive = [w for w in named if workflow_reply(w)["finish_time"] is None]
    return (alive or named)[-1]


def _job(found: list[Watched], target: str) -> tuple[Watched, str]:
    """The job called WORKFLOW/JOB, or JOB in the latest workflow that has one, or the one of this id of Slurm's."""
    workflow, slash, name = target.partition("/")
    if not slash:
        for watched in reversed(found):
            by_id = {str(job.id): other for other, job in watched.jobs.items()}
            if target in watched.names or target in by_id:
                return watched, target if target in watched.names else by_id[target]
        raise InvalidJobError(f"no workflow of yours has a job {target!r} (name it as WORKFLOW/JOB)")
    watched = _find(found, workflow)
    if name not in watched.names:
        near = difflib.get_close_matches(name, watched.names, n=1)
        raise InvalidJobError(f"{watched.id} has no job {name!r}{f'; did you mean {near[0]!r}?' if near else ''}")
    return watched, name


def _wait_for(own: OwnJobs, state: Path, id: str, patience_s: float) -> int:
    """The workflow's exit code once it has ended; NOT_KNOWN where nobody can tell."""
    pause, longest = _POLL_S
    away: float | None = None
    while True:
        try:
            reply = workflow_reply(_find(look(own, [records.read(records.folder(state) / f"{id}.jsonl")], []), id))
            away = None
        except AdapterError as error:
            now = time.monotonic()
            if away is None:
                away = now
                inputs.note(f"{error}; {id} is asked for again for {patience_s:g} s")
            if now - away >= patience_s:
                return _give_up(id, str(error))
        else:
            if reply["exit_code"] is not None:
                return _told(reply)
            if reply["state"] == JobState.UNKNOWN:
                return _give_up(id, "jobs have left the queue")
        time.sleep(pause)
        pause = min(1.2 * pause, longest)


def _told(reply: dict[str, Any]) -> int:
    from ..render.service import failure_lines

    for line in failure_lines(reply):
        inputs.note(line)
    return int(reply["exit_code"])


def _give_up(id: str, why: str) -> int:
    inputs.note(f"error: how {id} ends is not known: {why} (`pilotfish status {id}` asks again)")
    return NOT_KNOWN
