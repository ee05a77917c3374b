"""The card of a dry run for people, and the same numbers as a document.

Rule: it fits 80 columns. A gain is what users save, above 0, in the words of the card; in the document a difference is
pilotfish minus twin. What is not known is "unknown".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...formats.text import clean, count, joules, percent
from ...simulate.slurm.busy_periods import WAITED_S
from ...simulate.slurm.site_score import GAIN, LOSS, SAME, SMALLER, UNCLEAR, Measure, Sides
from ..output.manager_queue import starts_table
from ..output.text import Screen, TextColumn, class_place, hanging, numbers
from ..output.waits import MOST_CLASSES, show_site, show_unknown

if TYPE_CHECKING:
    from ...simulate.slurm.site_score import ClassScore, Moved, SiteScore
    from ...simulate.slurm.start_delay import StartDelay
    from .card import Card
    from .evidence import Evidence

Words = Callable[[float], str]
#: Days beyond which no number is named.
_LONGEST_DAYS = 365.0
_TITLES = {"waiting": "waiting", "turnaround": "turnaround", "slowdown": "slowdown"}
_COSTS = ("running_s", "cpu_s", "requests")
#: Least jobs of a class that is named as a winner or a loser, and how many are named.
_LEAST_JOBS, _MOST_NAMES = 5, 5
#: Groupings whose classes have an order.
_ORDERED = ("nodes", "CPUs", "limit, min")
#: Groupings in the order of the card, and what they are called there.
_GROUPS = {
    "user": "user", "partition": "partition", "nodes": "nodes", "CPUs": "CPUs", "limit, minutes": "limit, min",
    "QOS": "QOS", "account": "account",
}  # fmt: skip


def show_card(screen: Screen, card: Card, *, everything: bool) -> None:
    """Print the card.

    Args:
        screen: where to print.
        card: its numbers.
        everything: show all classes of jobs.
    """
    score = card.score
    show_site(screen, card.name, card.site)
    for title, text in (*_about(card), ("jobs", _jobs(card))):
        screen.put(*hanging(f"{title:<11}", text, screen.cells))
    screen.put("")
    _show_measures(screen, card)
    screen.put("")
    for title, text in (*verdict_lines(card), *_of_machine(card)):
        screen.put(*hanging(f"{title:<11}", text, screen.cells))
    groups = dict(score.groups)
    for title, words in _GROUPS.items():
        if len(groups.get(title, ())) > 1 and (everything or title not in ("QOS", "account")):
            _show_classes(screen, words, groups[title], everything)
    _show_evidence(screen, card)
    screen.put("", "Assumptions:")
    for text in assumptions(card):
        screen.put(*hanging("- ", text, screen.cells))
    show_unknown(screen, card.site.unknown)


def card_document(card: Card) -> dict[str, Any]:
    """Return the numbers of the card; its keys stay as they are."""
    score, evidence = card.score, card.evidence
    columns = asdict(score)
    del columns["effect"]
    return {
        "site": card.name,
        "policy": card.policy.text,
        "judged": card.policy.judged,
        "reason": card.policy.reason,
        "partitions": list(card.partitions),
        "hold_s": card.handling.hold_s,
        "wide_nodes": card.handling.wide_nodes,
        "start_delay_s": card.handling.start_delay.mean_s,
        "start_delay_within_s": card.handling.start_delay.within_s,
        "start_delay_source": card.handling.start_delay.source,
        "run_times": card.run_times,
        "predicted": card.expected,
        **columns,
        "measures": {one.pop("name"): one for one in columns["measures"]},
        "groups": {title: list(classes) for title, classes in columns["groups"]},
        "verdict": score.headline.verdict,
        "forecasts": None
        if evidence is None
        else {
            "starts": [asdict(one) for one in evidence.starts],
            "run_times": None if evidence.run_times is None else asdict(evidence.run_times),
        },
        "contention": None if evidence is None or evidence.contention is None else asdict(evidence.contention),
        "cost": dict.fromkeys(_COSTS) if evidence is None else {name: getattr(evidence, name) for name in _COSTS},
        "own_requests": card.requests,
        "assumptions": assumptions(card),
        "unknown": list(card.site.unknown),
    }


def _about(card: Card) -> list[tuple[str, str]]:
    where = f"partitions {', '.join(card.partitions)}" if card.partitions else "all partitions"
    by = "time limits" if card.run_times == "walltime" else _predicted(card.expected)
    how = f"{card.policy.judged}, by {by}; {where}; held {time_words(card.handling.hold_s)} at most"
    if card.policy.is_itself:
        return [("policy", how)]
    return [
        ("policy", f"{card.policy.text}; not judged, because {card.policy.reason}"),
        ("instead", how),
        ("", f"the numbers are those of `policy: {card.policy.judged}`, and say nothing of {card.policy.text}"),
    ]


def _predicted(share: float | None) -> str:
    return f"predicted run times ({percent(share or 0.0)} of the jobs; time limits for the others)"


def _jobs(card: Card) -> str:
    handed = card.score.handed
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in handed.left.items())
    return "; ".join((
        f"{handed.seen:,} seen, {handed.compared:,} that started on all sides",
        f"{handed.placed:,.0f} would have been placed, {handed.released:,.0f} released before (see the assumptions)",
        f"left to {'the resource manager' if card.site.scheduler else 'Slurm'}: {reasons or 'none'}",
    ))  # fmt: skip


def _show_measures(screen: Screen, card: Card) -> None:
    rows, score = list[tuple[str, ...]](), card.score
    for measure in score.measures:
        words: Words = slowdown_words if measure.name == "slowdown" else time_words
        for part, sides in (("mean", measure.mean), ("median", measure.median), ("95 %", measure.p95)):
            title = f"{_TITLES[measure.name]}, {part}" if part == "mean" else f"  {part}"
            rows.append(_row(title, sides, words))
    contention = card.evidence and card.evidence.contention
    recorded = slowdown_words(contention.actual) if contention else "unknown"
    rows.append(("contention, mean", recorded, *["unknown"] * 2, ""))
    for title, machine, words in (
        ("makespan, mean", score.makespan, time_words), ("utilisation", score.utilisation, percent),
        ("energy", score.energy_j, joules),
    ):  # fmt: skip
        rows.append((title, *["unknown"] * 3, "") if machine is None else _row(title, machine, words))
    heads = numbers("RECORDED", "TWIN", "PILOTFISH", "DIFFERENCE, 95 %")
    screen.table([TextColumn(""), *heads], rows)


def _of_machine(card: Card) -> list[tuple[str, str]]:
    """Return what contention, makespan and energy are of, or why they are not known."""
    busy, contention = card.score.busy_periods, card.evidence and card.evidence.contention
    run_times = "replays take the recorded run times"
    if contention:
        text = (
            f"run time / run time alone, of {count(contention.jobs, 'job')} with a measured or given profile; forecast "
            f"{slowdown_words(contention.forecast)}; unknown for twin and pilotfish, because {run_times}"
        )
    elif card.evidence is None:
        text = f"unknown: no journal of a service was read (--config), and {run_times}"
    else:
        text = f"unknown: no job with a measured or given profile has completed, and {run_times}"
    waited = f"waited {time_words(WAITED_S)} or longer"
    makespan = f"from the first submission to the last end of {count(busy, 'busy period')}, in which jobs {waited}"
    lines = [("contention", text), ("makespan", makespan if busy else f"unknown: no job {waited}")]
    if card.score.energy_j is None:
        lines.append(("energy", "unknown: accounting has no energy of jobs (AcctGatherEnergyType in slurm.conf)"))
    return lines


def _row(title: str, sides: Sides, words: Words) -> tuple[str, ...]:
    values = ["unknown" if value is None else words(value) for value in (sides.recorded, sides.twin, sides.pilotfish)]
    return (title, *values, interval_words(sides, words))


def interval_words(sides: Sides, words: Words) -> str:
    """Return the interval of pilotfish minus twin as `-3.1 min to -20 s`."""
    if sides.low is None or sides.high is None:
        return "unknown"
    return f"{_signed(sides.low, words)} to {_signed(sides.high, words)}"


def _signed(value: float, words: Words) -> str:
    text = words(abs(value))
    if not any(digit in text for digit in "123456789"):
        return "0"
    return ("-" if value < 0 else "+") + text


def time_words(value: float) -> str:
    """Return seconds, 0 or more, in their own unit: `45 s`, `5.2 min`, `3.1 h`, `2.4 d`."""
    size, unit = next((pair for pair in _UNITS if value >= 1.5 * pair[0]), (1.0, "s"))
    number = value / size
    return f"{number:,.{0 if number >= 99.5 or (unit == 's' and number >= 9.5) or value == 0 else 1}f} {unit}"


_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def slowdown_words(value: float) -> str:
    """Return a slowdown as `5.23`."""
    return f"{value:,.2f}"


def verdict_lines(card: Card) -> list[tuple[str, str]]:
    """Return the verdict, and who wins and loses, as titles and sentences."""
    score = card.score
    lines = [("" if place else "verdict", verdict_words(one)) for place, one in enumerate(score.measures)]
    lines.append(("own error", _own_error(score)))
    lines += [("later", _moved(score.later, "later")), ("earlier", _moved(score.earlier, "earlier"))]
    lines += [("winners", _named(score, -1.0)), ("losers", _named(score, 1.0))]
    period = f"{score.days:.{1 if score.days < 10 else 0}f} days"
    lines.append(("intervals", f"95 %, of a bootstrap over {period} and {count(score.replays, 'replay')} of each side"))
    return [(title, text) for title, text in lines if text]


def verdict_words(measure: Measure) -> str:
    """Return the verdict on a measure as a sentence."""
    mean, title = measure.mean, _TITLES[measure.name]
    words = slowdown_words if measure.name == "slowdown" else time_words
    difference = mean.difference
    by = f"{_signed(difference, words)}{_share(difference, mean.twin)}"
    if measure.verdict == SAME:
        return f"{title}: no difference; no job starts at another time"
    if measure.verdict in (GAIN, LOSS):
        return f"{title}: {measure.verdict}, {by} in the mean, 95 % {interval_words(mean, words)}"
    if measure.verdict == SMALLER:
        return f"{title}: {by}, {SMALLER} ({_signed(mean.error or 0.0, words)})"
    return f"{title}: {by}, {UNCLEAR}: {_more_days(measure.days_more)}"


def _more_days(days: float | None) -> str:
    if days is None:
        return "the jobs lie in too few days for an interval"
    if days > _LONGEST_DAYS:
        return "more than a year would show such a difference"
    return f"about {count(max(1, round(days)), 'more day')} like these would show such a difference"


def _share(difference: float, before: float) -> str:
    return f" ({100 * difference / before:+.1f} %)" if before > 0 else ""


def _own_error(score: SiteScore) -> str:
    mean = score.headline.mean
    if mean.error is None:
        return "unknown"
    near = ", ".join(
        f"{percent(share)} within {words}" for share, words in zip(score.near, ("10 s", "1 min", "10 min"), strict=True)
    )
    return f"the twin's mean wait is {_signed(mean.error, time_words)} from the record; starts: {near}"


def _moved(moved: Moved, word: str) -> str:
    if not moved.jobs:
        return f"no job starts a minute {word}"
    text = (
        f"{count(moved.jobs, 'job')} would have started a minute or more {word}, {time_words(moved.mean_s)} in the "
        f"mean, 95 % at most {time_words(moved.p95_s)}"
    )
    first = moved.most[0]
    by_s = abs(first.wait.difference)
    return f"{text}; most: {clean(first.id)} of {clean(first.user)}, {time_words(by_s)}"


def _named(score: SiteScore, sign: float) -> str:
    """Return the users who win (-1) or lose (1) most, beyond the noise."""
    moved = [
        one for one in dict(score.groups)["user"]
        if one.jobs >= _LEAST_JOBS and one.wait.low is not None and one.wait.high is not None
        and not one.wait.low <= 0.0 <= one.wait.high and sign * one.wait.difference > 0
    ]  # fmt: skip
    moved.sort(key=lambda one: -abs(one.wait.difference))
    names = [f"{clean(one.name)} {_signed(one.wait.difference, time_words)}" for one in moved[:_MOST_NAMES]]
    more = ["..."] * (len(moved) > _MOST_NAMES)
    return f"{count(len(moved), 'user')} beyond the noise{': ' * bool(names)}{', '.join([*names, *more])}"


def _show_classes(screen: Screen, title: str, classes: Sequence[ClassScore], everything: bool) -> None:
    """Print the waits of classes of jobs: classes of people from who wins most to who loses most."""
    shown, more = list(classes), ""
    if title in ("user", "account"):
        shown.sort(key=lambda one: one.wait.difference)
        if not everything and len(shown) > MOST_CLASSES:
            shown = [one for one in shown if one.jobs >= _LEAST_JOBS] or shown
            shown = [*shown[: MOST_CLASSES // 2], *shown[MOST_CLASSES // 2 :][-MOST_CLASSES // 2 :]]
            more = f"who win most and lose most, of {len(classes):,}: --all shows all"
    elif title in _ORDERED:
        shown.sort(key=lambda one: class_place(one.name))
    elif not everything and len(shown) > MOST_CLASSES:
        shown, more = shown[:MOST_CLASSES], f"and {len(classes) - MOST_CLASSES:,} more with fewer jobs: --all"
    rows = [(one.name or "none", f"{one.jobs:,}", *_row("", one.wait, time_words)[1:]) for one in shown]
    screen.put("")
    heads = numbers("JOBS", "RECORDED", "TWIN", "PILOTFISH", "DIFFERENCE, 95 %")
    screen.table([TextColumn(f"WAIT BY {title}".upper(), most=20), *heads], rows)
    if more:
        screen.put(more)


def _show_evidence(screen: Screen, card: Card) -> None:
    """Print the forecasts of the service, and what it cost."""
    evidence = card.evidence
    screen.put("")
    if evidence is None:
        screen.put(*hanging(f"{'forecasts':<11}", "unknown: no journal of a service was read (--config)", screen.cells))
    elif not evidence.starts:
        screen.put(*hanging(f"{'forecasts':<11}", "none of a start has come true yet", screen.cells))
    else:
        starts_table(screen, evidence.starts)
    if evidence is not None and evidence.run_times is not None:
        times = evidence.run_times
        inside = "" if times.inside is None else f"; {percent(times.inside)} inside their interval of 80 %"
        text = f"of {count(times.jobs, 'job')}, {times.median_factor:.2f}x off in the median{inside}"
        screen.put(*hanging(f"{'run times':<11}", text, screen.cells))
    requests = f"; {count(card.requests, 'request')} for this card" if card.requests else ""
    screen.put(*hanging(f"{'cost':<11}", f"{_cost(evidence)}{requests}", screen.cells))


def _cost(evidence: Evidence | None) -> str:
    """Return what the service has cost, as a sentence."""
    if evidence is None or evidence.running_s is None or evidence.cpu_s is None:
        return "requests to Slurm: unknown; CPU time: unknown"
    running_s = max(evidence.running_s, 1.0)
    requests = "unknown"
    if evidence.requests is not None:
        requests = f"{evidence.requests:,}, one each {time_words(running_s / max(evidence.requests, 1))}"
    share = f"{100.0 * evidence.cpu_s / running_s:.2g} % of a core"
    return f"in {time_words(running_s)}, requests to Slurm: {requests}; CPU time: {time_words(evidence.cpu_s)}, {share}"


def _delay_words(delay: StartDelay) -> str:
    low, high = map(time_words, delay.within_s)
    return time_words(delay.mean_s) + f" ({low} to {high} for 80 % of the jobs)" * (low != high)


def assumptions(card: Card) -> list[str]:
    """Return what the card rests on, as sentences."""
    delay = card.handling.start_delay
    return [
        "the same jobs, submissions, run times and cancellations on all sides; users would not have acted otherwise",
        "held jobs stand in the order of the policy, behind all others; while another job waits in their partition, "
        "they are released",
        f"{card.site.scheduler} starts them, first come, first served, without limits and shares"
        if card.site.scheduler
        else "Slurm's own passes start them, with all its limits, shares and reservations",
        "jobs share nodes as on the twin; the service places each job alone on its nodes, so that where small jobs "
        "share nodes, they wait longer than shown",
        f"a held job starts {_delay_words(delay)} after its submission, or after its nodes are free, and meanwhile no "
        f"other job has them; {delay.source}",
        "a job that is released, or still waits at the end of its hold, stands where Slurm puts it; its age counts "
        "from then on",
    ]
