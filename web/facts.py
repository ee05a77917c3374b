"""The whole service in words, for its pages: its guard rails, its accuracy and its card.

Rule: what is not known is not said, or called unknown. The words are made once for all who look, in a browser or in a
terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..daemon.report.accuracy import Accuracy, accuracy, by, calibration, known, turnaround_gain
from ..daemon.report.start_accuracy import StartAccuracy, start_accuracy
from ..daemon.state.recorded_outcome import ForecastOutcome, QueueRecord
from ..formats.text import clean, count, joules, percent, seconds, short_time, times
from ..simulate.model.plan import LEVEL

#: A name, a text, and the times that belong before it, epoch seconds: none, one, or the ends of an interval.
Fact = tuple[str, str, list[float]]
#: A fact before it is known whether it says something.
Line = tuple[str, Any, Sequence[float | None]]
#: A title, the headings of columns, rows of as many texts, and a sentence below; without rows, the sentence says why.
Table = dict[str, Any]
_RUN_TIMES, _STARTS, _CARD = "Errors of run times", "Errors of starts", "The card"
_MEASURES = {"waiting": "Mean wait", "turnaround": "Mean turnaround", "slowdown": "Mean bounded slowdown"}


def service_facts(about: Mapping[str, Any]) -> list[Fact]:
    """Return the guard rails of a board's `about`."""
    guard, limit = about.get("guard") or {}, about.get("limit") or {}
    forecasts, forecast_time = about.get("forecasts") or {}, about.get("forecast_time") or None
    how = "by the resource manager's own rules" if forecasts.get("jobs") else ""
    if not how and forecasts.get("why_not"):
        how = f"as under EASY: {forecasts['why_not']}"
    factor = guard.get("median_factor")
    errors = "not enough jobs yet"
    if factor is not None:
        errors = f"a factor of {factor:.2f} in the median (the guard acts above {guard['bound']:.2f})"
    model = " ".join(filter(None, (guard.get("model"), guard.get("source") and f"on {guard['source']} profiles")))
    watts = "" if limit.get("watts") is None else f", {limit['watts']:,.0f} W"
    lines: list[Line] = [
        ("Forecasts of starts", how or ("" if forecast_time else "none yet"), [forecast_time]),
        (_RUN_TIMES, errors, []),
        ("Contention model", model, []),
        ("Not placed now because", about.get("blocked") or "nothing keeps pilotfish from it", []),
        ("Not ready because", about.get("not_ready") or "", []),
        ("Limit of power", f"{limit['kind']}{watts}" if limit else "", []),
    ]
    return _known(lines)


def job_facts(reply: Mapping[str, Any]) -> list[Fact]:
    """Return what is known of a job, of the reply to `explain`."""
    job = reply["job"]
    plan = job.get("plan") or {}
    lines: list[Line] = [
        ("State", job.get("state"), []),
        ("Name", job.get("name"), []),
        ("User", reply.get("owner"), []),
        ("Partition", job.get("partition"), []),
        ("Submitted", "", [reply.get("submit_time")]),
        ("Waits for", ", ".join(reply.get("after") or ()), []),
        ("Why it waits", reply.get("waits"), []),
        ("Expected start", "", [plan.get("start_time")]),
        ("with 80 % between", "", plan.get("start_within") or []),
        ("The resource manager says", "", [job.get("manager_start_time")]),
        ("Expected end", "", [plan.get("finish_time") or job.get("forecast_finish_time")]),
        ("Started", "", [job.get("start_time")]),
        ("Ended", "", [job.get("finish_time")]),
        ("Nodes", ", ".join(plan.get("nodes") or job.get("nodes") or ()), []),
        ("Time limit", short_time(job["walltime"]) if job.get("walltime") else "", []),
        ("Group", reply.get("group"), []),
        ("Start not known", job.get("unknown"), []),
    ]
    return _known(lines)


def _known(lines: Iterable[Line]) -> list[Fact]:
    """Return the lines that say something."""
    facts = ((name, clean(str(text or "")), [time for time in times if time]) for name, text, times in lines)
    return [fact for fact in facts if fact[1] or fact[2]]


