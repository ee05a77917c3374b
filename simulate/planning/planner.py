"""Planning: from a workflow and a cluster to a plan, under any policy.

Rule: everything a caller needs is one function; it is pure: same input and seed, same plan.
`simulated_in` is filled by the caller's clock (this room has none): see `Plan`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import numpy as np

from .bounds import lower_bound
from .engine import Simulation, Underway
from .errors import ConfigError
from .job import Workflow
from .kernels import layout
from .objective import Objective
from .plan import Plan, PlannedJob, RunnerUp, Within
from .platform import Cluster
from .policies.lookahead import LESS, Search, default_budget
from .policies.moves import Candidate
from .scaling import scaling_notes
from .spread import within

__all__ = ["POLICIES", "Objective", "Underway", "plan"]

POLICIES: tuple[str, ...] = ("loadavg", "slf", "let", "mom", "lookahead")
ENGINES: tuple[str, ...] = ("fluid", "interval")

#: Runner-ups cost a run without pruning, or one for each job and node that a search has not asked about itself: for
#: larger workflows nobody reads them.
EXPLAINED_JOBS = 1000
EXPLANATION_RUNS = 1000


def plan(
    workflow: Workflow,
    cluster: Cluster,
    *,
    policy: str = "lookahead",
    objective: Objective = Objective(),
    seed: int = 0,
    budget: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    underway: Sequence[Underway] = (),
    done: Collection[str] = (),
    available: Collection[str] | None = None,
    explain: bool = True,
    explanation_runs: int = EXPLANATION_RUNS,
    engine: str = "fluid",
) -> Plan:
    """Map every job of the workflow to nodes and forecast when it runs.

    Args:
        policy: one of POLICIES.
        objective: what `lookahead` minimises; the others have their own criterion.
        budget: evaluations that `lookahead` may use; None = by size.
        should_stop: asked now and then by `lookahead`; True cuts it, and the plan says `truncated`.
        underway: jobs that run already; they have start_time 0 in the plan.
        done: ids of jobs that have ended well; they are absent from the plan.
        available: names of nodes that take new jobs; None = all.
        engine: one of ENGINES. "interval": decided with the fluid what-ifs, then run in the paper's intervals, with
            `seed` for the jitter too.
        explain: tell between which times jobs end (see `spread`), and find each job's runner-up node and what it would
            have cost; the latter not beyond EXPLAINED_JOBS jobs.
        explanation_runs: the most simulations that this may take under `lookahead`.

    Raises:
        ConfigError: unknown policy or engine, an energy objective on nodes whose power is unknown, or something
            that the interval engine does not model.
        InvalidJobError: a malformed workflow, or a job that can never start.
    """
    if policy not in POLICIES:
        raise ConfigError("policy", "", f"{policy!r} is unknown", ", ".join(POLICIES))
    if objective.needs_energy and any(kind.power is None for kind in cluster.types):
        unknown = next(kind.name for kind in cluster.types if kind.power is None)
        raise ConfigError(cluster.source or cluster.name, f"node_types.{unknown}.power",
                          f"unknown, but the objective is {objective}", "power of every node type")  # fmt: skip
    asked, explain = explain and engine == "fluid", explain and len(workflow.jobs) <= EXPLAINED_JOBS
    if engine not in ENGINES:
        raise ConfigError("engine", "", f"{engine!r} is unknown", ", ".join(ENGINES))
    if engine == "interval":
        from . import interval

        interval.refuse_unmodelled(workflow, cluster)
    simulation = Simulation(workflow, cluster, underway=underway, done=done, available=available)
    bound, evaluations, truncated = lower_bound(simulation), 1, False
    if policy == "lookahead":
        size = len(workflow.jobs)
        budget = default_budget(size) if budget is None else budget
        search = Search(simulation, objective, seed, budget, should_stop, optimal=bound)
        found = search.run()
        evaluations, truncated = found.evaluations, found.truncated
        makespan, energy, mapping = found.makespan, found.energy_j, search.best
        why = _alternatives(simulation, search, makespan, explanation_runs) if explain else {}
    else:
        outcome = simulation.run(policy, explain=explain)
        makespan, energy, mapping = outcome.makespan, outcome.energy_j, Candidate.of(simulation)
        why = _runner_ups(simulation) if explain else {}
    told, whole = within(simulation, mapping, seed, evaluations) if asked else ({}, None)
    notes = tuple[str, ...]()
    if engine == "interval":
        outcome = interval.rerun(simulation, seed)
        makespan, energy, notes = outcome.makespan, outcome.energy_j, (interval.NOTE,)
    return Plan(
        workflow=workflow.name,
        cluster=cluster.name,
        policy=policy,
        seed=seed,
        makespan=makespan,
        energy_j=None if math.isnan(energy) else energy,
        lower_bound=bound,
        simulated_in=0.0,
        truncated=truncated,
        evaluations=evaluations,
        jobs=_planned(simulation, why, told, set(done)),
        warnings=(*_warnings(workflow, cluster, simulation), *notes),
        makespan_within=whole,
    )


def _planned(
    simulation: Simulation, why: dict[int, RunnerUp], told: dict[int, Within], done: set[str]
) -> tuple[PlannedJob, ...]:
    world, isolated = simulation.world, simulation.isolated
    powered = bool(world.count[layout.POWERED])
    start, finish = world.jobs["start"].tolist(), world.jobs["finish"].tolist()
    energy, cls = world.jobs["energy"].tolist(), world.jobs["cls"].tolist()
    progress = world.jobs["progress"].tolist()
    planned = []
    for i, job in enumerate(simulation.workflow.jobs):
        if job.id in done:
            continue
        nodes = simulation.nodes_of(i)
        kinds = [int(world.nodes[simulation.cluster.index[name]]["type"]) for name in nodes]
        alone = max(float(isolated[cls[i], kind]) for kind in kinds)
        left = alone * (1.0 - progress[i])
        slowdown = (finish[i] - start[i]) / left if left > 0.0 else 1.0
        planned.append(
            PlannedJob(
                job.id,
                nodes,
                start[i],
                finish[i],
                alone,
                max(1.0, slowdown),
                energy[i] if powered else None,
                why.get(i),
                told.get(i),
            )  # fmt: skip
        )
    return tuple(planned)


def _runner_ups(simulation: Simulation) -> dict[int, RunnerUp]:
    """What the paper's policies noted while they chose."""
    jobs, nodes = simulation.world.jobs, simulation.cluster.nodes
    return {
        int(i): RunnerUp((nodes[jobs[i]["alt"]].name,), float(jobs[i]["alt_cost"]))
        for i in np.flatnonzero(jobs["alt"] >= 0)
        if math.isfinite(jobs[i]["alt_cost"])
    }


