"""The check before applying: does each action still fit the cluster as a fresh snapshot shows it?

Rule: pure, with the same capacity rule that policies use. A rejection is a normal outcome, counted; the rest is
applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..formats.hostlist import fold
from ..formats.text import count
from ..simulate.model.capacity import Occupancy
from ..simulate.model.plan import Action, Cancel, Rejection, Start
from ..simulate.model.snapshot import JobView, Snapshot


def check(actions: Iterable[Action], snapshot: Snapshot) -> list[Rejection]:
    """Return the actions that `snapshot` no longer allows, and why. O(nodes + actions).

    Args:
        actions: in order; an accepted start uses capacity for those after it.
        snapshot: read after the decision.
    """
    occupancy, views = snapshot.jobs.occupancy(snapshot.cluster), snapshot.jobs.by_key
    rejections = []
    for action in actions:
        reason = ""
        if isinstance(action, Cancel):
            reason = _cancel_obstacle(action, views)
        elif isinstance(action, Start):
            reason = _start_obstacle(action, views, snapshot, occupancy)
        if reason:
            rejections.append(Rejection(action, reason))
        elif isinstance(action, Start):
            occupancy.place(action.job, action.nodes)
    return rejections


def _cancel_obstacle(action: Cancel, views: Mapping[str, JobView]) -> str:
    view = views.get(action.key)
    if view is None:
        return "the resource manager does not know this job"
    return f"the job has ended already ({view.state})" if view.state.ended else ""


def _start_obstacle(action: Start, views: Mapping[str, JobView], snapshot: Snapshot, occupancy: Occupancy) -> str:
    view = views.get(action.key)
    if view is not None and not view.restartable:
        return f"the job is {view.state} already"
    if view is not None and view.offered and view.waits:
        return f"it has to wait: {view.waits}"
    if (number := len(set(action.nodes))) != action.job.nodes:
        names = f" ({fold(action.nodes)})" if action.nodes else ""
        return f"the plan names {count(number, 'node')}{names}, the job asks for {action.job.nodes}"
    index, states = snapshot.cluster.index, snapshot.node_states
    for name in action.nodes:
        obstacle = occupancy.obstacle(action.job, name)
        if view is not None and view.offered and view.job.allowed is not None and name not in view.job.allowed:
            obstacle = obstacle or f"it may not run on {name}"
        if obstacle is None and not (state := states[index[name]]).takes_jobs:
            obstacle = f"{name} is {state}"
        if obstacle:
            return obstacle
    return ""