def accuracy_tables(jobs: Sequence[ForecastOutcome], starts: Sequence[QueueRecord]) -> list[Table]:
    """Return how good the forecasts were, of jobs that have ended and of jobs that have begun. O(n log n)."""
    measured = known(jobs)
    groups = [accuracy("all", measured)] if measured else []
    groups += by("source", jobs) if groups else []
    run_times = {
        "title": _RUN_TIMES,
        "columns": ["Profiles", "Jobs", "Median", "90 %", "Bias", "Inside"],
        "rows": [_run_time_row(group) for group in groups],
        "text": _run_time_text(jobs) if groups else "No job with a forecast has completed yet.",
    }
    accuracies = start_accuracy(starts)
    begun = {
        "title": _STARTS,
        "columns": ["Forecast by", "Jobs", "Within 1 min", "Within 10 min", "Median", "Inside"],
        "rows": [_start_row(group) for group in accuracies],
        "text": "The first forecast of each job counts." if accuracies else "No job with a forecast has begun yet.",
    }
    return [run_times, begun]


def _run_time_row(group: Accuracy) -> list[str]:
    numbers = times(group.median_factor), times(group.high_factor), times(group.bias)
    return [group.name, f"{group.jobs:,}", *numbers, "" if group.inside is None else percent(group.inside)]


def _run_time_text(jobs: Sequence[ForecastOutcome]) -> str:
    text = f"Inside is the share of jobs inside their interval; {percent(LEVEL)} is expected."
    counts = [f"{group.calibrated} of {count(group.groups, group.kind)}" for group in calibration(jobs)]
    if counts:
        text += f" Reliable: {', '.join(counts)}."
    if gain := turnaround_gain(jobs):
        less = gain.turnaround_s / max(gain.plain_turnaround_s, 1e-3) - 1.0
        text += (
            f" {count(gain.jobs, 'placed job')}: mean turnaround {seconds(gain.turnaround_s)}, in the resource"
            f" manager's own order {seconds(gain.plain_turnaround_s)} ({100 * less:+.0f} %)."
        )
    return text


def _start_row(group: StartAccuracy) -> list[str]:
    maker = {"pilotfish": "pilotfish", "manager": "the resource manager"}[group.by]
    name = f"{maker}, where both are known" if group.compared else maker
    inside = "" if group.inside is None else percent(group.inside)
    return [name, f"{group.jobs:,}", *map(percent, group.within), short_time(group.median_s), inside]


def card_table(reply: Mapping[str, Any]) -> Table:
    """Return the newest card: what the policy gave or would have given next to the twin of the resource manager.

    Args:
        reply: of the request `card`.
    """
    card, table = reply.get("card"), {"title": _CARD, "columns": ["", "Recorded", "Twin", "pilotfish", "95 %"]}
    if card is None:
        return table | {"rows": [], "text": f"There is no card: {reply.get('why_not') or 'unknown'}."}
    rows = []
    for name, title in _MEASURES.items():
        words = (lambda value: f"{value:,.2f}") if name == "slowdown" else short_time
        rows.append(_card_row(title, card["measures"][name]["mean"], words))
    rows.append(_card_row("Utilisation", card["utilisation"], percent))
    rows.append(_card_row("Energy", card["energy_j"], joules))
    handed = card["handed"]
    text = (
        f"Of {card['days']:,.1f} days with {card['judged']}: {card['verdict']}. {handed['seen']:,} jobs seen, "
        f"{handed['compared']:,} compared, {handed['placed']:,.0f} placed. The last column is the 95 % interval of "
        "pilotfish minus twin; a time below 0 is less waiting."
    )
    return table | {"rows": rows, "text": clean(text), "time": reply["time"]}


def _card_row(title: str, sides: Mapping[str, Any] | None, words: Any) -> list[str]:
    if sides is None:
        return [title, "unknown", "", "", ""]
    values = ["unknown" if sides[side] is None else words(sides[side]) for side in ("recorded", "twin", "pilotfish")]
    interval = "unknown"
    if sides["low"] is not None and sides["high"] is not None:
        interval = " to ".join(f"{'-' * (bound < 0)}{words(abs(bound))}" for bound in (sides["low"], sides["high"]))
    return [title, *values, interval]
