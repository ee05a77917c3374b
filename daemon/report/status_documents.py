"""Documents of `status` and `nodes`: bounded, and made without reading a large workflow again.

Rule: the number of jobs and workflows in a reply is bounded, whatever the queue holds; the reply says how many are left
out, and counts all jobs by state. Of a workflow with more jobs, the most urgent are shown.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from heapq import nsmallest
from typing import Any

from ...adapters.base import Adapter
from ...formats.hostlist import fold
from ...simulate.model.cluster import Cluster, Node
from ...simulate.model.job import Job
from ...simulate.model.observed_queue import ObservedJob
from ...simulate.model.snapshot import JobState, JobView, Snapshot
from ...simulate.queue_policies.kept import LimitNow
from ..state.divided_work import Steps
from ..state.endings import ending
from ..state.handed_over import TAKEN_BACK
from ..state.journal import Journal
from ..state.members import Member
from ..state.profile_labels import has_default_profile, label_of
from ..state.queue import Queue, Submission
from ..state.queue_entry import Entry
from ..state.users import user_name
from .metrics import node_watts
from .queue_forecasts import QueueForecasts
from .selection import Chosen

MOST_JOBS, MOST_WORKFLOWS = 1000, 500
#: Jobs that are looked at in one step.
LOOKED_AT_ONCE = 5000
#: Ended workflows that are kept in memory, by their jobs.
_MOST_KEPT = 100_000
_URGENCY = {state: 1 for state in JobState if state.takes_nodes} | {
    **dict.fromkeys((JobState.FAILED, JobState.TIMEOUT, JobState.UNKNOWN), 0),
    JobState.PENDING: 2,
}


class VisibleJobs:
    """The jobs in a reply: those of the chosen ones that a user may see.

    Args:
        chosen: by the user.
        sees: whether the user may see what belongs to a uid; None: of many users, or not known.
    """

    def __init__(self, chosen: Chosen, sees: Callable[[int | None], bool]) -> None:
        self.chosen, self.sees = chosen, sees
        self._owners = dict[int | None, bool]()
        self._looked_at = 0

    def of_owner(self, owner: int | None) -> bool:
        """Return whether what belongs to a user may be shown; each user is looked up once."""
        if owner not in self._owners:
            self._owners[owner] = self.sees(owner) and self.chosen.owned(_name(owner))
        return self._owners[owner]

    def has(self, submission: Submission) -> bool:
        """Return whether a workflow may be shown; each job that was handed over has an owner of its own."""
        return self.chosen.named(submission.id) and (submission.offered or self.of_owner(submission.owner))

    def in_any_state(self, submission: Submission) -> Steps[list[Entry]]:
        """Return the jobs of a workflow that may be shown, whatever their state, in steps."""
        every, visible = list(submission.entries.values()), list[Entry]()
        for first in range(0, len(every), LOOKED_AT_ONCE):
            part = every[first : first + LOOKED_AT_ONCE]
            self._looked_at += len(part)
            if self._looked_at > LOOKED_AT_ONCE:
                yield
                self._looked_at = len(part)
            visible += self._visible(submission, part)
        return visible

    def _visible(self, submission: Submission, entries: list[Entry]) -> list[Entry]:
        chosen = self.chosen
        if submission.offered:
            entries = [entry for entry in entries if self.of_owner(entry.job.owner)]
        if chosen.partition is not None:
            entries = [entry for entry in entries if submission.offered and entry.partition == chosen.partition]
        if chosen.name is not None:
            entries = [entry for entry in entries if chosen.called(entry.name if submission.offered else entry.job.id)]
        return entries

    def any_of(self, submission: Submission) -> Steps[bool]:
        """Return whether a job of a workflow is shown, in steps."""
        entries, state = (yield from self.in_any_state(submission)), self.chosen.state
        return any(state in (None, str(entry.state)) for entry in entries)

    def queued(self, job: ObservedJob) -> bool:
        """Return whether a job of the resource manager's queue is shown."""
        matches = self.chosen.partition in (None, job.queue) and self.chosen.called(job.name)
        return matches and self.of_owner(job.owner)


