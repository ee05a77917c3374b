"""Mapping policies by name: the built-in ones, and how to register another.

Rule: a mapping policy gets a fresh simulation and leaves a finished run of the whole workflow in its tables, from which
the planner makes the plan. This module reads no package metadata: callers resolve entry points and call `register`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ConfigError, PolicyError
from ..kernels.mapping import layout
from ..model.job import Job
from ..model.machine import core_powers, equal_powers
from ..model.node_power import NodePower
from ..model.objective import Objective, Submitted
from ..model.plan import PowerSwitch, Reservation, RunnerUp, RunningJob, Scored
from ..queue_policies.energy.power_policies import PowerCap
from ..queue_policies.kept import Kept
from ..wording import count
from .admission import fitting
from .lookahead import LESS, Search, default_budget, queue_budget
from .open_queue import OpenQueue
from .search_moves import Candidate
from .simulation import POLICY_CODES, Simulation


@dataclass(frozen=True, slots=True)
class Request:
    """A caller's request to a mapping policy."""

    objective: Objective = field(default_factory=Objective)  # what to minimise, if the policy minimises anything
    seed: int = 0  # of all random choices
    budget: int | None = None  # evaluations; None = by the size of the workflow
    #: Asked now and then; True asks the policy to end early with the best run so far.
    should_stop: Callable[[], bool] | None = None
    lower_bound: float = 0.0  # seconds that no makespan can beat
    explain: bool = False  # whether to find runner-ups
    explanation_runs: int = 0  # the most simulations that runner-ups may take
    queue: OpenQueue | None = None  # what judges a run, for the objectives of a queue that goes on
    underway: Sequence[RunningJob] = ()  # the running jobs
    submitted: Sequence[Submitted] = ()  # what users submitted
    may_reject: bool = False  # whether jobs may be left out of the plan, with the reason
    #: Comparisons of jobs with nodes that a queue policy in Python may make after those for now; None: any number.
    foresight: int | None = None
    now: float = 0.0  # when the plan begins, seconds of the clock that a policy's options refer to
    kept: Kept | None = None  # what the policy of a service knows of the time before, if it keeps anything
    power: NodePower | None = None  # power states of nodes, for a policy that switches them


@dataclass(frozen=True, slots=True)
class Mapped:
    """The result of a mapping policy; the tables of the simulation hold the run."""

    makespan: float  # seconds
    energy_j: float  # joules; nan = unknown
    mapping: Candidate  # the run as a candidate, which the planner runs again for prediction intervals
    evaluations: int = 1  # simulated runs
    truncated: bool = False  # whether `should_stop` ended the policy early
    runner_ups: Mapping[int, RunnerUp] = field(default_factory=dict)  # position of a job -> its next best nodes
    rejected: Mapping[int, str] = field(default_factory=dict)  # position of a job that is never started -> why
    beyond: Sequence[int] = ()  # positions of jobs that the plan ends before
    reserved: Mapping[int, Reservation] = field(default_factory=dict)  # position of a job -> what it has reserved
    waits: Mapping[int, str] = field(
        default_factory=dict
    )  # position of a job -> why it does not start now, if a limit or `beyond` is why
    warnings: tuple[str, ...] = ()
    recheck_s: float = math.inf  # when the policy wants to decide again if nothing happens, seconds
    switches: tuple[PowerSwitch, ...] = ()  # nodes that the policy switches now
    forecast_by: str = ""  # the policy that forecasts what does not start now, if another one decides
    scored: Mapping[int, Scored] = field(default_factory=dict)  # position of a job -> its place in a model's order


MappingPolicy = Callable[[Simulation, Request], Mapped]
#: Names of nodes for a ready job; None = the job waits for the next end of another job.
Choose = Callable[[Simulation, Job], Sequence[str] | None]


def register(name: str, policy: MappingPolicy) -> None:
    """Add a mapping policy under a new name.

    Args:
        name: as users write it after --policy.
        policy: see `MappingPolicy`; `choosing` makes one from a function that places one job.

    Raises:
        ConfigError: the name is taken, or `policy` cannot be called.
    """
    if name in POLICIES:
        raise ConfigError("mapping policy", name, "the name is taken", f"a name other than {', '.join(POLICIES)}")
    if not callable(policy):
        raise ConfigError("mapping policy", name, f"found {policy!r}", "a function of a simulation and a request")
    POLICIES[name] = policy


def choosing(choose: Choose) -> MappingPolicy:
    """Return a mapping policy that places one job at a time; can be used as a decorator.

    At each end of a job, every ready job that fits is offered to `choose`, in file order. `choose` may ask the
    simulation what-if questions (`forecast`, `decide`, `next_event`, `copy`) but must not change it.

    Args:
        choose: returns the nodes of a job, or None to let it wait.
    """

    def policy(simulation: Simulation, request: Request) -> Mapped:
        simulation.reset()
        simulation.settle()
        world, workflow = simulation.world, simulation.workflow
        jobs, policy_name = world.jobs, getattr(choose, "__name__", "mapping policy")
        while True:
            for i in np.flatnonzero((jobs["blockers"] == 0) & (jobs["state"] < layout.RUNNING)).tolist():
                job = workflow.jobs[i]
                if (nodes := choose(simulation, job)) is not None:
                    _check_nodes(simulation, i, nodes, policy_name)
                    simulation.start(job.id, nodes)
            if math.isinf(simulation.next_event):
                break
            simulation.advance(simulation.next_event)
        waiting = np.flatnonzero(jobs["state"] != layout.DONE).tolist()
        if waiting:
            where = f"job {workflow.jobs[waiting[0]].id!r}"
            raise PolicyError(
                policy_name, where, "it was never started, and no job is running", "nodes for every ready job"
            )
        energy = float(np.cumsum(world.nodes["energy"])[-1]) if world.count["powered"] else math.nan
        return Mapped(float(jobs["finish"].max(initial=0.0)), energy, Candidate.of(simulation))

    return policy


