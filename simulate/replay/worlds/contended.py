"""Replay a workload on processors whose tasks contend for memory.

Rule: replays are exact. A job consists of as many independent one-core tasks as its size, on any cores. A task takes
its run time on the slowest processor, less on faster ones, and more next to other tasks. A job holds its cores and
memory until its last task ends, or until its walltime, when the remaining tasks are killed. Tasks move their data at a
constant rate; pairs of profiles (co-run inflation) are ignored.
Processors are the cores that share a memory channel, in the order of the cluster file. A node's bandwidth and cores are
divided evenly among its sockets; the first sockets get the remaining cores.
Where decisions take time, run times are predicted, or there is a power cap, `drive.drive` asks the policy at each
instant: what it chooses has its cores from then on, and starts when the decision is applied. Run times count only for
`job=shortest`. Under a cap, the picked job waits while its cores are more than the cap leaves, and so do all others.
Power over time is summed exactly between changes, from the first submission to the last end; a core computes while its
own task runs.
Source: IRMaSim (Herrera et al., CCGrid 2021), III and V.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ...arrays import Array
from ...errors import ConfigError
from ...kernels.object_cache import load
from ...kernels.queue.contention import tables
from ...kernels.queue.contention.tables import CORE, FREE_CORE, NODE, PROCESSOR
from ...kernels.queue.contention.tables import Contended as World
from ...kernels.queue.tables import DONE, ENDED, REJECTED, WAITS
from ...model.cluster import Cluster, NodeType, comparable_speeds
from ...model.workload import Workload
from ...planning.workflow_tables import fill_contention
from ...queue_policies.energy.power_limits import NoLimit
from ...queue_policies.order_ranks import ranked_by
from ...queue_policies.policy_facts import spec_of
from ...queue_policies.policy_specs import RESOURCES, Contending, Nodes
from ...world import slices
from ...world.drive import drive
from ...world.job_dependencies import dependency_tables, stranded
from ...world.known_run_times import ACTUAL, WALLTIME, Predictions, RunTimePredictor
from ...world.replay_result import Replayed, merge_pieces, without_switches
from ..energy import STATES, Track, span
from ..engines import Engine
from ..replay_case import ReplayCase
from ..requirements import limit_for


@dataclass(frozen=True, slots=True)
class ProcessorTables:
    """The tables of a machine, see `kernels.queue.contention.tables`."""

    #: One row per node, processor and core.
    nodes: Array
    processors: Array
    core_table: Array
    speeds: Array  # [nodes], relative speed of the cores of each node
    powered: bool  # the power of all nodes is known


def processors_of(cluster: Cluster) -> ProcessorTables:
    """Return the processors of a cluster's nodes. Raises ConfigError if nodes share a memory domain."""
    if cluster.shared_memory is not None:
        shared = f"nodes share the memory {cluster.shared_memory!r}"
        why = f"{shared}: with these policies, only tasks on one processor contend"
        raise ConfigError(cluster.source, "nodes", why, "nodes with separate memories")
    kinds = [node.type for node in cluster.nodes]
    speeds = np.array(comparable_speeds(kinds))
    relative = dict(zip(kinds, (speeds / speeds.min()).tolist(), strict=True))
    rows = {kind: _processor(kind, relative[kind]) for kind in cluster.types}
    sockets = np.array([kind.sockets for kind in kinds])
    nodes, processors = np.zeros(len(kinds), NODE), np.zeros(int(sockets.sum()), PROCESSOR)
    nodes["last"] = np.cumsum(sockets)
    nodes["first"] = nodes["last"] - sockets
    nodes["cores"] = nodes["free"] = [kind.cores for kind in kinds]
    nodes["memory"] = [int(kind.memory) for kind in kinds]
    nodes["watts"] = [kind.power.idle if kind.power else 0.0 for kind in kinds]
    for n, kind in enumerate(kinds):
        mine = slice(nodes["first"][n], nodes["last"][n])
        processors[mine] = rows[kind]
        processors["node"][mine] = n
        processors["free"][mine] = kind.cores // kind.sockets + (np.arange(kind.sockets) < kind.cores % kind.sockets)
    free = processors["free"]
    last = np.cumsum(free)
    processors["first"], processors["last"] = last - free, last
    cores = np.zeros(int(nodes["cores"].sum()), CORE)
    cores["job"], cores["processor"] = FREE_CORE, np.repeat(np.arange(len(processors)), free)
    return ProcessorTables(nodes, processors, cores, speeds, all(kind.power is not None for kind in kinds))


