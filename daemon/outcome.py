"""What came of a run, beside what was foretold: per job and for the whole.

Rule: an error is (actual - forecast) / actual, so that it is negative where things went faster; spans under 1
ms count as 1 ms. Only jobs that completed have one.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..simulate.plan import Plan, PlannedJob
from ..simulate.snapshot import JobState
from .queue import Entry, Submission


def relative_error(forecast: float, actual: float) -> float:
    """Signed error of a forecast of a span, both in seconds."""
    return (actual - forecast) / max(actual, 1e-3)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """A job as planned and as it went; times in seconds from the run's start, None where it never started."""

    planned: PlannedJob
    state: JobState
    nodes: tuple[str, ...]
    start_time: float | None
    finish_time: float | None
    exit_code: int | None
    signal: int | None
    reason: str

    @property
    def run_time(self) -> float | None:
        """Seconds that it ran."""
        if self.start_time is None or self.finish_time is None:
            return None
        return self.finish_time - self.start_time

    @property
    def forecast_run_time(self) -> float:
        """Seconds that it was foretold to run."""
        return self.planned.finish_time - self.planned.start_time

    @property
    def error(self) -> float | None:
        """Error of the run time, for a job that completed."""
        if self.state is not JobState.COMPLETED or self.run_time is None:
            return None
        return relative_error(self.forecast_run_time, self.run_time)


@dataclass(frozen=True)
class RunOutcome:
    """A whole run; `jobs` in the workflow's order."""

    id: str
    plan: Plan
    state: JobState
    jobs: tuple[JobOutcome, ...]

    @property
    def exit_code(self) -> int:
        """0 if every job completed, else 1."""
        return int(self.state is not JobState.COMPLETED)

    @cached_property
    def makespan(self) -> float:
        """Seconds from the first start to the last end; 0 where nothing ran."""
        return max(
            (job.finish_time for job in self.jobs if job.run_time is not None and job.finish_time),
            default=0.0,
        )

    @property
    def makespan_error(self) -> float | None:
        """Error of the makespan, where every job completed."""
        return relative_error(self.plan.makespan, self.makespan) if self.exit_code == 0 else None

    @cached_property
    def median_error(self) -> float | None:
        """Median of the absolute run-time errors."""
        errors = [abs(job.error) for job in self.jobs if job.error is not None]
        return statistics.median(errors) if errors else None

    @cached_property
    def worst(self) -> JobOutcome | None:
        """The completed job whose run time was foretold worst."""
        known = [job for job in self.jobs if job.error is not None]
        return max(known, key=lambda job: abs(job.error or 0.0), default=None)


def outcome_of(submission: Submission, plan: Plan) -> RunOutcome:
    """Put what became of each job beside the plan; the run starts with its first job."""
    planned = {job.id: job for job in plan.jobs}
    starts = [entry.start_time for entry in submission.entries.values() if entry.start_time is not None]
    zero = min(starts, default=submission.submit_time)
    jobs = (_job(entry, planned[name], zero) for name, entry in submission.entries.items() if name in planned)
    return RunOutcome(submission.id, plan, submission.state, tuple(jobs))


def _job(entry: Entry, planned: PlannedJob, zero: float) -> JobOutcome:
    ran = entry.start_time is not None
    start = entry.start_time - zero if entry.start_time is not None else None
    finish = entry.finish_time - zero if ran and entry.finish_time is not None else None
    return JobOutcome(
        planned, entry.state, entry.nodes, start, finish, entry.exit_code, entry.signal, entry.reason
    )


def outcome_to_dict(outcome: RunOutcome, outputs: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """The run as a mapping ready for JSON (schema pilotfish/run/v1).

    Args:
        outputs: job id -> files of its stdout and stderr.
    """
    from ..simulate.formats.plan import plan_to_dict

    worst = outcome.worst
    return {
        "schema": "pilotfish/run/v1",
        "id": outcome.id,
        "state": str(outcome.state),
        "exit_code": outcome.exit_code,
        "makespan": outcome.makespan,
        "makespan_error": outcome.makespan_error,
        "median_run_time_error": outcome.median_error,
        "worst_run_time_error": worst.error if worst else None,
        "worst_job": worst.planned.id if worst else None,
        "jobs": [
            {
                "id": job.planned.id,
                "state": str(job.state),
                "nodes": list(job.nodes),
                "start_time": job.start_time,
                "finish_time": job.finish_time,
                "run_time": job.run_time,
                "forecast_run_time": job.forecast_run_time,
                "run_time_error": job.error,
                "exit_code": job.exit_code,
                "signal": job.signal,
                "reason": job.reason,
                "stdout": outputs.get(job.planned.id, (None, None))[0],
                "stderr": outputs.get(job.planned.id, (None, None))[1],
            }
            for job in outcome.jobs
        ],
        "plan": plan_to_dict(outcome.plan),
    }
