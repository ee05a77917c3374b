"""Output of the clients: workflows and jobs with their forecasts, the log of a job, the accuracy of forecasts.

Rule: urgent rows come first; a shortened list says what it leaves out; errors are factors.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from ...daemon.report.accuracy import (
    CALIBRATED,
    ENOUGH_JOBS,
    KINDS,
    MUCH,
    Accuracy,
    TurnaroundGain,
    accuracy,
    by,
    calibration,
    known,
    turnaround_gain,
)
from ...daemon.state.endings import ending, mark
from ...daemon.state.recorded_outcome import ForecastOutcome, QueueRecord, error_ratio, inside
from ...daemon.state.users import user_name
from ...formats.documents.quantities import format_size
from ...formats.hostlist import fold
from ...formats.text import clean, count, percent, seconds, short_time, times
from ...simulate.model.plan import LEVEL
from ..streams import show
from .manager_queue import age_of, plain_name, put_queue, put_starts
from .service_state import put_service
from .tables import failure, guess_mark, known_to, off
from .text import Screen, TextColumn, class_lines, hanging, narrowest, numbers

_COLUMNS = (TextColumn("JOB"), TextColumn("NAME", most=20), TextColumn("USER", most=12),
            TextColumn("PARTITION", most=14), TextColumn("STATE", most=20), TextColumn("NODES", most=18),
            *numbers("PRIORITY", "STARTS IN", "RJMS SAYS", "ENDS IN", "FORECAST", "KNOWN TO",
                     "ACTUAL", "ERROR"))  # fmt: skip
#: The columns that are left out if they are empty.
_OPTIONAL = (
    "NAME",
    "USER",
    "PARTITION",
    "PRIORITY",
    "STARTS IN",
    "RJMS SAYS",
    "ENDS IN",
    "KNOWN TO",
    "ACTUAL",
    "ERROR",
)
#: The columns that give way where the terminal is too narrow for all, the first one first.
_GIVING_WAY = ("RJMS SAYS", "ACTUAL", "KNOWN TO")
#: Likewise, of jobs that were handed over, whose users and partitions are shown first.
_GIVING_WAY_QUEUED = ("RJMS SAYS", "ACTUAL", "KNOWN TO", "FORECAST", "ENDS IN", "PRIORITY")
#: Likewise in shadow, where only the resource manager starts jobs.
_GIVING_WAY_SHADOWED = (*_GIVING_WAY_QUEUED[1:], _GIVING_WAY_QUEUED[0])
#: The columns with a mark behind a guess, what the mark means, and what is said where they have given way.
_MARKED = ("ENDS IN", "FORECAST")
_A_GUESS = "a guess, because nothing is known of the job; so are starts that wait for its end"
_GUESSES = "Nothing is known of some jobs: their ends, and the starts that wait for these, are guesses."
_URGENCY = {"failed": 0, "timeout": 0, "unknown": 0, "running": 1, "pending": 2, "cancelled": 3}
#: Workflows and jobs that are shown without --all, so that the output fits on two screens.
_MOST_WORKFLOWS, _MOST_JOBS = 20, 30


def show_status(reply: dict[str, Any], *, everything: bool) -> None:
    """Print the reply to `status`: a line on the daemon, a line on each workflow, the jobs of unfinished workflows.

    Args:
        reply: of the daemon, or of a client with the same shape.
        everything: show all workflows and all jobs, also of workflows that have ended.
    """
    screen, workflows = Screen(), reply["workflows"]
    put_service(screen, reply)
    in_shadow = reply.get("mode") == "shadow"
    ended = [flow for flow in workflows if flow["finish_time"] is not None]
    alive = [flow for flow in workflows if flow["finish_time"] is None]
    alive.sort(key=lambda flow: flow["state"] == "pending")  # running workflows first
    if ended:
        screen.put("")
    for flow in ended:
        _put_workflow(screen, flow, flow["jobs"] if everything else [], reply["time"], in_shadow=in_shadow)
    shown, budget = alive if everything else alive[:_MOST_WORKFLOWS], _MOST_JOBS
    for flow in shown:
        pressing = [job for job in flow["jobs"] if job["state"] != "completed"]  # failed, running, waiting
        pressing.sort(key=lambda job: _URGENCY.get(job["state"], 2))
        jobs = flow["jobs"] if everything else pressing[:budget]
        budget -= len(jobs)
        if jobs or flow is alive[0]:
            screen.put("")
        _put_workflow(screen, flow, jobs, reply["time"], in_shadow=in_shadow)
        if jobs and not everything and (more := len(pressing) - len(jobs)):
            screen.put(Text(f"{more:,} more: --all", style="dim"))
    if more := len(alive) - len(shown):
        screen.put(Text(f"{count(more, 'more workflow')}: --all", style="dim"))
    if more := int(reply.get("workflows_left_out", 0)):
        screen.put(Text(f"{count(more, 'more workflow')} in the daemon", style="dim"))
    put_queue(screen, reply, everything=everything)


_NODE_COLUMNS = (TextColumn("NODE"), TextColumn("STATE", most=10),
                 *numbers("THREADS", "CORES", "LOAD", "BANDWIDTH", "OF", "POWER", "JOBS"), TextColumn(""))  # fmt: skip


def show_nodes(reply: dict[str, Any]) -> None:
    """Print the reply to `nodes`: a line on each node; `-` is unknown."""
    screen, nodes = Screen(), reply["nodes"]
    screen.put(Text(f"{reply['cluster']}: {count(len(nodes), 'node')}{age_of(reply)}"))
    if nodes:
        screen.table(_NODE_COLUMNS, [_node_row(node) for node in nodes])
        for node in nodes:
            if (speed := node.get("speed", 1.0)) != 1.0:
                screen.put(Text(f"{node['name']}: plans assume {times(speed)} the speed of its type"))


def _node_row(node: dict[str, Any]) -> tuple[str, ...]:
    rate, power = node["bandwidth"], node["power_watts"]
    return (
        node["name"],
        node["state"],
        f"{node['threads']:,}",
        f"{node['cores']:,}",
        f"{node['load']:.2f}",
        "-" if rate is None else format_size(rate, rate=True),
        format_size(node["memory_bandwidth"], rate=True),
        "-" if power is None else f"{power:,.0f} W",
        f"{node['jobs']:,}",
        ", ".join(node["job_names"]),
    )


def _put_workflow(
    screen: Screen, workflow: dict[str, Any], jobs: list[dict[str, Any]], now: float, *, in_shadow: bool
) -> None:
    counts = workflow.get("job_counts") or Counter(job["state"] for job in workflow["jobs"])
    total, completed = sum(counts.values()), counts.get("completed", 0)
    head = f"{workflow['id']}: {workflow['state']}, {completed:,} of {count(total, 'job')} completed"
    if workflow.get("handed_over"):  # it drops jobs that have ended
        head = f"{workflow['id']}: {count(total, 'job')} handed over"
    if (owner := workflow.get("owner")) and owner != user_name(os.getuid()):
        head += f", {owner}"
    screen.put(Text(head, style="bold"))
    if reason := workflow.get("set_aside"):
        screen.put(Text(f"set aside: {reason}"))
    if jobs:
        guessed = {job["id"] for job in jobs if _guessed(job)}
        rows = [_row(job, now, guess_mark(job["id"], guessed)) for job in jobs]
        shown = [i for i, one in enumerate(_COLUMNS) if one.heading not in _OPTIONAL or any(row[i] for row in rows)]
        queued = _GIVING_WAY_SHADOWED if in_shadow else _GIVING_WAY_QUEUED
        giving_way = queued if workflow.get("handed_over") else _GIVING_WAY
        hidden = _too_wide(shown, rows, giving_way, screen.cells)
        shown = [i for i in shown if i not in hidden]
        screen.table([_COLUMNS[i] for i in shown], [[row[i] for i in shown] for row in rows])
        if hidden:
            names = ", ".join(_COLUMNS[i].heading for i in hidden)
            screen.put(Text(f"{names}: in a wider terminal, or with --json", style="dim"))
        if guessed:
            is_marked = any(_COLUMNS[i].heading in _MARKED for i in shown)
            screen.put(*hanging("?         " if is_marked else "", _A_GUESS if is_marked else _GUESSES, screen.cells))
        screen.put(*class_lines({job["id"]: job for job in jobs}, screen.cells))
        if more := total - len(workflow["jobs"]):
            screen.put(Text(f"{count(more, 'more job')} in the daemon; explain shows each", style="dim"))


def _too_wide(shown: Sequence[int], rows: Sequence[Sequence[str]], giving_way: Sequence[str], cells: int) -> list[int]:
    """Return the columns without which a table is as wide as the terminal."""
    columns, hidden = list(shown), list[int]()
    for heading in giving_way:
        if narrowest([_COLUMNS[i] for i in columns], [[row[i] for i in columns] for row in rows]) <= cells:
            break
        dropped = [i for i in columns if _COLUMNS[i].heading == heading]
        hidden += dropped
        columns = [i for i in columns if i not in dropped]
    return hidden


def _guessed(job: dict[str, Any]) -> bool:
    """Return whether the forecast of a job that has not ended is a guess."""
    return job.get("profile_source") == "default" and job["finish_time"] is None


def _row(job: dict[str, Any], now: float, guess: str) -> tuple[str, ...]:
    """Return the cells of a job; `guess` stands behind its forecasts."""
    forecast, actual, within = job["forecast_run_time"], _run_time(job, now), job.get("forecast_run_within")
    plan, nodes = job.get("plan"), job["nodes"]
    running = job["finish_time"] is None and job["start_time"] is not None
    ends = plan["finish_time"] if plan is not None else job.get("forecast_finish_time") if running else None
    if plan is not None:
        forecast, nodes = plan["run_time"], nodes or plan["nodes"]
    priority = job.get("priority")
    return (
        job["id"],
        job.get("name") or "",
        plain_name(job.get("owner")),
        job.get("partition") or "",
        _state(job),
        fold(nodes) if nodes else "",
        "" if priority is None else f"{priority:.0f}",
        "" if plan is None else short_time(max(0.0, plan["start_time"] - now)),
        "" if (manager_start := job.get("manager_start_time")) is None else short_time(max(0.0, manager_start - now)),
        "" if ends is None else short_time(max(0.0, ends - now)) + guess,
        "" if forecast is None else short_time(forecast) + guess,
        _known_to(within, forecast) if plan is None else _known_to(plan["finish_within"], plan["finish_time"], now),
        "" if actual is None else short_time(actual),
        _error(job, actual),
    )


def _known_to(within: Sequence[float] | None, forecast: float, now: float = 0.0) -> str:
    """Return how well a forecast is known, relative to the time until then."""
    return "" if within is None else known_to((max(0.0, within[0] - now), max(0.0, within[1] - now)), forecast - now)


def _state(job: dict[str, Any]) -> str:
    word = mark(job["state"], job["exit_code"], job["signal"])
    return word if word == job["state"] else f"{job['state']} ({word})"


def _error(job: dict[str, Any], actual: float | None) -> str:
    """Return the error of the forecast of a completed job; jobs that were ended early have none."""
    if job["state"] != "completed" or actual is None or job["forecast_run_time"] is None:
        return ""
    return off(error_ratio(job["forecast_run_time"], actual))


def _run_time(job: dict[str, Any], now: float) -> float | None:
    start, finish = job["start_time"], job["finish_time"]
    return None if start is None else max(0.0, (now if finish is None else finish) - start)


def show_job_log(reply: dict[str, Any]) -> None:
    """Print the reply to `explain`: the job, and its log with the seconds since its submission."""
    screen, job, begin = Screen(), reply["job"], reply["submit_time"]
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begin))
    decides = f"{job['standing']}; " if job.get("standing") else ""
    screen.put(Text(f"{job['key']}: {decides}{_state(job)}; submitted {at}{age_of(reply)}", style="bold"))
    lines: list[tuple[str, str]] = [("after", ", ".join(reply["after"])), ("group", clean(reply.get("group", ""))),
                                    ("waits", reply["waits"])]  # fmt: skip
    if (manager_start := job.get("manager_start_time")) is not None:
        lines.append(
            ("starts in", f"{seconds(max(0.0, manager_start - reply.get('time', begin)))}, says the resource manager")
        )
    if unknown := job.get("unknown"):
        lines.append(("starts", f"it is not known when: {unknown}"))
    lines += _plan_lines(job, reply.get("time", begin))
    if "class" in job:
        source = f", {job['profile_source']}" if job.get("profile_source") in ("measured", "predicted") else ""
        lines.insert(0, ("profile", f"{job['profile']}{source}; {job['class'] or 'class unknown'}: {job['class_why']}"))
    ages = [f"{record['time'] - begin:+.1f}" for record in reply["story"]]
    widest = max(map(len, ages), default=0)
    for age, record in zip(ages, reply["story"], strict=True):
        kind, text = record["kind"], record["text"]
        lines.append((f"{age:>{widest}} s  {kind}", text.removeprefix(kind).lstrip(": ") or text))
    if job["state"] == "cancelled" and not any(job["reason"] in record["text"] for record in reply["story"]):
        lines.append(("ended", job["reason"]))
    actual = _run_time(job, begin)
    if error := _error(job, actual):
        assert actual is not None
        lines.append(("forecast", f"{seconds(job['forecast_run_time'])}, took {seconds(actual)} ({error})"))
        if within := job.get("forecast_run_within"):
            where = "inside" if inside(actual, within) else "outside"
            lines.append(("", f"{where} of {seconds(within[0])} to {seconds(within[1])}, where {percent(LEVEL)} end"))
    lines = [(f"  {label}", text) for label, text in lines if text]
    margin = max([10, *(len(label) for label, _ in lines)]) + 2
    for label, text in lines:
        screen.put(*map(Text, hanging(label.ljust(margin), text, screen.cells)))
    for name in ("stdout", "stderr"):  # not wrapped: a path is meant to be copied
        if job[name]:
            show(f"  {name:<{margin - 2}}{job[name]}")


def _plan_lines(job: dict[str, Any], now: float) -> list[tuple[str, str]]:
    """Return where and when a waiting job is planned to run, and the next best nodes."""
    plan, walltime = job.get("plan"), job.get("walltime")
    if plan is None:
        return []
    start, end = (seconds(max(0.0, plan[name] - now)) for name in ("start_time", "finish_time"))
    where = f" on {fold(plan['nodes'])}" if plan["nodes"] else ""
    if starts := plan.get("start_within"):
        low, high = (seconds(max(0.0, bound - now)) for bound in starts)
        where += f" ({percent(LEVEL)} between {low} and {high})"
    text = f"starts in {start}{where}, ends in {end}"
    if within := plan["finish_within"]:
        low, high = (seconds(max(0.0, bound - now)) for bound in within)
        text += f" ({percent(LEVEL)} between {low} and {high})"
        latest_start = starts[1] if starts else plan["start_time"]
        if walltime is not None and within[1] - latest_start >= 0.99 * walltime:
            text += f"; it may run for all of its walltime, {seconds(walltime)}"
    if _guessed(job):
        text += "; the end is a guess, because nothing is known of the job"
    if by := plan.get("forecast_by"):
        text += f"; forecast by {by}, as the policy decides when the time has come"
    if promised := plan.get("reserved"):
        text += f"; reserved in {seconds(max(0.0, promised['start_time'] - now))} on {fold(promised['nodes'])}"
    best = plan["next_best"]
    cost = "" if best is None or best["cost_s"] is None else f", {best['cost_s']:+.3g} s"
    next_best = f"{fold(best['nodes'])}{cost}" if best else ""
    return [("planned", text), ("next best", next_best), ("order", plan.get("order") or "")]


def failure_lines(workflow: dict[str, Any]) -> list[str]:
    """Return a line for each failed job of a workflow, with the file of its stderr."""
    return [
        failure(job["id"], ending(job["state"], job["exit_code"], job["signal"], job["reason"]), job["stderr"])
        for job in workflow["jobs"]
        if job["state"] in ("failed", "timeout")
    ]


#: Profiles that are shown without --all.
_MOST_PROFILES = 20


def show_accuracy(jobs: Sequence[ForecastOutcome], starts: Sequence[QueueRecord] = (), *, everything: bool) -> None:
    """Print the accuracy by model, source of profiles, policy and profile.

    Args:
        jobs: completed jobs with their forecasts.
        starts: jobs of the resource manager that have started.
        everything: show all profiles.
    """
    screen, known_jobs = Screen(), known(jobs)
    put_starts(screen, starts)
    if not jobs:
        screen.put("No job with a forecast has completed yet.")
        return
    screen.title(f"{count(len(jobs), 'job')} completed with a forecast, errors of run times")
    for kind in KINDS:
        groups = by(kind, jobs)
        shown = groups if everything else groups[:_MOST_PROFILES]
        if not groups:
            continue
        total = [accuracy("all", known_jobs)] if kind == KINDS[0] and len(groups) > 1 else []
        heads = numbers("JOBS", "MEDIAN", "90 %", "BIAS", "TREND", "INSIDE", "WIDTH")
        screen.named_table([TextColumn(kind.upper()), *heads], list(map(_accuracy_row, (*shown, *total))))
        if more_profiles := len(groups) - len(shown):
            screen.put(Text(f"{count(more_profiles, 'more profile')}: --all", style="dim"))
        screen.put("")
    if any(job.inside is not None for job in known_jobs):
        screen.put(
            f"inside    share of jobs inside their prediction interval; {percent(LEVEL)} is expected",
            "width     longest over shortest run time of the interval, in the median",
        )
        low, high = (f"{100 * share:.0f}" for share in CALIBRATED)
        for group in calibration(jobs):
            which = f"{group.calibrated} of {count(group.groups, group.kind)} with {ENOUGH_JOBS} or more jobs"
            more = f"; {group.below} below" * (group.below > 0) + f"; {group.above} above" * (group.above > 0)
            screen.put(f"reliable  {which}: {low} to {high} % inside{more}")
    if gain := turnaround_gain(jobs):
        _show_gain(screen, gain)
    if disturbed := sum(job.others_share is not None for job in known_jobs):
        text = (
            f"took {percent(MUCH)} or more of the time of {count(disturbed, 'job')}: the errors trigger no guard rail"
        )
        screen.put(*hanging("others    ", f"{text}, and no profile is learned again", screen.cells))
    if assumed := len(jobs) - len(known_jobs):
        screen.put(f"default   {count(assumed, 'job')} without a profile, counted only in the table of profiles")


def _show_gain(screen: Screen, gain: TurnaroundGain) -> None:
    less = gain.turnaround_s / max(gain.plain_turnaround_s, 1e-3) - 1.0
    plain_order = f"in the resource manager's own order {seconds(gain.plain_turnaround_s)} ({100 * less:+.0f} %)"
    screen.put(
        f"{count(gain.jobs, 'placed job')}: mean turnaround {seconds(gain.turnaround_s)}, {plain_order};",
        f"mean bounded slowdown {gain.slowdown:.2f} and {gain.plain_slowdown:.2f}. That order is simulated with the",
        "run times that the jobs had, and without holds.",
    )


def _accuracy_row(group: Accuracy) -> tuple[str, ...]:
    inside = "" if group.inside is None else percent(group.inside)
    return (
        group.name,
        f"{group.jobs:,}",
        times(group.median_factor),
        times(group.high_factor),
        off(group.bias),
        "" if group.trend is None else off(group.trend, "worse", "better"),
        inside,
        "" if group.width is None else times(group.width),
    )
