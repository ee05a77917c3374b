"""Tables for people: a site before and after the changes of each scenario.

Rule: a difference is after minus before; its interval holds the true one with 95 %. "noise" means that the interval
holds 0. What is not known is "unknown".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...formats.text import clean, count, joules
from .text import Screen, TextColumn, hanging, numbers
from .waits import MOST_CLASSES, reasons_unstarted, seconds, show_site, show_unknown

if TYPE_CHECKING:
    from ...simulate.slurm.site import Site
    from ...simulate.slurm.site_effect import ClassEffect, Contrast, DistributionChange, Effect


@dataclass(frozen=True, slots=True)
class ScenarioEffect:
    """A scenario: its changes, what is not known of the site then, and the comparison over its replays."""

    name: str
    changes: Sequence[str]
    unknown: Sequence[str]
    effect: Effect
    replays: int


def show_effects(
    screen: Screen, name: str, site: Site, effects: Sequence[ScenarioEffect], *, everything: bool
) -> None:  # fmt: skip
    """Print a site before and after the changes of each scenario; with several, first all in one table.

    Args:
        screen: where to print.
        name: of the site.
        site: before the changes.
        effects: one for each scenario.
        everything: print all classes of jobs with all their numbers, also of several scenarios.
    """
    show_site(screen, name, site)
    if len(effects) > 1:
        _show_overview(screen, effects)
    for scenario in effects:
        if len(effects) > 1:
            screen.put("")
            screen.title(scenario.name)
        _show_effect(screen, scenario)
        if len(effects) == 1 or everything:
            for title, classes in scenario.effect.groups:
                _show_classes(screen, title, classes, everything)
    if len(effects) > 1 and not everything:
        screen.put("", "--all prints the classes of jobs of each scenario.")
    show_unknown(screen, list(dict.fromkeys(text for scenario in effects for text in scenario.unknown)))


def _show_overview(screen: Screen, effects: Sequence[ScenarioEffect]) -> None:
    rows = []
    for scenario in effects:
        wait, slowdown, utilisation = scenario.effect.wait, scenario.effect.slowdown, scenario.effect.utilisation
        rows.append((
            scenario.name, seconds(wait.mean.before), seconds(wait.mean.after), _interval(wait.mean, seconds),
            _noise(wait.mean), _slow(slowdown.mean.after),
            "unknown" if utilisation is None else _share(utilisation.after),
        ))  # fmt: skip
    heads = [*numbers("WAIT s", "AFTER s", "DIFFERENCE, 95 %"), TextColumn(""), *numbers("SLOWDOWN", "UTILISED")]
    screen.named_table([TextColumn("SCENARIO"), *heads], rows)


Words = Callable[[float], str]


def _show_effect(screen: Screen, scenario: ScenarioEffect) -> None:
    """Print the numbers of all jobs and of the machine, and which classes of jobs win and lose."""
    result = scenario.effect
    screen.put(*(line for text in scenario.changes for line in hanging("change: ", text, screen.cells)), "")
    rows = [*_distribution("wait, s", result.wait, seconds), *_distribution("bounded slowdown", result.slowdown, _slow)]
    measures: tuple[tuple[str, Contrast | None, Words, Words], ...] = (
        ("utilisation", result.utilisation, _share, _points),
        ("backfilled", result.backfilled, _share, _points),
        ("fairness of users", result.fairness, _slow, _slow),
        ("energy", result.energy_j, joules, _signed_joules),
        ("highest power, kW", result.highest_power_w, _kilowatts, _kilowatts),
        ("lowest power, kW", result.lowest_power_w, _kilowatts, _kilowatts),
    )
    for title, number, words, interval_words in measures:
        if number is not None:
            rows.append(_row(title, number, words, interval_words))
        elif title == "energy" or not title.endswith("kW"):
            rows.append((title, "unknown", "unknown", "", ""))
    heads = numbers("BEFORE", "AFTER", "DIFFERENCE, 95 %")
    screen.table([TextColumn(f"{result.jobs:,} JOBS"), *heads, TextColumn("")], rows)
    screen.put("")
    replays = "one replay" if scenario.replays == 1 else f"{scenario.replays} replays"
    users, accounts, sizes = result.group("user"), result.group("account"), _sizes(result)
    lines = [
        ("wait", _change(result.wait.mean)),
        ("left out", _one_sided(result)),
        ("users", _winners(users)),
        ("accounts", _winners(accounts) if len(accounts) > 1 else ""),
        ("sizes", _winners(sizes) if len(sizes) > 1 else ""),
        ("power", _metered(result)),
        ("intervals", f"of a bootstrap over the days and over {replays} of each side, with the same seeds"),
    ]
    for title, text in lines:
        if text:
            screen.put(*hanging(f"{title:<11}", text, screen.cells))


def _sizes(result: Effect) -> tuple[ClassEffect, ...]:
    """Return the classes of sizes; they are of nodes, or of CPUs."""
    return next((classes for title, classes in result.groups if title in ("nodes", "CPUs")), ())


def _distribution(title: str, change: DistributionChange, words: Words) -> list[tuple[str, ...]]:
    """Return the rows of a mean, a median and a percentile."""
    parts = ((f"{title}: mean", change.mean), ("  median", change.median), ("  95 %", change.p95))
    return [_row(name, number, words, words) for name, number in parts]


def _row(title: str, number: Contrast, words: Words, interval_words: Words) -> tuple[str, ...]:
    return (title, words(number.before), words(number.after), _interval(number, interval_words), _noise(number))


def _interval(number: Contrast, words: Words) -> str:
    if number.low is None or number.high is None:
        return "unknown"
    low, high = words(number.low + 0.0), words(number.high + 0.0)
    return f"{low} to {high}".replace("-0.0 ", "0.0 ").replace("-0.00 ", "0.00 ")


def _noise(number: Contrast) -> str:
    return "noise" if number.is_known and number.is_noise else ""


def _slow(value: float) -> str:
    return f"{value:,.2f}"


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def _kilowatts(watts: float) -> str:
    return f"{watts / 1000:,.1f}"


def _signed_joules(energy: float) -> str:
    return f"-{joules(-energy)}" if energy < 0 else joules(energy)


def _change(number: Contrast) -> str:
    share = f" ({100 * number.difference / number.before:+.1f} %)" if number.before > 0 else ""
    sign = "+" if number.difference > 0 else ""
    doubt = ", within the noise" if number.is_noise else ""
    return f"{sign}{seconds(number.difference)} s{share}{doubt if number.is_known else ', of an unknown interval'}"


#: Classes that are named for winning or losing.
_MOST_NAMES = 4


def _winners(classes: Sequence[ClassEffect]) -> str:
    """Return which classes wait less and which wait more, beyond the noise."""
    parts = []
    for word, sign in (("less", -1.0), ("more", 1.0)):
        moved = [one for one in classes if not one.wait.mean.is_noise and sign * one.wait.mean.difference > 0]
        moved.sort(key=lambda one: -abs(one.wait.mean.difference))
        names = [f"{clean(one.name)} {seconds(one.wait.mean.difference)} s" for one in moved[:_MOST_NAMES]]
        named = f" ({', '.join([*names, *['...'] * (len(moved) > _MOST_NAMES)])})" if moved else ""
        parts.append(f"{len(moved)} wait {word}{named}")
    numbers = [one.wait.mean for one in classes if one.wait.mean.is_known]
    parts.append(f"{sum(number.is_noise for number in numbers)} within the noise")
    return ", ".join([*parts, *[f"{len(classes) - len(numbers)} unknown"] * (len(numbers) < len(classes))])


def _metered(result: Effect) -> str:
    if result.energy_j is None or result.metered is None:
        return ""
    return f"of {100 * result.metered:.0f} % of the CPU time, from ConsumedEnergyRaw, in the period of submissions"


def _one_sided(result: Effect) -> str:
    parts = [
        f"{count(result.only_before, 'job')} that start only before the change ({reasons_unstarted(result.unstarted)})"
        if result.only_before
        else "",
        f"{count(result.only_after, 'job')} that start only after it" if result.only_after else "",
    ]
    return ", ".join(filter(None, parts))


def _show_classes(screen: Screen, title: str, classes: Sequence[ClassEffect], everything: bool) -> None:
    """Print the waits of classes of jobs before and after; nothing where all jobs are of one class."""
    if len(classes) < 2:
        return
    shown = classes if everything else classes[:MOST_CLASSES]
    rows = [
        (
            one.name or "none", f"{one.jobs:,}", seconds(one.wait.mean.before), seconds(one.wait.mean.after),
            _interval(one.wait.mean, seconds), _noise(one.wait.mean),
        )
        for one in shown
    ]  # fmt: skip
    screen.put("")
    heads = [*numbers("JOBS", "WAIT s", "AFTER s", "DIFFERENCE, 95 %"), TextColumn("")]
    screen.named_table([TextColumn(title.upper()), *heads], rows)
    if len(shown) < len(classes):
        screen.put(f"and {len(classes) - len(shown)} more with fewer jobs")
    if everything:
        screen.put("")
        pairs = numbers("MEDIAN s", "AFTER s", "95 % s", "AFTER s", "SLOWDOWN", "AFTER")
        screen.named_table([TextColumn(title.upper()), *pairs], [_more(one) for one in shown])


def _more(one: ClassEffect) -> tuple[str, ...]:
    waits = (one.wait.median, one.wait.p95)
    slowdown = one.slowdown.mean if one.slowdown else None
    return (
        one.name or "none",
        *(seconds(value) for number in waits for value in (number.before, number.after)),
        *(("unknown",) * 2 if slowdown is None else (_slow(slowdown.before), _slow(slowdown.after))),
    )
