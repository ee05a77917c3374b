"""Tables of waiting times for people: a replay of a site next to its record, and a changed site next to the site.

Rule: a difference is the second side minus the first. What is not known of a site, or not followed, ends the report.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...formats.text import clean, count, decimals, fit, percent
from .text import Screen, TextColumn, hanging, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...simulate.slurm.site import Site
    from ...simulate.slurm.site_comparison import Agreement, ClassChange, Effect, Figures, Pair

#: Classes of a grouping that are shown.
MOST_CLASSES = 8


def show_agreement(screen: Screen, name: str, site: Site, result: Agreement, repeats: int) -> None:
    """Print how far replays of a site are from its record.

    Args:
        screen: where to print.
        name: of the site.
        site: the site.
        result: the comparison.
        repeats: number of replays, 1 or more.
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
    spread = "" if result.spread_s is None else f"; the means of the replays spread by {_s(result.spread_s)} s (sd)"
    lines = [
        ("mean wait", f"{difference(waits)}{spread}"),
        ("a job's start", f"{_s(result.difference_s)} s off in the mean; {near}"),
        ("backfilled", _sides(result.backfilled)),
        ("utilisation", _sides(result.utilisation)),
        ("left out", _left_out(result)),
    ]
    for title, text in lines:
        if text:
            screen.put(*hanging(f"{title:<15}", text, screen.cells))
    for title, pairs in result.groups:
        show_classes(screen, title, pairs, ("RECORDED s", "REPLAYED s"))
    show_unknown(screen, site.unknown)


@dataclass(frozen=True, slots=True)
class ScenarioEffect:
    """A scenario: its changes, what is not known of the site then, and the comparison over its replays."""

    name: str
    changes: Sequence[str]
    unknown: Sequence[str]
    effect: Effect
    replays: int


def show_effects(screen: Screen, name: str, site: Site, effects: Sequence[ScenarioEffect]) -> None:
    """Print a site before and after the changes of each scenario; with several, first all in one table.

    Args:
        screen: where to print.
        name: of the site.
        site: before the changes.
        effects: one for each scenario.
    """
    show_site(screen, name, site)
    if len(effects) > 1:
        _show_overview(screen, effects)
    for scenario in effects:
        if len(effects) > 1:
            screen.put("")
            screen.title(scenario.name)
        _show_effect(screen, scenario.changes, scenario.effect, scenario.replays)
    show_unknown(screen, list(dict.fromkeys(text for scenario in effects for text in scenario.unknown)))


def _show_overview(screen: Screen, effects: Sequence[ScenarioEffect]) -> None:
    rows = []
    for scenario in effects:
        wait, slowdown, utilisation = scenario.effect.wait, scenario.effect.slowdown, scenario.effect.utilisation[1]
        rows.append((
            scenario.name, _s(wait.before), _s(wait.after), f"{_s(wait.low)} to {_s(wait.high)}", _noise(wait),
            f"{slowdown.after:,.2f}", _share(utilisation),
        ))  # fmt: skip
    heads = numbers("BEFORE s", "WAIT s", "DIFFERENCE, 95 %")
    screen.table(
        [TextColumn("SCENARIO", most=20), *heads, TextColumn(""), *numbers("SLOWDOWN", "UTILISED")], rows
    )  # fmt: skip


def _share(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.1f} %"


def _show_effect(screen: Screen, changes: Sequence[str], result: Effect, repeats: int) -> None:
    """Print the site before and after the changes of a scenario."""
    screen.put(*(line for text in changes for line in hanging("change: ", text, screen.cells)), "")
    rows = []
    for title, pair, change, form in (
        ("wait, s", result.waits, result.wait, _s),
        ("bounded slowdown", result.slowdowns, result.slowdown, "{:,.2f}".format),
    ):
        sides = pair.first, pair.second
        interval = f"{form(change.low)} to {form(change.high)}"
        rows.append((f"{title}: mean", *(form(side.mean) for side in sides), interval, _noise(change)))
        rows.append(("  median", *(form(side.median) for side in sides), "", ""))
        rows.append(("  95 %", *(form(side.p95) for side in sides), "", ""))
    for title, shares in (("utilisation", result.utilisation), ("backfilled", result.backfilled)):
        rows.append((title, *map(_share, shares), "", ""))
    heads = numbers("BEFORE", "AFTER", "DIFFERENCE, 95 %")
    screen.table([TextColumn(f"{result.waits.jobs:,} JOBS"), *heads, TextColumn("")], rows)
    screen.put("")
    replays = "one replay" if repeats == 1 else f"{repeats} replays"
    lines = [
        ("wait", difference(result.waits) + (", within the noise" if result.wait.is_noise else "")),
        ("left out", _one_sided(result)),
        ("users", _winners(dict(result.groups)["user"])),
        ("intervals", f"of a bootstrap over the days and over {replays} of each side"),
    ]
    for title, text in lines:
        if text:
            screen.put(*hanging(f"{title:<15}", text, screen.cells))
    for title, changed in result.groups:
        _show_changes(screen, title, changed)


