"""What the daemon's clients show: workflows and jobs with forecast against actual, and one job's story."""

from __future__ import annotations

import time
from typing import Any

from rich.text import Text

from ...simulate.formats.hostlist import fold
from .outcome import signed
from .screen import Screen
from .tables import Column, grid
from .text import clean, count, seconds

_SHOWN = 30
_COLUMNS = (
    Column("job"),
    Column("state", most=20),
    Column("nodes", most=18),
    Column("forecast", right=True),
    Column("actual", right=True),
    Column("off", right=True),
)


def show_status(reply: dict[str, Any], *, everything: bool) -> None:
    """Print the answer to `status`: a line on the daemon, then a table of each workflow that has not ended.

    Args:
        everything: show all jobs, also of workflows that have ended.
    """
    screen, workflows = Screen(), reply["workflows"]
    known = count(len(workflows), "workflow")
    screen.put(Text(f"{clean(reply['cluster'])}: {reply['mode']}, policy {reply['policy']}, {known}"))
    if reply["blocked"]:
        screen.put(Text(f"blocked: {clean(reply['blocked'])}"))
    for workflow in workflows:
        jobs = workflow["jobs"]
        done = sum(job["state"] == "completed" for job in jobs)
        head = f"{clean(workflow['id'])}: {workflow['state']}, {done} of {count(len(jobs), 'job')} completed"
        screen.put("", Text(head, style="bold"))
        if everything or workflow["finish_time"] is None:
            shown = jobs if everything else [job for job in jobs if job["state"] != "completed"][:_SHOWN]
            rows = [_row(job, reply["time"]) for job in shown]
            screen.put(grid(_COLUMNS, rows, screen.cells, ascii_only=screen.ascii_only))


def _row(job: dict[str, Any], now: float) -> tuple[str, ...]:
    forecast, actual = job["forecast_run_time"], _run_time(job, now)
    state = job["state"] + (f" ({job['exit_code']})" if job["exit_code"] else "")
    ended = job["finish_time"] is not None
    return (
        job["id"],
        state,
        fold(job["nodes"]) if job["nodes"] else "",
        "" if forecast is None else seconds(forecast),
        "" if actual is None else seconds(actual) + ("" if ended else " so far"),
        "" if not ended or actual is None or forecast is None else signed(_error(forecast, actual)),
    )


def _run_time(job: dict[str, Any], now: float) -> float | None:
    start, finish = job["start_time"], job["finish_time"]
    return None if start is None else max(0.0, (now if finish is None else finish) - start)


def _error(forecast: float, actual: float) -> float:
    return (actual - forecast) / max(actual, 1e-3)


def show_story(reply: dict[str, Any]) -> None:
    """Print the answer to `explain`: the job, then what happened with the seconds since its submission."""
    screen, job, begin = Screen(), reply["job"], reply["submit_time"]
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begin))
    screen.put(Text(f"{clean(job['key'])}: {job['state']}; submitted {at}", style="bold"))
    if reply["after"]:
        screen.put(Text(f"  after {clean(', '.join(reply['after']))}"))
    if reply["waits"]:
        screen.put(Text(f"  waits: {clean(reply['waits'])}"))
    for record in reply["story"]:
        print(f"  {record['time'] - begin:+9.1f} s  {record['kind']:<10}{clean(record['text'])}")
    actual = _run_time(job, begin)
    if job["finish_time"] is not None and actual is not None and job["forecast_run_time"] is not None:
        forecast = job["forecast_run_time"]
        error = signed(_error(forecast, actual))
        screen.put(Text(f"  forecast {seconds(forecast)}, took {seconds(actual)} ({error})"))
