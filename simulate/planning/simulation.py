"""A simulation of a workflow on a cluster: its state as tables that copy in microseconds, and what-if questions.

Rule: this module turns value types into tables and results back; everything that takes time is in `kernels`. A what-if
is: copy, place, run on. Costs for J jobs, N nodes, E edges: build O(J + E + N), copy O(size of the tables).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..errors import InvalidJobError, InvariantError
from ..kernels.mapping import layout
from ..kernels.mapping.layout import World
from ..kernels.object_cache import load
from ..model.cluster import Cluster
from ..model.job import Workflow
from ..model.plan import RunningJob
from ..wording import count
from .admission import check_fit
from .workflow_tables import NO_EDGES, Shapes, edges_of, new_world, scratch_for, template_of

#: Parts and nodes that a step of a run looks at, at most if it has more than one instant; some 0.1 s.
STEP_WORK = 5_000_000
POLICY_CODES = {"loadavg": int(layout.LOADAVG), "slf": int(layout.SLF), "let": int(layout.LET), "mom": int(layout.MOM)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run: times in seconds from its start, energy in joules (nan if power is unknown)."""

    makespan: float
    energy_j: float
    start: Array
    finish: Array
    evaluations: int


class Simulation:
    """A workflow on a cluster, ready to be run, copied, or asked what-if questions.

    Args:
        workflow: the jobs.
        cluster: the nodes.
        underway: running jobs, with their nodes and progress.
        done: ids of jobs that have ended successfully.
        available: names of the nodes that take jobs; None = all.
        by_hand: ids of jobs that are only started with `start`; like running jobs, they need not fit.
        breathe: called while the tables are made, before each run, and between two steps of one; must not change this
            simulation.
        most_tied: forecasts of a mapping policy follow the jobs of several nodes that share them to their other nodes
            only if these jobs have at most so many nodes in all; None = always.

    Raises:
        InvalidJobError: the workflow is malformed, or a job can never fit (named, with the reason).
    """

    def __init__(
        self,
        workflow: Workflow,
        cluster: Cluster,
        *,
        underway: Sequence[RunningJob] = (),
        done: Collection[str] = (),
        available: Collection[str] | None = None,
        by_hand: Collection[str] = (),
        breathe: Callable[[], None] | None = None,
        most_tied: int | None = None,
    ) -> None:
        self.workflow, self.cluster, self._breathe = workflow, cluster, breathe
        template = template_of(cluster)
        shapes = Shapes(cluster)
        class_of = np.array([shapes.class_of(job) for job in workflow.jobs], np.int64)
        self.breathe()
        done_rows = [self._position(name, "done") for name in done]
        successors, after, before = edges_of(workflow, done_rows)
        tables = {**shapes.tables(), "successors": successors, "edges": NO_EDGES, "allowed": shapes.allowed()}
        self.breathe()
        queue_of = np.array(shapes.queue_of, np.int64)[class_of]
        self.world = world = new_world(World, template, tables, class_of, queue_of)
        self.breathe()
        if available is not None:
            usable = frozenset(available)
            if not usable >= cluster.index.keys():
                world.nodes["limit"][[name not in usable for name in cluster.index]] = -1.0
        check_fit(workflow, cluster, world, class_of, settled={u.id for u in underway} | {*done, *by_hand})
        jobs, classes = world.jobs, world.classes
        jobs["key"] = np.arange(len(jobs))
        jobs["succ_count"], jobs["blockers"], jobs["succ_start"] = after, before, np.cumsum(after) - after
        jobs["state"][done_rows] = layout.DONE
        self.breathe()
        if underway:
            self._note_underway(underway)
            self.breathe()
        count, n_nodes = world.count, len(world.nodes)
        sharing = (classes["nodes"] > 1) & (classes["threads"] < world.nodes["limit"].max(initial=0.0))
        tied = int((classes["nodes"] * sharing)[class_of].sum())
        count["near"] = near = most_tied is not None and tied > most_tied
        count["simple"] = template.simple and not shapes.phased and (near or bool((classes["nodes"] == 1).all()))
        reach = len(world.parts) if tied else len(world.parts) // max(1, len(template.domains))
        self._instants = max(1, STEP_WORK // (reach + n_nodes + 1))  # of a step of a run
        count["most"] = max(1, STEP_WORK // (len(world.parts) // max(1, n_nodes) + 1) ** 2)
        self.scratch = scratch_for(world)
        self._fresh = world.buffer.copy()
        self._isolated = 0  # 1: run times alone are known; 2: those of phases, too

    def _note_underway(self, underway: Sequence[RunningJob]) -> None:
        rows, placed, index = self.world.jobs, self.world.placed, self.cluster.index
        state, progress, first = (rows[name].tolist() for name in ("state", "progress", "place0"))
        for u in underway:
            job = self._position(u.id, "running")
            if state[job] != layout.WAITING:
                raise InvalidJobError(f"{self._where}: job {u.id!r} is given as running twice, or as done as well")
            node_count, places = self.workflow.jobs[job].nodes, [*map(index.get, u.nodes)]
            distinct = len(set(places)) == len(places) == node_count and None not in places
            if not distinct or not 0.0 <= u.progress <= 1.0:
                nodes = ", ".join(map(repr, u.nodes)) or "no node"
                raise InvalidJobError(
                    f"{self._where}: job {u.id!r} cannot be running on {nodes} of {self.cluster.name!r} with progress "
                    f"{u.progress:g}: it needs {count(node_count, 'distinct node')}; progress is from 0 to 1"
                )
            placed[first[job] : first[job] + node_count] = places
            state[job], progress[job] = int(layout.RUNNING), u.progress
        rows["state"], rows["progress"] = state, progress

    def _position(self, job_id: str, state: str) -> int:
        if (job := self.workflow.index.get(job_id)) is None:
            raise InvalidJobError(
                f"{self._where}: job {job_id!r} is given as {state} but is not a job of this workflow"
            )
        return job

    @property
    def _where(self) -> str:
        return self.workflow.source or self.workflow.name

    # --- asking ---
    def _ask(
        self, question: int, world: World | None = None, *, policy: int = 0, which: int = -1, number: int = 0,
        cutoff: float = math.inf,
    ) -> Array:  # fmt: skip
        """Call the compiled kernel and return the row of answers; see `kernels.mapping.entry.call`."""
        world = self.world if world is None else world
        load()(question, world.address, self.scratch.address, policy, which, number, cutoff)
        answer: Array = self.scratch.answer
        return answer

    def copy(self) -> Simulation:
        """Return an independent copy of the state; static tables are shared. Microseconds."""
        twin = object.__new__(Simulation)
        twin.__dict__.update(self.__dict__)
        twin.world = self.world.copy()
        twin.scratch = scratch_for(twin.world)
        return twin

    @property
    def isolated(self) -> Array:
        """Isolated run time, seconds [classes, types]: alone on an empty node under that node's models."""
        self._run_alone(0)
        isolated: Array = self.world.isolated
        return isolated

    def _run_alone(self, phases: int) -> None:
        """Compute isolated run times; with `phases` = 1 those of phases, too."""
        if self._isolated <= phases:
            fresh = self.world.copy()
            fresh.nodes[:] = template_of(self.cluster).nodes
            self._ask(layout.ISOLATED, fresh, number=phases)
            self._isolated = phases + 1

    def run(
        self, policy: str, *, keys: Array | None = None, caps: Array | None = None, explain: bool = False,
        most: int | None = None,
    ) -> Outcome:  # fmt: skip
        """Run from the beginning to the end under a mapping policy of the paper; the tables then hold the result.

        Args:
            policy: a key of POLICY_CODES.
            keys: order of mapping (smaller first), f8 [jobs]; None: time ready, then file order.
            caps: most threads on a node when it is shared, f8 [nodes]; None: only the cluster's limit.
            explain: keep exact runner-up scores (no pruning).
            most: the most threads that may run at once; jobs that need more never start. None: any number.
        """
        self.reset()
        if caps is not None:
            self.world.nodes["cap"] = caps
        if keys is not None:
            self.world.jobs["key"] = keys
        self.world.count["explain"], self.world.count["capped"] = explain, 0 if most is None else most + 1
        answer = self._go_on(POLICY_CODES[policy], by_key=int(keys is not None))
        if most is None and (answer["status"] != 0 or (self.world.jobs["state"] != layout.DONE).any()):
            _ = self.workflow.dag  # usually raises: a cycle, with its jobs named
            raise InvariantError("simulation stopped with jobs that never started")
        makespan, evaluations = float(self.world.clock["now"]), int(self.world.count["evaluations"])
        start, finish = self.world.jobs["start"].copy(), self.world.jobs["finish"].copy()
        return Outcome(makespan, float(answer["joules"]), start, finish, evaluations)

    def reset(self) -> None:
        """Go back to the beginning: one memory copy."""
        self.breathe()
        np.copyto(self.world.buffer, self._fresh)

    def breathe(self) -> None:
        """Let the caller do other work."""
        if self._breathe is not None:
            self._breathe()

    def _go_on(self, policy: int, *, by_key: int, cutoff: float = math.inf) -> Array:
        """Begin a run, or go on with one that has paused, in steps; return the row of answers."""
        while True:
            answer = self._ask(layout.REPLAY, policy=policy, which=by_key, number=self._instants, cutoff=cutoff)
            if answer["status"] != layout.PAUSED:
                return answer
            self.breathe()

    def follow(
        self, places: Array, keys: Array, wait_for: Array, caps: Array, cutoff: float = math.inf,
        scale: Array | None = None,
    ) -> tuple[float, float]:  # fmt: skip
        """Run a given mapping from the beginning: (makespan s, energy J), both inf if cut off or stuck.

        Args:
            places: node index of every slot, i8 [sum of the jobs' nodes], in job order; the nodes of a job differ.
            keys: order of starting on a node, f8 [jobs]; the first in line blocks those behind it.
            wait_for: one more job to wait for, or -1, i8 [jobs].
            caps: most threads on a node when it is shared, f8 [nodes].
            cutoff: stop the run at this makespan, seconds; the tables then hold what ended before.
            scale: factor on the work of each job, above 0, f8 [jobs]; None = 1.

        Raises:
            InvariantError: a job is on a node twice or on an unknown node, or waits for an unknown job.
        """
        self.reset()
        if scale is not None:
            self.world.jobs["scale"] = scale
        scratch = self.scratch
        scratch.keys[:], scratch.wait_for[:], scratch.caps[:] = keys, wait_for, caps
        scratch.places[: len(self.world.placed)] = places
        answer = self._ask(layout.EVALUATE, number=self._instants, cutoff=cutoff)
        if answer["wrong"] >= 0:
            job = self.workflow.jobs[answer["wrong"]].id
            raise InvariantError(f"job {job!r} cannot run as mapped: its nodes, or the job it waits for, are wrong")
        if answer["status"] != layout.PAUSED:
            return float(answer["makespan"]), float(answer["joules"])
        self.breathe()
        answer = self._go_on(int(layout.FORCED), by_key=1, cutoff=cutoff)
        ended = answer["status"] == layout.FINISHED
        return (float(self.world.clock["now"]), float(answer["joules"])) if ended else (math.inf, math.inf)

    def settle(self) -> None:
        """Start the jobs under way and rate them, so that `forecast` and `decide` answer for the present moment."""
        self._ask(layout.SETTLE)

    def forecast(self, job_id: str, nodes: Sequence[str], policy: str = "let") -> float:
        """Return seconds until the job ("let") or the last job there ("mom") ends, if it started now on these nodes.

        No later jobs are assumed. Changes nothing; microseconds.

        Args:
            job_id: a job that has not started.
            nodes: names of nodes, each once, at most as many as the job needs.
            policy: "let" or "mom".
        """
        job = self.workflow.index[job_id]
        if not 0 < len(set(nodes)) == len(nodes) <= self.workflow.jobs[job].nodes:
            raise InvariantError(f"job {job_id!r} cannot be forecast on {count(len(nodes), 'node')}")
        self.scratch.places[: len(nodes)] = [self.cluster.index[name] for name in nodes]
        cls = int(self.world.jobs[job]["cls"])
        answer = self._ask(layout.FORECAST, policy=POLICY_CODES[policy], which=cls, number=len(nodes))
        return float(answer["seconds"])

    def what_if(self, job_id: str, nodes: Sequence[str]) -> tuple[float, ...]:
        """Return what would happen if a job started now on these nodes. Changes nothing.

        Args:
            job_id: a job that has not started.
            nodes: names of nodes, each once, at most as many as the job needs.

        Returns:
            Seconds until it ends; its slowdown; the largest factor by which the time left of another job grows; seconds
            by which all others end later, in total; the largest slowdown of all these jobs; 1 if it shares nothing.
        """
        self._run_alone(1)
        job = self.workflow.index[job_id]
        self.scratch.places[: len(nodes)] = [self.cluster.index[name] for name in nodes]
        self._ask(layout.WHAT_IF, which=int(self.world.jobs[job]["cls"]), number=len(nodes))
        effect: tuple[float, ...] = self.scratch.effect.item()
        return effect

    def decide(self, job_id: str, policy: str) -> tuple[str, ...] | None:
        """Return the nodes on which the policy would start the job now; None if it fits nowhere now.

        O(nodes) forecasts, fewer where bounds of unchanged nodes rule them out (see `kernels.mapping`).

        Args:
            job_id: a job that has not started.
            policy: name of a mapping policy other than lookahead.
        """
        job = self._unstarted(job_id)
        fits = self._ask(layout.CHOOSE, policy=POLICY_CODES[policy], which=job)["found"]
        return self.nodes_of(job) if fits else None

    def start(self, job_id: str, nodes: Sequence[str]) -> None:
        """Start a job now and re-rate the jobs that it affects.

        Args:
            job_id: a job that has not started.
            nodes: names of nodes, each once, as many as the job needs.

        Raises:
            InvariantError: the job has started, or the number of nodes is another one.
        """
        job = self._unstarted(job_id)
        if not len(set(nodes)) == len(nodes) == self.workflow.jobs[job].nodes:
            raise InvariantError(f"job {job_id!r} cannot start on {count(len(nodes), 'node')}")
        self.world.placed[self.slots(job)] = [self.cluster.index[n] for n in nodes]
        self._ask(layout.PLACE, which=job)

    def _unstarted(self, job_id: str) -> int:
        """Return the position of a job that has not started. Raises InvariantError otherwise."""
        job = self.workflow.index[job_id]
        if self.world.jobs[job]["state"] >= layout.RUNNING:
            raise InvariantError(f"job {job_id!r} has started already")
        return job

    def advance(self, until: float) -> None:
        """Let the running jobs continue until `until` (seconds, not before now); nothing new is started."""
        now = float(self.world.clock["now"])
        if not now <= until < math.inf:
            raise InvariantError(f"cannot advance to {until:g} s: now is {now:g} s")
        self.breathe()
        self._ask(layout.ADVANCE, cutoff=until)

    @property
    def next_event(self) -> float:
        """Time of the next end, seconds; inf if nothing runs."""
        return float(self.world.heap_time[0])

    def adopt(self, other: Simulation) -> None:
        """Take over the clock, and the progress of the jobs that also run in `other` (same shapes); then re-rate."""
        self.world.clock["now"] = now = float(other.world.clock["now"])
        self.settle()
        theirs, index = other.world.jobs, other.workflow.index
        running = (theirs["state"] == layout.RUNNING).tolist()
        both = [(i, index[name]) for name, i in self.workflow.index.items() if name in index and running[index[name]]]
        own_rows, other_rows = np.array(both, np.int64).reshape(-1, 2).T
        jobs, strands = self.world.jobs, self.world.strands
        rows = self.world.classes["group_count"][jobs["cls"][own_rows]] * int(self.world.count["split"])
        place = np.arange(rows.sum()) - np.repeat(np.cumsum(rows) - rows, rows)  # of each strand in its job
        to, source = (
            np.repeat(first, rows) + place for first in (jobs["strand0"][own_rows], theirs["strand0"][other_rows])
        )
        old = other.world.strands[source]
        work_left = np.maximum(0.0, old["rem"] - old["rate"] * (now - old["last"]))
        strands["rem"][to] = np.where(np.isinf(old["finish"]), 0.0, work_left)
        strands["phase"][to] = old["phase"]
        jobs["start"][own_rows], jobs["energy"][own_rows] = theirs["start"][other_rows], theirs["energy"][other_rows]
        self._ask(layout.RERATE)
        self.advance(now)  # ends the thread groups that had ended there

    def runs(self, job_id: str) -> bool:
        """Return whether the simulation has this job and it is running."""
        job = self.workflow.index.get(job_id)
        return job is not None and bool(self.world.jobs[job]["state"] == layout.RUNNING)

    def progress(self, job_id: str) -> float:
        """Return the share of a running job's work that is done, [0, 1], in its slowest thread group. O(its groups)."""
        row, world = self.world.jobs[self.workflow.index[job_id]], self.world
        now, split = float(world.clock["now"]), int(world.count["split"])
        first, rows = int(row["strand0"]), int(world.classes[row["cls"]]["group_count"]) * split
        least = 1.0
        for strand in world.strands[first : first + rows]:
            if strand["parts"] == 0 or math.isinf(strand["finish"]):
                continue
            group, kinds = world.groups[strand["group"]], len(world.types)
            start = int(group["phase_start"]) * kinds + int(strand["type"])
            works = world.phases["work"][start : start + int(group["phase_count"]) * kinds : kinds]
            work_left = max(0.0, float(strand["rem"] - strand["rate"] * (now - strand["last"])))
            work_left += float(works[int(strand["phase"]) + 1 :].sum())
            least = min(least, 1.0 - work_left / float(works.sum()))
        return least

    def progress_of_all(self) -> dict[str, float]:
        """Return the `progress` of each running job, by id. O(thread groups)."""
        world, jobs = self.world, self.workflow.jobs
        running = np.flatnonzero(world.jobs["state"] == layout.RUNNING)
        phased = bool((world.groups["phase_count"] > 1).any() or (world.classes["group_count"] > 1).any())
        if phased or world.count["split"] > 1:
            return {jobs[row].id: self.progress(jobs[row].id) for row in running.tolist()}
        strands = world.strands[world.jobs["strand0"][running]]
        work = world.phases["work"][world.groups["phase_start"][strands["group"]] * len(world.types) + strands["type"]]
        work_left = np.maximum(0.0, strands["rem"] - strands["rate"] * (float(world.clock["now"]) - strands["last"]))
        shares = np.where(
            (strands["parts"] == 0) | np.isinf(strands["finish"]), 1.0, np.minimum(1.0, 1.0 - work_left / work)
        )
        return {jobs[row].id: share for row, share in zip(running.tolist(), shares.tolist(), strict=True)}

    def nodes_of(self, job: int) -> tuple[str, ...]:
        """Return the names of the nodes of a placed job, given its position."""
        return tuple(self.cluster.nodes[i].name for i in self.world.placed[self.slots(job)])

    def slots(self, job: int) -> slice:
        """Return where the table `placed` has the nodes of a job, given its position."""
        row = self.world.jobs[job]
        first = int(row["place0"])
        return slice(first, first + int(self.world.classes[row["cls"]]["nodes"]))
