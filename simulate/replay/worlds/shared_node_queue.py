"""Replay a workload under a queue policy, on nodes whose jobs slow each other down.

Rule: the policy sees and decides what it would in a plan (`node_policy_calls`); the tables of `shared_nodes` carry it
out. So a job has cores of its own on each of its nodes, and shares the memory of these nodes with other jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...kernels import load
from ...kernels.mapping import layout
from ...kernels.queue.network.tables import NetworkedNodes
from ...model.cluster import Cluster
from ...model.intervals import lowest
from ...model.machine import MixedPowers, Powers, equal_powers, groups_of, machine_of
from ...model.network import Network
from ...model.workload import Workload
from ...planning.node_loads import NodeMeter
from ...planning.workflow_tables import scratch_for
from ...queue_policies.free_nodes import NodeLoads, NodeNeed
from ...queue_policies.interface import Forecast, QueuePolicy
from ...queue_policies.node_policy_calls import NodePolicyCalls
from ...queue_policies.policy_specs import Conservative, Contending, Easy, Saving, Strict, text_of
from ...queue_policies.queued_job import NodeJob, QueuedJob, Running
from ...queue_policies.uncompiled import uncompiled
from ..known_run_times import ACTUAL, WALLTIME, Predictions, RunTimePredictor
from ..power_log import PowerLog
from ..replay_result import Replayed, merge_pieces
from ..requirements import refuse_saving
from .powered_jobs import Load, PoweredNodes, SwitchedMachines, is_powered, joules_of
from .predicted_jobs import Predicted
from .python_loop import drive
from .shared_nodes import believe, kernel_for, newly_submitted, next_row, schedule_of, submissions, tables_of


def replay_queue_on_nodes(
    workload: Workload,
    cluster: Cluster,
    policy: Easy | Strict | Conservative | Saving | Contending | QueuePolicy,
    *,
    run_times: str | RunTimePredictor = WALLTIME,
    seed: int = 0,
    decision_time: float | None = 0.0,
    network: Network | None = None,
    log_power: bool = False,
    progress: Callable[[float], None] = lambda now: None,
    clock: Callable[[], float] = lambda: 0.0,
) -> Replayed:
    """Replay a workload on nodes with contention. O(nodes + running jobs) per event, plus the time of the policy.

    Args:
        workload: the jobs; `more` may have `volume` and `memory`, bytes that each of its processors moves and needs.
        cluster: the nodes. A run time is that on the slowest node type.
        policy: the queue policy.
        run_times: what the policy may know, WALLTIME, ACTUAL, or a predictor.
        seed: of a random order.
        decision_time: see `python_loop.replay_with_python_policy`.
        network: between the nodes, for jobs whose run times depend on it.
        log_power: see `replay.replay`.
        progress: called now and then with the simulated time.
        clock: returns seconds, for `simulation_time`.

    Raises:
        ConfigError: a run time, a walltime or a power is not known, or the nodes take any number of threads.
        PolicyError: the policy raised an exception, made an invalid decision, or left jobs waiting forever.
    """
    name, asked = f"{type(policy).__module__}:{type(policy).__qualname__}", policy
    powers = machine_of(cluster).powers
    if isinstance(policy, Saving):
        window = refuse_saving(policy, workload, powers, of_nodes=True)
        name, asked = text_of(policy), uncompiled(policy, seed, window=window)
    elif isinstance(policy, Easy | Strict | Conservative | Contending):
        name, asked = text_of(policy), uncompiled(policy, seed)
    began, powered = clock(), is_powered(asked)
    if isinstance(run_times, str):
        world = _PoweredJobs if powered else _Jobs
        loop = world(workload, cluster, asked, name, run_times, powers, network, log_power)
    else:
        predictions = Predictions(run_times, workload)
        kind = _PoweredPredictedJobs if powered else _PredictedJobs
        loop = kind(workload, cluster, asked, name, predictions, powers, network, log_power)
    if isinstance(loop, SwitchedMachines):
        loop.power_with(equal_powers(powers), float(workload.submit_time[0]) if len(workload) else 0.0)
    return drive(loop, began, decision_time=decision_time, clock=clock, progress=progress)


class _Jobs(NodePolicyCalls):
    """The state of the replay."""

    make_job: Callable[..., NodeJob] = NodeJob

    def __init__(
        self, workload: Workload, cluster: Cluster, policy: Any, name: str, runtimes: str,
        powers: Powers | MixedPowers | None, network: Network | None, log_power: bool,
    ) -> None:  # fmt: skip
        self.workload, self.cluster = workload, cluster
        self.world, self.fits, threads = tables_of(workload, cluster, runtimes, network, log_power=log_power)
        self.log = PowerLog(kept=log_power and network is not None)
        self.scratch, self.kernel = scratch_for(self.world), load(kernel_for(self.world))
        world = self.world
        cores = np.minimum(world.types["cores"][world.nodes["type"]], world.nodes["limit"]).astype(np.int64)
        names = tuple(node.name for node in cluster.nodes)
        needs = list(map(NodeNeed, threads.tolist(), world.classes["memory"].tolist()))
        groups, speeds = groups_of(cluster, cores.tolist()), world.types["speed"][world.nodes["type"]]
        super().__init__(policy, name, cores, world.nodes["memory"].copy(), speeds, names, needs, powers, groups)
        count = len(workload)
        self.told: list[float] = (workload.run_time if runtimes == ACTUAL else workload.walltime).tolist()
        users = workload.more["user"].tolist() if "user" in workload.more else [None] * count
        nodes = world.classes["nodes"].tolist()
        sizes = (world.classes["nodes"] * threads).tolist()
        self.jobs = workload.more.get("name", workload.id).tolist(), sizes, self.told, users, nodes
        self.rejected, self.submissions, self.ended = np.zeros(count, bool), 0, 0
        self.here: dict[int, Running] = {}
        self.meter: NodeMeter | None = None
        self.given: list[tuple[int, int, int]] = []
        self._ask(layout.ISOLATED, number=1)  # for forecasts, while nothing runs
        self._ask(layout.SETTLE)

    def _ask(self, question: int, which: int = -1, until: float = math.inf, number: int = 0) -> None:
        self.kernel(question, self.world.address, self.scratch.address, 0, which, number, until)
        self.log.empty(self.world)

    # --- events ---
    def next_time(self, before: float) -> float:
        """Return the time of the next event; see `Loop`."""
        world = self.world
        time = float(world.heap_time[0])
        if (arrived := int(world.count["arrived"])) < len(world.arrivals):
            time = min(time, float(world.jobs["submit"][world.arrivals[arrived]]))
        if self.wakes and self.wakes[0] < time and (time < math.inf or self.waiting):
            time = self.wakes[0]
        return time

    def advance_to(self, now: float) -> None:
        """Process all ends of this instant, then all submissions."""
        world = self.world
        self._ask(layout.ADVANCE, until=now)
        self.now = self.snapshot.time = now
        ready: list[int] = []
        for number in world.ended[self.ended : world.count["finished"]].tolist():
            self.end(self.here.pop(number))
            row = world.jobs[number]
            first = int(row["succ_start"])
            ready += world.successors[first : first + int(row["succ_count"])].tolist()
        self.ended = int(world.count["finished"])
        ready = [*sorted(ready), *newly_submitted(world, self.submissions).tolist()]
        self.submissions = submissions(world)
        for number in dict.fromkeys(ready):
            if world.jobs["blockers"][number] == 0:
                self._submit(number, now)
        self.wake_at(now)

    def _submit(self, number: int, now: float) -> None:
        ids, sizes, told, users, nodes = self.jobs
        job = self.make_job(number, ids[number], sizes[number], told[number], now, users[number], nodes[number])
        if self.fits_empty(job):
            self.rejected[number] = True
        else:
            self.submit(job)

    def jobs_remain(self) -> bool:
        """Return whether a job waits, runs, or is still to come."""
        return bool(self.waiting or self.running or self.world.count["arrived"] < len(self.world.arrivals))

    def forecast(self, job: QueuedJob, nodes: Sequence[int]) -> Forecast:
        """Return what would happen if a job started now on these nodes."""
        chosen = self.check_nodes(job, nodes, fewer=True)
        self.scratch.places[: len(chosen)] = chosen
        self._ask(layout.WHAT_IF, job.number, number=len(chosen))
        left, slowdown, others, delay_s, crowding, alone = self.scratch.effect.item()
        return Forecast(self.now + left, slowdown, others, delay_s, crowding, bool(alone))

    def node_loads(self) -> NodeLoads:
        """Return how busy each node is."""
        if self.meter is None:
            self.meter = NodeMeter(self.world, self.cluster, np.arange(len(self.nodes)))
        return self.meter.read()

    # --- decisions ---
    def begin(self, running: Running) -> None:
        """Start a job on its nodes."""
        number, world = running.job.number, self.world
        self.here[number] = running
        first, nodes = int(world.jobs["place0"][number]), self.held[number]
        world.placed[first : first + len(nodes)] = sorted(nodes)
        used = lowest(running.resources, int(self.workload.size[number]))  # the last cores beyond its size stay idle
        self.given += [(number, low, high) for low, high in used]
        self._ask(layout.PLACE, which=number)

    def reject(self, job: Any) -> None:
        """Note that a job never runs."""
        self.rejected[job.number] = True

    def why_not_waiting(self, number: int) -> str:
        """Return why a job does not wait."""
        states = self.world.jobs["state"]
        if not 0 <= number < len(states):
            return "no such job was shown"
        if self.rejected[number]:
            return "it was rejected"
        return {layout.RUNNING: "it is already running", layout.DONE: "it has ended"}.get(
            int(states[number]), "it is not submitted yet"
        )

    def result(self, instants: int, seconds: float) -> Replayed:
        """Return the result. Raises PolicyError if jobs still wait."""
        if self.waiting:
            raise self.waits_forever("nothing runs, and no more jobs are submitted")
        owner, low, high = np.array(self.given, np.int64).reshape(-1, 3).T
        pieces = merge_pieces(owner, low, high, len(self.workload))
        never = ~self.fits | self.rejected
        return schedule_of(self.workload, self.world, self.processors, pieces, never, seconds, instants, self.log)


class _PredictedJobs(Predicted, _Jobs):
    """The replay of jobs whose run times are predicted; so are those in forecasts."""

    make_job = partial(NodeJob, predicted=True)

    def __init__(
        self, workload: Workload, cluster: Cluster, policy: Any, name: str, predictions: Predictions,
        powers: Powers | MixedPowers | None, network: Network | None, log_power: bool,
    ) -> None:  # fmt: skip
        super().__init__(workload, cluster, policy, name, WALLTIME, powers, network, log_power)
        self.predict_with(predictions)
        self.world.count["beliefs"] = 1

    def next_row(self) -> int:
        """Return the next job that is submitted; the number of jobs if all were."""
        return next_row(self.world, self.workload)

    def finish_times(self) -> Any:
        """Return when each job ended, seconds."""
        return self.world.jobs["finish"]

    def start_times(self) -> Any:
        """Return when each job began, seconds."""
        return self.world.jobs["start"]

    def show_prediction(self, number: int, expected: float) -> None:
        """Show a job with this run time."""
        self.told[number] = expected
        believe(self.world, number, expected)


class _PoweredJobs(PoweredNodes, _Jobs):
    """The replay on nodes with states."""

    def clock_to(self, now: float) -> None:
        """Set the clock of the nodes."""
        self._ask(layout.ADVANCE, until=now)

    def load_of(self, running: Running) -> Load | None:
        """Return the load of a job; None: it computes on all its cores all the time."""
        number = running.job.number
        if isinstance(self.world, NetworkedNodes) and self.world.courses["program"][number] >= 0:
            return partial(joules_of, self, number)
        return super().load_of(running)


class _PoweredPredictedJobs(_PoweredJobs, _PredictedJobs):
    """The replay of jobs with predicted run times on nodes with states."""
