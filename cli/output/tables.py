"""Tables and summaries for the terminal: plans, comparisons of policies, and forecasts against outcomes of a run.

Rule: every cell is escaped and fitted here; a number has its unit; what is unknown says so and is never 0. If a
table is too wide, names are shortened, numbers and headings are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rich.table import Table
from rich.text import Text

from ...daemon.report.accuracy import JobOutcome, RunOutcome
from ...daemon.state.queue import ending, mark
from ...formats.hostlist import fold
from ...formats.text import clean, count, decimals, duration, fit, joules, percent, seconds, times, width
from ...simulate.model.cluster import Cluster
from ...simulate.model.job import Workflow
from ...simulate.model.plan import LEVEL, Plan, PlannedJob, RunnerUp
from ...simulate.model.snapshot import JobState

if TYPE_CHECKING:
    from ...simulate.planning.stochastic import Replicated


FULL_TABLE = 40
_SHOWN_AT_EACH_END = 15
_LEAST_NAME = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        heading: its heading.
        right: aligned to the right, as numbers; such a column never gives way.
        most: cells that it may take; None = as many as it needs.
    """

    heading: str
    right: bool = False
    most: int | None = None


def grid(columns: Sequence[Column], rows: Sequence[Sequence[str]], cells: int, *, ascii_only: bool) -> Table:
    """Return a table without lines.

    Args:
        columns: the columns.
        rows: one text for each column.
        cells: width of the table; names lose their middle where it would be wider.
        ascii_only: print only ASCII characters.
    """
    texts = [[clean(text, ascii_only=ascii_only) for text in row] for row in rows]
    sizes = _sizes(columns, texts, cells)
    excess = sum(sizes) + 2 * (len(sizes) - 1) - cells
    while excess > 0:
        flexible = [i for i, column in enumerate(columns) if not column.right and sizes[i] > _least(column)]
        if not flexible:
            break
        widest = max(flexible, key=lambda i: sizes[i])
        others = [sizes[i] for i in flexible if i != widest] or [0]
        cut = min(excess, sizes[widest] - _least(columns[widest]), max(1, sizes[widest] - max(others)))
        sizes[widest] -= cut
        excess -= cut
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column.heading, justify="right" if column.right else "left", no_wrap=True)
    for row in texts:
        table.add_row(*(Text(fit(text, size, ascii_only=ascii_only)) for text, size in zip(row, sizes, strict=True)))
    return table


def _least(column: Column) -> int:
    return max(_LEAST_NAME, width(column.heading))


