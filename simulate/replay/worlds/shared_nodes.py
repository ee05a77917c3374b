"""Replay a workload on nodes that jobs share, where they slow each other down, under a compiled policy.

Rule: at each instant all ends are processed, then all submissions, then one pass. How fast jobs progress follows the
contention models of the cluster; a job is killed at its walltime. Nodes and threads of a job: see `node_allocation`.
Under a mapping policy, a pass starts every waiting job that fits, in the order of submission, on the nodes that the
policy chooses; jobs of one shape (threads, nodes, memory) wait for the first of them, and a job that fits nowhere keeps
no nodes free for itself. EASY and strict order: see `kernels.mapping.backfilling`. Where decisions take time, or run
times are predicted, a mapping policy is asked at each instant by `drive.drive`. What it chooses has its nodes
from then on, and starts when the decision is applied: until then, nodes only become free. It is asked in the same way
under a power cap, which begins and ends at instants of their own. A job that outlasts its prediction is expected to go
on for `layout.OVERDUE_S`. The state and the loop are those of a plan (`planning.simulation`), so a policy decides here
as it decides there. Jobs with programs communicate over the network between the nodes, see
`kernels.mapping.program_phases`. Forecasts know only the mean demand of such a job, and how long it computes and waits;
they know nothing of its messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from ...arrays import Array
from ...kernels.mapping import layout
from ...kernels.mapping.layout import Scratch, World
from ...kernels.object_cache import load
from ...kernels.queue.network import tables
from ...model.cluster import Cluster
from ...model.workload import Workload
from ...planning.workflow_tables import scratch_for, template_of, with_backfilling
from ...queue_policies.energy.power_limits import NoLimit
from ...queue_policies.order_ranks import ranks
from ...queue_policies.policy_facts import spec_of
from ...queue_policies.policy_options import Sharing
from ...queue_policies.policy_specs import Easy, Strict
from ...world import slices
from ...world.drive import drive
from ...world.known_run_times import ACTUAL, WALLTIME, Predictions
from ...world.node_allocation import Places
from ...world.power_log import PowerLog
from ...world.replay_result import Replayed, merge_pieces, without_switches
from ...world.shared_tables import believe, tables_of
from ..engines import Engine
from ..replay_case import ReplayCase
from ..requirements import limit_for, network_of_nodes


def run(case: ReplayCase, engine: Engine) -> Replayed:
    """Replay jobs whose `more` may have `volume` and `memory`, bytes that each of its processors moves and needs.

    A run time is that on the slowest node type. O(nodes) per start under `slf` and `loadavg`; under `let` and `mom`
    O(nodes) forecasts per start at most; for EASY see `kernels.mapping.backfilling`. An end or a start changes only the
    rates on its nodes and on those that are tied to them.

    Raises:
        ConfigError: a run time is not known, or a walltime that the policy needs; or the nodes take any number of
            threads.
    """
    workload, cluster, options, policy = case.jobs, case.cluster, case.options, spec_of(case.policy).plain
    limit, network = (
        limit_for(spec_of(case.policy), case.jobs, case.machine, of_nodes=True),
        network_of_nodes(workload, cluster, case.machine.network),
    )
    maps = policy.family == "mapping"
    world, fits, threads = tables_of(
        workload, cluster, options.knows if policy.looks_ahead else ACTUAL, network, limit=limit,
        log_power=options.log_power,
    )  # fmt: skip
    log = PowerLog(kept=options.log_power and network is not None)
    if not maps:
        world = _backfilling(world, workload, cluster, policy, options.knows, options.seed)
    code, by_key = (policy.code, 0) if maps else (int(layout.EASY if policy.backfills else layout.STRICT), 1)
    kernel, scratch = load(engine.kernels[0]), scratch_for(world, int(template_of(cluster).nodes["limit"].sum()))
    if world.clock["share"] < math.inf:
        kernel(layout.ISOLATED, world.address, scratch.address, 0, -1, 1, math.inf)

    def result(spent: float) -> Replayed:
        limits = np.asarray(cluster.thread_limits)
        if not maps:
            limits = np.minimum(limits, [node.type.cores for node in cluster.nodes])
        places, pieces = _pieces(workload, limits.astype(int).tolist(), world, threads)
        return schedule_of(workload, world, places, pieces, ~fits, spent, log)

    return run_kernel(case, kernel, world, scratch, code, by_key, result, limit=limit, log=log)


Result = TypeVar("Result", bound=Replayed)


def run_kernel(
    case: ReplayCase, kernel: Any, world: World, scratch: Scratch, code: int, by_key: int,
    result: Callable[[float], Result], *, limit: NoLimit, log: PowerLog, shortest: bool = False,
) -> Result:  # fmt: skip
    """Run the tables of a workload to the end of its jobs: at once if possible, or else instant by instant.

    Args:
        case: what is replayed.
        kernel: the loaded kernel.
        world: the tables.
        scratch: working space.
        code: the kernel's code of the policy.
        by_key: 1 if the keys of the jobs are their order, 0 if it is the time at which they become ready.
        result: returns the result; takes the seconds that the run took.
        limit: a power cap.
        log: of the power of jobs.
        shortest: the next job is the shortest by predicted run times, where there are any.
    """
    predictions, options, clock = case.predictions(), case.options, case.options.clock
    began = slice_began = clock()
    if options.decision_time != 0.0 or predictions is not None or limit.next_time() < math.inf:
        loop = _MappedJobs(case.jobs, world, scratch, code, predictions, result, log, limit, kernel, shortest)
        return cast(
            "Result", drive(loop, began, decision_time=options.decision_time, clock=clock, progress=options.progress)
        )
    size = slices.FIRST
    while True:
        kernel(layout.REPLAY, world.address, scratch.address, code, by_key, size, math.inf)
        if scratch.answer["status"] != layout.PAUSED:
            break
        log.empty(world)
        size, slice_began = slices.next_slice(size, clock() - slice_began), clock()
        options.progress(float(world.clock["now"]))
    return result(clock() - began)


class _MappedJobs:
    """The replay under a mapping policy, one instant at a time; see `drive.Loop`."""

    again = False  # one pass starts all that fits

    def __init__(
        self, workload: Workload, world: World, scratch: Scratch, code: int, predictions: Predictions | None,
        result: Callable[[float], Replayed], log: PowerLog, limit: NoLimit, kernel: Any, shortest: bool,
    ) -> None:  # fmt: skip
        self.workload, self.world, self.scratch, self.code, self.limit = workload, world, scratch, code, limit
        self.predictions, self._result, self.kernel = predictions, result, kernel
        self.unlearned, self.news, self._log = list[int](), False, log
        #: By which the tasks of jobs are ordered; forecasts expect those of other jobs [jobs].
        self._expected = np.zeros(len(workload)) if world.count["tasks"] else None
        self._sorted = shortest and predictions is not None
        if predictions and self._expected is None:
            world.count["beliefs"] = 1
        self._ask(layout.SETTLE)

    def _ask(self, question: int, until: float = math.inf) -> None:
        self.kernel(question, self.world.address, self.scratch.address, self.code, -1, 0, until)
        self._log.empty(self.world)

    def next_time(self, before: float) -> float:
        """Return the time of the next end, submission or change of the limit."""
        world = self.world
        time, arrived = float(world.heap_time[0]), int(world.count["arrived"])
        if arrived < len(world.arrivals):
            time = min(time, float(world.jobs["submit"][world.arrivals[arrived]]))
        change = self.limit.next_time()
        return change if change < time and world.queues["length"].any() else time

    def advance_to(self, now: float) -> None:
        """Predict the jobs of this instant, then process its ends and submissions."""
        world, arrived, ended = self.world, submissions(self.world), int(self.world.count["finished"])
        if self.predictions:
            times = world.jobs["finish"], world.jobs["start"]
            expectations = self.predictions.expected_at(now, next_row(world, self.workload), self.unlearned, *times)
            for row, expected in expectations.items():
                if self._expected is None:
                    believe(world, row, expected)
                else:
                    self._expected[row] = expected
        self._ask(layout.STEP, now)
        self.unlearned += world.ended[ended : world.count["finished"]].tolist()
        new = newly_submitted(world, arrived)
        self.news |= int(world.count["finished"]) > ended or bool((world.jobs["blockers"][new] == 0).any())
        if self.limit.update(now):
            allowed = int(self.limit.allowed(np.array([now]))[0])
            world.count["capped"] = allowed + 1 if self.limit.blocked else 0
            self.news |= bool(world.queues["length"].any())

    def has_changed(self) -> bool:
        """Return whether a job has ended or been submitted since the last pass."""
        return self.news

    def call_policy(self) -> list[int]:
        """Return the rows of the jobs that a pass starts now; their nodes are in the tables."""
        self.news = False
        if self._sorted and self._expected is not None:
            self._sort_queue(self._expected)
        self._ask(layout.DECIDE)
        started: list[int] = self.scratch.started[: self.scratch.listed["started"]].tolist()
        return started

    def _sort_queue(self, expected: Array) -> None:
        """Order the one queue by expected run times, then by keys. O(waiting jobs log)."""
        count = int(self.world.queues["length"][0])
        rows = self.world.queued[:count]
        self.world.queued[:count] = rows[np.lexsort((self.world.jobs["key"][rows], expected[rows]))]
        self.world.queued_key[:count] = np.arange(count)

    def apply(self, decisions: Iterable[int], now: float) -> None:
        """Start the jobs of the last pass."""
        self._ask(layout.START)

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result."""
        return self._result(seconds)


