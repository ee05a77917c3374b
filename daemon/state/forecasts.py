"""Forecasts of jobs in the queue, from plans: that of a start that was decided, and that of a waiting job."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from ...formats.text import seconds
from ...simulate.model.plan import PlannedJob, Scored

#: A planned start at or before this many seconds is a start now.
NOW_S = 1e-6


@dataclass(frozen=True, slots=True)
class JobForecast:
    """A job's forecast; times are epoch seconds of the resource manager's clock.

    `within` is the earliest and latest end of the prediction interval of probability LEVEL; None = not known.
    """

    start_time: float
    finish_time: float
    isolated_run_time: float
    contention_slowdown: float
    within: tuple[float, float] | None = None
    node_speed: float = 1.0

    @staticmethod
    def of(planned: PlannedJob, now: float, node_speed: float) -> JobForecast:
        """Return the forecast of a job in a plan that begins `now`, epoch seconds; its node has this learned speed."""
        within = planned.within
        return JobForecast(
            now + planned.start_time,
            now + planned.finish_time,
            planned.isolated_run_time,
            planned.contention_slowdown,
            (now + within.earliest, now + within.latest) if within else None,
            node_speed,
        )

    @staticmethod
    def of_running(planned: PlannedJob, start_time: float, now: float, node_speed: float) -> JobForecast:
        """Return the forecast of a job that runs since `start_time`, in a plan that begins `now`; epoch seconds."""
        finish, slowdown, within = now + planned.finish_time, max(1.0, planned.contention_slowdown), planned.within
        ends = (now + within.earliest, now + within.latest) if within else None
        return JobForecast(start_time, finish, (finish - start_time) / slowdown, slowdown, ends, node_speed)

    @property
    def run_time(self) -> float:
        """Run time, seconds."""
        return self.finish_time - self.start_time

    @property
    def run_within(self) -> tuple[float, float] | None:
        """The prediction interval of the run time, seconds; None = not known."""
        return None if self.within is None else (self.within[0] - self.start_time, self.within[1] - self.start_time)


@dataclass(frozen=True, slots=True)
class Outlook:
    """Forecast of a waiting job in a plan that begins at `time` (epoch seconds); see `Plan.forecast_by`."""

    planned: PlannedJob
    time: float
    forecast_by: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON; times are epoch seconds, intervals of probability LEVEL."""
        planned, within, why = self.planned, self.planned.within, self.planned.why
        time, promised = self.time + planned.late_s, planned.reserved
        return {
            "nodes": list(planned.nodes),
            "start_time": time + planned.start_time,
            "finish_time": time + planned.finish_time,
            "finish_within": [time + within.earliest, time + within.latest] if within else None,
            "run_time": planned.finish_time - planned.start_time,
            "forecast_by": self.forecast_by or None,
            "reserved": promised and {"nodes": list(promised.nodes), "start_time": self.time + promised.start_time},
            "next_best": {"nodes": list(why.nodes), "cost_s": why.cost_s} if why else None,
            "scored": planned.scored and asdict(planned.scored),
            "order": order_text(planned.scored),
        }


class Forecaster(NamedTuple):
    """The basis on which forecasts are judged: a contention model with profiles of one source; "" = not recorded."""

    model: str = ""
    source: str = ""

    def __str__(self) -> str:
        return self.model + (f" on {self.source} profiles" if self.source else "")


def order_text(scored: Scored | None) -> str:
    """Return the place of a job in a model's order in words, "" without one."""
    if scored is None:
        return ""
    start = scored.baseline_start_s
    when = "" if start is None else f", a start {'now' if start <= NOW_S else f'in {seconds(start)}'}"
    baseline = f"{scored.baseline}: place {scored.baseline_rank:,}{when}"
    if scored.doubt:
        return f"place {scored.rank:,} by the baseline, because {scored.doubt}; {baseline}"
    if scored.score is None:
        return f"place {scored.rank:,} in the model's order, because it has waited for too long; {baseline}"
    parts = ", ".join(f"{name} {part:+.3g}" for name, part in scored.features)
    return f"place {scored.rank:,} in the model's order, score {scored.score:.4g} ({parts}); {baseline}"
