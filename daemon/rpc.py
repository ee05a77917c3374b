"""The requests of clients: submit, status, cancel, explain, accuracy.

Rule: every request is answered; a wrong one changes nothing and gets one sentence back. A workflow is accepted whole or
not at all.
"""

from __future__ import annotations

import difflib
import logging
import time
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from ..formats.document_errors import nearest
from ..formats.text import count
from ..profiles.classes import class_fields, classify_on
from ..simulate.errors import InvalidJobError, PilotfishError
from ..simulate.model.capacity import never_fits
from ..simulate.model.cluster import Cluster
from .codec import asked_for, at_home, decode, decode_stored, new_id
from .ipc import refusal
from .learning.job_profiles import GivenProfiles, profile_of
from .loop import Cycle
from .report.accuracy import LATEST
from .state.journal import Journal
from .state.queue import Entry, Submission

log = logging.getLogger("pilotfish.requests")
RECENT = 20


class Requests:
    """Answers requests between cycles; `handle` never raises.

    Args:
        cycle: of the daemon.
        journal: has the workflows that have ended.
        cluster: where submitted jobs must fit.
        profiles: replace default profiles by what earlier runs showed.
    """

    def __init__(self, cycle: Cycle, journal: Journal, cluster: Cluster, profiles: GivenProfiles) -> None:
        self._cycle, self._tracker, self._journal, self._cluster = cycle, cycle.tracker, journal, cluster
        self._adapter, self._profiles = cycle.adapter, profiles
        self._calls: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "submit": self._submit,
            "status": self._status,
            "cancel": self._cancel,
            "explain": self._explain,
            "accuracy": self._accuracy,
        }

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request."""
        call = self._calls.get(str(request.get("do")))
        if call is None:
            return refusal(f"do: found {str(request.get('do'))[:40]!r} (allowed: {', '.join(self._calls)})")
        try:
            return {"ok": True, **call(request)}
        except PilotfishError as error:
            return refusal(str(error))
        except Exception as error:
            log.exception("a request for %s failed", request["do"])
            return refusal(f"the daemon failed on this request ({type(error).__name__}); its log has details")

    def _submit(self, request: dict[str, Any]) -> dict[str, Any]:
        directory = _text(request, "directory")
        if not directory.startswith("/"):
            raise InvalidJobError(f"directory: found {directory!r} (allowed: an absolute path)")
        key = _text(request, "key") if request.get("key") is not None else None
        workflow = at_home(decode(_text(request, "workflow", longest=None)), directory)
        if key is not None and (known := self._journal.submitted_as(key)):
            if asked_for(decode_stored(known[1])) != asked_for(workflow):
                raise InvalidJobError(f"key {key!r} was used for another workflow ({known[0]})")
            return {"id": known[0], "jobs": len(workflow.jobs), "again": True}
        workflow = self._profiles.with_profiles(workflow)
        for job in workflow.jobs:
            if job.command is None and not self._adapter.capabilities.virtual_time:
                raise InvalidJobError(f"{workflow.name}: job {job.id!r} has no command: it can be planned, not run")
            if reason := never_fits(job, self._cluster):
                raise InvalidJobError(f"{workflow.name}: job {job.id!r} can never run here: {reason}")
        submission = Submission(new_id(workflow.name), workflow, self._tracker.now or time.time())
        self._journal.submit(submission, key)
        self._tracker.add(submission)
        log.info("accepted %s with %s", submission.id, count(len(workflow.jobs), "job"))
        return {"id": submission.id, "jobs": len(workflow.jobs), "again": False}

    def _status(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("workflow") is not None:
            found = [self._find(_text(request, "workflow"))]
        else:
            active = self._tracker.queue.submissions
            ended = [s for s in self._journal.recent(RECENT) if s.id not in active]
            found = [*ended, *active.values()]
        guard = self._tracker.forecasts.guard
        worst = guard.worst
        return {
            "mode": self._cycle.mode,
            "policy": self._cycle.planner.policy_for(self._tracker.queue),
            "cluster": self._cluster.name,
            "time": self._tracker.now,
            "blocked": self._tracker.blocked,
            "guard": {"median_error": guard.median(worst), "bound": guard.bound, **worst._asdict()},
            "workflows": [self._workflow(submission) for submission in found],
        }

    def _cancel(self, request: dict[str, Any]) -> dict[str, Any]:
        target = _text(request, "target")
        submission = self._find(target.partition("/")[0])
        entries = [self._entry(target)] if "/" in target else list(submission.entries.values())
        if submission.offered:
            why = "a job handed over by its user can only be cancelled in the resource manager"
            raise InvalidJobError(f"{target}: {why}")
        alive = [entry for entry in entries if not entry.state.ended]
        if not alive:
            raise InvalidJobError(f"{target} has ended already ({submission.state})")
        self._tracker.cancel(alive)
        ending = sum(not entry.state.ended for entry in alive)
        return {"cancelled": len(alive) - ending, "ending": ending, "warning": self._tracker.blocked}

    def _explain(self, request: dict[str, Any]) -> dict[str, Any]:
        target = _text(request, "job")
        if "/" not in target:
            workflows = self._journal.workflows_with(target)
            if not workflows:
                raise InvalidJobError(f"no workflow has a job {target!r} (name it as WORKFLOW/JOB)")
            target = f"{workflows[0]}/{target}"
        entry = self._entry(target)
        return {
            "job": self._job(entry),
            "submit_time": self._find(entry.workflow).submit_time if entry.since is None else entry.since,
            "after": list(entry.job.after),
            "waits": self._tracker.stuck.get(entry.key) or (entry.waits if entry.waiting else ""),
            "story": self._journal.records(entry.key),
        }

    def _accuracy(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"jobs": [list(astuple(job)) for job in self._journal.forecasts(LATEST)]}

    def _find(self, workflow: str) -> Submission:
        found = self._tracker.queue.submissions.get(workflow) or self._journal.find(workflow)
        if found is None:
            known = [s.id for s in self._journal.recent(RECENT)]
            named = [key for key in known if key.rpartition(".")[0] == workflow]
            alive = [key for key in self._tracker.queue.submissions if key in named]
            if named:  # of several of one name, the one that still runs, else the latest
                return self._find((alive or named)[-1])
            near = difflib.get_close_matches(workflow, known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidJobError(f"no workflow {workflow!r} exists{hint}")
        return found

    def _workflow(self, submission: Submission) -> dict[str, Any]:
        state, finish = submission.state, None
        if state.ended:
            finish = max((e.finish_time or 0.0) for e in submission.entries.values())
        return {
            "id": submission.id,
            "name": submission.workflow.name,
            "state": str(state),
            "set_aside": self._tracker.isolation.reasons.get(submission.id, ""),
            "submit_time": submission.submit_time,
            "finish_time": finish,
            "exit_code": submission.exit_code,
            "jobs": [self._job(entry) for entry in submission.entries.values()],
        }

    def _job(self, entry: Entry) -> dict[str, Any]:
        forecast, job_class = entry.forecast, classify_on(entry.job.profile, self._cluster, entry.nodes)
        within = forecast.run_within if forecast else None
        files = self._adapter.output(entry.key) if entry.start_time is not None else None
        return {
            "id": entry.job.id,
            "key": entry.key,
            "state": str(entry.state),
            "nodes": list(entry.nodes),
            **{name: getattr(entry, name) for name in ("start_time", "finish_time", "exit_code", "signal", "reason")},
            "forecast_run_time": forecast.run_time if forecast else None,
            "forecast_run_within": list(within) if within else None,
            "forecast_finish_time": entry.expected,
            "contention_slowdown": forecast.contention_slowdown if forecast else None,
            "profile": profile_of(entry.job),
            "profile_source": entry.job.profile.provenance.source,
            **class_fields(job_class),
            "stdout": str(files[0]) if files else None,
            "stderr": str(files[1]) if files else None,
        }

    def _entry(self, key: str) -> Entry:
        workflow, _, job = key.partition("/")
        submission = self._find(workflow)
        entries = submission.entries
        if submission.offered and job not in entries and (before := self._journal.find(workflow)):
            entries = before.entries
        if job not in entries:
            raise InvalidJobError(f"workflow {workflow!r} has no job {job!r}{nearest(job, entries)}")
        return entries[job]


def _text(request: dict[str, Any], name: str, longest: int | None = 4096) -> str:
    value = request.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidJobError(f"{name}: found {type(value).__name__} (allowed: text)")
    if longest is not None and (len(value) > longest or not value.isprintable()):
        raise InvalidJobError(f"{name}: too long, or not printable")
    return value
