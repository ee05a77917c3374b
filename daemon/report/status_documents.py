"""What `status` shows of workflows: bounded documents, made without reading a large workflow again.

Rule: the number of jobs and workflows in a reply is bounded, whatever the queue holds; the reply says how many are left
out, and counts all jobs by state. Of a workflow with more jobs, the most urgent are shown.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Any

from ...adapters.base import Adapter
from ...profiles.classes import class_fields, classify_on
from ...simulate.model.cluster import Cluster
from ...simulate.model.snapshot import JobState
from ..ipc import user_name
from ..learning.job_profiles import profile_of
from ..state.journal import Journal
from ..state.queue import Entry, Submission

MOST_JOBS, MOST_WORKFLOWS = 1000, 500
#: Ended workflows that are kept in memory, by their jobs.
_MOST_KEPT = 100_000
_URGENCY = {state: 1 for state in JobState if state.takes_nodes} | {
    **dict.fromkeys((JobState.FAILED, JobState.TIMEOUT, JobState.UNKNOWN), 0),
    JobState.PENDING: 2,
}


class Documents:
    """Makes the documents.

    Args:
        journal: has the workflows that have ended.
        adapter: knows where the output of a job is.
        cluster: that jobs are classified on.
    """

    def __init__(self, journal: Journal, adapter: Adapter, cluster: Cluster) -> None:
        self._journal, self._adapter, self._cluster = journal, adapter, cluster
        self._kept: OrderedDict[str, Submission] = OrderedDict()

    def ended(self, workflow: str) -> Submission | None:
        """Return a workflow from the journal; one that has ended stays in memory for the next time."""
        found = self._kept.pop(workflow, None) or self._journal.find(workflow)
        if found is not None and not found.offered and found.state.ended:
            self._kept[workflow] = found
            while len(self._kept) > 1 and sum(len(each.entries) for each in self._kept.values()) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    def overview(self, present: Sequence[Submission], past: Iterable[str]) -> dict[str, Any]:
        """Return documents of many workflows.

        Args:
            present: workflows that have not ended.
            past: ids of ended workflows; those with more than MOST_JOBS jobs are only counted.
        """
        documents, left = [], MOST_JOBS
        for workflow in past:
            if self._journal.size(workflow) > MOST_JOBS:
                documents.append(self._journal.summary(workflow) | {"jobs": []})
            elif found := self.ended(workflow):
                documents.append(self.workflow(found, most=left))
                left -= len(documents[-1]["jobs"])
        left = max(left, MOST_JOBS // 2)
        for submission in present[:MOST_WORKFLOWS]:
            documents.append(self.workflow(submission, most=left))
            left -= len(documents[-1]["jobs"])
        return {"workflows": documents, "workflows_left_out": max(0, len(present) - MOST_WORKFLOWS)}

    def workflow(self, submission: Submission, *, most: int = MOST_JOBS) -> dict[str, Any]:
        """Return the document of a workflow, with `most` of its jobs at most."""
        entries = list(submission.entries.values())
        counts, state, finish = Counter(entry.state for entry in entries), submission.state, None
        if state.ended:
            finish = max((entry.finish_time or 0.0) for entry in entries)
        if len(entries) > most:
            urgent = nsmallest(most, range(len(entries)), key=lambda i: (_URGENCY.get(entries[i].state, 3), i))
            entries = [entries[i] for i in sorted(urgent)]
        return {
            "id": submission.id,
            "name": submission.workflow.name,
            "owner": None if submission.owner is None else user_name(submission.owner),
            "state": str(state),
            "submit_time": submission.submit_time,
            "finish_time": finish,
            "exit_code": submission.exit_code,
            "job_counts": {str(each): number for each, number in counts.items()},
            "jobs": [self.job(entry) for entry in entries],
        }

    def job(self, entry: Entry) -> dict[str, Any]:
        """Return the document of a job."""
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
            "plan": entry.outlook.to_dict() if entry.outlook and entry.waiting else None,
            "contention_slowdown": forecast.contention_slowdown if forecast else None,
            "profile": profile_of(entry.job),
            "profile_source": entry.job.profile.provenance.source,
            **class_fields(job_class),
            "stdout": str(files[0]) if files else None,
            "stderr": str(files[1]) if files else None,
        }
