"""Tables of waiting times for people: a replay of a site next to its record.

Rule: a difference is the second side minus the first. What is not known of a site, or not followed, ends the report.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...formats.text import clean, count, decimals, fit, percent
from ...simulate.slurm.job_columns import SiteJobs
from ...simulate.slurm.printed_numbers import NEAR_FACTOR, NEAR_SHARE
from .text import Screen, TextColumn, hanging, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...simulate.slurm.printed_numbers import PrintedChecks
    from ...simulate.slurm.site import Site
    from ...simulate.slurm.site_comparison import Agreement, Figures, Pair

#: Classes of a grouping that are shown.
MOST_CLASSES = 8


def show_agreement(
    screen: Screen, name: str, site: Site, result: Agreement, repeats: int, checks: PrintedChecks | None = None
) -> None:
    """Print how far replays of a site are from its record.

    Args:
        screen: where to print.
        name: of the site.
        site: the site.
        result: the comparison.
        repeats: number of replays, 1 or more.
        checks: how far priorities and shares are from what the site's commands printed; None: it has none.
    """
    show_site(screen, name, site)
    replays = "replayed" if repeats == 1 else f"{repeats} replays"
    waits = result.waits
    rows = [_figures("recorded", waits.first), _figures(replays, waits.second)]
    screen.table([TextColumn(f"WAITING OF {waits.jobs:,} JOBS"), *numbers("MEAN s", "MEDIAN s", "95 % s")], rows)
    screen.put("")
    near = ", ".join(
        f"{percent(share)} within {words}" for share, words in zip(result.near, ("10 s", "60 s", "10 min"), strict=True)
    )
    spread = result.spread_s
    spread_words = "" if spread is None else f"; the means of the replays spread by {seconds(spread)} s (sd)"
    lines = [
        ("mean wait", f"{difference(waits)}{spread_words}"),
        ("a job's start", f"{seconds(result.difference_s)} s off in the mean; {near}"),
        ("backfilled", _sides(result.backfilled)),
        ("utilisation", _sides(result.utilisation)),
        *_printed(checks),
        ("left out", _left_out(result)),
    ]
    for title, text in lines:
        if text:
            screen.put(*hanging(f"{title:<15}", text, screen.cells))
    for title, pairs in result.groups:
        show_classes(screen, title, pairs, ("RECORDED s", "REPLAYED s"))
    show_unknown(screen, site.unknown)


def show_site(screen: Screen, name: str, site: Site) -> None:
    """Print what is replayed: jobs, nodes, version and period."""
    jobs, nodes = count(len(site.jobs), "job"), count(len(site.nodes), "node")
    version = ".".join(f"{part:02d}" for part in site.rules.version)
    times = SiteJobs.of(site.jobs).submit
    period = f", submitted {_date(times.min())} to {_date(times.max())} UTC" if len(times) else ""
    screen.title(f"{fit(clean(name), 24)}: {jobs} on {nodes}, {site.scheduler or f'Slurm {version}'}{period}")


def show_classes(screen: Screen, title: str, pairs: Sequence[Pair], sides: tuple[str, str]) -> None:
    """Print the mean waits of the classes of a grouping; nothing where all jobs are of one class.

    Args:
        screen: where to print.
        title: of the grouping.
        pairs: its classes, the most jobs first.
        sides: headings of the two sides.
    """
    if len(pairs) < 2:
        return
    rows = [
        (pair.name or "none", f"{pair.jobs:,}", seconds(pair.first.mean), seconds(pair.second.mean), difference(pair))
        for pair in pairs[:MOST_CLASSES]
    ]
    screen.put("")
    screen.named_table([TextColumn(title.upper()), *numbers("JOBS", *sides, "DIFFERENCE")], rows)
    if pairs[MOST_CLASSES:]:
        screen.put(f"and {len(pairs) - MOST_CLASSES} more with fewer jobs")


def show_unknown(screen: Screen, unknown: Sequence[str]) -> None:
    """Print what is not known of a site, or not followed."""
    if unknown:
        screen.put("", "Not known, or not followed:")
        for text in unknown:
            screen.put(*hanging("- ", text, screen.cells))


def difference(pair: Pair) -> str:
    """Return the difference of the means, in seconds and as a share of the first."""
    change = pair.second.mean - pair.first.mean
    share = f" ({100 * change / pair.first.mean:+.1f} %)" if pair.first.mean > 0 else ""
    return f"{'+' if change > 0 else ''}{seconds(change)} s{share}"


def _figures(title: str, figures: Figures) -> tuple[str, ...]:
    return (title, seconds(figures.mean), seconds(figures.median), seconds(figures.p95))


def seconds(value: float) -> str:
    """Return seconds as `12,345` or `12.3`."""
    return f"{value:,.{min(1, decimals(abs(value)))}f}"


def _sides(sides: tuple[float | None, float | None]) -> str:
    first, second = ("unknown" if side is None else percent(side) for side in sides)
    return f"{first} as recorded, {second} replayed"


def _printed(checks: PrintedChecks | None) -> Iterator[tuple[str, str]]:
    """Yield the rows on what sprio and sshare printed at the end of the period."""
    for title, source, unit, check in (
        ("priorities", "sprio", "waiting job", checks and checks.priorities),
        ("fair share", "sshare", "user", checks and checks.factors),
    ):
        if check and check.number:
            off = percent(check.difference) if source == "sprio" else f"{check.difference:.3f}"
            near = percent(NEAR_SHARE) if source == "sprio" else f"{NEAR_FACTOR:g}"
            numbers = f"{count(check.number, unit)}: {off} off in the mean, {percent(check.near)} within {near}"
            yield title, f"as {source} printed them at the end, {numbers}"


#: Reasons why jobs do not start that are shown.
_MOST_REASONS = 5


def reasons_unstarted(reasons: Sequence[tuple[str, int]]) -> str:
    """Return how many jobs do not start for which reason, the most first."""
    return "; ".join(f"{number:,}: {clean(reason)}" for reason, number in reasons[:_MOST_REASONS])


def _left_out(result: Agreement) -> str:
    reasons = reasons_unstarted(result.unstarted)
    parts = [
        f"{count(result.only_recorded, 'job')} that started only in the record ({reasons})"
        if result.only_recorded
        else "",
        f"{count(result.only_replayed, 'job')} that started only in the replay" if result.only_replayed else "",
    ]
    return ", ".join(filter(None, parts))


def _date(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")