def _processor(kind: NodeType, speed: float) -> Array:
    row = np.zeros(1, PROCESSOR)
    row["speed"] = row["flops"] = speed
    row["bandwidth"] = kind.memory_bandwidth / kind.sockets
    fill_contention(kind, row)
    if (power := kind.power) is not None:
        by_state = power.computing is not None
        row["per_core"] = (power.computing - power.idle) / kind.cores if power.computing is not None else power.per_core
        row["common"], row["idle_share"] = 0.0 if by_state else power.per_socket, power.idle_uncore
    return row


#: Upper bound of bytes and bytes/s: more than any machine has, and finite, so that every task ends.
MOST = 2e18
#: The kernel's code of each rule of RESOURCES, in their order.
_CODES = tables.RANDOM, tables.GFLOPS, tables.CORES, tables.MEMORY, tables.BANDWIDTH, tables.POWER
_RULES = dict(zip(RESOURCES, _CODES, strict=True))


def _contention_tables(
    workload: Workload, machine: ProcessorTables, policy: Contending, seed: int, run_times: str | RunTimePredictor,
    limit: NoLimit,
) -> World:  # fmt: skip
    """Return the initial tables of the kernel. Raises ConfigError, see `check_power_known`."""
    check_power_known(policy, machine)
    size, many = len(workload), len(machine.processors)
    order, whole = np.arange(len(machine.nodes)), isinstance(policy, Nodes)
    jobs, ranked = _jobs(workload, policy, run_times)
    forbidden = np.array([limit.forbids(each) for each in workload.size.tolist()], bool)
    jobs["state"] = np.where(_fits(jobs, machine, whole=whole) & ~forbidden, WAITS, REJECTED)
    if isinstance(policy, Nodes):
        by = machine.nodes["cores"] if policy.rule == "biggest" else machine.speeds
        order = np.argsort(-by, kind="stable")
        rule = tables.RANDOM_NODE if policy.rule == "random" else tables.ORDERED_NODE
    else:
        rule = _RULES[policy.resource]
    processors = machine.processors.copy()
    first, last, asked = processors["first"], processors["last"], jobs["size"]
    if size:
        processors["since"] = workload.submit_time[0]
    world = World(
        {
            "ranked": ranked,
            "order": order,
            "nodes": machine.nodes.copy(),
            "processors": processors,
            "cores": machine.core_table.copy(),
            "jobs": jobs,
            "tasks": np.zeros(int(asked[jobs["state"] == WAITS].sum()), tables.TASK),
            **dependency_tables(workload, np.ones(size, bool)),
        },
        {
            **dict.fromkeys(("ends", "next_end", "scores", "best"), (many,)),
            "queue": (size,),
            "demands": (int((last - first).max()),),
        },
    )
    world.random["state"] = seed
    scores, places = _scores(processors, machine, rule), np.arange(many)
    world.best[:] = best = np.argsort(scores, kind="stable")
    world.ends[:], world.next_end[:], world.scores[:] = math.inf, places, scores[best]
    processors["end_place"] = processors["score_place"][best] = places
    world.count["total"], world.count["free"], world.count["rule"] = size, len(machine.core_table), rule
    if policy.job == "random":
        world.count["picks"] = tables.DRAWN
    elif policy.job == "shortest" and not isinstance(run_times, str):
        world.count["picks"] = tables.BY_KEY
    return world


def check_power_known(policy: Contending, machine: ProcessorTables) -> None:
    """Check that the power of the machine is known if the policy needs it. Raises ConfigError if not."""
    if policy.needs_power and not machine.powered:
        raise ConfigError("policy", "pairs:resource", "the power of this machine is not known", "nodes with power")


