"""From the queue and a snapshot to a planning problem, and back from the plan to starts.

Rule: the planner is given what is not finished (of thousands of jobs those within the `window`) as one workflow,
with what runs (ours or not) where it runs; a job that fits no usable node now is left out with its descendants and
says why, and so is one that something else than a job of ours keeps from starting, so that neither holds anybody up.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

from ..simulate.fits import never_fits
from ..simulate.job import Job, Workflow
from ..simulate.plan import Plan, PlannedJob, Start
from ..simulate.platform import Cluster
from ..simulate.snapshot import JobView, NodeState, Snapshot
from .check import holds_nodes, occupancy
from .neighbours import Neighbours
from .queue import Entry, Queue, busy
from .shadow import Seen
from .window import within

#: A planned start at or before this many seconds is a start now.
NOW_S = 1e-6
#: Progress of a job that has run for as long as foretold, or longer: it may end at any moment.
ALMOST_DONE = 0.989
#: Simulations x jobs spent on runner-ups: those that start now come first, and of them alone the story tells.
EXPLANATION = 10_000


@dataclass(frozen=True, slots=True)
class Running:
    """A job that runs when the plan begins; `progress` is the share of its work that is done, [0, 1)."""

    id: str
    nodes: tuple[str, ...]
    progress: float


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan, as in `simulate.planner.plan`; `time_limit` in seconds becomes a `should_stop` when it
    begins; `window`: the most jobs to look at, None = all.
    """

    policy: str = "lookahead"
    objective: str = "makespan"
    seed: int = 0
    budget: int | None = None
    time_limit: float | None = None
    should_stop: Callable[[], bool] | None = None
    window: int | None = None


@dataclass(frozen=True)
class Problem:
    """What is to be planned. `startable` are the jobs that may start now; `stuck` those that cannot, and
    why; `beyond`: jobs are left for later, for their number.
    """

    workflow: Workflow
    running: tuple[Running, ...]
    available: tuple[str, ...]
    startable: dict[str, Entry]
    stuck: dict[str, str]
    beyond: bool = False


Planner = Callable[[Problem, Cluster, Options], Plan]


def simulate_plan(problem: Problem, cluster: Cluster, options: Options) -> Plan:
    """Plan with the product's own planner (loaded on first use)."""
    from ..simulate.objective import Objective
    from ..simulate.planner import Underway, plan
    from .focus import focus

    problem, cluster = focus(problem, cluster)
    return plan(
        problem.workflow,
        cluster,
        policy=options.policy,
        objective=Objective.parse(options.objective),
        seed=options.seed,
        budget=options.budget,
        should_stop=options.should_stop,
        underway=[Underway(job.id, job.nodes, job.progress) for job in problem.running],
        available=problem.available,
        explanation_runs=EXPLANATION // max(len(problem.workflow.jobs), 1),
    )


def seen_running(queue: Queue, snapshot: Snapshot) -> dict[str, Seen]:
    """What runs on known nodes, ours and the others that share a node with ours, by key: as it is planned, where, and
    since when. Of all others nothing is known that a simulation could tell more of than the time they have run.
    """
    views = {view.key: view for view in snapshot.jobs if not view.state.ended}
    seen = {}
    for entry in queue.active():
        views.pop(entry.key, None)
        if busy(entry) and entry.start_time is not None and (nodes := _known(entry.nodes, snapshot.cluster)):
            seen[entry.key] = Seen(queue.as_planned(entry), nodes, entry.start_time)
    beside = {name for each in seen.values() for name in each.nodes}
    for view in views.values():
        if not holds_nodes(view) or view.start_time is None or beside.isdisjoint(view.nodes):
            continue
        if nodes := _known(view.nodes, snapshot.cluster):
            seen[view.key] = Seen(view.job, nodes, view.start_time)
    return seen


