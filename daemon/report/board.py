"""The board: all nodes and jobs of this moment as columns, for pages that show every one of them.

Rule: a row has the few values that a picture needs, so that 10,000 jobs are one reply. It is made in steps, and
bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...simulate.model.observed_queue import ObservedJob
from ...simulate.model.snapshot import JobState, JobView, Snapshot
from ..state.divided_work import Steps
from ..state.queue import Queue
from ..state.queue_entry import Entry
from ..state.users import user_name
from .queue_forecasts import QueueForecasts
from .selection import Chosen
from .status_documents import VisibleJobs, nodes

#: Jobs on a board, and those that are looked at in one step.
MOST_JOBS, ROWS_AT_ONCE = 20_000, 1000
#: Values of a job, in the order of a row; None: not known. Times are whole epoch seconds, and expected ones of what has
#: not happened yet. `nodes` are pairs of the first and last position of nodes that follow each other in the cluster.
JOB_COLUMNS = (
    "key", "name", "uid", "partition", "state", "decided_by", "submit_time",
    "start_time", "start_early", "start_late", "finish_time", "finish_early", "finish_late",
    "walltime", "tasks", "manager_start_time", "nodes", "why",
)  # fmt: skip
#: Values of a node, each a column.
NODE_COLUMNS = ("name", "state", "cores", "threads", "jobs", "bandwidth", "memory_bandwidth", "power_watts")
Row = list[Any]
_MANAGER = "the resource manager"


class Board:
    """Makes the rows.

    Args:
        queue: the jobs that are ours, or were handed over.
        forecasts: of the resource manager's queue.
        snapshot: the latest one.
        sees: of whom jobs are shown.
        leaves: why waiting jobs are not placed now, by key.
    """

    def __init__(
        self,
        queue: Queue,
        forecasts: QueueForecasts,
        snapshot: Snapshot,
        shown: VisibleJobs,
        leaves: Sequence[Mapping[str, str]],
    ) -> None:
        self._queue, self._forecasts, self._snapshot = queue, forecasts, snapshot
        self._shown, self._leaves = shown, leaves
        self._position = {node.name: number for number, node in enumerate(snapshot.cluster.nodes)}

    def document(self) -> Steps[dict[str, Any]]:
        """Return the board, in steps. O(nodes + jobs).

        Its `nodes` have one list for each of NODE_COLUMNS, its `jobs` one row of JOB_COLUMNS each, and `users` the
        names of the uids in them.
        """
        rows, left_out = list[Row](), 0
        for number, make in enumerate(self._jobs()):
            if number % ROWS_AT_ONCE == 0:
                yield
            if make is not None and len(rows) < MOST_JOBS:
                rows.append(make())
            else:
                left_out += make is not None
        yield
        owners = {row[JOB_COLUMNS.index("uid")] for row in rows} - {None}
        cluster_nodes = nodes(self._snapshot, self._queue, Chosen(), self._shown.sees)
        return {
            "nodes": {name: [_rounded(node[name]) for node in cluster_nodes] for name in NODE_COLUMNS},
            "columns": JOB_COLUMNS,
            "jobs": rows,
            "jobs_left_out": left_out,
            "users": {str(uid): user_name(uid) for uid in owners},
        }

    def _jobs(self) -> Iterator[Callable[[], Row] | None]:
        """Yield what makes the row of each job: ours, the others of the queue, and what else holds nodes.

        None stands for a job that has ended, has a row, or is not shown, so that a step ends among many of them, too.
        """
        keys, observed, shows = set[str](), self._forecasts.observed, self._shown.of_owner
        for submission in self._queue.submissions.values():
            for entry in submission.entries.values():
                owner = entry.job.owner if submission.offered else submission.owner
                if not entry.state.ended:
                    keys.add(entry.key)
                yield None if entry.state.ended or not shows(owner) else partial(self._own_row, entry, owner)
        for job in observed.jobs if observed else ():
            yield None if job.key in keys or not shows(job.owner) else partial(self._queued_row, job)
            keys.add(job.key)
        for key, view in self._snapshot.jobs.by_key.items():
            hidden = key in keys or view.state.ended or not shows(view.job.owner)
            yield None if hidden else partial(self._view_row, view)

    def _own_row(self, entry: Entry, owner: int | None) -> Row:
        plan, forecast, row = entry.outlook, entry.forecast, _row(entry.key, entry.name, owner, entry.state)
        job = self._forecasts.waiting(entry.key) if entry.state is JobState.PENDING else None
        row |= {"partition": entry.partition, "submit_time": entry.since, "walltime": entry.job.walltime}
        row |= {"nodes": self._ranges(entry.nodes), "decided_by": entry.let_go}
        if job is not None:
            row |= self._expectation(job)
        if entry.state is not JobState.PENDING:
            early, late = (forecast.within if forecast else None) or (None, None)
            row |= {"start_time": entry.start_time, "finish_time": entry.expected}
            row |= {"finish_early": early, "finish_late": late}
        elif plan is not None and entry.waiting:
            begin, bounds = plan.time + plan.planned.late_s, plan.planned.within
            row |= {"start_time": begin + plan.planned.start_time, "finish_time": begin + plan.planned.finish_time}
            row["nodes"] = self._ranges(plan.planned.nodes)
            if bounds is not None:
                row |= {"finish_early": begin + bounds.earliest, "finish_late": begin + bounds.latest}
        if entry.waiting:
            reasons = [entry.wait_reason, *(reasons.get(entry.key, "") for reasons in self._leaves)]
            row["why"] = next(filter(None, reasons), row["why"])
        return _values(row)

    def _queued_row(self, job: ObservedJob) -> Row:
        row = _row(job.key, job.name, job.owner, job.state)
        row |= {"partition": job.queue, "submit_time": job.submit_time, "walltime": job.walltime, "tasks": job.tasks}
        row["decided_by"] = _MANAGER
        if job.waiting:
            return _values(row | self._expectation(job))
        row |= {"start_time": job.start_time, "nodes": self._ranges(job.where)}
        return _values(row | self._forecasts.end_of_run(job))

    def _view_row(self, view: JobView) -> Row:
        traits = dict(view.job.traits)
        row = _row(view.key, traits.get("executable", ""), view.job.owner, view.state)
        row |= {"partition": traits.get("queue", ""), "walltime": view.job.walltime, "why": view.reason}
        row |= {"submit_time": view.submit_time, "start_time": view.start_time, "nodes": self._ranges(view.nodes)}
        return _values(row | {"decided_by": _MANAGER})

    def _expectation(self, job: ObservedJob) -> dict[str, Any]:
        """Return what is expected of a waiting job, by us and by the resource manager."""
        forecast = self._forecasts.of(job)
        early, late = forecast.start_within or (None, None)
        soonest, latest = forecast.finish_within or (None, None)
        return {
            "start_time": forecast.start_time,
            "start_early": early,
            "start_late": late,
            "finish_time": forecast.finish_time,
            "finish_early": soonest,
            "finish_late": latest,
            "manager_start_time": job.manager_start,
            "why": forecast.unknown,
        }

    def _ranges(self, names: Iterable[str]) -> list[tuple[int, int]]:
        """Return the positions of nodes as ranges, ascending; names that the cluster does not have are left out."""
        ranges = list[tuple[int, int]]()
        for position in sorted(self._position[name] for name in names if name in self._position):
            if ranges and ranges[-1][1] == position - 1:
                ranges[-1] = ranges[-1][0], position
            else:
                ranges.append((position, position))
        return ranges


def _row(key: str, name: str, owner: int | None, state: JobState) -> dict[str, Any]:
    words = {"key": key, "name": name, "uid": owner, "state": str(state)}
    return dict[str, Any].fromkeys(JOB_COLUMNS) | words | {"decided_by": "", "tasks": 1, "why": ""}


def _values(row: dict[str, Any]) -> Row:
    """Return a row; a waiting job says why it waits, but where its place in the resource manager's queue says all."""
    if row["state"] != "pending":
        row["why"] = ""
    elif not row["why"] and row["decided_by"] != _MANAGER:
        row["why"] = row["decided_by"] or "waits for its planned start"
    return [round(value) if isinstance(value, float) else value for value in row.values()]


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
