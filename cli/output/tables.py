"""Tables and summaries in 80 columns: of a plan, of policies side by side.

Rule: every cell is cleaned and fitted here; a number says its unit; what is unknown says so and is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rich.table import Table
from rich.text import Text

from ...simulate.formats.hostlist import fold
from ...simulate.job import Workflow
from ...simulate.plan import LEVEL, Plan, PlannedJob, RunnerUp
from ...simulate.platform import Cluster
from .text import clean, count, decimals, duration, fit, joules, percent, seconds, width

if TYPE_CHECKING:
    from ...simulate.stochastic import Replicated

FULL_TABLE = 40
_SHOWN_AT_EACH_END = 15
_LEAST_NAME = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: heading, whether it is right-aligned, the most cells it may take (None = what it needs)."""

    heading: str
    right: bool = False
    most: int | None = None


def grid(columns: Sequence[Column], rows: Sequence[Sequence[str]], cells: int, *, ascii_only: bool) -> Table:
    """A table without lines, `cells` wide at most: names lose their middle, the first column gives way."""
    texts = [[clean(text, ascii_only=ascii_only) for text in row] for row in rows]
    sizes = _sizes(columns, texts, cells)
    sizes[0] = max(_LEAST_NAME, min(sizes[0], cells - sum(sizes[1:]) - 2 * (len(sizes) - 1)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column.heading, justify="right" if column.right else "left", no_wrap=True)
    for row in texts:
        table.add_row(
            *(Text(fit(text, size, ascii_only=ascii_only)) for text, size in zip(row, sizes, strict=True))
        )
    return table


def needed(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Cells that a table takes where nothing has to give way."""
    return sum(_sizes(columns, rows, 2**31)) + 2 * (len(columns) - 1)


def _sizes(columns: Sequence[Column], rows: Sequence[Sequence[str]], cells: int) -> list[int]:
    return [
        min(max([width(column.heading), *(width(row[i]) for row in rows)]), column.most or cells)
        for i, column in enumerate(columns)
    ]


def header(plan: Plan, workflow: Workflow, cluster: Cluster, *, several: bool = False) -> str:
    """`dag-1 on lab: 50 jobs, 4 nodes, policy mom`; with `several`, without the policy."""
    size = f"{count(len(workflow.jobs), 'job')}, {count(len(cluster.nodes), 'node')}"
    policy = "" if several else f", policy {clean(plan.policy)}"
    return f"{fit(clean(workflow.name), 24)} on {fit(clean(cluster.name), 14)}: {size}{policy}"


def subtitle(plan: Plan, workflow: Workflow, cluster: Cluster) -> str:
    """One line for a picture."""
    idle = len(cluster.nodes) - len({name for job in plan.jobs for name in job.nodes})
    size = f"{count(len(workflow.jobs), 'job')} on {count(len(cluster.nodes), 'node')}"
    unused = f" ({idle:,} idle)" if idle else ""
    return f"policy {plan.policy} · {size}{unused} · makespan {seconds(plan.makespan)}, {bound(plan)}"


def plan_table(plan: Plan, cells: int = 80, *, ascii_only: bool = False, everything: bool = False) -> Table:
    """Jobs by start time: place, times, slowdown by contention, and the next best place with its cost."""
    places = decimals(plan.makespan)
    jobs = sorted(plan.jobs, key=lambda job: (job.start_time, job.finish_time))
    told, large = any(job.within for job in jobs), plan.makespan >= 10_000
    nodes, next_best = (14, 20) if not told else (9, 12) if large else (10, 16)
    columns = (
        Column("JOB", most=48),
        Column("NODES", most=nodes),
        Column("START s", right=True),
        Column("FINISH s", right=True),
        *((Column("KNOWN TO", right=True),) if told else ()),
        Column("SLOWDOWN", right=True),
        Column("NEXT BEST", most=next_best),
    )
    rows = with_gap(jobs, lambda job: _plan_row(job, places, told), everything)
    return grid(columns, rows, cells, ascii_only=ascii_only)


def _plan_row(job: PlannedJob, places: int, told: bool) -> tuple[str, ...]:
    times = [f"{job.start_time:,.{places}f}", f"{job.finish_time:,.{places}f}"]
    if told:
        times.append(known_to((job.within.earliest, job.within.latest), job.finish_time) if job.within else "")
    return (job.id, fold(job.nodes), *times, f"{job.contention_slowdown:.2f}", _next_best(job.why, places))


def known_to(within: tuple[float, float], foretold: float) -> str:
    """How much less or more than foretold it may be: `-4 +12 %`; 11 cells at most."""
    below, above = (100 * abs(bound / max(foretold, 1e-9) - 1) for bound in within)
    places = 1 if max(below, above) < 0.95 else 0
    return f"-{below:.{places}f} " + (f"+{above:.{places}f} %" if above < 999.5 else ">999 %")


def _next_best(why: RunnerUp | None, places: int) -> str:
    if why is None:
        return "-"
    cost = max(0.0, why.cost_s)
    if cost == float("inf"):
        return f"{fit(fold(why.nodes), 8)} would never fit"
    return f"{fit(fold(why.nodes), 9)} +{cost:,.{places}f} s"


def with_gap(
    items: Sequence[T], row: Callable[[T], tuple[str, ...]], everything: bool
) -> list[tuple[str, ...]]:
    """A row for each item; where they are too many to read, the first and the last around a row of dots."""
    if everything or len(items) <= FULL_TABLE:
        return [row(item) for item in items]
    first = [row(item) for item in items[:_SHOWN_AT_EACH_END]]
    gap = ("...", *[""] * (len(first[0]) - 1))
    return [*first, gap, *(row(item) for item in items[-_SHOWN_AT_EACH_END:])]


def left_out(jobs: int) -> str:
    """What a table of that many jobs does not show and how to see it, or an empty string."""
    if jobs <= FULL_TABLE:
        return ""
    missing = count(jobs - 2 * _SHOWN_AT_EACH_END, "job")
    return f"{missing} left out: --all shows every job, --json is for programs"


def energy(plan: Plan, cluster: Cluster) -> str:
    """The plan's energy, or why it is unknown."""
    if plan.energy_j is not None:
        return joules(plan.energy_j)
    blind = [clean(kind.name) for kind in cluster.types if kind.power is None]
    if not blind:
        return "unknown"
    return f"unknown: node type {fit(blind[0], 24)} gives no power" + (
        f", nor do {len(blind) - 1} others" if blind[1:] else ""
    )


def bound(plan: Plan) -> str:
    """How far the makespan is from the proven lower bound."""
    if plan.lower_bound <= 0:
        return "no lower bound"
    gap, least = plan.makespan / plan.lower_bound - 1, seconds(plan.lower_bound, decimals(plan.lower_bound))
    if gap < -1e-6:  # times of the interval engine, the bound of the fluid model
        return f"{'below' if gap < -5e-4 else 'at'} the fluid model's lower bound of {least}"
    if gap < 5e-4:
        return f"optimal: it meets the proven lower bound of {least}"
    return f"within {percent(gap)} of the proven lower bound of {least}"


def summary(plan: Plan, cluster: Cluster) -> list[str]:
    """The lines under the chart: makespan, energy, time to decide."""
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
    """The line about the makespan's interval, or what KNOWN TO means where only jobs have one."""
    if plan.makespan_within is None:
        meaning = f"known to  as far as the jobs' needs are known: {percent(LEVEL)} end within"
        return [meaning] if any(job.within for job in plan.jobs) else []
    low, high = (seconds(bound, decimals(bound)) for bound in plan.makespan_within)
    return [f"known to  {low} to {high} with {percent(LEVEL)}, as far as the jobs' needs are known"]


def replicates(drawn: Replicated) -> list[str]:
    """The lines about the draws that the shown plan stands for."""
    low, high = min(drawn.quantiles), max(drawn.quantiles)
    inner = f"{100 * (high - low):g} % within {seconds(drawn.quantiles[low])} to {seconds(drawn.quantiles[high])}"
    kept = f"{percent(drawn.share)} map as shown" if drawn.dominant else "no two map alike"
    return [
        f"draws     {len(drawn.makespans)}, makespan {seconds(drawn.mean)} +- {seconds(drawn.std)}",
        f"          {inner}; {kept}",
    ]


def best_of(score: Sequence[float]) -> int:
    """Position of the lowest score; of those that tie, the last (the policies end with the one that searches)."""
    least = min(score)
    return max(i for i, value in enumerate(score) if value <= least + 1e-9 * abs(least))


def comparison(
    plans: Sequence[Plan], score: Sequence[float], cells: int = 80, *, ascii_only: bool = False
) -> Table:
    """Policies side by side; `score` is the objective's value of each, low is good; the best is marked."""
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
    """The lines under a comparison: the best, the bound that holds for all, energy where it is unknown."""
    best = best_of(score)
    lines = [
        f"best      {plans[best].policy}, by {goal}",
        f"bound     no policy can end before {seconds(max(plan.lower_bound for plan in plans))}",
    ]
    if plans[best].energy_j is None:
        lines.append(f"energy    {energy(plans[best], cluster)}")
    return lines
