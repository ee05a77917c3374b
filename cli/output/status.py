"""Output of the clients: workflows and jobs with their forecasts, the log of a job, the accuracy of forecasts.

Rule: urgent rows come first; a shortened list says what it leaves out; errors of a factor of two or more are factors.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from ...daemon.planning.guard import Forecaster
from ...daemon.report.accuracy import KINDS, Accuracy, ForecastOutcome, accuracy, by, inside, known, relative_error
from ...daemon.state.queue import ending, mark
from ...formats.hostlist import fold
from ...formats.text import clean, count, percent, seconds, times
from ...simulate.model.plan import LEVEL
from .tables import Column, failure, grid, known_to, signed
from .text import Screen, class_lines

_COLUMNS = (
    Column("JOB"),
    Column("STATE", most=20),
    Column("NODES", most=18),
    Column("FORECAST", right=True),
    Column("ACTUAL", right=True),
    Column("ERROR", right=True),
)
#: Between FORECAST and ACTUAL, if a job has a prediction interval.
_KNOWN_TO, _AT = Column("KNOWN TO", right=True), 4
_URGENCY = {"failed": 0, "timeout": 0, "unknown": 0, "running": 1, "pending": 2, "cancelled": 3}


def show_status(reply: dict[str, Any], *, everything: bool) -> None:
    """Print the reply to `status`: a line on the daemon, a line on each workflow, the jobs of unfinished workflows.

    Args:
        reply: of the daemon, or of a client with the same shape.
        everything: show all workflows and all jobs, also of workflows that have ended.
    """
    screen, workflows = Screen(), reply["workflows"]
    total = count(len(workflows), "workflow")
    how = f"{reply['mode']}, policy {reply['policy']}, " if "mode" in reply else ""
    screen.put(Text(f"{clean(reply['cluster'])}: {how}{total}"))
    if reply["blocked"]:
        screen.put(Text(f"blocked: {clean(reply['blocked'])}"))
    if reply.get("mode") == "fallback":
        screen.put(_why_fallback(**reply["guard"]))
    left = _Budget(len(workflows), sum(len(flow["jobs"]) for flow in workflows)) if everything else _Budget()
    ended = [flow for flow in workflows if flow["finish_time"] is not None]
    alive = [flow for flow in workflows if flow["finish_time"] is None]
    alive.sort(key=lambda flow: flow["state"] == "pending")  # running workflows first
    if ended:
        screen.put("")
    for flow in ended:
        _put_workflow(screen, flow, flow["jobs"] if everything else [], reply["time"])
    for flow in alive[: left.workflows]:
        jobs = flow["jobs"] if everything else _pressing(flow["jobs"])[: left.jobs]
        left.jobs -= len(jobs)
        if jobs or flow is alive[0]:
            screen.put("")
        _put_workflow(screen, flow, jobs, reply["time"])
        if jobs and not everything and (more := _not_completed(flow) - len(jobs)):
            screen.put(Text(f"{more:,} more: --all", style="dim"))
    if more := len(alive[left.workflows :]):
        screen.put(Text(f"{count(more, 'more workflow')}: --all", style="dim"))


def _why_fallback(median_error: float, bound: float, model: str, source: str = "") -> str:
    missed = percent(median_error) if median_error < 1 else times(1 + median_error)
    return f"fallback: {Forecaster(model, source)} missed by {missed}; the bound is {percent(bound)}"


@dataclass
class _Budget:
    """Workflows and jobs that may still be shown, so that the output fits on two screens."""

    workflows: int = 20
    jobs: int = 30


def _put_workflow(screen: Screen, workflow: dict[str, Any], jobs: list[dict[str, Any]], now: float) -> None:
    total = len(workflow["jobs"])
    done = sum(job["state"] == "completed" for job in workflow["jobs"])
    head = f"{clean(workflow['id'])}: {workflow['state']}, {done:,} of {count(total, 'job')} completed"
    screen.put(Text(head, style="bold"))
    if jobs:
        columns, rows = list(_COLUMNS), [_row(job, now) for job in jobs]
        if any(row[_AT] for row in rows):
            columns.insert(_AT, _KNOWN_TO)
        else:
            rows = [row[:_AT] + row[_AT + 1 :] for row in rows]
        screen.put(grid(columns, rows, screen.cells, ascii_only=screen.ascii_only))
        screen.put(*class_lines({job["id"]: job for job in jobs}, screen.cells))


def _not_completed(workflow: dict[str, Any]) -> int:
    return sum(job["state"] != "completed" for job in workflow["jobs"])


def _pressing(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs that have not completed: failed, running, waiting."""
    return sorted((job for job in jobs if job["state"] != "completed"), key=lambda job: _URGENCY.get(job["state"], 2))


def _row(job: dict[str, Any], now: float) -> tuple[str, ...]:
    forecast, actual = job["forecast_run_time"], _run_time(job, now)
    ended = job["finish_time"] is not None
    return (
        job["id"],
        _state(job),
        fold(job["nodes"]) if job["nodes"] else "",
        "" if forecast is None else seconds(forecast),
        "" if (within := job.get("forecast_run_within")) is None else known_to(within, forecast),
        "" if actual is None else seconds(actual) + ("" if ended else " so far"),
        _error(job, actual),
    )