def needed(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table in which nothing gives way, cells."""
    return sum(_sizes(columns, rows, 2**31)) + 2 * (len(columns) - 1)


def _sizes(columns: Sequence[Column], rows: Sequence[Sequence[str]], cells: int) -> list[int]:
    return [
        min(max([width(column.heading), *(width(row[i]) for row in rows)]), column.most or cells)
        for i, column in enumerate(columns)
    ]


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


def plan_table(plan: Plan, cells: int = 80, *, ascii_only: bool = False, everything: bool = False) -> Table:
    """Return the jobs by start time: nodes, times, slowdown by contention, and the next best nodes with their cost."""
    places = decimals(plan.makespan)
    jobs = sorted(plan.jobs, key=lambda job: (job.start_time, job.finish_time))
    has_interval, large = any(job.within for job in jobs), plan.makespan >= 10_000
    nodes, next_best = (14, 20) if not has_interval else (9, 12) if large else (10, 16)
    columns = (
        Column("JOB", most=48),
        Column("NODES", most=nodes),
        Column("START s", right=True),
        Column("FINISH s", right=True),
        *((Column("KNOWN TO", right=True),) if has_interval else ()),
        Column("SLOWDOWN", right=True),
        Column("NEXT BEST", most=next_best),
    )
    rows = with_gap(jobs, lambda job: _plan_row(job, places, has_interval), everything)
    return grid(columns, rows, cells, ascii_only=ascii_only)


def _plan_row(job: PlannedJob, places: int, has_interval: bool) -> tuple[str, ...]:
    times = [f"{job.start_time:,.{places}f}", f"{job.finish_time:,.{places}f}"]
    if has_interval:
        times.append(known_to((job.within.earliest, job.within.latest), job.finish_time) if job.within else "")
    return (job.id, fold(job.nodes), *times, f"{job.contention_slowdown:.2f}", _next_best(job.why, places))


def known_to(within: tuple[float, float], forecast: float) -> str:
    """Return a prediction interval relative to the forecast, `-4 +12 %`; 11 cells at most."""
    below, above = (100 * abs(bound / max(forecast, 1e-9) - 1) for bound in within)
    places = 1 if max(below, above) < 0.95 else 0
    return f"-{below:.{places}f} " + (f"+{above:.{places}f} %" if above < 999.5 else ">999 %")


def _next_best(why: RunnerUp | None, places: int) -> str:
    if why is None:
        return "-"
    cost = max(0.0, why.cost_s)
    if cost == float("inf"):
        return f"{fit(fold(why.nodes), 8)} would never fit"
    return f"{fit(fold(why.nodes), 9)} +{cost:,.{places}f} s"


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
    changes: dict[str, list[tuple[float, int, int, str]]] = {name: [] for name in cores}
    for job in plan.jobs:
        for name in job.nodes if job.contention_slowdown >= 1.005 else ():
            changes[name] += [
                (job.start_time, 1, threads[job.id], job.id),
                (job.finish_time, 0, threads[job.id], job.id),
            ]
    sharing: set[str] = set()
    for name, events in changes.items():
        busy, running = 0, set[str]()
        for _, starts, used, job_id in sorted(events):
            busy += used if starts else -used
            (running.add if starts else running.discard)(job_id)
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
    blind = [clean(kind.name) for kind in cluster.types if kind.power is None]
    if not blind:
        return "unknown"
    return f"unknown: node type {fit(blind[0], 24)} gives no power" + (
        f", nor do {len(blind) - 1} others" if blind[1:] else ""
    )


def bound(plan: Plan) -> str:
    """Return the distance of the makespan to the proven lower bound, in words."""
    if plan.lower_bound <= 0:
        return "no lower bound"
    gap, least = plan.makespan / plan.lower_bound - 1, seconds(plan.lower_bound, decimals(plan.lower_bound))
    if gap < -1e-6:  # times of the interval engine, the bound of the fluid model
        return f"{'below' if gap < -5e-4 else 'at'} the fluid model's lower bound of {least}"
    if gap < 5e-4:
        return f"optimal: it meets the proven lower bound of {least}"
    return f"within {percent(gap)} of the proven lower bound of {least}"


def summary(plan: Plan, cluster: Cluster) -> list[str]:
    """Return the lines under the chart: makespan, energy, time to decide."""
    effort = f", {count(plan.evaluations, 'simulation')}" if plan.evaluations else ""
    cut = ", cut short by the time limit" if plan.truncated else ""
    first = f"makespan  {seconds(plan.makespan)}, {bound(plan)}"
    if len(first) > 80:  # without hours and minutes
        first = f"makespan  {seconds(plan.makespan, decimals(plan.makespan))}, {bound(plan)}"
    return [
        first,
        *_known(plan),
        f"energy    {energy(plan, cluster)}",
        f"decided   in {duration(plan.simulated_in)}{effort}{cut}",
    ]


def _known(plan: Plan) -> list[str]:
    """Return the interval of the makespan, or the meaning of KNOWN TO where only jobs have intervals."""
    if plan.makespan_within is None:
        meaning = f"known to  the interval in which {percent(LEVEL)} of the jobs end, as far as needs are known"
        return [meaning] if any(job.within for job in plan.jobs) else []
    low, high = (seconds(bound, decimals(bound)) for bound in plan.makespan_within)
    return [f"known to  {low} to {high} with {percent(LEVEL)}, as far as the jobs' needs are known"]


def replicates(drawn: Replicated) -> list[str]:
    """Return the lines about the draws that the plan represents."""
    low, high = min(drawn.quantiles), max(drawn.quantiles)
    inner = f"{100 * (high - low):g} % within {seconds(drawn.quantiles[low])} to {seconds(drawn.quantiles[high])}"
    kept = f"{percent(drawn.share)} map as shown" if drawn.dominant else "no two map alike"
    return [
        f"draws     {len(drawn.makespans)}, makespan {seconds(drawn.mean)} +- {seconds(drawn.std)}",
        f"          {inner}; {kept}",
    ]


def best_of(score: Sequence[float]) -> int:
    """Return the index of the lowest score; of equal scores the last, which is the policy that searches."""
    least = min(score)
    return max(i for i, value in enumerate(score) if value <= least + 1e-9 * abs(least))


def comparison(plans: Sequence[Plan], score: Sequence[float], cells: int = 80, *, ascii_only: bool = False) -> Table:
    """Return the plans of several policies side by side, the best marked.

    Args:
        plans: one of each policy.
        score: the objective's value of each plan; the lowest is best.
        cells: width of the table.
        ascii_only: print only ASCII characters.
    """
    best = best_of(score)
    shortest = min(plan.makespan for plan in plans)
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
    heads = ("MAKESPAN", "VS BEST", "ENERGY", "OVER BOUND", "DECIDED IN")
    columns = (Column("  POLICY", most=20), *(Column(head, right=True) for head in heads))
    return grid(columns, rows, cells, ascii_only=ascii_only)


def comparison_notes(plans: Sequence[Plan], score: Sequence[float], cluster: Cluster, goal: str) -> list[str]:
    """Return the lines under a comparison: the best, the bound that holds for all, why energy is unknown."""
    best = best_of(score)
    lines = [
        f"best      {plans[best].policy}, by {goal}",
        f"bound     no policy can end before {seconds(max(plan.lower_bound for plan in plans))}",
    ]
    if plans[best].energy_j is None:
        lines.append(f"energy    {energy(plans[best], cluster)}")
    return lines


#: Relative error of the makespan, and share of CPU time used by others, from which one is attributed to the other; in
#: shorter runs (seconds) the start of the keepers would count as others.
_MISSED, _BUSY, _LEAST_S = 0.1, 0.1, 3.0


def outcome_table(outcome: RunOutcome, cells: int = 80, *, ascii_only: bool = False, everything: bool = False) -> Table:
    """Return the jobs by start time: forecast and actual run time and end, and the result."""
    places = decimals(max(outcome.makespan, outcome.plan.makespan))
    late = outcome.makespan + outcome.plan.makespan + 1.0
    jobs = sorted(outcome.jobs, key=lambda job: late if job.start_time is None else job.start_time)
    columns = (
        Column("JOB", most=40),
        Column("NODES", most=12),
        Column("RUN s", right=True),
        Column("FORECAST", right=True),
        Column("ERROR", right=True),
        Column("END s", right=True),
        Column("FORECAST", right=True),
        Column("RESULT", most=12),
    )
    return grid(columns, with_gap(jobs, lambda job: _row(job, places), everything), cells, ascii_only=ascii_only)


def _row(job: JobOutcome, places: int) -> tuple[str, ...]:
    def time(value: float | None) -> str:
        return "-" if value is None else f"{value:,.{places}f}"

    return (
        job.planned.id,
        fold(job.nodes) or "-",
        time(job.run_time),
        time(job.forecast_run_time),
        "-" if job.error is None else signed(job.error),
        time(job.finish_time),
        time(job.planned.finish_time),
        "ok" if job.state is JobState.COMPLETED else mark(job.state, job.exit_code, job.signal),
    )


def signed(error: float) -> str:
    """Return an error, (actual - forecast) / actual, in words: `+3.2 %`, or `3.1x longer` from a factor of two."""
    if error >= 0.5:
        return f"{times(1 / max(1e-9, 1 - error))} longer"
    if error <= -1:
        return f"{times(1 - error)} shorter"
    return ("+" if error > 0 else "") + percent(error)


def _magnitude(error: float) -> str:
    return f"error {percent(error)}" if error < 1 else f"off {times(1 + error)}"


def _error(error: float) -> str:
    return f"{'error ' if -1 < error < 0.5 else ''}{signed(error)}"


def outcome_summary(outcome: RunOutcome) -> list[str]:
    """Return the lines under the table: makespan, errors of run times, jobs that did not complete."""
    forecast = f"forecast {seconds(outcome.plan.makespan)}"
    error = outcome.makespan_error
    lines = [f"makespan  {seconds(outcome.makespan)}, {forecast}" + ("" if error is None else f", {_error(error)}")]
    worst = outcome.worst
    if outcome.median_error is not None and worst is not None and worst.error is not None:
        name = fit(clean(worst.planned.id), 24)
        lines.append(
            f"run time  {_magnitude(outcome.median_error)} in the median, at worst {signed(worst.error)} ({name})"
        )
    done = sum(job.state is JobState.COMPLETED for job in outcome.jobs)
    others = {
        state: sum(job.state is state for job in outcome.jobs) for state in JobState if state is not JobState.COMPLETED
    }
    rest = "".join(f", {number} {state}" for state, number in others.items() if number)
    lines.append(f"jobs      {done} of {len(outcome.jobs):,} completed{rest}")
    return lines


def busy_hint(outcome: RunOutcome, others: float) -> str:
    """Return why forecasts missed if other processes used the share `others` of the CPUs' time, else ""."""
    if (outcome.makespan_error or 0.0) < _MISSED or outcome.makespan < _LEAST_S or others < _BUSY:
        return ""
    return f"other processes used {percent(others)} of these CPUs' time: forecasts assume that the CPUs are free"


def failures(outcome: RunOutcome, outputs: dict[str, tuple[str, str]]) -> list[str]:
    """Return a line for each failed job: how it failed, and the file of its stderr."""
    lines = []
    for job in outcome.jobs:
        if job.state in (JobState.FAILED, JobState.TIMEOUT):
            how = ending(job.state, job.exit_code, job.signal, job.reason)
            lines.append(failure(job.planned.id, how, outputs.get(job.planned.id, (None, None))[1]))
    return lines


def failure(job: str, how: str, stderr: str | None) -> str:
    """Return a line about a job that failed."""
    return f"job {job!r} {how}" + (f"; stderr: {stderr}" if stderr else "")
