"""The end of a run on the terminal: forecast against actual, for each job and for the whole."""

from __future__ import annotations

from rich.table import Table

from ...simulate.formats.hostlist import fold
from ...simulate.snapshot import JobState
from ..endings import ending, mark
from ..outcome import JobOutcome, RunOutcome
from .tables import Column, grid, with_gap
from .text import clean, decimals, fit, percent, seconds, times

#: From this error on, and this share of the CPUs' time that others took, the one is put down to the other; in a run
#: of less than some seconds the start of our keepers would count as others.
_MISSED, _BUSY, _LEAST_S = 0.1, 0.1, 3.0


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
        "ok" if job.state is JobState.COMPLETED else mark(job.state, job.exit_code, job.signal),
    )


def signed(error: float) -> str:
    """An error, (actual - forecast) / actual, for a person: `+3.2 %`, from twice or half on `3.1x longer`."""
    if error >= 0.5:
        return f"{times(1 / max(1e-9, 1 - error))} longer"
    if error <= -1:
        return f"{times(1 - error)} shorter"
    return ("+" if error > 0 else "") + percent(error)


def _magnitude(error: float) -> str:
    return f"error {percent(error)}" if error < 1 else f"off {times(1 + error)}"


def _error(error: float) -> str:
    return f"{'error ' if -1 < error < 0.5 else ''}{signed(error)}"


def outcome_summary(outcome: RunOutcome) -> list[str]:
    """The lines under the table: makespan, run-time errors, and what did not complete."""
    forecast = f"forecast {seconds(outcome.plan.makespan)}"
    error = outcome.makespan_error
    lines = [
        f"makespan  {seconds(outcome.makespan)}, {forecast}"
        + ("" if error is None else f", {_error(error)}")
    ]
    worst = outcome.worst
    if outcome.median_error is not None and worst is not None and worst.error is not None:
        name = fit(clean(worst.planned.id), 24)
        lines.append(
            f"run time  {_magnitude(outcome.median_error)} in the median,"
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


def busy_hint(outcome: RunOutcome, others: float) -> str:
    """Why forecasts missed, where others were seen to take the CPUs' time (a share of it); "" where not."""
    if (outcome.makespan_error or 0.0) < _MISSED or outcome.makespan < _LEAST_S or others < _BUSY:
        return ""
    return f"other processes took {percent(others)} of these CPUs' time meanwhile: forecasts assume that they are free"


def failures(outcome: RunOutcome, outputs: dict[str, tuple[str, str]]) -> list[str]:
    """One line for each job that failed by itself: how, and where what it said is."""
    lines = []
    for job in outcome.jobs:
        if job.state in (JobState.FAILED, JobState.TIMEOUT):
            how = ending(job.state, job.exit_code, job.signal, job.reason)
            lines.append(failure(job.planned.id, how, outputs.get(job.planned.id, (None, None))[1]))
    return lines


def failure(job: str, how: str, stderr: str | None) -> str:
    """A closing line about a job that failed."""
    return f"job {job!r} {how}" + (f"; stderr: {stderr}" if stderr else "")