def _state(job: dict[str, Any]) -> str:
    how = mark(job["state"], job["exit_code"], job["signal"])
    return how if how == job["state"] else f"{job['state']} ({how})"


def _error(job: dict[str, Any], actual: float | None) -> str:
    """Return the error of the forecast of a completed job; jobs that were ended early have none."""
    if job["state"] != "completed" or actual is None or job["forecast_run_time"] is None:
        return ""
    return signed(relative_error(job["forecast_run_time"], actual))


def _run_time(job: dict[str, Any], now: float) -> float | None:
    start, finish = job["start_time"], job["finish_time"]
    return None if start is None else max(0.0, (now if finish is None else finish) - start)


def show_job_log(reply: dict[str, Any]) -> None:
    """Print the reply to `explain`: the job, and its log with the seconds since its submission."""
    screen, job, begin = Screen(), reply["job"], reply["submit_time"]
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begin))
    screen.put(Text(f"{clean(job['key'])}: {_state(job)}; submitted {at}", style="bold"))
    lines: list[tuple[str, str]] = [("after", ", ".join(reply["after"])), ("waits", reply["waits"])]
    if "class" in job:
        source = f", {job['profile_source']}" if job.get("profile_source") in ("measured", "predicted") else ""
        lines.insert(0, ("profile", f"{job['profile']}{source}; {job['class'] or 'class unknown'}: {job['class_why']}"))
    ages = [f"{record['time'] - begin:+.1f}" for record in reply["story"]]
    widest = max(map(len, ages), default=0)
    for age, record in zip(ages, reply["story"], strict=True):
        kind, text = record["kind"], record["text"]
        lines.append((f"{age:>{widest}} s  {kind}", text.removeprefix(kind).lstrip(": ") or text))
    actual = _run_time(job, begin)
    if error := _error(job, actual):
        assert actual is not None
        lines.append(("forecast", f"{seconds(job['forecast_run_time'])}, took {seconds(actual)} ({error})"))
        if within := job.get("forecast_run_within"):
            where = "inside" if inside(actual, within) else "outside"
            lines.append(("", f"{where} of {seconds(within[0])} to {seconds(within[1])}, where {percent(LEVEL)} end"))
    lines = [(label, clean(text)) for label, text in lines if text]
    margin = max([8, *(len(label) for label, _ in lines)]) + 4
    for label, text in lines:
        screen.put(*_wrapped(label, text, margin, screen.cells))
    for name in ("stdout", "stderr"):  # not wrapped: a path is meant to be copied
        if job[name]:
            print(f"  {name:<{margin - 2}}{clean(job[name])}")


def _wrapped(label: str, text: str, margin: int, cells: int) -> Iterator[Text]:
    for i, line in enumerate(textwrap.wrap(text, max(20, cells - margin), break_on_hyphens=False)):
        yield Text((f"  {label}" if i == 0 else "").ljust(margin) + line)


def failure_lines(workflow: dict[str, Any]) -> list[str]:
    """Return a line for each failed job of a workflow, with the file of its stderr."""
    return [
        failure(job["id"], ending(job["state"], job["exit_code"], job["signal"], job["reason"]), job["stderr"])
        for job in workflow["jobs"]
        if job["state"] in ("failed", "timeout")
    ]


#: Profiles that are shown without --all.
_MOST = 20
_HEADS = ("JOBS", "MEDIAN", "90 %", "BIAS", "TREND", "INSIDE")


def show_accuracy(jobs: Sequence[ForecastOutcome], *, everything: bool) -> None:
    """Print the accuracy by model, source of profiles, policy and profile.

    Args:
        jobs: completed jobs with their forecasts.
        everything: show all profiles.
    """
    screen, whole = Screen(), known(jobs)
    if not jobs:
        screen.put("No job with a forecast has completed yet.")
        return
    screen.title(f"{count(len(jobs), 'job')} completed with a forecast, errors of run times")
    for kind in KINDS:
        groups = by(kind, jobs)
        shown = groups if everything else groups[:_MOST]
        if not groups:
            continue
        total = [accuracy("all", whole)] if kind == KINDS[0] and len(groups) > 1 else []
        columns = (Column(kind.upper()), *(Column(head, right=True) for head in _HEADS))
        rows = [_accuracy_row(group) for group in (*shown, *total)]
        screen.put(grid(columns, rows, screen.cells, ascii_only=screen.ascii_only))
        if left := len(groups) - len(shown):
            screen.put(Text(f"{count(left, 'more profile')}: --all", style="dim"))
        screen.put("")
    if any(job.inside is not None for job in whole):
        screen.put(f"inside    share of jobs inside their prediction interval; {percent(LEVEL)} is expected")
    if assumed := len(jobs) - len(whole):
        screen.put(f"default   {count(assumed, 'job')} without a profile, counted only in the table of profiles")


def _accuracy_row(group: Accuracy) -> tuple[str, ...]:
    trend = "" if group.trend is None else f"{100 * group.trend:+.1f} points"
    inside = "" if group.inside is None else percent(group.inside)
    return (group.name, f"{group.jobs:,}", _size(group.median), _size(group.high), signed(group.bias), trend, inside)


def _size(error: float) -> str:
    return percent(error) if error < 1 else times(1 + error)
