"""The card of a canary: how the jobs that were handed over fared against their control group, which Slurm placed alone.

Rule: the numbers are of what really happened, and each has its interval. What is not shown yet is said to be so, with
the number of jobs that would show it. A difference is canary minus control: below 0 is a gain.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...formats.text import clean, count
from ...simulate.errors import ConfigError
from ..output.text import Screen, TextColumn, hanging, numbers
from .card_text import slowdown_words, time_words

if TYPE_CHECKING:
    from ...daemon.canary.comparison import GroupComparison
    from ...daemon.config import DaemonConfig
    from ...simulate.results.group_contrast import GroupContrast

#: Jobs beyond which no number is named.
_MOST = 1_000_000
#: What the comparison rests on.
ASSUMPTIONS = (
    "the groups were drawn at random, by a keyed hash of the job, or of the first job of a chain of dependencies",
    "a chain counts once; the groups are compared within partition, size, time limit, quarter of the day and share",
    "a job that still waits or runs counts with its time so far, or until the service stopped; slowdown and run time "
    "are of jobs that have ended",
    "both groups share the machine: what one gains from the other counts twice, what both gain does not show",
    "intervals of 95 % are of the groups drawn again and again, and hold at all looks at once, however often you look",
    "more jobs: until this difference, if it is real, shows with 80 %",
)


def read_comparison(service: DaemonConfig, since: float | None, now: float) -> GroupComparison:
    """Return the comparison of the groups of a service. Raises ConfigError: it has no canary, and never had.

    Args:
        service: its configuration.
        since: jobs submitted no earlier, epoch seconds; None: since the canary began.
        now: the present, epoch seconds.
    """
    from ...daemon.canary.comparison import compare
    from ...daemon.canary.groups import KEPT, CanaryState
    from ...daemon.report import running_cost
    from ...daemon.state.journal import Journal
    from ...trust import as_account, owner_of

    path = service.journal
    if not path.is_file():
        raise ConfigError(str(path), "", "there is no such file", "journal.sqlite in the state_dir of a daemon")
    with as_account(owner_of(path)), closing(Journal(path, in_memory=True)) as journal:
        begin = CanaryState.of(journal.kept(KEPT)).since
        members = journal.members(since=begin if since is None else max(begin, since))
        until = journal.kept(running_cost.KEPT).get("until")
    if not members and service.handover.canary is None:
        raise ConfigError(
            str(path), "handover", "no job has a group", "a live daemon with `handover: {share: 10%}`, and jobs"
        )
    if isinstance(until, float) and now - until > 2.0 * running_cost.EVERY_S:  # the service has stopped
        now = min(now, max([until, *(one.finish_time or one.start_time or one.submit_time for one in members)]))
    return compare(members, now)


def show_comparison(screen: Screen, comparison: GroupComparison) -> None:
    """Print the card of a canary."""
    for title, text in _about(comparison):
        screen.put(*hanging(f"{title:<11}", text, screen.cells))
    screen.put("")
    rows = [_row(name, contrast) for name, contrast in comparison.measures.items()]
    screen.table([TextColumn(""), *numbers("CONTROL", "CANARY", "DIFFERENCE", "95 %", "JOBS")], rows)
    screen.put("")
    for place, (name, contrast) in enumerate(comparison.measures.items()):
        title = "" if place else "verdict"
        words = f"{name}: {verdict_of(name, contrast, comparison.hold_s)}"
        screen.put(*hanging(f"{title:<11}", words, screen.cells))
    screen.put("", "Assumptions:")
    for text in ASSUMPTIONS:
        screen.put(*hanging("- ", text, screen.cells))


def comparison_document(comparison: GroupComparison) -> dict[str, Any]:
    """Return the numbers of the card; its keys stay as they are."""
    document = asdict(comparison)
    for name, contrast in comparison.measures.items():
        if contrast is not None:
            derived = {"difference": contrast.difference, "significant": contrast.is_significant, "more": contrast.more}
            document["measures"][name] |= derived | {"smallest": contrast.smallest}
    return document | {"harm": comparison.harm, "assumptions": list(ASSUMPTIONS)}


def verdict_of(name: str, contrast: GroupContrast | None, hold_s: float = 0.0) -> str:
    """Return what a difference says, in words.

    Args:
        name: of the measure.
        contrast: the difference; None: nothing can be compared.
        hold_s: of the control group, see `GroupComparison`; a gain in waits may be so much too large.
    """
    if contrast is None:
        return "not enough evidence yet: no stratum has jobs of both groups"
    if contrast.low is None or contrast.high is None:
        return "not enough evidence yet: too few jobs in one of the groups for an interval"
    words = slowdown_words if name == "slowdown" else time_words
    if contrast.is_significant:
        if name in ("waiting", "turnaround") and -hold_s <= contrast.high <= 0.0:
            return "not enough evidence yet: the interval holds gains that the hold of the control group explains"
        verdict = "gain" if contrast.difference < 0.0 else "loss"
        return f"{verdict}, significant: {words(abs(contrast.difference))} in the mean"
    more = contrast.more
    if more is None:
        return "no difference"
    number = f"more than {_MOST:,} more jobs" if more > _MOST else f"about {count(more, 'more job')}"
    return f"not enough evidence yet: {number} would show such a difference"


def _about(comparison: GroupComparison) -> list[tuple[str, str]]:
    sides = [
        f"{number:,} {side} ({comparison.waiting[side]:,} waiting, {comparison.running[side]:,} running)"
        for side, number in comparison.jobs.items()
    ]
    outside = [
        f"{count(comparison.not_drawn, 'job')} whose group was not drawn" if comparison.not_drawn else "",
        f"{count(comparison.unknown, 'job')} that ended in an unknown way" if comparison.unknown else "",
    ]
    contrast = comparison.measures["turnaround"]
    if contrast is not None and contrast.left_out:
        outside.append(f"{count(contrast.left_out, 'job')} in strata with one group only")
    lines = [("jobs", ", ".join(sides)), ("left out", ", ".join(filter(None, outside)))]
    if comparison.hold_s:
        hold = f"{time_words(comparison.hold_s)} in the mean over the control group, until each group was drawn"
        lines.append(("held", f"{hold}; a gain in waits and turnaround may be so much too large"))
    return [(title, clean(text)) for title, text in lines if text]


def _row(name: str, contrast: GroupContrast | None) -> tuple[str, ...]:
    if contrast is None:
        return (name, *["unknown"] * 4, "0")
    words = slowdown_words if name == "slowdown" else time_words

    def signed(value: float) -> str:
        return ("-" if value < 0.0 else "+") + words(abs(value))

    interval = "unknown"
    if contrast.low is not None and contrast.high is not None:
        interval = f"{signed(contrast.low)} to {signed(contrast.high)}"
    values = words(contrast.control), words(max(0.0, contrast.canary)), signed(contrast.difference)
    return (name, *values, interval, f"{sum(contrast.units):,}")
