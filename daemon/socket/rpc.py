"""The requests of clients, such as submit, status and explain; `Requests` lists them all.

Rule: every request is answered; a wrong one changes nothing and gets one sentence back. A workflow is accepted whole or
not at all. Who changes something is written to the log and to the journal.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

from ...built_from import full_version
from ...formats.documents.files import without_collections
from ...formats.text import clean, count
from ...profiles.identity import seen_by_others
from ...simulate.errors import InvalidJobError, PilotfishError, did_you_mean
from ...simulate.model.cluster import Cluster
from ...simulate.model.observed_queue import ObservedJob
from ...simulate.model.snapshot import JobState
from ..canary.canary_watch import CanaryWatch
from ..deciders import SERVICE_ACCOUNT, administrator
from ..learning.forecast_errors import owner_of
from ..learning.job_profiles import GivenProfiles
from ..loop import Cycle
from ..report.accuracy import LATEST
from ..report.job_log import RELEARNED
from ..report.own_order import with_own_order
from ..report.selection import Chosen
from ..report.status_documents import (
    LOOKED_AT_ONCE,
    MOST_JOBS,
    Documents,
    VisibleJobs,
    limit_document,
    member_document,
    nodes,
    runs_without_us,
    view_document,
)
from ..state.divided_work import Steps, finish
from ..state.job_stages import JobStage
from ..state.journal import Journal
from ..state.queue import Submission
from ..state.queue_entry import Entry
from ..state.recorded_outcome import ForecastOutcome, QueueRecord
from ..state.users import Peer, user_name
from .access import Access, ForbiddenError
from .canary_requests import CanaryRequests
from .intake import Answer, Intake, text_of
from .ipc import refusal
from .log_requests import LogRequests, Reaped
from .page_requests import PageRequests
from .pause_requests import PauseRequests

log = logging.getLogger("pilotfish.requests")
RECENT = 20
#: Jobs that are cancelled in one step.
CANCELLED_AT_ONCE = 1000
#: Lines of the log about the requests of one user in a minute.
MOST_LINES = 60
#: Characters of what a user chooses by.
_LONGEST_NAME = 256
#: What the document of a job says of its run.
_OF_RUNS = ("start_time", "finish_time", "exit_code", "signal", "forecast_run_time", "stdout", "stderr")
#: Why a job waits whose submission failed without a clear answer.
UNSETTLED = "its last start failed, but may still happen: it is tried again once that is impossible"
#: Read all fields of a record, in order.
_OUTCOME = [member.name for member in fields(ForecastOutcome)]
_PROFILE, _values_of = _OUTCOME.index("profile"), attrgetter(*_OUTCOME)
_start_values = attrgetter(*(member.name for member in fields(QueueRecord)))


class Requests:
    """Answers requests between cycles; `handle` never raises.

    Args:
        cycle: of the daemon.
        journal: has the workflows that have ended.
        cluster: where submitted jobs must fit.
        profiles: replace default profiles by what earlier runs showed.
        access: judges who may do what.
        reload: reads the configuration again, and returns what it changes. Raises ConfigError.
        why_not_ready: returns what keeps jobs from being planned or started, or "".
        reaped: returns what the reaper did, see `log_requests.audit_reply`.
        open_again: opens the service in another mode.
    """

    def __init__(
        self,
        cycle: Cycle,
        journal: Journal,
        cluster: Cluster,
        profiles: GivenProfiles,
        access: Access,
        reload: Callable[[], dict[str, Any]] = dict,
        why_not_ready: Callable[[], str] = lambda: "",
        reaped: Reaped = lambda question: [],
        open_again: Callable[[], None] = lambda: None,
    ) -> None:
        self._why_not_ready = why_not_ready
        self._cycle, self._tracker, self._journal, self._cluster = cycle, cycle.tracker, journal, cluster
        self._adapter, self._profiles, self._access, self._read_again = cycle.adapter, profiles, access, reload
        self._minute, self._lines = 0, Counter[int]()
        self._documents = Documents(journal, cycle.adapter, cluster)
        self._intake = Intake(cycle, journal, cluster, profiles, access)
        self._pauses = PauseRequests(cycle, access)
        self._log_requests = LogRequests(cycle, journal, access, reaped)
        self._canary = next((one for one in cycle.observers if isinstance(one, CanaryWatch)), None)
        self._pages = PageRequests(cycle, access, self._overall)
        self._calls: dict[str, Callable[[dict[str, Any], Peer], dict[str, Any] | Answer]] = {
            "submit": self._submit,
            "status": self._status,
            "nodes": self._nodes,
            "cancel": self._cancel,
            "explain": self._explain,
            "accuracy": self._accuracy,
            "rights": lambda request, peer: {"uid": peer.uid, "administers": self._access.administers(peer)},
            "board": self._pages.board,
            "card": self._pages.card,
            "reload": self._reload,
            "pause": self._pauses.pause,
            "resume": self._pauses.resume,
            "step_up": CanaryRequests(cycle, self._canary, access, open_again).step_up,
            "log": self._log_requests.log,
        }

    def handle(self, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        """Answer one request of a user, all steps at once."""
        return finish(self.steps(request, peer))

    def steps(self, request: dict[str, Any], peer: Peer) -> Answer:
        """Answer one request of a user in steps, between which others are answered, and cycles may begin."""
        do = str(request.get("do"))
        call = self._calls.get(do)
        if call is None:
            return refusal(f"found {do[:40]!r} (allowed: {', '.join(self._calls)})", 404)
        log.debug("%s asks for %s", peer, do)
        try:
            peer = self._pages.seen_as(request, peer)
            if self._tracker.snapshot is not None:
                self._cycle.queue_forecasts.observe(self._tracker.snapshot)
            with without_collections():
                reply = call(request, peer)
            if isinstance(reply, Generator):
                reply = yield from _without_collections(reply)
            return {"ok": True, "time": self._tracker.present, "seen": self._tracker.now, **reply}
        except ForbiddenError as error:
            self._log(peer, f"was refused: {do}: {clean(str(error))}")
            return refusal(str(error), 403)
        except PilotfishError as error:
            return refusal(str(error))
        except Exception as error:
            log.exception("a request for %s failed", request["do"])
            return refusal(f"the daemon failed on this request ({type(error).__name__}); its log has details", 500)

    def _log(self, peer: Peer, text: str) -> None:
        """Log what a user did, at most MOST_LINES lines of each user a minute: journald drops lines of a flood."""
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._lines = minute, Counter()
        self._lines[peer.uid] += 1
        if self._lines[peer.uid] <= MOST_LINES:
            log.info("%s %s", peer, text)
        elif self._lines[peer.uid] == MOST_LINES + 1:
            log.info("%s makes many requests; what it does this minute is not logged any more", peer)

    def _submit(self, request: dict[str, Any], peer: Peer) -> Answer:
        reply = yield from self._intake.steps(request, peer)
        if not reply["again"]:
            self._log(peer, f"submitted {reply['id']} with {count(reply['jobs'], 'job')}")
        return reply

    def _status(self, request: dict[str, Any], peer: Peer) -> Answer:
        shown = VisibleJobs(_chosen(request), self._access.view_of(peer))
        if request.get("workflow") is not None:
            submission = yield from self._find(text_of(request, "workflow"), peer)
            document = yield from self._documents.workflow(submission, shown)
            reply: dict[str, Any] = {"workflows": [document], "workflows_left_out": 0}
        else:
            active, chosen = self._tracker.queue.submissions, shown.chosen
            ended = {
                id: owner == peer.uid
                for id, owner in self._journal.recent(RECENT, peer.uid).items()
                if id not in active and chosen.named(id) and shown.of_owner(owner)
            }
            present = [flow for flow in active.values() if shown.has(flow)]
            present.sort(key=lambda flow: flow.owner != peer.uid)  # one's own first, because their number is bounded
            reply = yield from self._documents.overview(present, ended, shown)
            reply["queue"], reply["queue_left_out"] = yield from self._waiting_elsewhere(shown)
            reply["forecast_time"] = self._cycle.queue_forecasts.time
            reply["forecasts"] = self._cycle.queue_forecasts.source()
        all_words = self._access.administers(peer)
        for workflow in reply["workflows"]:
            for job in workflow["jobs"]:
                self._documents.add_queued(job, self._cycle.queue_forecasts, self._tracker.snapshot)
                if not all_words and (job.get("owner") or workflow["owner"]) != str(peer):
                    job["profile"] = seen_by_others(job["profile"])
            workflow["set_aside"] = self._cycle.planner.isolation.reasons.get(workflow["id"], "")
        return self._overall() | reply

    def _overall(self) -> dict[str, Any]:
        """Return what is to be known of the whole service."""
        guard = self._cycle.planner.forecasts.guard
        worst = guard.worst
        return {
            "version": full_version(),
            "mode": self._cycle.mode,
            "run_mode": str(self._cycle.applier.mode),
            "policy": self._cycle.planner.policy_for(self._tracker.queue),
            "cluster": self._cluster.name,
            "blocked": self._tracker.blocked,
            "handover": None if self._canary is None else self._canary.document(),
            "pauses": [asdict(pause) for pause in self._tracker.pauses],
            "not_ready": self._why_not_ready(),
            "limit": limit_document(self._cycle.planner.kept.limit),
            "closed_queues": list(load.closed) if (load := self._adapter.load()) else [],
            "model": {
                "doubt": self._cycle.planner.kept.doubt().text,
                "overruled": "" if guard.overruled_model is None else guard.overruled_model[1],
            },
            "guard": {
                "median_factor": None if (median := guard.median(worst)) is None else 1.0 + median,
                "bound": 1.0 + guard.bound,
                **worst._asdict(),
            },
        }

    def _waiting_elsewhere(self, shown: VisibleJobs) -> Steps[tuple[list[dict[str, Any]], int]]:
        """Return documents of the jobs that wait and are not handed over, and the number of those left out."""
        forecasts, queue, chosen = self._cycle.queue_forecasts, self._tracker.queue, shown.chosen
        if forecasts.observed is None or chosen.workflow is not None or chosen.state not in (None, "pending"):
            return [], 0
        every, jobs = forecasts.observed.jobs, list[ObservedJob]()
        for first in range(0, len(every), LOOKED_AT_ONCE):
            yield
            part = every[first : first + LOOKED_AT_ONCE]
            jobs += [job for job in part if job.waiting and shown.queued(job) and queue.find(job.key) is None]
        return [forecasts.document(job) for job in jobs[:MOST_JOBS]], max(0, len(jobs) - MOST_JOBS)

    def _nodes(self, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        snapshot, chosen = self._tracker.snapshot, _chosen(request)
        if snapshot is None:
            raise PilotfishError("the daemon has not read the nodes yet; try again in a few seconds")
        shown = nodes(snapshot, self._tracker.queue, chosen, self._access.view_of(peer))
        return {"cluster": snapshot.cluster.name, "nodes": shown}

    def _cancel(self, request: dict[str, Any], peer: Peer) -> Answer:
        target = text_of(request, "target")
        submission = yield from self._find(target.partition("/")[0], peer)
        entries = [(yield from self._entry(target, peer))] if "/" in target else list(submission.entries.values())
        if submission.offered:
            why = "a job handed over by its user can only be cancelled in the resource manager"
            raise InvalidJobError(f"{target}: {why}")
        self._access.check_change(peer, submission)
        alive = [entry for entry in entries if not entry.state.ended]
        if not alive:
            raise InvalidJobError(f"{target} has ended already ({submission.state})")
        chosen = [entry for entry in reversed(alive) if not entry.cancel_wanted]  # a job before those that it waits for
        if chosen:
            self._log(peer, f"cancels {clean(target)}")
            self._tracker.note_change("cancel", str(peer), target, submission.owner)
            for first in range(0, len(chosen), CANCELLED_AT_ONCE):
                if first:
                    yield
                self._tracker.cancel(chosen[first : first + CANCELLED_AT_ONCE], str(peer))
        ending = sum(not entry.state.ended for entry in alive)
        return {"cancelled": len(alive) - ending, "ending": ending, "warning": self._tracker.blocked}

    def _explain(self, request: dict[str, Any], peer: Peer) -> Answer:
        target = text_of(request, "job")
        try:
            return (yield from self._explain_own(target, peer))
        except InvalidJobError:
            if elsewhere := self._explain_elsewhere(target, peer):
                return elsewhere
            raise

    def _explain_own(self, target: str, peer: Peer) -> Answer:
        """Return what is known of a job that was handed over or submitted here."""
        sees = self._access.view_of(peer)
        if "/" not in target:
            owners = self._journal.workflows_with(target).items()
            workflows = [id for id, owner in owners if sees(owner)]
            if not workflows:
                present = self._tracker.queue.submissions.values()
                names = (job for one in present if sees(one.owner) and not one.offered for job in one.entries)
                hint = did_you_mean(target, names)
                raise InvalidJobError(f"no workflow has a job {target!r}{hint or ' (name it as WORKFLOW/JOB)'}")
            target = f"{workflows[0]}/{target}"
        entry = yield from self._entry(target, peer)
        submission = yield from self._find(target.partition("/")[0], peer)
        document = self._documents.job(entry)
        waits = entry.let_go if entry.state is JobState.PENDING else ""
        if entry.waiting:
            waits = entry.wait_reason or self._tracker.limited.get(entry.key) or self._tracker.left.get(entry.key, "")
        elif entry.stage is JobStage.UNSETTLED:
            waits = UNSETTLED
        self._documents.add_queued(document, self._cycle.queue_forecasts, self._tracker.snapshot)
        story, since = self._journal.records(entry.key), entry.since
        if entry.let_go:
            story += runs_without_us(document)
        begin = submission.submit_time if since is None else since
        owner = owner_of(entry, submission)
        if not self._access.owned_by(peer)(owner):
            document["profile"], story = seen_by_others(document["profile"]), list(map(_for_others, story))
        return {
            "job": document,
            "owner": _name(owner),
            "submit_time": min([begin, *(record["time"] for record in story)]),
            "after": list(entry.job.after),
            "group": self._group_of(entry.key),
            "waits": self._tracker.stuck.get(entry.key) or waits,
            "story": story,
        }

    def _explain_elsewhere(self, target: str, peer: Peer) -> dict[str, Any] | None:
        """Return what is known of a job that is not handed over, or that is left alone; None: there is no such job."""
        forecasts, snapshot = self._cycle.queue_forecasts, self._tracker.snapshot
        key = target if "/" in target else f"{self._adapter.name}/{target}"
        job, view = forecasts.find(key), snapshot.jobs.by_key.get(key) if snapshot else None
        control = self._canary.control(key) if self._canary is not None and job is None and view is None else None
        owner = job.owner if job else view.job.owner if view else control.owner if control else None
        is_unknown = job is None and view is None and control is None
        if is_unknown or self._tracker.queue.find(key) or not self._access.sees(peer, owner):
            return None
        document = {**dict.fromkeys(_OF_RUNS), "reason": "", **(view_document(view) if view else {})}
        if control is not None:
            document |= member_document(control)
        if job is not None:
            document |= forecasts.document(job)
        why = view.due_why if view else ""
        waits = "it is not handed over: the resource manager decides when it starts"
        return {
            "job": document,
            "forecast_time": forecasts.time,
            "owner": document["owner"],
            "submit_time": document["submit_time"] or self._tracker.now,
            "after": list(job.after) if job else [],
            "group": self._group_of(key),
            "waits": (why or waits) if document["state"] == JobState.PENDING else "",
            "story": runs_without_us(document),
        }

    def _group_of(self, key: str) -> str:
        """Return to which group of the canary a job belongs and why, or ""."""
        return "" if self._canary is None else self._canary.words(key)

    def _accuracy(self, request: dict[str, Any], peer: Peer) -> Answer:
        if not self._access.sees(peer, None):
            raise ForbiddenError("only an administrator may see the forecasts of all users here (access.see: own)")
        records = yield from self._journal.queued_steps(LATEST)
        starts = [record for record in records if record.start_time is not None]
        outcomes = yield from self._journal.forecasts_steps(LATEST)
        yield
        jobs = with_own_order(outcomes, starts, self._cluster, self._tracker.present)
        yield
        owns = self._access.owned_by(peer)
        return {
            "jobs": [_outcome_values(job, own=owns(job.user)) for job in jobs],
            "starts": [list(_start_values(record)) for record in starts],
        }

    def _reload(self, request: dict[str, Any], peer: Peer) -> dict[str, Any]:
        self._access.check_administers(peer)
        log.info("%s reloads the configuration", peer)
        reply = self._read_again()
        by = SERVICE_ACCOUNT if peer.uid == os.getuid() else administrator(str(peer))
        self._tracker.note_change("reload", by, why=", ".join(reply.get("changed", ())))
        self._tracker.save()
        return reply

    def _find(self, workflow: str, peer: Peer) -> Steps[Submission]:
        """Return a workflow, in steps; one that the user may not see is not there. Raises InvalidJobError."""
        submission = self._tracker.queue.submissions.get(workflow) or (yield from self._documents.ended(workflow))
        if submission is None or not (submission.offered or self._access.sees(peer, submission.owner)):
            recent = self._journal.recent(RECENT, peer.uid).items()
            shown = [id for id, owner in recent if self._access.sees(peer, owner)]
            named = [key for key in shown if key.rpartition(".")[0] == workflow]
            alive = [key for key in self._tracker.queue.submissions if key in named]
            if named:  # of several of one name, the one that still runs, else the latest
                return (yield from self._find((alive or named)[-1], peer))
            hint = did_you_mean(workflow, [*shown, *dict.fromkeys(id.rpartition(".")[0] for id in shown)], cutoff=0.5)
            raise InvalidJobError(f"no workflow {workflow!r} exists{hint}")
        return submission

    def _entry(self, key: str, peer: Peer) -> Steps[Entry]:
        workflow, _, job = key.partition("/")
        submission = yield from self._find(workflow, peer)
        if not submission.offered:
            if job not in submission.entries:
                hint = did_you_mean(job, submission.entries)
                raise InvalidJobError(f"workflow {workflow!r} has no job {job!r}{hint}")
            return submission.entries[job]
        entry = submission.entries.get(job) or submission.let_go.get(job)
        entry = entry or self._journal.handed_over_entry(workflow, job)
        if entry is None or not self._access.sees(peer, owner_of(entry, submission)):
            raise InvalidJobError(f"{workflow} has no job {job!r} that was handed over")
        return entry


def _without_collections(steps: Answer) -> Answer:
    """Go through steps without the garbage collector, because they make many objects at once."""
    while True:
        try:
            with without_collections():
                next(steps)
        except StopIteration as end:
            reply: dict[str, Any] = end.value
            return reply
        yield


def _outcome_values(job: ForecastOutcome, *, own: bool) -> list[Any]:
    """Return a forecast's values, without the words of its command unless the job is the user's own."""
    values = list(_values_of(job))
    if not own and job.profile:
        values[_PROFILE] = seen_by_others(job.profile)
    return values


def _for_others(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of a job's story without the words of its command, which a profile's name may have."""
    if record["kind"] == RELEARNED:
        profile, comma, runs = record["text"].rpartition(", ")
        return record | {"text": f"profile {seen_by_others(profile.removeprefix('profile '))}{comma}{runs}"}
    data = record["data"]
    has_profile = isinstance(data, dict) and isinstance(data.get("profile"), str)
    return record | {"data": data | {"profile": seen_by_others(data["profile"])}} if has_profile else record


def _chosen(request: dict[str, Any]) -> Chosen:
    """Return what a request asks to see."""
    names = [name for name in Chosen.__slots__ if request.get(f"of_{name}")]
    return Chosen(**{name: text_of(request, f"of_{name}", longest=_LONGEST_NAME) for name in names})


def _name(owner: int | None) -> str | None:
    return None if owner is None else user_name(owner)
