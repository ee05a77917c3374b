"""Output on the resource manager's own queue: when its jobs will start, and how well that was forecast.

Rule: an unknown start has its reason; our forecast and that of the resource manager are next to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from ...daemon.report.start_accuracy import StartAccuracy, start_accuracy
from ...daemon.state.recorded_outcome import QueueRecord
from ...formats.text import count, percent, short_time, times
from .text import Screen, TextColumn, hanging, numbers

#: Jobs that are shown without --all.
_MOST_JOBS = 30
_COLUMNS = (*numbers("JOB"), TextColumn("NAME"), TextColumn("USER", most=12),
            *numbers("STARTS IN", "SOONEST", "LATEST", "RJMS SAYS", "ENDS IN"))  # fmt: skip
#: Jobs that are named with the reason why their start is not known.
_NAMED = 5
_BY = {"pilotfish": "pilotfish", "manager": "resource manager"}
#: What is so old is shown with its age, seconds.
_OLD_S = 1.0


def age_of(reply: dict[str, Any], name: str = "seen", verb: str = "seen") -> str:
    """Return how old what a reply shows is, after a comma; "" if it is of now.

    Args:
        reply: of the daemon, or of a client, which asks the resource manager itself.
        name: of the time in the reply.
        verb: says what happened then.
    """
    age_s = reply["time"] - reply[name] if reply.get(name) else 0.0
    return f", {verb} {short_time(age_s) if age_s >= 3600 else f'{age_s:.0f} s'} ago" if age_s >= _OLD_S else ""


def put_queue(screen: Screen, reply: dict[str, Any], *, everything: bool) -> None:
    """Print the jobs of the reply to `status` that wait in the resource manager and are not handed over.

    Args:
        screen: where to.
        reply: of the daemon, or of a client with the same shape.
        everything: show all.
    """
    jobs = reply.get("queue", ())
    if not jobs:
        return
    shown, total = jobs if everything else jobs[:_MOST_JOBS], len(jobs) + reply["queue_left_out"]
    forecast = age_of(reply, "forecast_time", "forecast")
    title = f"{count(total, 'job')} not handed over, in the resource manager's order{forecast}"
    screen.put("", Text(title, style="bold"))
    screen.table(_COLUMNS, [_row(job, reply["time"]) for job in shown])
    if source := _source(reply.get("forecasts", {}), total):
        screen.put(*hanging("starts ", source, screen.cells))
    for reason, ids in _reasons(shown).items():
        more_jobs = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
        screen.put(*hanging("?  ", f"{reason}: {', '.join(ids[:_NAMED])}{more_jobs}", screen.cells))
    if array := next((job for job in shown if job["tasks"] > 1), None):
        text = f"{count(array['tasks'], 'task waits', 'tasks wait')}; the first starts, and the last ends, as shown"
        screen.put(*hanging(f"{_name(array)}: ", text, screen.cells))
    if more := len(jobs) - len(shown):
        screen.put(Text(f"{more:,} more: --all", style="dim"))


def _source(forecasts: dict[str, Any], jobs: int) -> str:
    """Return what the starts come from; "" where the resource manager has no rules that are known."""
    if forecasts.get("why_not"):
        return f"as in a replay under EASY, not by the resource manager's own rules: {forecasts['why_not']}"
    if not forecasts.get("jobs"):
        return ""
    others = f" ({forecasts['jobs']} of {jobs}, the others as in a replay under EASY)" * (forecasts["jobs"] < jobs)
    left_out = count(len(forecasts["unfollowed"]), "rule")
    return f"by the resource manager's own rules{others}{f'; {left_out} left out' * bool(forecasts['unfollowed'])}"


def _row(job: dict[str, Any], now: float) -> tuple[str, ...]:
    plan, manager_start = job["plan"], job["manager_start_time"]
    times = [None] * 4 if plan is None else [plan["start_time"], *plan["start_within"], plan["finish_time"]]
    start, soonest, latest, end = ("" if at is None else short_time(max(0.0, at - now)) for at in times)
    start = start or "?"
    manager = "" if manager_start is None else short_time(max(0.0, manager_start - now))
    return (
        _name(job),
        job["name"],
        plain_name(job["owner"]),
        start,
        soonest,
        latest,
        manager,
        end,
    )


def plain_name(owner: str | None) -> str:
    """Return the name of a user that is shown as `ada (uid 1000)`."""
    return (owner or "").partition(" (uid ")[0]


def _name(job: dict[str, Any]) -> str:
    """Return the id of a job, of an array with the number of tasks that wait."""
    return str(job["id"]) if job["tasks"] == 1 else f"{job['id']}[{job['tasks']:,}]"


def _reasons(jobs: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the ids of the jobs whose start is not known, by the reason."""
    ids_of: dict[str, list[str]] = {}
    for job in jobs:
        if job["unknown"]:
            ids_of.setdefault(job["unknown"], []).append(_name(job))
    return ids_of


def put_starts(screen: Screen, records: Sequence[QueueRecord]) -> None:
    """Print how well the starts of the resource manager's jobs were forecast."""
    groups = start_accuracy(records)
    if not groups:
        return
    screen.title(f"{count(len(records), 'job')} of the resource manager started, errors of their starts")
    starts_table(screen, groups)
    widths = [group.width for group in groups if group.width is not None]
    screen.put(
        "1 min     share of starts within a minute of the first forecast",
        *(
            f"inside    intervals that were {times(width)} as wide as the wait was long, in the median"
            for width in widths
        ),
        "compared  by the first snapshot that has both forecasts of a start",
        "Of a job that is handed over, the start in the daemon's plan counts, not the",
        "end of its hold. A dry run makes no start, so such a job has no forecast here.",
        "",
    )


def starts_table(screen: Screen, groups: Sequence[StartAccuracy]) -> None:
    """Print a row for each kind of forecast of starts."""
    heads = numbers("JOBS", "1 MIN", "10 MIN", "MEDIAN", "BIAS", "INSIDE")
    screen.named_table([TextColumn("FORECAST BY"), *heads], [_accuracy_row(group) for group in groups])


def _accuracy_row(group: StartAccuracy) -> tuple[str, ...]:
    bias = f"{short_time(abs(group.bias_s))} {'late' if group.bias_s >= 0.0 else 'early'}"
    return (
        _BY[group.by] + ", compared" * group.compared,
        f"{group.jobs:,}",
        *map(percent, group.within),
        short_time(group.median_s),
        bias,
        "" if group.inside is None else percent(group.inside),
    )