def next_row(world: World, workload: Workload) -> int:
    """Return the row of the next job that is submitted and was not postponed, or else the number of jobs."""
    rows = world.arrivals[int(world.count["arrived"]) :]
    if len(world.edges):
        rows = rows[world.jobs["submit"][rows] == workload.submit_time[rows]]
    return int(rows[0]) if len(rows) else len(workload)


def submissions(world: World) -> int:
    """Return how many submissions there have been, also of jobs that were postponed."""
    return int(world.count["arrived"]) + int(world.count["postponed"])


def newly_submitted(world: World, before: int) -> Array:
    """Return the jobs that were submitted since there had been `before` submissions."""
    arrived = int(world.count["arrived"])
    rows: Array = world.arrivals[arrived - (submissions(world) - before) : arrived]
    return rows


def _backfilling(
    world: World, workload: Workload, cluster: Cluster, policy: Easy | Strict, runtimes: str, seed: int
) -> World:
    """Return the tables with those of a queue policy."""
    bound = getattr(policy, "share", Sharing()).bound
    cores = np.minimum([node.type.cores for node in cluster.nodes], world.nodes["limit"])
    classes, allowed = world.classes, world.allowed
    if bound == 0.0:  # a node takes one job
        classes = classes.copy()
        threads, classes["places"] = np.unique(classes["threads"], return_inverse=True)
        allowed = (cores >= threads[:, None]).astype(np.int64)
        classes["threads"], cores = 1.0, np.ones(len(cores))
    duration = workload.walltime if runtimes == WALLTIME else workload.run_time
    held = np.asarray(world.classes["threads"] * world.classes["nodes"], np.int64)
    order = ranks(replace(workload, walltime=duration, size=held), policy.order, seed)
    return with_backfilling(world, cores, duration, order, bound or math.inf, classes=classes, allowed=allowed)