def queue_fields(job: Job, since: float | None, let_go: str = "", standing: str = "let go") -> dict[str, Any]:
    """Return what users know a job of the resource manager's queue by.

    Args:
        job: as it was submitted.
        since: when, epoch seconds; None: not known.
        let_go: why the resource manager alone decides about it; "": it does not.
        standing: what that is called.
    """
    if let_go == TAKEN_BACK:
        standing = "taken back"
    traits = dict(job.traits)
    return {
        "name": traits.get("executable", ""),
        "owner": _name(job.owner),
        "partition": traits.get("queue", ""),
        "priority": None,
        "submit_time": since,
        "standing": standing if let_go else "",
        "let_go": let_go,
    }


def _name(owner: int | None) -> str | None:
    return None if owner is None else user_name(owner)


class Documents:
    """Makes the documents.

    Args:
        journal: has the workflows that have ended.
        adapter: knows where the output of a job is.
        cluster: that jobs are classified on.
    """

    def __init__(self, journal: Journal, adapter: Adapter, cluster: Cluster) -> None:
        self._journal, self._adapter, self._cluster = journal, adapter, cluster
        self._recent: OrderedDict[str, Submission] = OrderedDict()

    def ended(self, workflow: str) -> Steps[Submission | None]:
        """Return a workflow from the journal, in steps; one that has ended stays in memory for the next time."""
        submission = self._recent.pop(workflow, None) or (yield from self._journal.find_steps(workflow))
        if submission is not None and not submission.offered and submission.state.ended:
            self._recent[workflow] = submission
            while len(self._recent) > 1 and sum(len(other.entries) for other in self._recent.values()) > _MOST_KEPT:
                self._recent.popitem(last=False)
        return submission

    def overview(
        self, present: Sequence[Submission], past: Mapping[str, bool], shown: VisibleJobs
    ) -> Steps[dict[str, Any]]:
        """Return documents of many workflows, in steps; without any job that is chosen, a workflow is left out.

        Args:
            present: workflows that have not ended.
            past: by the id of each ended workflow, the newest last, whether it is the user's own. MOST_JOBS jobs are
                read, first those of the newest ones of the user; the jobs of the other workflows are only counted.
            shown: the jobs in the documents.
        """
        ended, unread, spare = dict[str, dict[str, Any]](), MOST_JOBS, MOST_JOBS
        own_last = sorted(past, key=past.__getitem__)
        for workflow in reversed(own_last):
            summary = self._journal.summary(workflow)
            jobs = sum(summary["job_counts"].values()) if summary else 0
            if summary and jobs > unread:
                ended[workflow] = summary | {"jobs": []}
            elif submission := (yield from self.ended(workflow)):
                ended[workflow] = yield from self.workflow(submission, shown, most=spare)
                unread, spare = unread - jobs, spare - len(ended[workflow]["jobs"])
        documents, spare = [ended[workflow] for workflow in past if workflow in ended], max(spare, MOST_JOBS // 2)
        if shown.chosen.narrows:
            chosen = list[Submission]()
            for flow in present:
                chosen += [flow] * (yield from shown.any_of(flow))
            present = chosen
        for flow in present[:MOST_WORKFLOWS]:
            documents.append((yield from self.workflow(flow, shown, most=spare)))
            spare -= len(documents[-1]["jobs"])
        if (state := shown.chosen.state) is not None:
            documents = [flow for flow in documents if flow["job_counts"].get(state)]
        elif shown.chosen.narrows or shown.chosen.user is not None:
            documents = [flow for flow in documents if flow["job_counts"]]
        return {"workflows": documents, "workflows_left_out": max(0, len(present) - MOST_WORKFLOWS)}

    def workflow(self, submission: Submission, shown: VisibleJobs, *, most: int = MOST_JOBS) -> Steps[dict[str, Any]]:
        """Return the document of a workflow, in steps.

        Args:
            submission: of the workflow.
            shown: the jobs in it; those in another state are counted.
            most: jobs in it, the most urgent ones.
        """
        entries, state = (yield from shown.in_any_state(submission)), shown.chosen.state
        counts, overall, finish = Counter(entry.state for entry in entries), submission.state, None
        if overall.ended:
            finish = max((entry.finish_time or 0.0) for entry in submission.entries.values())
        if state is not None:
            entries = [entry for entry in entries if entry.state == state]
        if len(entries) > most:
            urgent = nsmallest(most, range(len(entries)), key=lambda i: (_URGENCY.get(entries[i].state, 3), i))
            entries = [entries[i] for i in sorted(urgent)]
        return {
            "id": submission.id,
            "name": submission.workflow.name,
            "owner": _name(submission.owner),
            "state": str(overall),
            "handed_over": submission.offered,
            "submit_time": submission.submit_time,
            "finish_time": finish,
            "exit_code": submission.exit_code,
            "job_counts": {str(job_state): number for job_state, number in counts.items()},
            "jobs": [self.job(entry) for entry in entries],
        }

    def add_queued(self, document: dict[str, Any], forecasts: QueueForecasts, snapshot: Snapshot | None) -> None:
        """Add to the document of a waiting job what the resource manager's queue shows: its priority, and its start.

        Args:
            document: of the job.
            forecasts: of the queue.
            snapshot: the latest one; None before the first.
        """
        view = snapshot.jobs.by_key.get(document["key"]) if snapshot and "priority" in document else None
        if view is not None:
            document["priority"] = view.priority
        job = forecasts.waiting(document["key"]) if document["state"] == JobState.PENDING else None
        if job is not None:
            queued = forecasts.document(job)
            document |= {"manager_start_time": queued["manager_start_time"], "plan": document["plan"] or queued["plan"]}

    def job(self, entry: Entry) -> dict[str, Any]:
        """Return the document of a job."""
        forecast, label = entry.forecast, entry.label or label_of(entry.job, self._cluster, entry.nodes)
        within = forecast.run_within if forecast else None
        files = self._adapter.output(entry.key) if entry.start_time is not None else None
        document = queue_fields(entry.job, entry.since, entry.let_go) if entry.offered else {}
        return document | {
            "id": entry.job.id,
            "key": entry.key,
            "state": str(entry.state),
            "nodes": list(entry.nodes),
            # that of a waiting job is only expected: it was placed, or sent
            "start_time": None if entry.state is JobState.PENDING else entry.start_time,
            **{name: getattr(entry, name) for name in ("finish_time", "exit_code", "signal", "reason")},
            "walltime": entry.job.walltime,
            "forecast_run_time": forecast.run_time if forecast else None,
            "forecast_run_within": list(within) if within else None,
            "forecast_finish_time": entry.expected,
            "plan": entry.outlook.to_dict() if entry.outlook and entry.waiting else None,
            "contention_slowdown": forecast.contention_slowdown if forecast else None,
            "profile": label.profile,
            "profile_source": label.source,
            "class": label.kind,
            "class_why": label.why,
            "stdout": str(files[0]) if files else None,
            "stderr": str(files[1]) if files else None,
        }


def view_document(view: JobView) -> dict[str, Any]:
    """Return the document of a job that is not ours, as far as the resource manager shows it."""
    plain = {name: getattr(view, name) for name in ("start_time", "finish_time", "exit_code", "signal", "reason")}
    about = {"id": view.job.id, "key": view.key, "state": str(view.state), "nodes": list(view.nodes)}
    queued = queue_fields(view.job, view.submit_time, view.due_why, "left alone") | {"walltime": view.job.walltime}
    return queued | about | plain


def member_document(member: Member) -> dict[str, Any]:
    """Return the document of a job that was in the control group, and that the resource manager shows no more."""
    shown = ("key", "submit_time", "start_time", "finish_time", "walltime")
    document = dict.fromkeys(("exit_code", "signal", "priority")) | {name: getattr(member, name) for name in shown}
    about = {"id": member.key.rpartition("/")[2], "state": member.state, "nodes": [], "name": "", "reason": ""}
    queued = {"owner": _name(member.owner), "partition": member.queue, "standing": "left alone", "let_go": member.why}
    return document | about | queued


def runs_without_us(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the start and the end of a job that the resource manager alone decides, as records of the job log."""
    state, start, finish = document["state"], document["start_time"], document["finish_time"]
    how = ending(state, document["exit_code"], document["signal"], document["reason"] or "")
    where = f"on {fold(document['nodes'])}, " if document["nodes"] else ""
    log = [(start, "started", f"{where}by the resource manager"), (finish, "ended", how)]
    return [{"time": time, "cycle": None, "kind": kind, "text": text, "data": None} for time, kind, text in log if time]


def limit_document(limit: LimitNow | None) -> dict[str, Any] | None:
    """Return a limit of power or energy as `status` shows it; times that it does not have are None."""
    if limit is None:
        return None
    document = {
        "kind": "power cap" if limit.balance_j is None else "energy budget",
        "begin": limit.begin if math.isfinite(limit.begin) else None,
        "end": limit.end if math.isfinite(limit.end) else None,
        "holds": limit.holds,
        "watts": limit.watts,
    }
    if limit.balance_j is None:
        return document
    return document | {"balance_j": limit.balance_j, "consumed_j": limit.consumed_j, "consumption": "estimated"}


#: Names of jobs in a reply of `nodes`.
MOST_NAMES = 10_000


def nodes(snapshot: Snapshot, queue: Queue, chosen: Chosen, sees: Callable[[int | None], bool]) -> list[dict[str, Any]]:
    """Return documents of the nodes: the jobs that are placed there, and their needs as far as known.

    Args:
        snapshot: the nodes and their jobs.
        queue: has what is known of our jobs.
        chosen: the state of nodes; nodes with a job of this user or workflow.
        sees: whether the user may see jobs of an owner.
    """
    jobs_on: dict[str, list[tuple[JobView, Job]]] = {node.name: [] for node in snapshot.cluster.nodes}
    for key, view in snapshot.jobs.holding.items():
        entry = queue.find(key)
        for name in view.nodes:
            if name in jobs_on:
                jobs_on[name].append((view, entry.job if entry else view.job))
    threads = snapshot.jobs.occupancy(snapshot.cluster).threads
    rows, room = [], MOST_NAMES
    for node, state, placed in zip(snapshot.cluster.nodes, snapshot.node_states, threads, strict=True):
        if chosen.state not in (None, str(state)):
            continue
        owners = [(view.key, _owner(view, queue)) for view, _ in jobs_on[node.name]]
        shown = [key for key, owner in owners if sees(owner) and _wanted(key, owner, chosen)]
        if (chosen.user or chosen.workflow) and not shown:
            continue
        jobs = [job for _, job in jobs_on[node.name]]
        rows.append(_node(node, placed, jobs) | {"state": str(state), "jobs": len(jobs), "job_names": shown[:room]})
        room -= len(rows[-1]["job_names"])
    return rows


def _owner(view: JobView, queue: Queue) -> int | None:
    submission = queue.submissions.get(view.key.partition("/")[0])
    return view.job.owner if submission is None or submission.owner is None else submission.owner


def _wanted(key: str, owner: int | None, chosen: Chosen) -> bool:
    return chosen.owned(_name(owner)) and chosen.named(key.partition("/")[0])


def _node(node: Node, threads: int, jobs: Sequence[Job]) -> dict[str, Any]:
    """Return what is known of a node with so many threads placed, and these jobs."""
    rates = [_bandwidth(job) for job in jobs]
    known_rates = [rate for rate in rates if rate is not None]
    return {
        "name": node.name,
        "type": node.type.nominal.name,
        "speed": node.type.pace,
        "cores": node.type.cores,
        "threads": threads,
        "load": threads / node.type.cores,
        "bandwidth": sum(known_rates) if len(known_rates) == len(rates) else None,
        "memory_bandwidth": node.type.memory_bandwidth,
        "power_watts": node_watts(node, threads),
    }


def _bandwidth(job: Job) -> float | None:
    """Return the memory traffic of a job alone on each of its nodes, bytes/s; None if it is not known."""
    groups = job.profile.groups
    rate = sum(group.count * group.mean_utilisation * group.mean_bandwidth for group in groups)
    return rate if rate > 0.0 and not has_default_profile(job) else None