def _alternatives(simulation: Simulation, search: Search, makespan: float, runs: int) -> dict[int, RunnerUp]:
    """For a searched plan: what moving one job to its next best node would cost the whole (makespan seconds).

    Takes at most about so many `runs` beyond those that the search made.
    """
    nodes, rounding = simulation.cluster.nodes, (1.0 - LESS) * makespan
    costs = {job: (node, span - makespan) for job, (node, span) in search.alternatives(runs).items()}
    return {
        job: RunnerUp((nodes[node].name,), 0.0 if abs(cost) <= rounding else cost)
        for job, (node, cost) in costs.items()
    }


def _warnings(workflow: Workflow, cluster: Cluster, simulation: Simulation) -> tuple[str, ...]:
    notes = list(workflow.warnings)
    profiles = list({id(job.profile): job.profile for job in workflow.jobs}.values())
    notes += scaling_notes(profiles, cluster)
    run_time = simulation.world.jobs["finish"] - simulation.world.jobs["start"]
    late = [j.id for j, t in zip(workflow.jobs, run_time, strict=True) if j.walltime is not None and t > j.walltime]
    if late:
        notes.append(f"forecast beyond the walltime: {', '.join(late[:5])}{' ...' if len(late) > 5 else ''}")
    return tuple(notes)
