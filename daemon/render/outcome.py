"""The end of a run on the terminal: forecast against actual, for each job and for the whole."""

from __future__ import annotations

from rich.table import Table

from ...simulate.formats.hostlist import fold
from ...simulate.snapshot import JobState
from ..outcome import JobOutcome, RunOutcome
from .tables import Column, grid, with_gap
from .text import clean, decimals, fit, percent, seconds


def outcome_table(
    outcome: RunOutcome, cells: int = 80, *, ascii_only: bool = False, everything: bool = False
) -> Table:
    """Jobs in the order of their starts: run time and end, each as foretold and as it came; the result."""
    places = decimals(max(outcome.makespan, outcome.plan.makespan))
    late = outcome.makespan + outcome.plan.makespan + 1.0
    jobs = sorted(outcome.jobs, key=lambda job: late if job.start_time is None else job.start_time)
    columns = (
        Column("JOB", most=40),
        Column("NODES", most=12),
        Column("RUN s", right=True),
        Column("FORECAST", right=True),
        Column("ERROR", right=True),
        Column("END s", right=True),
        Column("FORECAST", right=True),
        Column("RESULT", most=12),
    )
    return grid(
        columns, with_gap(jobs, lambda job: _row(job, places), everything), cells, ascii_only=ascii_only
    )


def _row(job: JobOutcome, places: int) -> tuple[str, ...]:
    def time(value: float | None) -> str:
        return "-" if value is None else f"{value:,.{places}f}"

    return (
        job.planned.id,
        fold(job.nodes) or "-",
        time(job.run_time),
        time(job.forecast_run_time),
        "-" if job.error is None else signed(job.error),
        time(job.finish_time),
        time(job.planned.finish_time),
        _result(job),
    )


def _result(job: JobOutcome) -> str:
    if job.state is JobState.COMPLETED:
        return "ok"
    if job.signal:
        return f"signal {job.signal}" if job.state is JobState.FAILED else str(job.state)
    return f"exit {job.exit_code}" if job.exit_code and job.state is JobState.FAILED else str(job.state)


def signed(error: float) -> str:
    """An error with its sign: `+3.2 %` means that it took longer than foretold."""
    return ("+" if error > 0 else "") + percent(error)


def outcome_summary(outcome: RunOutcome) -> list[str]:
    """The lines under the table: makespan, run-time errors, and what did not complete."""
    forecast = f"forecast {seconds(outcome.plan.makespan)}"
    error = outcome.makespan_error
    lines = [
        f"makespan  {seconds(outcome.makespan)}, {forecast}"
        + ("" if error is None else f", error {signed(error)}")
    ]
    worst = outcome.worst
    if outcome.median_error is not None and worst is not None and worst.error is not None:
        name = fit(clean(worst.planned.id), 24)
        lines.append(
            f"run time  error {percent(outcome.median_error)} in the median,"
            f" at worst {signed(worst.error)} ({name})"
        )
    done = sum(job.state is JobState.COMPLETED for job in outcome.jobs)
    others = {
        state: sum(job.state is state for job in outcome.jobs)
        for state in JobState
        if state is not JobState.COMPLETED
    }
    rest = "".join(f", {number} {state}" for state, number in others.items() if number)
    lines.append(f"jobs      {done} of {len(outcome.jobs):,} completed{rest}")
    return lines


def failures(outcome: RunOutcome, outputs: dict[str, tuple[str, str]]) -> list[str]:
    """One line for each job that failed by itself: how, and where what it said is."""
    lines = []
    for job in outcome.jobs:
        if job.state in (JobState.FAILED, JobState.TIMEOUT):
            why = f": {job.reason}" if job.reason and not job.reason.startswith("exit code ") else ""
            said = f" (stderr: {outputs[job.planned.id][1]})" if job.planned.id in outputs else ""
            lines.append(f"job {job.planned.id!r} {job.state}, {_result(job)}{why}{said}")
    return lines