def _show_changes(screen: Screen, title: str, changes: Sequence[ClassChange]) -> None:
    """Print the mean waits of classes of jobs before and after; nothing where all jobs are of one class."""
    if len(changes) < 2:
        return
    rows = [
        (
            one.name or "none", f"{one.jobs:,}", _s(one.before), _s(one.after),
            f"{_s(one.low)} to {_s(one.high)}", _noise(one),
        )
        for one in changes[:MOST_CLASSES]
    ]  # fmt: skip
    screen.put("")
    heads = numbers("JOBS", "BEFORE s", "AFTER s", "DIFFERENCE, 95 %")
    screen.table([TextColumn(title.upper(), most=20), *heads, TextColumn("")], rows)
    if changes[MOST_CLASSES:]:
        screen.put(f"and {len(changes) - MOST_CLASSES} more with fewer jobs")


def _noise(change: ClassChange) -> str:
    return "noise" if change.is_noise else ""


#: Users that are named for winning or losing.
_MOST_USERS = 4


def _winners(users: Sequence[ClassChange]) -> str:
    """Return which users wait less and which wait more, beyond the noise."""
    parts = []
    for word, sign in (("less", 1.0), ("more", -1.0)):
        moved = [one for one in users if not one.is_noise and sign * (one.before - one.after) > 0]
        moved.sort(key=lambda one: -abs(one.after - one.before))
        names = [f"{clean(one.name)} {_s(one.after - one.before)} s" for one in moved[:_MOST_USERS]]
        named = f" ({', '.join([*names, *['...'] * (len(moved) > _MOST_USERS)])})" if moved else ""
        parts.append(f"{len(moved)} wait {word}{named}")
    return f"{', '.join(parts)}, {sum(one.is_noise for one in users)} within the noise"


def _one_sided(result: Effect) -> str:
    parts = [
        f"{count(result.only_before, 'job')} that start only before the change" if result.only_before else "",
        f"{count(result.only_after, 'job')} that start only after it" if result.only_after else "",
    ]
    return ", ".join(filter(None, parts))


def show_site(screen: Screen, name: str, site: Site) -> None:
    """Print what is replayed: jobs, nodes, version and period."""
    jobs, nodes = count(len(site.jobs), "job"), count(len(site.nodes), "node")
    version = ".".join(f"{part:02d}" for part in site.rules.version)
    times = [job.submit for job in site.jobs]
    period = f", submitted {_date(min(times))} to {_date(max(times))} UTC" if times else ""
    screen.title(f"{fit(clean(name), 24)}: {jobs} on {nodes}, Slurm {version}{period}")


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
        (pair.name or "none", f"{pair.jobs:,}", _s(pair.first.mean), _s(pair.second.mean), difference(pair))
        for pair in pairs[:MOST_CLASSES]
    ]
    screen.put("")
    screen.table([TextColumn(title.upper(), most=28), *numbers("JOBS", *sides, "DIFFERENCE")], rows)
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
    return f"{'+' if change > 0 else ''}{_s(change)} s{share}"


def _figures(title: str, figures: Figures) -> tuple[str, ...]:
    return (title, _s(figures.mean), _s(figures.median), _s(figures.p95))


def _s(value: float) -> str:
    return f"{value:,.{min(1, decimals(abs(value)))}f}"


def _sides(sides: tuple[float | None, float | None]) -> str:
    first, second = ("unknown" if side is None else percent(side) for side in sides)
    return f"{first} as recorded, {second} replayed"


def _left_out(result: Agreement) -> str:
    parts = [
        f"{count(result.only_recorded, 'job')} that started only in the record" if result.only_recorded else "",
        f"{count(result.only_replayed, 'job')} that started only in the replay" if result.only_replayed else "",
    ]
    return ", ".join(filter(None, parts))


def _date(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M")