def _scores(processors: Array, machine: ProcessorTables, rule: int) -> Array:
    """Return the kernel's scores of idle processors."""
    flops, free, bandwidth = processors["flops"], processors["free"], processors["bandwidth"]
    memory, common, idle_share = machine.nodes["memory"], processors["common"], processors["idle_share"]
    found = {
        tables.GFLOPS: -flops,
        tables.CORES: -1.0 * free,
        tables.MEMORY: -1.0 * memory[processors["node"]],
        tables.BANDWIDTH: -bandwidth,
        tables.POWER: common * idle_share,
    }
    return np.asarray(found.get(rule, np.zeros(len(processors))))


def _jobs(workload: Workload, policy: Contending, run_times: str | RunTimePredictor) -> tuple[Array, Array]:
    """Return the table of jobs, and the job of each rank."""
    jobs, run = np.zeros(len(workload), tables.JOB), workload.run_time
    nothing = np.zeros(len(workload))
    jobs["submit"], jobs["work"], jobs["wall"] = workload.submit_time, run, workload.walltime
    jobs["size"], jobs["memory"] = workload.size, np.ceil(np.minimum(workload.more.get("memory", nothing), MOST))
    moved = np.asarray(workload.more.get("volume", nothing), np.float64)
    with np.errstate(over="ignore"):
        demand = np.divide(moved, run, out=np.zeros(len(workload)), where=run > 0)
    jobs["demand"] = np.minimum(demand, MOST)
    known = {WALLTIME: workload.more.get("asked", workload.walltime), ACTUAL: np.minimum(run, workload.walltime)}
    keys = {
        "shortest": known[run_times] if isinstance(run_times, str) else nothing,
        "smallest": workload.size,
        "low_mem": jobs["memory"],
        "low_mem_bw": jobs["demand"],
    }
    jobs["rank"] = ranked_by(workload, keys.get(policy.job, nothing))
    ranked = np.zeros(len(workload), np.int64)
    ranked[jobs["rank"]] = np.arange(len(workload))
    return jobs, ranked


