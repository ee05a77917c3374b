"""Tables and summaries for the terminal: plans, comparisons of policies, and forecasts against outcomes of a run.

Rule: every cell is escaped and fitted by `grid`; a number has its unit; what is unknown says so and is never 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

from rich.table import Table

from ...daemon.report.accuracy import JobOutcome, RunOutcome, factor
from ...daemon.state.endings import ending, mark
from ...formats.hostlist import fold
from ...formats.text import clean, count, decimals, duration, fit, joules, percent, seconds, times
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Workflow
from ...simulate.model.plan import LEVEL, Plan, PlannedJob, RunnerUp
from ...simulate.model.snapshot import JobState
from .text import Screen, TextColumn, grid, numbers

if TYPE_CHECKING:
    from ...simulate.planning.stochastic import Replicated


FULL_TABLE = 40
_SHOWN_AT_EACH_END = 15
T = TypeVar("T")


def header(plan: Plan, workflow: Workflow, cluster: Cluster, *, several: bool = False) -> str:
    """Return `dag-1 on lab: 50 jobs, 4 nodes, policy mom`; with `several` plans, without the policy."""
    size = f"{count(len(workflow.jobs), 'job')}, {count(len(cluster.nodes), 'node')}"
    policy = "" if several else f", policy {clean(plan.policy)}"
    return f"{fit(clean(workflow.name), 24)} on {fit(clean(cluster.name), 14)}: {size}{policy}"


def subtitle(plan: Plan, workflow: Workflow, cluster: Cluster) -> str:
    """Return one line about a plan, for a picture."""
    idle = len(cluster.nodes) - len({name for job in plan.jobs for name in job.nodes})
    size = f"{count(len(workflow.jobs), 'job')} on {count(len(cluster.nodes), 'node')}"
    unused = f" ({idle:,} idle)" if idle else ""
    return f"policy {plan.policy} · {size}{unused} · makespan {seconds(plan.makespan)}, {bound(plan)}"


def plan_table(
    plan: Plan, screen: Screen, *, everything: bool = False, guessed: Collection[str] = frozenset()
) -> Table:  # fmt: skip
    """Return the jobs by start time: nodes, times, slowdown by contention, and the next best nodes with their cost.

    Args:
        plan: the plan.
        screen: on which it is shown.
        everything: show every job.
        guessed: ids of the jobs whose run time is a guess, which their ends are marked as.
    """
    places = decimals(plan.makespan)
    jobs = sorted(plan.jobs, key=lambda job: (job.start_time, job.finish_time))
    has_interval, large = any(job.within for job in jobs), plan.makespan >= 10_000
    nodes, next_best = (14, 20) if not has_interval else (9, 12) if large else (10, 16)
    heads = ("START s", "FINISH s", *["KNOWN TO"] * has_interval, "SLOWDOWN")
    columns = [
        TextColumn("JOB", most=48),
        TextColumn("NODES", most=nodes),
        *numbers(*heads),
        TextColumn("NEXT BEST", most=next_best),
    ]

    def row(job: PlannedJob) -> tuple[str, ...]:
        within = known_to((job.within.earliest, job.within.latest), job.finish_time) if job.within else ""
        times = [f"{at:,.{places}f}" for at in (job.start_time, job.finish_time)] + [within] * has_interval
        times[1] += guess_mark(job.id, guessed)
        return (job.id, fold(job.nodes), *times, f"{job.contention_slowdown:.2f}", _next_best(job.why, places))

    return grid(columns, with_gap(jobs, row, everything), screen)


def guess_mark(job: str, guessed: Collection[str]) -> str:
    """Return what stands behind the forecast of a job, so that numbers stay below each other: ? for a guess."""
    return "?" if job in guessed else " " if guessed else ""


def known_to(within: tuple[float, float], forecast: float) -> str:
    """Return a prediction interval relative to the forecast, `-4 +12 %`; 11 cells at most."""
    below, above = (100 * abs(bound / max(forecast, 1e-9) - 1) for bound in within)
    places = 1 if max(below, above) < 0.95 else 0
    return f"-{below:.{places}f} " + (f"+{above:.{places}f} %" if above < 999.5 else ">999 %")


def _next_best(runner_up: RunnerUp | None, places: int) -> str:
    if runner_up is None:
        return "-"
    cost = "" if runner_up.cost_s is None else f" +{max(0.0, runner_up.cost_s):,.{places}f} s"
    return fit(fold(runner_up.nodes), 9) + cost


def with_gap(items: Sequence[T], row: Callable[[T], tuple[str, ...]], everything: bool) -> list[tuple[str, ...]]:
    """Return a row for each item, or the first and the last rows around a row of dots.

    Args:
        items: what the table lists.
        row: makes the row of an item.
        everything: leave no row out.
    """
    if everything or len(items) <= FULL_TABLE:
        return [row(item) for item in items]
    first = [row(item) for item in items[:_SHOWN_AT_EACH_END]]
    gap = ("...", *[""] * (len(first[0]) - 1))
    return [*first, gap, *(row(item) for item in items[-_SHOWN_AT_EACH_END:])]


def left_out(jobs: int) -> str:
    """Return a line about the rows that a table of so many jobs hides, or ""."""
    if jobs <= FULL_TABLE:
        return ""
    missing = count(jobs - 2 * _SHOWN_AT_EACH_END, "job")
    return f"{missing} left out: --all shows every job, --json is for programs"


def sharing_note(plan: Plan, workflow: Workflow, cluster: Cluster) -> list[str]:
    """Return a line that explains the slowdown of jobs whose threads share cores, if there are any. O(n log n)."""
    if cluster.oversubscription <= 1:
        return []
    threads = {job.id: job.profile.threads for job in workflow.jobs}
    cores = {node.name: node.type.cores for node in cluster.nodes}
    changes = defaultdict[str, list[tuple[float, int, str]]](list)
    for job in plan.jobs:
        for name in job.nodes if job.contention_slowdown >= 1.005 else ():
            used = threads[job.id]
            changes[name] += [(job.start_time, used, job.id), (job.finish_time, -used, job.id)]
    sharing: set[str] = set()
    for name, events in changes.items():
        busy, running = 0, set[str]()
        for _, used, job_id in sorted(events):  # at one time, jobs end before others start
            busy += used
            running ^= {job_id}
            if busy > cores[name]:
                sharing |= running
    if not sharing:
        return []
    most = "any number of" if cluster.oversubscription == float("inf") else f"{cluster.oversubscription:g}"
    return [f"slowdown  {count(len(sharing), 'job')} share cores: oversubscription allows {most} threads a core"]


def energy(plan: Plan, cluster: Cluster) -> str:
    """Return the energy of a plan, or why it is unknown."""
    if plan.energy_j is not None:
        return joules(plan.energy_j)
    blind = [*dict.fromkeys(clean(kind.nominal.name) for kind in cluster.types if kind.power is None)]
    if not blind:
        return "unknown"
    blind_types = f" and {count(len(blind) - 1, 'other')} give" if blind[1:] else " gives"
    return f"unknown: node type {fit(blind[0], 24)}{blind_types} no power"


def bound(plan: Plan) -> str:
    """Return the distance of the makespan to the proven lower bound, in words."""
    if plan.lower_bound <= 0:
        return "no lower bound"
    gap, least = plan.makespan / plan.lower_bound - 1, seconds(plan.lower_bound, decimals(plan.lower_bound))
    if gap < 5e-4:
        return f"optimal: it meets the proven lower bound of {least}"
    return f"within {percent(gap)} of the proven lower bound of {least}"


def summary(plan: Plan, cluster: Cluster, guessed: Collection[str] = ()) -> list[str]:
    """Return the lines under the chart: makespan and its interval, energy, time to decide; `guessed`: as above."""
    effort = f", {count(plan.evaluations, 'simulation')}" if plan.evaluations else ""
    cut = ", cut short by the time limit" if plan.truncated else ""
    first = f"makespan  {seconds(plan.makespan)}, {bound(plan)}"
    if len(first) > 80:  # without hours and minutes
        first = f"makespan  {seconds(plan.makespan, decimals(plan.makespan))}, {bound(plan)}"
    if guessed:
        jobs = f"{len(guessed):,} of {count(len(plan.jobs), 'job')}"
        half = 2 * len(guessed) >= len(plan.jobs)
        text = f"?, a guess: nothing is known of {jobs}" if half else f", with guesses for {jobs}"
        first = f"makespan  {seconds(plan.makespan)}{text}"
    known_to = []
    if plan.makespan_within is not None:
        low, high = (seconds(bound, decimals(bound)) for bound in plan.makespan_within)
        known_to = [f"known to  {low} to {high} with {percent(LEVEL)}, as far as the jobs' needs are known"]
    elif any(job.within for job in plan.jobs):
        known_to = [f"known to  the interval in which {percent(LEVEL)} of the jobs end, as far as needs are known"]
    decided = f"decided   in {duration(plan.simulated_in)}{effort}{cut}"
    return [first, *known_to, f"energy    {energy(plan, cluster)}", decided]


def replicates(drawn: Replicated) -> list[str]:
    """Return the lines about the draws that the plan represents."""
    low, high = min(drawn.quantiles), max(drawn.quantiles)
    inner = f"{100 * (high - low):g} % within {seconds(drawn.quantiles[low])} to {seconds(drawn.quantiles[high])}"
    agreement = f"{percent(drawn.share)} map as shown" if drawn.dominant else "no two map alike"
    first = f"draws     {len(drawn.makespans)}, makespan {seconds(drawn.mean)} +- {seconds(drawn.std)}"
    return [first, f"          {inner}; {agreement}"]


def best_of(score: Sequence[float]) -> int:
    """Return the index of the lowest score; of equal scores the last, which is the policy that searches."""
    least = min(score)
    return max(i for i, value in enumerate(score) if value <= least + 1e-9 * abs(least))


def comparison(plans: Sequence[Plan], score: Sequence[float], screen: Screen) -> Table:
    """Return the plans of several policies side by side, the best marked.

    Args:
        plans: one of each policy.
        score: the objective's value of each plan; the lowest is best.
        screen: gives the width.
    """
    best, shortest = best_of(score), min(plan.makespan for plan in plans)
    rows = [
        (
            ("> " if i == best else "  ") + plan.policy,
            seconds(plan.makespan, decimals(shortest)),
            "best" if plan.makespan <= shortest else f"+{percent(plan.makespan / shortest - 1)}",
            "unknown" if plan.energy_j is None else joules(plan.energy_j),
            f"+{percent(max(0.0, plan.makespan / plan.lower_bound - 1))}" if plan.lower_bound > 0 else "-",
            duration(plan.simulated_in) + (" (cut)" if plan.truncated else ""),
        )
        for i, plan in enumerate(plans)
    ]
    heads = numbers("MAKESPAN", "VS BEST", "ENERGY", "OVER BOUND", "DECIDED IN")
    return grid([TextColumn("  POLICY", most=20), *heads], rows, screen)


def comparison_notes(plans: Sequence[Plan], score: Sequence[float], cluster: Cluster, goal: str) -> list[str]:
    """Return the lines under a comparison: the best, the bound that holds for all, why energy is unknown."""
    best = plans[best_of(score)]
    return [
        f"best      {best.policy}, by {goal}",
        f"bound     no policy can end before {seconds(max(plan.lower_bound for plan in plans))}",
        *([f"energy    {energy(best, cluster)}"] if best.energy_j is None else ()),
    ]


#: Factor by which the makespan or the run times are off, and share of CPU time used by others, from which one is
#: attributed to the other; in shorter runs (seconds) the start of the keepers would count as others.
_MISSED, _BUSY, _LEAST_S = 1.1, 0.1, 3.0


def outcome_table(
    outcome: RunOutcome, screen: Screen, *, everything: bool = False, guessed: Collection[str] = frozenset()
) -> Table:  # fmt: skip
    """Return the jobs by start time: actual and forecast run time, actual end and that of the first plan, result."""
    places = decimals(max(outcome.makespan, outcome.plan.makespan))
    jobs = sorted(outcome.jobs, key=lambda job: (job.start_time is None, job.start_time))
    heads = numbers("RUN s", "FORECAST", "ERROR", "END s", "PLANNED")
    columns = [TextColumn("JOB", most=40), TextColumn("NODES", most=12), *heads, TextColumn("RESULT", most=12)]

    def row(job: JobOutcome) -> tuple[str, ...]:
        run, run_forecast, end, planned_end = (
            "-" if value is None else f"{value:,.{places}f}"
            for value in (job.run_time, job.forecast_run_time, job.finish_time, job.planned.finish_time)
        )
        run_forecast += guess_mark(job.planned.id, guessed)
        error = "-" if job.error is None else off(job.error)
        result = "ok" if job.state is JobState.COMPLETED else mark(job.state, job.exit_code, job.signal)
        return (job.planned.id, fold(job.nodes) or "-", run, run_forecast, error, end, planned_end, result)

    return grid(columns, with_gap(jobs, row, everything), screen)


def off(ratio: float, above: str = "longer", below: str = "shorter") -> str:
    """Return an error in words: `1.03x longer`, `5.0x shorter`, or `1.00x`.

    Args:
        ratio: actual over forecast, > 0.
        above: word for a ratio above 1.
        below: word for a ratio below 1.
    """
    size = times(factor(ratio))
    return size if size == times(1.0) else f"{size} {above if ratio > 1.0 else below}"


def outcome_summary(outcome: RunOutcome) -> list[str]:
    """Return the lines under the table: makespan, errors of run times, jobs that did not complete."""
    error, worst, median = outcome.makespan_error, outcome.worst, outcome.median_factor
    missed = "" if error is None else f", {off(error)}"
    lines = [f"makespan  {seconds(outcome.makespan)}, planned {seconds(outcome.plan.makespan)}{missed}"]
    if median is not None and worst is not None and worst.error is not None:
        at_worst = f"{off(worst.error)} ({fit(clean(worst.planned.id), 24)})"
        lines.append(f"run time  off by {times(median)} in the median, at worst {at_worst}")
    states = Counter(job.state for job in outcome.jobs)
    completed = states.pop(JobState.COMPLETED, 0)
    other_states = "".join(f", {states[state]} {state}" for state in JobState if states[state])
    return [*lines, f"jobs      {completed} of {len(outcome.jobs):,} completed{other_states}"]


def busy_hint(outcome: RunOutcome, others: float) -> str:
    """Return why forecasts missed if other processes used the share `others` of the CPUs' time, else ""."""
    missed = max(factor(outcome.makespan_error or 1.0), outcome.median_factor or 1.0)
    if missed < _MISSED or outcome.makespan < _LEAST_S or others < _BUSY:
        return ""
    assumption = "forecasts assume the share that was left at the start"
    return f"other processes used {percent(others)} of these CPUs' time: {assumption}"


def failures(outcome: RunOutcome, outputs: dict[str, tuple[str, str]]) -> list[str]:
    """Return a line for each failed job: how it failed, and the file of its stderr."""
    return [
        failure(job.planned.id, ending(job.state, job.exit_code, job.signal, job.reason),
                outputs.get(job.planned.id, (None, None))[1])
        for job in outcome.jobs if job.state in (JobState.FAILED, JobState.TIMEOUT)
    ]  # fmt: skip


def failure(job: str, how: str, stderr: str | None) -> str:
    """Return a line about a job that failed."""
    return f"job {job!r} {how}" + (f"; stderr: {stderr}" if stderr else "")