def pose(
    queue: Queue,
    snapshot: Snapshot,
    progress: Callable[[str], float | None] = lambda key: None,
    window: int | None = None,
    neighbours: Neighbours | None = None,
) -> Problem:
    """Make the planning problem of this moment. O(jobs + nodes x distinct shapes of jobs).

    Args:
        progress: how far a running job has come, [0, 1], by its key; None where it has to be guessed from time.
        window: the most waiting jobs to look at, see `window`; None = all.
        neighbours: those of the snapshot before.
    """
    usable = frozenset(_names_in(snapshot, NodeState.UP, NodeState.ASLEEP))
    views = {view.key: view for view in snapshot.jobs if not view.state.ended}
    waiting: list[Entry] = []
    placed: dict[str, Running] = {}
    stuck: dict[str, str] = {}
    obstacles: dict[object, str | None] = {}
    active = queue.active()
    for entry in active:
        view = views.pop(entry.key, None)
        if busy(entry) or entry.intent is not None:
            if nodes := _known(entry.nodes, snapshot.cluster):
                done = _progress(entry, view, snapshot.time, progress(entry.key))
                placed[entry.key] = Running(entry.key, nodes, done)
            continue
        if entry.waits and not queue.unmet(entry):
            continue
        if entry.shape not in obstacles:
            obstacles[entry.shape] = never_fits(entry.job, snapshot.cluster, usable)
        if reason := obstacles[entry.shape]:
            stuck[entry.key] = reason
        else:
            waiting.append(entry)
    chosen, beyond = within(waiting, placed, queue, window)
    startable = {e.key: e for e in chosen if queue.ready(e) and e.not_before <= snapshot.time}
    planned = {entry.key for entry in chosen}
    jobs = [_as_posed(queue, entry, placed) for entry in active if entry.key in planned or entry.key in placed]
    running = list(placed.values())
    for other in (neighbours or Neighbours()).of(views.values(), snapshot.cluster):
        done = _neighbour_progress(other.view, snapshot.time, progress(other.job.id))
        jobs.append(other.job)
        running.append(Running(other.job.id, other.nodes, done))
    up = _awake(snapshot, [entry.job for entry in startable.values()])
    return Problem(Workflow("queue", tuple(jobs)), tuple(running), up, startable, stuck, beyond)


def _names_in(snapshot: Snapshot, *wanted: NodeState) -> tuple[str, ...]:
    nodes = zip(snapshot.cluster.nodes, snapshot.node_states, strict=True)
    return tuple(node.name for node, state in nodes if state in wanted)


def _awake(snapshot: Snapshot, jobs: list[Job]) -> tuple[str, ...]:
    """The nodes to plan with: those that are up, and those asleep too where a job would have to wait without them."""
    up = _names_in(snapshot, NodeState.UP)
    if NodeState.ASLEEP not in snapshot.node_states:
        return up
    taken = occupancy(snapshot)
    for job in jobs:
        free = [name for name in up if taken.obstacle(job, name) is None]
        if len(free) < job.nodes:
            return _names_in(snapshot, NodeState.UP, NodeState.ASLEEP)
        taken.place(job, tuple(free[: job.nodes]))
    return up


def _as_posed(queue: Queue, entry: Entry, placed: dict[str, Running]) -> Job:
    job = queue.as_planned(entry)
    if entry.key not in placed:
        return job
    return dataclasses.replace(job, after=(), nodes=len(placed[entry.key].nodes))


def starts(plan: Plan, problem: Problem) -> list[tuple[Start, PlannedJob]]:
    """The plan's jobs whose time is now, in the plan's order, each with its forecast."""
    return [
        (Start(planned.id, problem.startable[planned.id].job, planned.nodes), planned)
        for planned in plan.jobs
        if planned.start_time <= NOW_S and planned.id in problem.startable
    ]


def next_due(plan: Plan, problem: Problem) -> float:
    """Seconds after the plan's start at which, if nothing has happened by then, the plan has drifted; may
    be inf.
    """
    running = {job.id for job in problem.running}
    due = [
        planned.finish_time * 1.1 + 1.0 if planned.id in running else planned.start_time
        for planned in plan.jobs
        if planned.id in running or (planned.id in problem.startable and planned.start_time > NOW_S)
    ]
    return min(due, default=math.inf)


def _known(nodes: tuple[str, ...], cluster: Cluster) -> tuple[str, ...]:
    return tuple(name for name in nodes if name in cluster.index)


def _progress(entry: Entry, view: JobView | None, now: float, followed: float | None) -> float:
    """Share of the work done: as followed in simulation (else by the time it has run against the latest forecast),
    or by CPU time where that is less.

    CPU time alone would flatter a job that waits for memory: a stalled thread burns time without getting on.
    """
    if entry.start_time is None:
        return 0.0
    if followed is not None:
        return _clip(min(followed, _cpu_progress(entry.job, view)))
    elapsed, expected = now - entry.start_time, entry.expected
    span = expected - entry.start_time if expected is not None else entry.job.profile.isolated_time
    return _clip(min(elapsed / max(span, 1e-9), _cpu_progress(entry.job, view)))


def _neighbour_progress(view: JobView, now: float, followed: float | None) -> float:
    if view.start_time is None:
        return 0.0
    if followed is not None:
        return _clip(min(followed, _cpu_progress(view.job, view)))
    return _clip(min((now - view.start_time) / view.job.profile.isolated_time, _cpu_progress(view.job, view)))


def _cpu_progress(job: Job, view: JobView | None) -> float:
    used = dict(view.usage).get("cpu_seconds") if view and view.usage else None
    if used is None:
        return 1.0
    return used / (job.nodes * sum(group.count * group.demand for group in job.profile.groups))


def _clip(progress: float) -> float:
    return max(progress, 0.0) if progress < 1.0 else ALMOST_DONE
