"""Jobs on nodes whose jobs slow each other down, by the fluid simulation of plans.

Rule: a job has cores of its own on each of its nodes, and shares the memory of these nodes with other jobs. A job is
killed at its walltime.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..arrays import Array
from ..kernels.mapping import layout
from ..kernels.object_cache import load
from ..kernels.queue.network.tables import NetworkedNodes
from ..model.cluster import Cluster
from ..model.intervals import Interval
from ..model.machine import MixedPowers, Powers, groups_of
from ..model.network import Network
from ..model.workload import Workload
from ..planning.node_loads import NodeMeter
from ..planning.simulation import POLICY_CODES
from ..planning.workflow_tables import scratch_for
from ..queue_policies.free_nodes import NodeLoads, NodeNeed
from ..queue_policies.interface import Forecast
from ..queue_policies.node_resources import NodeResources
from ..queue_policies.queued_job import QueuedJob, Running
from .network_rates import joules_of
from .power_log import PowerLog
from .replay_result import Replayed, merge_pieces, pieces_by_job
from .shared_tables import believe, kernel_for, tables_of
from .simulated_world import SimulatedWorld
from .world_parts import Load, Rates


class SharedRates(Rates):
    """The progress of jobs on shared nodes. O(jobs on the nodes that change) per start and end.

    Args:
        workload: the jobs.
        cluster: the nodes.
        run_times: what forecasts may know, WALLTIME or ACTUAL.
        network: between the nodes, for jobs whose run times depend on it.
        log_power: see `replay.replay`.
        predicted: forecasts know predicted run times.
        oversubscribes: nodes take as many threads as the cluster allows, also more than they have cores.
    """

    def __init__(
        self, workload: Workload, cluster: Cluster, run_times: str, network: Network | None, *, log_power: bool,
        predicted: bool, oversubscribes: bool,
    ) -> None:  # fmt: skip
        free = replace(workload, dependencies=None)
        self.tables, self.fits, self.threads = tables_of(free, cluster, run_times, network, log_power=log_power)
        self.tables.count["arrived"] = len(self.tables.arrivals)  # the world submits the jobs
        if not oversubscribes:
            cores = self.tables.types["cores"][self.tables.nodes["type"]]
            self.tables.nodes["limit"] = np.minimum(cores, self.tables.nodes["limit"])
        self._threads = self.tables.nodes["limit"].astype(np.int64)  # that nodes take, while they are not withdrawn
        self._workload, self._cluster = workload, cluster
        self._log = PowerLog(kept=log_power and network is not None)
        self._scratch, self._kernel = scratch_for(self.tables), load(kernel_for(self.tables))
        self._meter: NodeMeter | None = None
        self._ended = 0
        self._ask(layout.ISOLATED, number=1)  # for forecasts, while nothing runs
        self._ask(layout.SETTLE)
        if predicted:
            self.tables.count["beliefs"] = 1

    def resources(self, powers: Powers | MixedPowers | None) -> NodeResources:
        """Return the cores (or threads) and the memory of the nodes, and what each job needs of them."""
        tables, cluster = self.tables, self._cluster
        names = tuple(node.name for node in cluster.nodes)
        needs = list(map(NodeNeed, self.threads.tolist(), tables.classes["memory"].tolist()))
        groups, speeds = groups_of(cluster, self._threads.tolist()), tables.types["speed"][tables.nodes["type"]]
        self._resources = NodeResources(
            self._threads, tables.nodes["memory"].copy(), speeds, names, needs, powers, groups
        )
        return self._resources

    def join(self, world: SimulatedWorld) -> None:
        """Become a part of a world."""
        self._world = world

    def _ask(
        self, question: int, job: int = -1, until: float = math.inf, number: int = 0, policy: int = 0
    ) -> None:  # fmt: skip
        self._kernel(question, self.tables.address, self._scratch.address, policy, job, number, until)
        self._log.empty(self.tables)

    # --- the clock ---
    def next_time(self, before: float) -> float:
        """Return the time of the next end, or of the next change of a job's demand."""
        return float(self.tables.heap_time[0])

    def advance(self, now: float) -> None:
        """Process all ends and changes of demand until now, with those that a submission finds within rounding."""
        submits = self._world.next_submission() <= now
        self._ask(layout.STEP if submits else layout.ADVANCE, until=now)

    def pop_ended(self, now: float) -> Iterable[tuple[int, bool]]:
        """Yield the jobs that have ended at this instant, in the order of their ends."""
        tables = self.tables
        ended = tables.ended[self._ended : tables.count["finished"]].tolist()
        self._ended += len(ended)
        for number in ended:
            yield number, not tables.jobs["killed"][number]

    # --- the jobs ---
    def begin(self, running: Running) -> None:
        """Let a job run on its nodes."""
        number, tables = running.job.number, self.tables
        if running.start_time > self._world.now:  # its nodes have booted between two instants
            self._ask(layout.ADVANCE, until=running.start_time)
        first, nodes = int(tables.jobs["place0"][number]), self._resources.held[number]
        tables.placed[first : first + len(nodes)] = sorted(nodes)
        self._ask(layout.PLACE, job=number)

    def kill(self, running: Running, now: float) -> None:
        """Forget a running job. Raises PolicyError if its nodes have not booted."""
        if running.start_time > now:
            raise self._world.error(running.job, "it is killed", "a job whose machines have booted")
        self._ask(layout.WITHDRAW, job=running.job.number)

    def ends_well(self) -> Array:
        """Return which jobs can succeed: those that return success, if they are not killed."""
        well: Array = self._workload.more.get("returns", np.zeros(len(self._workload), np.int64)) == 0
        return well

    def believe(self, number: int, expected: float) -> None:
        """Let forecasts expect this run time of a job, seconds."""
        believe(self.tables, number, expected)

    def forecast(self, job: QueuedJob, nodes: Sequence[int]) -> Forecast:
        """Return what would happen if a job started now on these nodes."""
        chosen = self._resources.check_nodes(self._world, job, nodes, fewer=True)
        self._scratch.places[: len(chosen)] = chosen
        self._ask(layout.WHAT_IF, job.number, number=len(chosen))
        remaining, slowdown, others, delay_s, crowding, alone = self._scratch.effect.item()
        return Forecast(self._world.now + remaining, slowdown, others, delay_s, crowding, bool(alone))

    def best_nodes(self, job: QueuedJob, policy: str) -> tuple[int, ...] | None:
        """Return where a mapping policy would start a job now; None: nowhere. Raises LookupError: no such policy."""
        self._ask(layout.CHOOSE, job.number, policy=POLICY_CODES[policy])
        if not self._scratch.answer["found"]:
            return None
        first = int(self.tables.jobs["place0"][job.number])
        nodes: list[int] = self.tables.placed[first : first + job.nodes].tolist()
        return tuple(nodes)

    def withdrawn(self, resources: Sequence[Interval]) -> None:
        """Let no job start on nodes that are no longer there."""
        self.tables.nodes["limit"][self._resources.nodes_with(resources)] = 0

    def given_back(self, resources: Sequence[Interval], now: float) -> None:
        """Let jobs start again on nodes that are back."""
        nodes = self._resources.nodes_with(resources)
        self.tables.nodes["limit"][nodes] = self._threads[nodes]

    def node_loads(self) -> NodeLoads:
        """Return how busy each node is."""
        if self._meter is None:
            self._meter = NodeMeter(self.tables, self._cluster, np.arange(len(self._cluster.nodes)))
        return self._meter.read()

    def load_of(self, running: Running) -> Load | None:
        """Return the load of a job on the network."""
        number = running.job.number
        networked = isinstance(self.tables, NetworkedNodes) and self.tables.courses["program"][number] >= 0
        return partial(joules_of, self, number) if networked else None

    # --- the result ---
    def overran(self, workload: Workload) -> Array:
        """Return which jobs were killed at their walltimes, bool [jobs]."""
        killed: Array = self.tables.jobs["killed"] == 1
        return killed

    def report(self, done: Replayed) -> Replayed:
        """Return the result with intervals that are merged, and with the energy of the jobs on the network."""
        owner, rows = pieces_by_job(done.pieces, done.piece0, done.piece_count)
        pieces, piece0, piece_count = merge_pieces(owner, rows["first"], rows["last"], len(done.start_time))
        done = replace(done, pieces=pieces, piece0=piece0, piece_count=piece_count)
        if not isinstance(self.tables, NetworkedNodes):
            return done
        self._log.empty(self.tables)
        courses = self.tables.courses
        joules = np.where(courses["program"] >= 0, courses["joules"], math.nan)
        return replace(done, above_idle=joules, power_log=self._log.rows())
