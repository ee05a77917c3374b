"""The planning problem: how it is made from the queue and a snapshot, how to plan it, and what a plan starts now.

Rule: the planner gets all unfinished jobs (of thousands, a shortlist) as one workflow, with all running jobs, ours or
not, where they run. A job that fits no usable node now is left out with its successors, and so is one that something
other than a job of ours keeps from starting; so neither delays the others.

Rule of the shortlist: the first jobs in the order of service (by submission and file, each after its predecessors), and
as many of the jobs that may start now, taken in turns from each shape, so that neither a long chain in front nor jobs
too large for a node keep the others out. The rest is planned as these start. Up to that many jobs, all are considered,
but jobs of several nodes that leave room for others there only on SHARED nodes in all: they all slow each other, and a
simulated run takes time with the square of their nodes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, nsmallest

from ...simulate.model.capacity import EmptyNodes
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Job, Workflow
from ...simulate.model.node_power import NodePower
from ...simulate.model.objective import Submitted
from ...simulate.model.plan import Place, Plan, PlannedJob, RunningJob, Start, Submit
from ...simulate.model.snapshot import JobState, JobView, NodeState, Snapshot, holds_nodes
from ...simulate.queue_policies.kept import Kept
from ..state.forecasts import NOW_S
from ..state.job_stages import JobStage
from ..state.queue import JobEvent, Queue
from ..state.queue_entry import Entry, Shape, busy
from .plan_steps import in_steps

#: Progress of a job that has run for as long as forecast, or longer: it may end at any moment.
ALMOST_DONE = 0.989
#: By what share of its time so far a job that outlasts its forecast goes on until a plan with it has drifted.
OVERDUE_SHARE = 0.1
#: More jobs make a search take seconds and improve nothing about the next hour.
WINDOW = 256
#: Why the start of a job beyond the window is unknown.
LATER = "its start is unknown, because the plan considers the jobs before it first"
#: Nodes of the waiting jobs of several nodes that share them; 1,024 take 0.1 s a run, 4,096 take 1 s.
SHARED = 1024
#: Least weight of a job among others; the site's priorities may differ by any factor.
LIGHTEST = 0.1


@dataclass(frozen=True, slots=True)
class Options:
    """Options of planning, as in `simulate.planning.planner.plan`.

    Args:
        time_limit: of a search, seconds; becomes `should_stop` when it begins.
        breathe: called before each simulated run of a plan.
        window: the most waiting jobs to consider, None = all; else a policy in Python has foresight, too (see
            `plan_bounds`).
        latency_s: how much later than its nodes are free a job starts that was handed over, seconds; `all_late`: any
            job, also one of ours.
        power: power states of the nodes, for a policy that switches them.
        place_all: place every job that is handed over, also where that gains nothing (see `placement_gain`).
        now: time of the snapshot, epoch seconds; `kept`: what the policy knows of the time before (see `kept_policy`).
    """

    policy: str = "lookahead"
    objective: str = "makespan"
    seed: int = 0
    budget: int | None = None
    time_limit: float | None = None
    should_stop: Callable[[], bool] | None = None
    breathe: Callable[[], None] | None = None
    window: int | None = None
    place_all: bool = False
    latency_s: float = 0.0
    all_late: bool = False
    now: float = 0.0
    kept: Kept | None = None
    power: NodePower | None = None


@dataclass(frozen=True)
class Problem:
    """The jobs and nodes to be planned.

    Args:
        workflow: all jobs that are waiting or running, under their keys.
        running: those that run, ours or not.
        available: names of the nodes that may be used.
        startable: the jobs that may start now, by key.
        stuck: why a job fits no usable node, by key; it is not in the workflow.
        beyond: jobs were left out because there are too many.
        submitted: what users submitted, of the jobs in the workflow.
        observes: a plan is wanted for its forecasts of jobs that have just begun, also if none may start.
    """

    workflow: Workflow
    running: tuple[RunningJob, ...]
    available: tuple[str, ...]
    startable: dict[str, Entry]
    stuck: dict[str, str]
    beyond: bool = False
    submitted: tuple[Submitted, ...] = ()
    observes: bool = False

    def late(self, *, every: bool) -> Collection[str]:
        """Return the jobs that start later than their nodes are free; `every`: all that do not run yet."""
        if every:
            return self.workflow.index.keys() - {job.id for job in self.running}
        return {key for key, entry in self.startable.items() if entry.offered}


Planner = Callable[[Problem, Cluster, Options], Plan]


def starts(plan: Plan, problem: Problem) -> list[tuple[Start, PlannedJob]]:
    """Return the jobs that the plan starts now, in the plan's order, each with its forecast."""
    decisions = []
    for planned in plan.jobs:
        entry = problem.startable.get(planned.id)
        if entry is not None and planned.start_time <= NOW_S:
            start = planned.id, entry.job, planned.nodes
            decisions.append((Place(*start) if entry.offered else Submit(*start, entry.followed), planned))
    return decisions