def _check_nodes(simulation: Simulation, i: int, nodes: Sequence[str], policy: str) -> None:
    """Raise PolicyError if job `i` does not fit on these nodes now."""
    world, cluster, job = simulation.world, simulation.cluster, simulation.workflow.jobs[i]
    shape = world.classes[world.jobs[i]["cls"]]
    usable = fitting(world, shape)
    usable &= world.nodes["alloc"] + shape["threads"] <= world.nodes["limit"] + 1e-9
    usable &= world.nodes["used"] + shape["memory"] <= world.nodes["memory"] * (1 + 1e-12)
    distinct = len(set(nodes)) == len(nodes) == job.nodes
    if not distinct or not all(name in cluster.index and usable[cluster.index[name]] for name in nodes):
        allowed = f"{job.nodes} distinct node{'s' * (job.nodes > 1)} on which it fits now"
        raise PolicyError(policy, f"job {job.id!r}", f"found {', '.join(nodes) or 'no node'}", allowed)


def _paper(name: str) -> MappingPolicy:
    """Return a policy of the DESiDE paper, which runs inside the compiled kernel."""

    def policy(simulation: Simulation, request: Request) -> Mapped:
        outcome = simulation.run(name, explain=request.explain)
        runner_ups = _recorded_runner_ups(simulation, name) if request.explain else {}
        return Mapped(outcome.makespan, outcome.energy_j, Candidate.of(simulation), runner_ups=runner_ups)

    return policy


class UnderCap:
    """A policy of the DESiDE paper under a power cap.

    Args:
        name: of the policy.
        cap: the cap; it neither begins nor ends.
    """

    every_node = True  # the cap is that of all nodes

    def __init__(self, name: str, cap: PowerCap) -> None:
        self._name, self._cap = name, cap

    def __call__(self, simulation: Simulation, request: Request) -> Mapped:
        """Run the whole workflow. Raises ConfigError, PolicyError."""
        world, workflow = simulation.world, simulation.workflow
        cores = sum(node.type.cores for node in simulation.cluster.nodes)
        allowed = self._cap.allowed(equal_powers(core_powers(simulation.cluster)), cores)
        outcome = simulation.run(self._name, explain=request.explain, most=allowed)
        held = (world.classes["threads"] * world.classes["nodes"])[world.jobs["cls"]].tolist()
        above = f"the power cap allows {count(allowed, 'core')}, and it needs more"
        rows = np.flatnonzero(world.jobs["state"] != layout.DONE).tolist()
        rejected = {row: above if held[row] > allowed else "it waits for a job that is never started" for row in rows}
        if rejected and not request.may_reject:
            row, why = next(iter(rejected.items()))
            raise PolicyError(self._name, f"job {workflow.jobs[row].id!r}", f"it is never started: {why}")
        makespan, candidate = float(np.fmax.reduce(outcome.finish, initial=0.0)), Candidate.of(simulation)
        return Mapped(makespan, outcome.energy_j, candidate, rejected=rejected)


def _lookahead(simulation: Simulation, request: Request) -> Mapped:
    """Search; see the module `lookahead`."""
    budget, jobs = request.budget, len(simulation.workflow.jobs)
    if budget is None and request.queue is None:
        budget = default_budget(jobs)
    elif budget is None:
        waiting = np.flatnonzero(simulation.world.jobs["state"] == layout.WAITING).tolist()
        work_s = sum(simulation.workflow.jobs[row].profile.isolated_time for row in waiting)
        budget = queue_budget(len(simulation.world.placed), len(waiting), len(simulation.cluster.nodes), work_s)
    stop, bound = request.should_stop, request.lower_bound
    search = Search(simulation, request.objective, request.seed, budget, stop, optimal=bound, queue=request.queue)
    search.run()
    used, (makespan, energy) = search.used, search.best_end
    runner_ups = _searched_runner_ups(simulation, search, makespan, request) if request.explain else {}
    return Mapped(makespan, energy, search.best, used, search.truncated, runner_ups)


def _recorded_runner_ups(simulation: Simulation, name: str) -> dict[int, RunnerUp]:
    """Return the runner-ups that a policy of the paper recorded; only `let` and `mom` score nodes by times."""
    jobs, nodes = simulation.world.jobs, simulation.cluster.nodes
    timed = name in ("let", "mom")
    return {
        int(i): RunnerUp((nodes[jobs[i]["alt"]].name,), float(jobs[i]["alt_cost"]) if timed else None)
        for i in np.flatnonzero(jobs["alt"] >= 0)
        if math.isfinite(jobs[i]["alt_cost"])
    }


def _searched_runner_ups(
    simulation: Simulation, search: Search, makespan: float, request: Request
) -> dict[int, RunnerUp]:
    """Return what moving one job to its next best node would cost a searched plan, in seconds of makespan."""
    nodes, rounding = simulation.cluster.nodes, (1.0 - LESS) * makespan
    return {
        job: RunnerUp((nodes[node].name,), 0.0 if abs(span - makespan) <= rounding else span - makespan)
        for job, (node, span) in search.alternatives(request.explanation_runs).items()
    }


#: Name -> mapping policy; `register` adds to it.
POLICIES: dict[str, MappingPolicy] = {**{name: _paper(name) for name in POLICY_CODES}, "lookahead": _lookahead}
