"""The summary of a replay, its progress, and the errors of predictors side by side.

Rule: jobs that were left out are reported; progress is shown only after PATIENCE_S, on a terminal.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...formats.documents.quantities import format_size
from ...formats.text import clean, count, counted, decimals, duration, fit, joules, percent, seconds, times
from .model_decisions import use_lines
from .text import Screen, TextColumn, hanging, numbers, progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.progress import Progress as Bar

    from ...profiles.prediction.evaluate import Evaluation, Intervals, Score
    from ...profiles.prediction.online_run_times import RunTimeAccuracy
    from ...simulate.model.workload import Workload
    from ...simulate.replay.energy import LimitOutcome
    from ...simulate.replay.metrics import Summary
    from ...simulate.replay.replay import Replayed


PATIENCE_S = 2.0


def show_replay(
    screen: Screen, replayed: Replayed, summary: Summary, policy: str, size_from: str, limit: LimitOutcome | None,
    *, has_limit: bool, assumed: bool, runtimes: str = "", daemon: Sequence[str] = (),
) -> None:  # fmt: skip
    """Print the summary of a replay.

    Args:
        screen: where to print.
        replayed: the replay.
        summary: its numbers.
        policy: SPEC of the policy.
        size_from: what states the size of the machine.
        limit: use of an energy or power limit.
        has_limit: the policy has a limit.
        assumed: the power of the machine is an assumption.
        runtimes: what the policy knew of run times, if not the walltimes.
        daemon: what the daemon did, if it decided.
    """
    jobs = replayed.workload
    machine = f"{count(replayed.machine, 'processor')} ({size_from})"
    screen.title(f"{jobs.name}: {count(summary.nb_jobs, 'job')} on {machine}, policy {policy}")
    waiting = (summary.median_waiting_time, summary.p95_waiting_time, summary.p99_waiting_time)
    slowdown = (summary.median_bounded_slowdown, summary.p95_bounded_slowdown, summary.p99_bounded_slowdown)
    lines = [
        ("waiting", _mean_and_most(summary.mean_waiting_time, summary.max_waiting_time)),
        ("", _percentiles(waiting, seconds)),
        ("turnaround", _mean_and_most(summary.mean_turnaround_time, summary.max_turnaround_time)),
        ("slowdown", f"{_number(summary.mean_bounded_slowdown)} in the mean, bounded by 10 s"),
        ("", _percentiles(slowdown, _number)),
        ("sharing", _sharing(summary)),
        ("utilisation", "unknown" if summary.utilisation is None else percent(summary.utilisation)),
        ("makespan", "none" if summary.makespan is None else seconds(summary.makespan)),
        ("period", _period(replayed)),
        ("energy", _energy(summary, assumed=assumed)),
        ("jobs", _ends(summary, replayed, policy)),
    ]
    if limit is not None or has_limit:
        lines.insert(-1, ("limit", _limit(limit) if limit else "none: no jobs are submitted in its window"))
    if jobs.programs is not None:
        placed = int((jobs.more["program"] >= 0).sum())
        lines.append(("network", f"the run time of {count(placed, 'job')} depends on placement and on other traffic"))
    if jobs.left_out:
        lines.append(("left out", counted(jobs.left_out)))
    if (use := replayed.model_use) is not None:
        lines += zip(("decided", *[""] * len(use.by_baseline)), use_lines(use), strict=True)
    lines.append(("run times", runtimes))
    lines += zip(("daemon", *[""] * len(daemon)), daemon, strict=False)
    spent = summary.simulation_time
    rate = f", {summary.nb_jobs / spent:,.0f} jobs/s" if spent > 0 else ""
    lines.append(("simulated", f"in {duration(spent)}{rate}"))
    for name, text in lines:
        if text:
            screen.put(*hanging(f"{name:<12}", text, screen.cells))


def runtimes_line(runtimes: str, known: Mapping[str, RunTimeAccuracy | None] | None) -> str:
    """Return what a policy knew of run times and how accurate it was; "" for walltimes.

    Args:
        runtimes: one of `known_run_times.RUNTIMES`.
        known: score of predictions and walltimes, if run times were predicted.
    """
    if known is None:
        return "actual: known at the submission" if runtimes == "actual" else ""
    known_accuracies = [(name, score) for name, score in known.items() if score is not None]
    return "; ".join(
        f"{name}: {score.median_factor:,.2f} times off in the median, {percent(score.within_20_percent)} within 20 %, "
        f"{percent(score.too_low)} too low"
        for name, score in known_accuracies
    )


def _percentiles(values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    """Return `50 % within 1 s, 95 % within 2 s, 99 % within 3 s`, or "" without jobs."""
    levels = zip(("50 %", "95 %", "99 %"), values, strict=True)
    return ", ".join(f"{level} within {shown(value)}" for level, value in levels if value is not None)


def _period(replayed: Replayed) -> str:
    """Return the dates of the first submission and the last end, where the trace has a start date; UTC."""
    epoch, ran = replayed.workload.epoch, ~replayed.rejected
    if epoch is None or not ran.any():
        return ""
    first, last = replayed.submit_time[ran].min(), replayed.finish_time[ran].max()
    if epoch + last >= 253_402_300_800:  # the year 10000
        return ""
    begin, end = (datetime.fromtimestamp(epoch + float(at), UTC).strftime("%Y-%m-%d %H:%M") for at in (first, last))
    return f"{begin} to {end} (UTC)"


def _energy(summary: Summary, *, assumed: bool) -> str:
    if summary.consumed_joules is None:
        return "unknown"
    whose = " (nodes of Grid'5000 Taurus)" if assumed else ""
    switched = f", {count(summary.nb_machine_switches, 'switch')}" if summary.nb_machine_switches else ""
    return f"{joules(summary.consumed_joules)}{whose}{switched}"


def _limit(limit: LimitOutcome) -> str:
    used = f"{joules(limit.consumed)} of {joules(limit.allowed)} used in its window"
    if limit.hopeless:
        return f"no job could start in its window, because idle machines leave too little of it; {used}"
    return f"{used} ({percent(limit.consumed / limit.allowed)})" if limit.allowed > 0 else used


def _ends(summary: Summary, replayed: Replayed, policy: str) -> str:
    is_stranded, large = replayed.stranded, replayed.workload.size > replayed.machine
    stranded, too_large = int(is_stranded.sum()), int((large & ~is_stranded).sum())
    cause = ": no node has room for them" if policy.startswith(("pairs", "nodes")) else " by the policy"
    if policy.startswith("daemon:"):
        cause = ": they never started, see below"
    ends = {
        "completed": summary.nb_jobs_success,
        "failed": summary.nb_jobs_finished - summary.nb_jobs_success - summary.nb_jobs_killed,
        "ended by their walltime": summary.nb_jobs_killed,
        "rejected: too large for the machine": too_large,
        f"rejected{cause}": summary.nb_jobs_rejected - too_large - stranded,
        "rejected: a job that they depend on was rejected or failed": stranded,
    }
    return ", ".join(f"{number:,} {end}" for end, number in ends.items() if number or end == "completed")


def _sharing(summary: Summary) -> str:
    """Return by how much jobs slowed each other down, in words; "" if they did not."""
    if summary.mean_stretch is None or summary.p95_stretch is None or summary.mean_stretch < 1.0005:
        return ""
    return f"{summary.mean_stretch:.3f} times the run time in the mean, 95 % at most {summary.p95_stretch:.3f}"


def _mean_and_most(mean: float | None, most: float | None) -> str:
    if mean is None or most is None:
        return "none"
    return f"{seconds(mean)} in the mean, {seconds(most)} at most"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.2f}"


class ReplayProgress(AbstractContextManager["ReplayProgress"]):
    """A progress bar on a terminal for long replays: share of the trace, and simulated days per second."""

    def __init__(self, jobs: Workload) -> None:
        times = jobs.submit_time
        self._first, self._last = (float(times[0]), float(times[-1])) if len(times) else (0.0, 0.0)
        self._began = time.monotonic()
        self._bar: Bar | None = None

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def at(self, now: float) -> None:
        """Show that the replay has reached the simulated time `now`, seconds of the trace."""
        spent = time.monotonic() - self._began
        if spent < PATIENCE_S:
            return
        if self._bar is None:
            self._bar = progress_bar(1.0, "{task.percentage:>3.0f} %", "{task.fields[rate]}", rate="")
        if self._bar is not None:
            days = (now - self._first) / 86400.0
            share = (now - self._first) / max(self._last - self._first, 1e-9)
            self._bar.update(
                self._bar.task_ids[0], completed=min(share, 1.0), rate=f"{days / spent:,.1f} days of the trace/s"
            )


_MOST_KINDS = 6


def show_evaluation(screen: Screen, name: str, need: str, found: Evaluation) -> None:
    """Print predictors side by side, and on which earlier jobs each prediction rests.

    Args:
        screen: where to print.
        name: of the workload.
        need: what was predicted, `run-time` or `memory`.
        found: the evaluation.
    """
    left_out = f", {count(found.left_out, 'other')} left out" if found.left_out else ""
    screen.title(f"{fit(clean(name), 40)}: {need} of {count(found.jobs, 'job')}{left_out}")
    heads = numbers("MEAN ERROR ", "MEDIAN ERROR ", "VS ESTIMATE ", "TOO LOW ")
    rows = list(zip(found.scores, *_columns(list(found.scores.values()), need), strict=True))
    screen.table([TextColumn("PREDICTOR", most=20), *heads], rows)
    screen.put("")
    for predictor, score in found.scores.items():
        if len(score.kinds) > 1:
            title = f"{predictor.upper()}: FROM ENDED JOBS OF THE SAME"
            screen.table([TextColumn(title, most=44), *numbers("JOBS")], _kinds(score))
            screen.put("")
    screen.put("* best. TOO LOW: share of jobs that needed more than predicted")
    for predictor, score in found.scores.items():
        if score.intervals is not None:
            screen.put("", *_interval_lines(predictor, score.intervals))


def _interval_lines(predictor: str, intervals: Intervals) -> list[str]:
    from ...profiles.prediction.evaluate import CALIBRATED, ENOUGH_JOBS, LEVEL

    low, high = (f"{100 * share:.0f}" for share in CALIBRATED)
    users = f"{intervals.held:,} of {count(intervals.users, 'user')} with {ENOUGH_JOBS} or more jobs"
    held = f"at least {low} % inside for {users}"
    return [
        f"{predictor}: {percent(intervals.inside)} of {count(intervals.jobs, 'job')} inside their {percent(LEVEL)} "
        f"interval, median width {times(intervals.width)}",
        *([f"{held}, {intervals.calibrated} of them at most {high} %"] if intervals.users else ()),
        f"{percent(intervals.no_better)} of the intervals are no better than the job's own limit: they reach it",
    ]


def _columns(scores: Sequence[Score], need: str) -> Iterable[list[str]]:
    """Yield the cells of each column of numbers, the lowest number marked."""
    for errors in ([score.mean_error for score in scores], [score.median_error for score in scores]):
        form = f"{{:,.{decimals(max(errors))}f}} s".format
        yield _marked(errors, format_size if need == "memory" else form)
    yield _marked([score.relative for score in scores], "{:.3f}".format)
    yield _marked([score.underpredicted for score in scores], lambda value: f"{100 * value:.1f} %")


def _marked(values: Sequence[float | None], form: Callable[[float], str]) -> list[str]:
    best = min((value for value in values if value is not None), default=None)
    return ["unknown " if value is None else form(value) + ("*" if value == best else " ") for value in values]


def _kinds(score: Score) -> list[tuple[str, str]]:
    from ...profiles.prediction.predictors import LIMIT

    kinds = list(score.kinds.items())
    shown = kinds[:_MOST_KINDS]
    if len(kinds) > len(shown):
        shown.append(("other kinds", sum(share for _, share in kinds[_MOST_KINDS:])))
    return [("none yet: from the limit" if kind == LIMIT else kind, f"{100 * share:.1f} %") for kind, share in shown]
