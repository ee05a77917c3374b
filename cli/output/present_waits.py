"""Tables for people of what a queue does from now on, as it is and under scenarios.

Rule: times are counted from now; a start that no draw has in the time asked is "later".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formats.text import count
from .text import Screen, TextColumn, hanging, numbers
from .waits import show_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...simulate.arrays import Array
    from ...simulate.slurm.site import Site

#: Jobs, and late jobs of a drain, that are shown; scenarios that have a column.
MOST_JOBS, MOST_LATE, MOST_COLUMNS = 20, 10, 3
#: A start is earlier or later if it is so by more than this, seconds.
SAME_S = 60.0


@dataclass(frozen=True, slots=True)
class Drain:
    """Nodes that are to take no jobs from a time on: what runs there then.

    Args:
        nodes: number of nodes.
        start, end: epoch seconds; `end` is infinite if it is not named.
        running: jobs that run there now.
        in_time: of these, those that end before `start` in half of the draws or more.
        late: jobs that still run there at `start`, also if they wait now, and in which share of the draws.
    """

    nodes: int
    start: float
    end: float
    running: int
    in_time: int
    late: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class PresentScenario:
    """Starts of the waiting jobs under a scenario.

    Args:
        name: its name.
        changes: as they were given.
        unknown: what is not known, or not followed.
        start: of each waiting job, the median over the draws, epoch seconds; infinite: not in the time asked.
        early, late: bounds of 80 %: of the middle of the draws, widened by what forecasts for the past missed.
        drains: nodes that it drains.
    """

    name: str
    changes: list[str]
    unknown: Sequence[str]
    start: Array
    early: Array
    late: Array
    drains: tuple[Drain, ...]


@dataclass(frozen=True, slots=True)
class PresentQueue:
    """A queue now, and its starts under each scenario; the first scenario is the queue as it is.

    Args:
        time: epoch seconds.
        site: with the jobs that run and wait.
        waiting: rows of those that wait.
        running: number of jobs that run.
        learned: number of jobs whose run times are known.
        predicted: number of jobs whose run times are predicted from them.
        draws: number of draws of run times and phases.
        compared: number of forecasts for the past that were compared with starts; 0: the bounds are those of the draws.
        scenarios: one or more.
    """

    time: float
    site: Site
    waiting: list[int]
    running: int
    learned: int
    predicted: int
    draws: int
    compared: int
    scenarios: list[PresentScenario]


def show_present(screen: Screen, queue: PresentQueue, zone: tzinfo, *, show_all: bool = False) -> None:
    """Print when waiting jobs start.

    Args:
        screen: where to print.
        queue: the queue, and its scenarios.
        zone: of the times.
        show_all: leave no job out.
    """
    screen.put(
        f"{datetime.fromtimestamp(queue.time, zone):%Y-%m-%d %H:%M:%S %Z}: {count(queue.running, 'job')} running, "
        f"{len(queue.waiting):,} waiting; the next 24 h, {count(queue.draws, 'draw')}",
    )
    screen.put(*hanging("run times: ", _run_times(queue), screen.cells))
    screen.put(*hanging("80 %: ", _intervals(queue), screen.cells), "")
    first, *others = queue.scenarios
    rows = [_summary(one, first, queue.time) for one in queue.scenarios]
    screen.named_table(
        [TextColumn("SCENARIO"), *numbers("START IN 1 h", "IN 24 h", "MEAN WAIT", "EARLIER", "LATER")], rows
    )
    for one in others:
        screen.put("", *(line for text in one.changes for line in hanging(f"{one.name}: ", text, screen.cells)))
        for drain in one.drains:
            screen.put(*(line for text in _drained(drain, zone) for line in hanging("  ", text, screen.cells)))
    if queue.waiting:
        screen.put("")
        _show_jobs(screen, queue, others, len(queue.waiting) if show_all else MOST_JOBS)
    show_unknown(screen, queue.site.unknown)


def present_document(queue: PresentQueue) -> dict[str, Any]:
    """Return all of it as a document; times are epoch seconds, null where no start is in the time asked."""
    return {
        "time": queue.time,
        "running": queue.running,
        "run_times": {"learned": queue.learned, "predicted": queue.predicted},
        "replays": queue.draws,
        "starts_compared": queue.compared,
        "scenarios": [
            {
                "name": one.name,
                "changes": one.changes,
                "unknown": list(one.unknown),
                "drains": [
                    {
                        "nodes": drain.nodes, "start": drain.start, "end": _time(drain.end), "running": drain.running,
                        "in_time": drain.in_time, "late": [{"id": name, "share": share} for name, share in drain.late],
                    }
                    for drain in one.drains
                ],
                "jobs": [
                    {
                        "id": queue.site.jobs[row].id,
                        "held": queue.site.jobs[row].released is not None,
                        "start": _time(one.start[place]),
                        "start_within": [_time(one.early[place]), _time(one.late[place])],
                    }
                    for place, row in enumerate(queue.waiting)
                ],
            }
            for one in queue.scenarios
        ],
    }  # fmt: skip


def _time(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _run_times(queue: PresentQueue) -> str:
    jobs = queue.running + len(queue.waiting)
    if not queue.learned:
        return "until the time limits; sacct shows no job that ended"
    text = f"drawn from {count(queue.learned, 'job')} of the last week"
    missing = jobs - queue.predicted
    return f"{text}; {count(missing, 'job')} like none of them: until the limit" if missing else text


def _intervals(queue: PresentQueue) -> str:
    if not queue.compared:
        return "of the draws; no forecast for the past was compared with its start"
    return f"of the draws, widened where forecasts for the past missed ({count(queue.compared, 'start')} compared)"


def _summary(one: PresentScenario, first: PresentScenario, now: float) -> tuple[str, ...]:
    waits = one.start - now
    with np.errstate(invalid="ignore"):
        moved = np.nan_to_num(one.start - first.start, nan=0.0)
    both = np.isfinite(one.start) & np.isfinite(first.start)
    wait = _clock(float(waits[both].mean())) if both.any() else "-"
    sides = ("", "") if one is first else (f"{int((moved < -SAME_S).sum()):,}", f"{int((moved > SAME_S).sum()):,}")
    return one.name, f"{int((waits <= 3600).sum()):,}", f"{int(np.isfinite(waits).sum()):,}", wait, *sides


def _drained(drain: Drain, zone: tzinfo) -> list[str]:
    until = "" if np.isinf(drain.end) else f" to {datetime.fromtimestamp(drain.end, zone):%m-%d %H:%M}"
    verb = "ends" if drain.running == 1 else "end"
    lines = [
        f"{count(drain.nodes, 'node')} from {datetime.fromtimestamp(drain.start, zone):%m-%d %H:%M}{until}: "
        f"{drain.in_time:,} of {count(drain.running, 'running job')} there {verb} in time"
    ]
    if drain.late:
        shown = ", ".join(f"{name} ({100 * share:.0f} %)" for name, share in drain.late[:MOST_LATE])
        more = f" and {len(drain.late) - MOST_LATE} more" if drain.late[MOST_LATE:] else ""
        lines.append(f"still running then (share of the draws): {shown}{more}")
    return lines


def _show_jobs(screen: Screen, queue: PresentQueue, others: list[PresentScenario], most: int) -> None:
    first, shown = queue.scenarios[0], others[:MOST_COLUMNS]
    order = np.argsort(first.start, kind="stable").tolist()
    rows = []
    for place in order[:most]:
        job = queue.site.jobs[queue.waiting[place]]
        starts = [_clock(float(one.start[place]) - queue.time) for one in (first, *shown)]
        early, late = (_clock(float(one[place]) - queue.time) for one in (first.early, first.late))
        within = "" if early == late else f"{early} to {late}"
        if job.released is not None:
            starts = ["held"] * len(starts)
        rows.append((job.id, job.user, ",".join(job.partitions), f"{job.min_nodes:,}", starts[0], within, *starts[1:]))
    columns = [TextColumn(name) for name in ("JOB", "USER", "PARTITION")]
    heads = numbers("NODES", "STARTS IN", "80 %", *(one.name.upper() for one in shown))
    screen.table([*columns, *heads], rows)
    if order[most:]:
        screen.put(f"and {len(order) - most:,} more (--all)")


def _clock(seconds: float) -> str:
    """Return a time of waiting as `1 h 05 min`; "later" beyond the time asked."""
    if not np.isfinite(seconds):
        return "later"
    minutes = max(0, round(seconds / 60))
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d}"
