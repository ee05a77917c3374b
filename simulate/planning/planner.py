"""The planner: from a workflow and a cluster to a plan, under any mapping policy.

Rule: the same input and seed give the same plan. The caller measures `Plan.simulated_in`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..errors import ConfigError
from ..model.cluster import Cluster
from ..model.job import Workflow
from ..model.node_power import NodePower
from ..model.objective import QUEUE_KINDS, Objective, Submitted
from ..model.plan import Plan, PlannedJob, PredictionInterval, RunnerUp, RunningJob
from ..queue_policies.kept import Kept
from ..queue_policies.loaded_policies import is_python_policy
from ..queue_policies.policy_specs import COMPONENT, is_queue_policy, parse
from .bounds import lower_bound
from .mapping_policies import POLICIES, Mapped, Request
from .open_queue import OpenQueue
from .queue_mapping import QueueMapping
from .simulation import Simulation
from .start_latency import delayed
from .uncertainty import within
from .workflow_tables import scaling_notes

__all__ = ["POLICIES", "Objective", "RunningJob", "plan"]

#: Largest workflow with runner-ups, jobs. They cost a run without pruning, or one run for each job and node that a
#: search did not try itself.
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
    breathe: Callable[[], None] | None = None,
    most_tied: int | None = None,
    underway: Sequence[RunningJob] = (),
    done: Collection[str] = (),
    available: Collection[str] | None = None,
    explain: bool = True,
    explanation_runs: int = EXPLANATION_RUNS,
    submitted: Sequence[Submitted] = (),
    late: Collection[str] = (),
    latency_s: float = 0.0,
    may_reject: bool = False,
    foresight: int | None = None,
    bounded: bool = True,
    now: float = 0.0,
    kept: Kept | None = None,
    power: NodePower | None = None,
) -> Plan:
    """Map every job of the workflow to nodes and forecast when it runs.

    Args:
        workflow: the jobs.
        cluster: the nodes.
        policy: a key of POLICIES.
        objective: what `lookahead` minimises; the other built-in policies have their own criterion.
        seed: of all random choices.
        budget: evaluations that `lookahead` may use; None = by size.
        should_stop: called now and then by `lookahead`; True cuts the search short, and the plan says `truncated`.
        breathe: called before each simulated run and between its steps, so that the caller can do other work; changes
            no plan.
        most_tied: see `Simulation`.
        underway: running jobs; they have start_time 0 in the plan.
        done: ids of jobs that have ended successfully; they are absent from the plan.
        available: names of nodes that take new jobs; None = all.
        explain: find prediction intervals (see `uncertainty`) and each job's runner-up; the latter only up to
            EXPLAINED_JOBS jobs.
        explanation_runs: the most simulations that runner-ups may take under `lookahead`.
        submitted: the submissions of users, for the objectives of a queue that goes on (see `open_queue`); empty: the
            workflow is the only submission.
        late: ids of the jobs that `lookahead` expects to start later than their nodes are free (see `start_latency`).
        latency_s: by how much, seconds.
        may_reject: leave out jobs that a queue policy rejects; False: they are an error.
        foresight: comparisons of jobs with nodes that a queue policy in Python may make for later than now, >= 0; the
            plan leaves out jobs that it does not reach with them (see `queue_mapping`). None: any number.
        bounded: find a lower bound of the makespan.
        now: when the plan begins, seconds of the clock that a policy's options refer to.
        kept: state that the policy of a service keeps from earlier plans, if any.
        power: power states of nodes, for a policy that switches them (see `switching_mapping`).

    Raises:
        ConfigError: unknown policy, or an energy objective on nodes of unknown power.
        InvalidJobError: a malformed workflow, or a job that can never start.
        PolicyError: a user's policy failed, or decided something that cannot be done.
    """
    _check_request(cluster, policy, objective)
    with_intervals, explain = explain, explain and len(workflow.jobs) <= EXPLAINED_JOBS
    state = dict[str, Any](underway=underway, done=done, available=available, breathe=breathe, most_tied=most_tied)
    simulation = Simulation(workflow, cluster, **state)
    bound = lower_bound(simulation) if bounded else 0.0
    ordered = isinstance(POLICIES[policy], QueueMapping)  # by what the site asked for, not by what it would gain
    judged = submitted and objective.kind in QUEUE_KINDS and not ordered
    queue = OpenQueue(simulation, submitted, objective, underway) if judged else None
    request = Request(
        objective, seed, budget, should_stop, bound, explain, explanation_runs, queue, underway, submitted, may_reject,
        foresight, now, kept, power,
    )  # fmt: skip
    searched = simulation
    if late and latency_s > 0.0 and policy == "lookahead":
        searched = Simulation(delayed(workflow, late, latency_s), cluster, **state)
    mapped = POLICIES[policy](searched, request)
    makespan, energy, late_s = mapped.makespan, mapped.energy_j, [0.0] * len(workflow.jobs)
    if searched is not simulation:
        ends = searched.world.jobs["finish"].copy()
        makespan, energy = mapped.mapping.follow(simulation)
        late_s = (ends - simulation.world.jobs["finish"]).clip(0.0).tolist()
    with_intervals = with_intervals and not mapped.rejected
    intervals, makespan_interval = (
        within(simulation, mapped.mapping, seed, mapped.evaluations) if with_intervals else ({}, None)
    )
    if mapped.beyond:
        makespan_interval = None
    rejected = {workflow.jobs[i].id: why for i, why in mapped.rejected.items()}
    left_out = {*done, *rejected, *(workflow.jobs[i].id for i in mapped.beyond)}
    return Plan(
        workflow=workflow.name,
        cluster=cluster.name,
        policy=policy,
        seed=seed,
        makespan=makespan,
        energy_j=None if math.isnan(energy) else energy,
        lower_bound=0.0 if rejected else bound,
        simulated_in=0.0,
        truncated=mapped.truncated,
        evaluations=mapped.evaluations,
        jobs=_planned(simulation, mapped.runner_ups, intervals, left_out, late_s, mapped),
        warnings=(*_warnings(workflow, cluster, simulation), *mapped.warnings),
        makespan_within=makespan_interval,
        objective=str(objective) if policy == "lookahead" else "",
        plain_finish_times={} if queue is None else dict(zip(workflow.index, queue.plain.tolist(), strict=True)),
        rejected=rejected,
        waits={workflow.jobs[i].id: why for i, why in mapped.waits.items()},
        recheck_s=mapped.recheck_s,
        switches=mapped.switches,
        forecast_by=mapped.forecast_by,
    )


def check_plan(workflow: Workflow, cluster: Cluster, policy: str, objective: Objective) -> None:
    """Check what can be known before anything is simulated, so that no kernel is compiled for a wrong request.

    Args:
        workflow: the jobs.
        cluster: the nodes.
        policy: a key of POLICIES.
        objective: what `lookahead` minimises.

    Raises:
        ConfigError, InvalidJobError: as `plan`.
    """
    _check_request(cluster, policy, objective)
    custom = is_python_policy(policy) or policy.startswith(COMPONENT)
    parsed = parse(policy) if is_queue_policy(policy) and not custom else None  # the name of a plug-in is no SPEC
    if parsed is not None and parsed.plain.needs_power and any(kind.power is None for kind in cluster.types):
        raise ConfigError("policy", policy, "the power of this machine is not known", "nodes with power")
    Simulation(workflow, cluster)


def _check_request(cluster: Cluster, policy: str, objective: Objective) -> None:
    if policy not in POLICIES:
        raise ConfigError("policy", "", f"unknown policy {policy!r}", ", ".join(POLICIES))
    if objective.needs_energy and any(kind.power is None for kind in cluster.types):
        unknown = next(kind.nominal.name for kind in cluster.types if kind.power is None)
        raise ConfigError(cluster.source or cluster.name, f"node_types.{unknown}.power",
                          f"unknown, but the objective is {objective}", "power of every node type")  # fmt: skip


def _planned(
    simulation: Simulation,
    runner_ups: Mapping[int, RunnerUp],
    intervals: dict[int, PredictionInterval],
    done: set[str],
    late_s: Sequence[float],
    mapped: Mapped,
) -> tuple[PlannedJob, ...]:
    world, names, planned = simulation.world, [*simulation.cluster.index], []
    isolated, kinds, placed = simulation.isolated.tolist(), world.nodes["type"].tolist(), world.placed.tolist()
    rows = world.jobs[["start", "finish", "energy", "cls", "progress", "place0"]].tolist()
    for i, (job, row) in enumerate(zip(simulation.workflow.jobs, rows, strict=True)):
        start, finish, energy, cls, progress, first = row
        if job.id in done:
            continue
        if job.walltime is not None and job.profile.provenance.source == "default":
            finish = min(finish, start + job.walltime)  # nothing is known of it but its limit, on a slow node, too
        nodes, times = placed[first : first + job.nodes], isolated[cls]
        alone = times[0] if len(times) == 1 else max(times[kinds[node]] for node in nodes)
        remaining_time = alone * (1.0 - progress)
        forecast = start, finish, alone, max(1.0, (finish - start) / remaining_time) if remaining_time > 0.0 else 1.0
        joules = energy if world.count["powered"] else None
        chosen, why, interval = tuple(map(names.__getitem__, nodes)), runner_ups.get(i), intervals.get(i)
        more = late_s[i], mapped.reserved.get(i), mapped.scored.get(i)
        planned.append(PlannedJob(job.id, chosen, *forecast, joules, why, interval, *more))
    return tuple(planned)


def _warnings(workflow: Workflow, cluster: Cluster, simulation: Simulation) -> tuple[str, ...]:
    profiles = list({id(job.profile): job.profile for job in workflow.jobs}.values())
    notes = [*workflow.warnings, *scaling_notes(profiles, cluster)]
    run_time = simulation.world.jobs["finish"] - simulation.world.jobs["start"]
    late = [j.id for j, t in zip(workflow.jobs, run_time, strict=True) if j.walltime is not None and t > j.walltime]
    if late:
        notes.append(f"forecast beyond the walltime: {', '.join(late[:5])}{' ...' if len(late) > 5 else ''}")
    return tuple(notes)
