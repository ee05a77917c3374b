"""What a replay looks like: its summary, the list of policies, how far it has come.

Rule: what is left out of the trace is said; how far it has come only where it takes more than PATIENCE_S.
"""

from __future__ import annotations

import math
import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

from .screen import Screen
from .text import clean, count, duration, joules, percent, seconds

if TYPE_CHECKING:
    from ...simulate.batch.energy import Limited
    from ...simulate.batch.metrics import Summary
    from ...simulate.batch.replay import Replayed
    from ...simulate.workload import Workload

PATIENCE_S = 2.0


def show(
    screen: Screen, replayed: Replayed, summary: Summary, policy: str, whose: str, limit: Limited | None,
    *, has_limit: bool, assumed: bool,
) -> None:  # fmt: skip
    """Print the summary; `has_limit`: the policy has one; `assumed`: what the machine draws is not its own."""
    jobs = replayed.workload
    machine = f"{replayed.machine:,} processors ({whose})"
    screen.title(f"{clean(jobs.name)}: {count(summary.nb_jobs, 'job')} on {machine}, policy {policy}")
    lines = [
        ("waiting", _mean_and_most(summary.mean_waiting_time, summary.max_waiting_time)),
        ("turnaround", _mean_and_most(summary.mean_turnaround_time, summary.max_turnaround_time)),
        ("slowdown", f"{_number(summary.mean_bounded_slowdown)} in the mean, bounded by 10 s"),
        ("utilisation", "unknown" if summary.utilisation is None else percent(summary.utilisation)),
        ("makespan", "none" if summary.makespan is None else seconds(summary.makespan)),
        ("energy", _energy(summary, assumed=assumed)),
        ("jobs", _ends(summary, replayed, policy)),
    ]
    if limit is not None or has_limit:
        lines.insert(-1, ("limit", _limit(limit) if limit else "none: no jobs are submitted in its window"))
    if jobs.programs is not None:
        placed = int((jobs.more["program"] >= 0).sum())
        lines.append(("network", f"how long {count(placed, 'job')} ran depends on where, and on who else sent"))
    if jobs.left_out:
        lines.append(("left out", ", ".join(f"{number:,} {why}" for why, number in jobs.left_out.items())))
    spent = summary.simulation_time
    rate = f", {summary.nb_jobs / spent:,.0f} jobs/s" if spent > 0 else ""
    lines.append(("simulated", f"in {duration(spent)}{rate}"))
    for name, text in lines:
        screen.put(f"{name:<12}{clean(text)}")


def _energy(summary: Summary, *, assumed: bool) -> str:
    if summary.consumed_joules is None:
        return "unknown"
    whose = " (nodes of Grid'5000 Taurus)" if assumed else ""
    switched = f", {summary.nb_machine_switches:,} switches" if summary.nb_machine_switches else ""
    return f"{joules(summary.consumed_joules)}{whose}{switched}"


def _limit(limit: Limited) -> str:
    used = f"{joules(limit.consumed)} of {joules(limit.allowed)} used in its window"
    if limit.hopeless:
        return f"{used}; idle machines alone take more than that: no job could start in it"
    return f"{used} ({percent(limit.consumed / limit.allowed)})" if limit.allowed > 0 else used


def _ends(summary: Summary, replayed: Replayed, policy: str) -> str:
    left, large = replayed.stranded, replayed.workload.size > replayed.machine
    stranded, too_large = int(left.sum()), int((large & ~left).sum())
    words = [f"{summary.nb_jobs_success:,} completed"]
    if lost := summary.nb_jobs_finished - summary.nb_jobs_success - summary.nb_jobs_killed:
        words.append(f"{lost:,} failed")
    if summary.nb_jobs_killed:
        words.append(f"{summary.nb_jobs_killed:,} ended by their walltime")
    if too_large:
        words.append(f"{too_large:,} rejected: too large for the machine")
    if others := summary.nb_jobs_rejected - too_large - stranded:
        why = ": no node has room for them" if policy.startswith(("pairs", "nodes")) else " by the policy"
        words.append(f"{others:,} rejected{why}")
    if stranded:
        words.append(f"{stranded:,} rejected: a job that they wait for was, or ended badly")
    return ", ".join(words)


def _mean_and_most(mean: float | None, most: float | None) -> str:
    if mean is None or most is None:
        return "none"
    return f"{seconds(mean)} in the mean, {seconds(most)} at most"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.2f}"


def show_policies(screen: Screen) -> None:
    """Print a line for each policy and each part that may be added, and their options below."""
    from ...simulate.batch.spec import PARTS, POLICIES

    words: dict[str, dict[str, str]] = {}
    for name, kind in POLICIES.items():
        _show_policy(screen, name, kind, words)
    screen.put("", "Added with +, as in easy+energybud:budget=60%+opportunistic:t_idle=300:", "")
    for name, kind in PARTS.items():
        _show_policy(screen, name, kind, words)
    screen.put("", "Your own, a class (the README says how): ./mine.py:Class, package.module:Class,")
    screen.put("and its options, as in ./mine.py:Class:depth=3,share=0.5")
    for option, meanings in words.items():
        screen.put("", f"{option}:")
        longest = max(map(len, meanings))
        for word, what in meanings.items():
            screen.put(f"  {word:<{longest}}  {what}")


def _show_policy(screen: Screen, name: str, kind: type[Any], words: dict[str, dict[str, str]]) -> None:
    screen.put(f"{name}: {(kind.__doc__ or '').splitlines()[0]}", f"  source: {kind.source}")
    for option in fields(kind):
        told = option.metadata
        if "words" in told:
            words.setdefault(option.name, {}).update(told["words"])
        default = "" if _is_infinite(option.default) else f" (default {_shown(option.default)})"
        screen.put(f"  {option.name}: {told['help']}; {told['allowed']}{default}")


def _is_infinite(value: object) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


class Progress:
    """A bar on stderr where a replay takes long and a person looks: share of the trace, simulated time a second."""

    def __init__(self, jobs: Workload) -> None:
        times = jobs.submit_time
        self._first, self._last = (float(times[0]), float(times[-1])) if len(times) else (0.0, 0.0)
        self._began = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def at(self, now: float) -> None:
        """The simulated time has come so far."""
        spent = time.monotonic() - self._began
        if spent < PATIENCE_S:
            return
        if self._bar is None:
            self._start()
        if self._bar is not None:
            days = (now - self._first) / 86400.0
            share = (now - self._first) / max(self._last - self._first, 1e-9)
            self._bar.update(self._task, completed=min(share, 1.0), rate=f"{days / spent:,.1f} days of the trace/s")

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        if not console.is_terminal:
            return
        columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[rate]}"))
        self._bar = Bar(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._task = self._bar.add_task("", total=1.0, rate="")
        self._bar.start()