def next_due(plan: Plan, problem: Problem) -> float:
    """Return after how many seconds the plan has drifted if nothing has happened by then; inf = never.

    A job that has run for as long as forecast may end at any moment, in this plan and in the next. So its end, and
    starts at that time or later, are not due; the plan has drifted once the job has run OVERDUE_SHARE longer.
    """
    running = {job.id: job for job in problem.running}
    overdue = {job.id for job in problem.running if job.progress >= ALMOST_DONE}
    unknown = min((planned.finish_time for planned in plan.jobs if planned.id in overdue), default=math.inf)
    due = [running[key].elapsed_s * OVERDUE_SHARE + 1.0 for key in overdue]
    due += [
        planned.finish_time * 1.1 + 1.0 if planned.id in running else planned.start_time
        for planned in plan.jobs
        if planned.id not in overdue
        and (planned.id in running or (planned.id in problem.startable and NOW_S < planned.start_time < unknown))
    ]
    return min(due, default=math.inf)


class Obstacles:
    """Reasons why jobs fit no usable node, in successive snapshots; found once for each shape while no node changes."""

    def __init__(self) -> None:
        self._nodes: tuple[Cluster, tuple[str, ...]] | None = None
        self._reasons: dict[Shape, str | None] = {}

    def of(
        self, entries: Iterable[Entry], snapshot: Snapshot, returning: Collection[str] = ()
    ) -> Mapping[Shape, str | None]:
        """Return why jobs fit no usable node, None if they fit, by shape. O(nodes) for each new shape."""
        usable = _names_in(snapshot, NodeState.UP, NodeState.ASLEEP)
        if returning:
            usable = tuple(dict.fromkeys((*usable, *returning)))
        if self._nodes is None or self._nodes[0] is not snapshot.cluster or self._nodes[1] != usable:
            self._nodes, self._reasons = (snapshot.cluster, usable), {}
        before, reasons, empty = self._reasons, dict[Shape, str | None](), None
        for shape, entry in {entry.shape: entry for entry in entries}.items():
            if shape in before:
                reasons[shape] = before[shape]
            else:
                empty = empty or EmptyNodes(snapshot.cluster, frozenset(usable))
                reasons[shape] = empty.never_fits(entry.job)
        self._reasons = reasons
        return reasons


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another user's running job: its view, and the job under its key on those of its nodes that the cluster has."""

    view: JobView
    job: Job
    nodes: tuple[str, ...]