def _fits(jobs: Array, machine: ProcessorTables, *, whole: bool) -> Array:
    """Return which jobs fit on the machine, or on one of its nodes if `whole`."""
    fits = np.zeros(len(jobs), bool)
    for memory in np.unique(jobs["memory"]):
        room = machine.nodes["cores"]
        if memory > 0:
            room = np.minimum(room, machine.nodes["memory"] // memory)
        mine = jobs["memory"] == memory
        fits[mine] = jobs["size"][mine] <= (room.max() if whole else room.sum())
    return fits


@dataclass(frozen=True, slots=True)
class ContendedReplay(Replayed):
    """The result of a replay with contention, with its tasks."""

    #: Energy of the machine from the first submission to the last end; None if its power is not known.
    joules: float | None
    #: [jobs], energy of each job: of its cores, and its share of the base power of its processors and nodes; nan if
    #: not known.
    jobs_joules: Array
    #: One row per task, in the order of their starts.
    task_job: Array
    task_core: Array
    task_end: Array
    processors: ProcessorTables  # the machine


def run(case: ReplayCase, engine: Engine) -> ContendedReplay:
    """Replay jobs whose `more` may have `volume` and `memory`, bytes that a task moves and needs, and `asked`, seconds.

    O(tasks x (cores of a processor + log processors) + jobs log queue). The resource rule `random`, node rules and
    memory shortage cost O(processors) instead of the logarithm. Decisions that take time cost O(cores) each.

    Raises:
        ConfigError: the policy needs the power of the machine and it is not known, or nodes share a memory domain.
    """
    workload, options, clock, limit = case.jobs, case.options, case.options.clock, limit_for(case)
    policy, progress = spec_of(case.policy).plain, options.progress
    seed, run_times, decision_time = options.seed, options.run_times, options.decision_time
    machine = processors_of(case.cluster)
    world = _contention_tables(workload, machine, policy, seed, run_times, limit)
    if decision_time != 0.0 or not isinstance(run_times, str) or limit.next_time() < math.inf:
        predictions = None if isinstance(run_times, str) else Predictions(run_times, workload)
        loop = _Steps(workload, machine, world, predictions, limit)
        done = drive(loop, clock(), decision_time=decision_time, clock=clock, progress=progress)
        assert isinstance(done, ContendedReplay)
        return done
    kernel = load(engine.kernels[0])
    began = slice_began = clock()
    size = slices.FIRST
    while kernel(world.address, tables.REPLAY, size, 0.0) != DONE:
        size, slice_began = slices.next_slice(size, clock() - slice_began), clock()
        progress(float(world.clock["now"]))
    return _result(workload, machine, world, clock() - began)


class _Steps:
    """The replay one instant at a time; see `drive.Loop`."""

    again = False  # one pass starts all that fits
    #: What a start changes: of the machine, and of the counts.
    changing = ("nodes", "processors", "cores", "ends", "next_end", "scores", "best")
    counts = ("running", "free", "tasks")

    def __init__(
        self,
        workload: Workload,
        machine: ProcessorTables,
        world: World,
        predictions: Predictions | None,
        limit: NoLimit,
    ) -> None:
        self.workload, self.machine, self.world, self.predictions = workload, machine, world, predictions
        self.limit = limit
        self.kernel, self.now, self.news = load("queue.contention.pairs_loop"), -math.inf, False
        self.running, self.unlearned = np.zeros(0, np.int64), list[int]()

    def next_time(self, before: float) -> float:
        """Return the time of the next end of a task, submission, or change of the limit."""
        row, submit = int(self.world.count["next"]), self.world.jobs["submit"]
        time = float(min(self.world.ends.min(initial=math.inf), submit[row] if row < len(submit) else math.inf))
        if self.world.count["released"]:
            time = min(time, float(self.world.released_at[0]))
        return min(time, self.limit.next_time()) if self.world.count["waiting"] else time

    def advance_to(self, now: float) -> None:
        """Predict the jobs of this instant, then process its ends and submissions."""
        world, self.now = self.world, now
        if self.predictions:
            row = int(world.count["next"])
            for each, expected in self.predictions.expected_at(now, row, self.unlearned, world.jobs["finish"]).items():
                world.jobs["key"][each] = expected
        waiting = int(world.count["waiting"])
        self.kernel(world.address, tables.STEP, -1, now)
        ended = world.jobs["state"][self.running] == ENDED
        self.unlearned += self.running[ended].tolist()
        self.running = self.running[~ended]
        self.news |= bool(ended.any()) or int(world.count["waiting"]) > waiting
        if self.limit.update(now):
            world.count["blocked"] = self.limit.blocked
            self.news |= bool(world.count["waiting"])

    def has_changed(self) -> bool:
        """Return whether a job has ended or been submitted since the last pass."""
        return self.news

    def call_policy(self) -> list[int]:
        """Return the rows of the jobs that start, in order; the table of tasks has their cores."""
        world, changed = self.world, self.news or self.world.count["picks"] == tables.DRAWN
        self.news = False
        if world.count["waiting"] == 0 or not changed:  # what did not fit does not
            return []
        saved = {name: getattr(world, name).copy() for name in self.changing}
        counts, first = world.count[[*self.counts]].copy(), int(world.count["tasks"])
        self.kernel(world.address, tables.DECIDE, -1, self.now)
        new = world.cores["job"][world.tasks["core"][first : world.count["tasks"]]].tolist()
        for name, table in saved.items():
            np.copyto(getattr(world, name), table)
        world.count[[*self.counts]] = counts
        return [*dict.fromkeys(new)]

    def apply(self, decisions: Iterable[int], now: float) -> None:
        """Start the jobs of the last pass."""
        for row in decisions:
            self.kernel(self.world.address, tables.START, row, now)
        self.running = np.append(self.running, np.array([*decisions], np.int64))

    def result(self, instants: int, seconds: float) -> ContendedReplay:
        """Return the result."""
        return _result(self.workload, self.machine, self.world, seconds)


def _result(workload: Workload, machine: ProcessorTables, world: World, spent: float) -> ContendedReplay:
    jobs = world.jobs
    left = stranded(world.unmet, len(jobs))
    rejected = (jobs["state"] == REJECTED) | left
    start, finish = (np.where(rejected, math.nan, jobs[name]) for name in ("start", "finish"))
    count = int(world.count["tasks"])
    core, end = world.tasks["core"][:count].copy(), world.tasks["end"][:count].copy()
    began = np.flatnonzero(~rejected)
    began = began[np.argsort(jobs["task0"][began], kind="stable")]
    owner = np.repeat(began, workload.size[began])
    span = max(float(np.nanmax(np.append(finish, -math.inf))) - float(workload.submit_time[0]), 0.0) if count else 0.0
    known = machine.powered
    return ContendedReplay(
        workload, len(machine.core_table), jobs["submit"].copy(), start, finish, rejected, left, jobs["overran"] == 1,
        *merge_pieces(owner, core, core, len(jobs)),
        **without_switches(start), simulation_time=spent, instants=int(world.count["instants"]),
        joules=_joules(machine, world, span) if known else None,
        jobs_joules=np.where(rejected, math.nan, jobs["joules"]) if known else np.full(len(jobs), math.nan),
        task_job=owner, task_core=core, task_end=end, processors=machine,
    )  # fmt: skip


def _joules(machine: ProcessorTables, world: World, span: float) -> float:
    """Return the energy in joules that the machine consumes in `span` seconds."""
    own, busy, awake = machine.processors, world.processors["busy"], world.processors["awake"]
    idle = own["idle_share"] * (span - awake)
    return float((own["per_core"] * busy + own["common"] * (awake + idle)).sum() + machine.nodes["watts"].sum() * span)


def contended_track(done: ContendedReplay, begin: float = math.inf) -> Track:
    """Return the machine over time; its power means nothing if it is not known. O(tasks log tasks).

    Args:
        done: the replay.
        begin: see `energy.track`.
    """
    machine, (first, end) = done.processors, span(done)
    own, count = machine.processors, len(done.task_core)
    chips = np.tile(machine.core_table["processor"][done.task_core], 2)
    times = np.concatenate([done.start_time[done.task_job], done.task_end])
    moments, when = np.unique(np.append(times, (min(first, begin), end)), return_inverse=True)
    chips, when, running = _running(chips, when[:-2], np.repeat([1, -1], count))
    kinds, kind = np.unique(own[["per_core", "common", "idle_share"]], return_inverse=True)
    common, idle_share = own["common"], own["idle_share"]
    watts = np.full(len(moments), float(machine.nodes["watts"].sum() + (common * idle_share).sum()))
    least, busy = watts.copy(), np.zeros(len(moments), np.int64)
    before = np.append(0, running[:-1])
    before[np.append(True, chips[1:] != chips[:-1])[: len(before)]] = 0
    for k, (per_core, common, idle_share) in enumerate(kinds.tolist()):
        mine = kind[chips] == k
        tasks = _summed(when[mine], (running - before)[mine], len(moments))
        awake = _summed(when[mine], ((running > 0) * 1 - (before > 0))[mine], len(moments))
        watts += per_core * tasks + common * (1.0 - idle_share) * awake
        busy += tasks
    counts = np.zeros((len(moments), len(STATES)), np.int64)
    counts[:, STATES.index("computing")], counts[:, STATES.index("idle")] = busy, done.machine - busy
    joules = np.concatenate([[0.0], np.cumsum(watts[:-1] * np.diff(moments))])
    return Track(moments, counts, watts, least, joules)


def _running(chips: Array, when: Array, change: Array) -> tuple[Array, Array, Array]:
    """Return processor, moment and number of running tasks from then on, for each change of a processor's tasks."""
    order = np.lexsort((when, chips))
    chips, when, running = chips[order], when[order], np.cumsum(change[order])
    last = np.ones(len(chips), bool)
    last[:-1] = (chips[1:] != chips[:-1]) | (when[1:] != when[:-1])
    return chips[last], when[last], running[last]


def _summed(when: Array, change: Array, moments: int) -> Array:
    return np.rint(np.cumsum(np.bincount(when, change, moments))).astype(np.int64)
