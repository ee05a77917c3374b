"""The traces of a service in its journal: its forecasts, and what it has cost.

Rule: nothing is changed, and what is not kept is None. A journal is copied before it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from ..service.accuracy import read_journal, records_of

if TYPE_CHECKING:
    from ...daemon.config import DaemonConfig
    from ...daemon.report.accuracy import Accuracy
    from ...daemon.report.start_accuracy import StartAccuracy
    from ...daemon.state.recorded_outcome import ForecastOutcome

#: Sources of profiles that say how long a job runs alone; a predicted one says how long jobs like it took.
_TRUE_NEEDS = ("measured", "given")


@dataclass(frozen=True, slots=True)
class ContentionSlowdown:
    """Run time / run time alone of jobs whose needs were known: as forecast, and as they ran, in the mean."""

    jobs: int
    forecast: float
    actual: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The traces of a service.

    Args:
        begin: the first submission or forecast in the journal, epoch seconds; None: it has none.
        starts: the errors of forecasts of starts, pilotfish's and Slurm's own.
        run_times: the errors of forecasts of run times; None: no job with one has completed.
        contention: slowdown by other jobs on the same nodes; None: of no job that has completed are they
            measured or given.
        running_s: how long the service has run, in all, seconds; None: not known, like the next two.
        cpu_s: CPU time that it took, with its processes.
        requests: that it sent to the resource manager.
    """

    begin: float | None
    starts: Sequence[StartAccuracy]
    run_times: Accuracy | None
    contention: ContentionSlowdown | None
    running_s: float | None
    cpu_s: float | None
    requests: int | None


def evidence_of(config: DaemonConfig, since: float | None) -> Evidence | None:
    """Return what a service has left behind; None if it has no journal. Raises ConfigError, OSError.

    Args:
        config: of the service.
        since: forecasts of jobs that ended or started before are not counted, epoch seconds; None: all are.
    """
    from ...daemon.report.accuracy import accuracy, known
    from ...daemon.report.start_accuracy import start_accuracy

    if not config.journal.is_file():
        return None
    reply = read_journal(config.journal)
    (jobs, starts), cost = records_of(reply), reply["cost"]
    times = [time for one in starts for time in (one.submit_time, one.said_time) if time is not None]
    first = since or float("-inf")
    recent = known(job for job in jobs if job.time >= first)
    return Evidence(
        begin=min([*times, *(job.time for job in jobs)], default=None),
        starts=start_accuracy(one for one in starts if (one.start_time or 0.0) >= first),
        run_times=accuracy("all", recent) if recent else None,
        contention=_contention(recent),
        running_s=cost.get("running_s"),
        cpu_s=cost.get("cpu_s"),
        requests=cost.get("requests"),
    )


def _contention(jobs: Sequence[ForecastOutcome]) -> ContentionSlowdown | None:
    """Return the contention slowdown of the jobs whose run time alone was measured or given."""
    rows = [
        (job.forecast_s / job.isolated_s, job.actual_s / job.isolated_s)
        for job in jobs
        if job.isolated_s and job.source in _TRUE_NEEDS
    ]
    if not rows:
        return None
    forecast, actual = (fmean(column) for column in zip(*rows, strict=True))
    return ContentionSlowdown(len(rows), forecast, actual)