class Neighbours:
    """The neighbours in one snapshot after another; a view that has not changed is not converted again.

    `obstacles` says the same of what does not fit.
    """

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._known: dict[str, Neighbour] = {}
        self.obstacles = Obstacles()

    def of(self, views: Iterable[JobView], cluster: Cluster) -> Iterator[Neighbour]:
        """Yield those of the views that hold nodes of the cluster. O(views)."""
        before = self._known if cluster is self._cluster else {}
        self._cluster, self._known = cluster, {}
        for view in views:
            if not holds_nodes(view):
                continue
            neighbour = before.get(view.key)
            if neighbour is None or neighbour.view is not view:
                nodes = tuple(name for name in view.nodes if name in cluster.index)
                job = dataclasses.replace(view.job, id=view.key, after=(), nodes=max(1, len(nodes)))
                neighbour = Neighbour(view, job, nodes)
            self._known[view.key] = neighbour
            if neighbour.nodes:
                yield neighbour


def running_view(key: str, job: Job, nodes: tuple[str, ...], start_time: float) -> JobView:
    """Return a running job as `Progress` follows it; `start_time` in epoch seconds."""
    return JobView(key, job, JobState.RUNNING, nodes, start_time=start_time)


def running_jobs(queue: Queue, snapshot: Snapshot) -> dict[str, JobView]:
    """Return the running jobs to simulate, by key: ours, and the others that share a node with ours.

    Other jobs are not simulated; their elapsed time is used instead.
    """
    views = dict(snapshot.jobs.holding)
    running: dict[str, JobView] = {}
    for entry in queue.active():
        views.pop(entry.key, None)
        if busy(entry) and entry.start_time is not None and (nodes := _known(entry.nodes, snapshot.cluster)):
            running[entry.key] = running_view(entry.key, queue.as_planned(entry), nodes, entry.start_time)
    shared = {name for view in running.values() for name in view.nodes}
    for view in views.values():
        if view.start_time is None or shared.isdisjoint(view.nodes):
            continue
        if nodes := _known(view.nodes, snapshot.cluster):
            running[view.key] = running_view(view.key, view.job, nodes, view.start_time)
    return running


def just_ended(queue: Queue, events: Sequence[JobEvent]) -> dict[str, JobView]:
    """Return the jobs that had started and have just ended, by key."""
    return {
        entry.key: running_view(entry.key, queue.as_planned(entry), entry.nodes, entry.start_time)
        for entry in (event.entry for event in events)
        if entry.state.ended and entry.start_time is not None
    }