def _pieces(
    workload: Workload, limits: list[int], world: World, threads: Array
) -> tuple[int, tuple[Array, Array, Array]]:
    """Return the number of places, and the places of each job as intervals, see `merge_pieces`."""
    jobs, places, pieces = world.jobs, Places(limits), list[tuple[int, int, int]]()
    placed, first = world.placed.tolist(), [*jobs["place0"].tolist(), len(world.placed)]
    ran = np.flatnonzero(~np.isnan(jobs["start"]))
    start, finish = jobs["start"][ran], jobs["finish"][ran]
    instant = start == finish
    # Of equal times: ends, then jobs that end as they start, then the others that start.
    order = np.lexsort((np.repeat([0, 2], len(ran)) - np.tile(instant, 2), np.concatenate([finish, start])))
    sizes, width, instants = workload.size.tolist(), threads.tolist(), instant.tolist()
    for at in order.tolist():
        row, ends, at_once = int(ran[at % len(ran)]), at < len(ran), instants[at % len(ran)]
        if ends and not at_once:
            places.release(row)
        elif not ends:
            own_places = placed[first[row] : first[row + 1]]
            pieces += [(row, low, high) for low, high in places.allocate(row, own_places, width[row], sizes[row])]
            if at_once:
                places.release(row)
    owner, low, high = np.array(pieces, np.int64).reshape(-1, 3).T
    return places.count, merge_pieces(owner, low, high, len(jobs))


def schedule_of(
    workload: Workload, world: World, machine: int, pieces: tuple[Array, Array, Array], rejected: Array, spent: float,
    log: PowerLog,
) -> Replayed:  # fmt: skip
    """Return the result of a replay whose jobs have all ended.

    Args:
        workload: the jobs.
        world: the tables.
        machine: number of resources.
        pieces: those of each job, see `merge_pieces`.
        rejected: jobs that can never run, and were not submitted, bool [jobs].
        spent: seconds that the replay took.
        log: what was logged of the power of jobs.
    """
    jobs, submit = world.jobs, workload.submit_time.astype(np.float64)
    start, finish = jobs["start"].copy(), jobs["finish"].copy()
    never = np.isnan(start)
    stranded = never & (jobs["blockers"] > rejected)
    if workload.dependencies is not None:
        links = workload.dependencies.pairs(~stranded[workload.dependencies.after])
        np.maximum.at(submit, links.after, finish[links.before] + links.delays)
    networked = isinstance(world, tables.NetworkedNodes)
    log.empty(world)
    return Replayed(
        workload, machine, submit, start, finish, never, stranded, jobs["killed"] == 1, *pieces,
        simulation_time=spent, instants=int(world.count["instants"]), **without_switches(start),
        above_idle=np.where(world.courses["program"] >= 0, world.courses["joules"], math.nan) if networked else None,
        power_log=log.rows(),
    )  # fmt: skip