def build_problem(
    queue: Queue,
    snapshot: Snapshot,
    progress: Callable[[str], float | None] = lambda key: None,
    window: int | None = None,
    neighbours: Neighbours | None = None,
    set_aside: Callable[[Iterable[str]], Mapping[str, str]] = lambda keys: {},
    returning: Collection[str] = (),
    breathe: Callable[[], None] = lambda: None,
) -> Problem:
    """Return the planning problem of this moment. O(jobs + nodes + nodes x new shapes of jobs).

    The queue is read in one step, so that all of the problem is of one state of it.

    Args:
        queue: the jobs.
        snapshot: the cluster and its jobs at this moment.
        progress: share of its work that a running job has done, [0, 1], by key; None = estimate it from time. Does not
            breathe.
        window: the most waiting jobs to consider, see the rule; None = all.
        neighbours: of the snapshot before.
        set_aside: returns those of the jobs that are not to be planned, with the reasons, by key.
        returning: nodes that take no job now, but that a job may wait for.
        breathe: called between two steps, so that the caller can do other work; it may change the queue.
    """
    neighbours = neighbours or Neighbours()
    views = {view.key: view for view in in_steps(snapshot.jobs, breathe) if not view.state.ended}
    waiting: list[Entry] = []
    placed: dict[str, RunningJob] = {}
    active = queue.active()
    placeable, holding = list[Entry](), list[Entry]()
    for entry in active:
        (holding if busy(entry) or entry.stage is JobStage.UNSETTLED else placeable).append(entry)
    obstacles = neighbours.obstacles.of(placeable, snapshot, returning)
    stuck = dict(set_aside(entry.key for entry in active if entry.waiting))
    own_views = {entry.key: view for entry in active if (view := views.pop(entry.key, None))} if views else {}
    priorities = {key: view.priority for key, view in own_views.items() if view.priority is not None}
    for entry in holding:
        if nodes := _known(entry.nodes, snapshot.cluster):
            begun, expected = entry.start_time, entry.expected
            span = expected - begun if expected is not None and begun is not None else None
            share_done = _progress(entry.job, begun, span, own_views.get(entry.key), snapshot.time, progress(entry.key))
            placed[entry.key] = RunningJob(entry.key, nodes, share_done, _elapsed(begun, snapshot.time))
    hindered = any(obstacles.values())
    for entry in placeable:
        if entry.key in stuck or (entry.wait_reason and not queue.unmet(entry)):
            continue
        if hindered and (reason := obstacles[entry.shape]):
            stuck[entry.key] = reason
        else:
            waiting.append(entry)
    cores = max((kind.cores for kind in snapshot.cluster.types), default=1)
    chosen, beyond = _shortlisted(waiting, placed, queue, window, cores)
    startable = {e.key: e for e in chosen if queue.ready(e) and e.not_before <= snapshot.time}
    planned = {entry.key for entry in chosen}
    jobs = []
    for entry in [entry for entry in active if entry.key in placed or entry.key in planned]:
        job = queue.as_planned(entry)
        if run := placed.get(entry.key):
            as_it_is = not job.after and job.nodes == len(run.nodes)
            job = job if as_it_is else dataclasses.replace(job, after=(), nodes=len(run.nodes))
        jobs.append(job)
    available = _available(snapshot, [entry.job for entry in startable.values()])
    names = {job.id for job in jobs}
    weights = _weights({key: priority for key, priority in priorities.items() if key in names})
    submitted = tuple(_submitted(queue, names, snapshot.time, weights))
    running = list(placed.values())
    for other in neighbours.of(in_steps(views.values(), breathe), snapshot.cluster):
        jobs.append(other.job)
        view, simulated = other.view, progress(other.job.id)
        share_done = _progress(view.job, view.start_time, None, view, snapshot.time, simulated)
        running.append(RunningJob(other.job.id, other.nodes, share_done, _elapsed(view.start_time, snapshot.time)))
    return Problem(Workflow("queue", tuple(jobs)), tuple(running), available, startable, stuck, beyond, submitted)


def _weights(priorities: Mapping[str, float]) -> dict[str, float]:
    """Return how much the wait of each job counts: its priority over their mean, from LIGHTEST to 1 / LIGHTEST."""
    mean = sum(priorities.values()) / max(len(priorities), 1)
    return {key: min(max(priority / mean, LIGHTEST), 1.0 / LIGHTEST) for key, priority in priorities.items()}


def _submitted(queue: Queue, planned: Collection[str], now: float, weights: Mapping[str, float]) -> Iterator[Submitted]:
    """Yield what users submitted: a workflow is one, and so is each job that was handed over."""
    for submission in queue.submissions.values():
        together = [list(submission.entries.values())]
        if submission.offered:
            together = [[entry] for entry in together[0]]
        for entries in together:
            keys = tuple(entry.key for entry in entries if entry.key in planned)
            ends = [entry.plain_end for entry in entries if entry.plain_end is not None]
            since = entries[0].since if submission.offered and keys else submission.submit_time
            if keys:
                waited = 0.0 if since is None else max(0.0, now - since)
                weight = max(weights.get(key, 1.0) for key in keys)
                yield Submitted(keys, waited, max(ends) - now if ends else None, weight)


def _names_in(snapshot: Snapshot, *kinds: NodeState) -> tuple[str, ...]:
    states, names = snapshot.node_states, snapshot.cluster.index
    if sum(map(states.count, kinds)) == len(states):
        return tuple(names)
    return tuple(name for name, state in zip(names, states, strict=True) if state in kinds)


def _available(snapshot: Snapshot, jobs: list[Job]) -> tuple[str, ...]:
    """Return the nodes that are up, and those asleep too if a startable job would have to wait without them."""
    up = _names_in(snapshot, NodeState.UP)
    if NodeState.ASLEEP not in snapshot.node_states:
        return up
    occupancy = snapshot.jobs.occupancy(snapshot.cluster)
    for job in jobs:
        free = [name for name in up if occupancy.obstacle(job, name) is None]
        if len(free) < job.nodes:
            return _names_in(snapshot, NodeState.UP, NodeState.ASLEEP)
        occupancy.place(job, tuple(free[: job.nodes]))
    return up


def _known(nodes: tuple[str, ...], cluster: Cluster) -> tuple[str, ...]:
    is_node = cluster.index.__contains__
    return nodes if all(map(is_node, nodes)) else tuple(filter(is_node, nodes))


def _elapsed(begun: float | None, now: float) -> float:
    return 0.0 if begun is None else now - begun


def _progress(
    job: Job, begun: float | None, span: float | None, view: JobView | None, now: float, simulated: float | None
) -> float:
    """Return the share of work done: as simulated, else elapsed time over the latest forecast; at most by CPU time.

    CPU time alone would overestimate a job that waits for memory: a stalled thread uses time without progress.
    """
    if begun is None:
        return 0.0
    if simulated is None:
        simulated = (now - begun) / max(job.profile.isolated_time if span is None else span, 1e-9)
    used = dict(view.usage).get("cpu_seconds") if view and view.usage else None
    if used is not None:
        simulated = min(simulated, used / (job.nodes * sum(group.count * group.demand for group in job.profile.groups)))
    return max(simulated, 0.0) if simulated < 1.0 else ALMOST_DONE


def _shortlisted(
    waiting: Sequence[Entry], placed: Collection[str], queue: Queue, most: int | None, cores: int
) -> tuple[list[Entry], bool]:
    """Return the waiting jobs to plan, in the order given, and whether others are left out. O(jobs + edges).

    A job is left out if a predecessor is neither waiting here, nor `placed` on its nodes, nor completed; `cores` are
    those of the largest node.
    """
    blockers = [
        sum(other.key not in placed for other in queue.unmet(entry)) if entry.job.after else 0 for entry in waiting
    ]
    position = {waiting[i].key: i for i, count in enumerate(blockers) if count > 0}
    ready = [i for i, count in enumerate(blockers) if count == 0]
    heap, chosen, shared, beyond = ready.copy(), set[int](), 0, False
    while heap and (most is None or len(chosen) < most):
        i = heappop(heap)
        nodes = _shared_nodes(waiting[i], cores)
        if most is not None and shared and nodes and shared + nodes > SHARED:
            beyond = True
            continue
        shared += nodes
        chosen.add(i)
        workflow = waiting[i].workflow
        for name in queue.submissions[workflow].successors.get(waiting[i].job.id, ()):
            k = position.get(f"{workflow}/{name}", -1)
            if k >= 0:
                blockers[k] -= 1
                if blockers[k] == 0:
                    heappush(heap, k)
    if heap and most is not None:
        for i in _in_turns([i for i in ready if queue.ready(waiting[i])], waiting, most):
            nodes = 0 if i in chosen else _shared_nodes(waiting[i], cores)
            if not (nodes and shared and shared + nodes > SHARED):
                shared += nodes
                chosen.add(i)
    return [waiting[i] for i in sorted(chosen)], beyond or bool(heap)


def _shared_nodes(entry: Entry, cores: int) -> int:
    """Return the nodes on which a job of several nodes leaves room for others; 0 for any other job."""
    nodes, threads, _, _ = entry.shape
    return nodes if nodes > 1 and threads < cores else 0


def _in_turns(ready: Sequence[int], waiting: Sequence[Entry], most: int) -> list[int]:
    """Return the first job of each shape, then the second of each, and so on, at most `most` of them."""
    turns, ranked = dict[object, int](), []
    for i in ready:
        turn = turns.get(shape := waiting[i].shape, 0)
        if turn < most:
            ranked.append((turn, i))
            turns[shape] = turn + 1
    return [i for _, i in nsmallest(most, ranked)]
