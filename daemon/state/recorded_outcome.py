"""Forecasts and what came of them, of finished jobs and of starts in the queue, as the journal has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ...profiles.identity import program
from .damage import REAL, TEXT, checked, optional

#: Types of the arguments.
_KINDS = (TEXT, REAL, REAL, REAL, optional(REAL), REAL, optional(TEXT), optional(REAL), optional(TEXT))


def recorded_outcome(
    key: str, time: float, said: float, ran: float, since: float | None, said_start: float, data: str | None,
    isolated: float | None = None, external: str | None = None,
) -> ForecastOutcome:  # fmt: skip
    """Return a job's forecast and run time as the journal has them. Raises ValueError if a record cannot be read.

    Args:
        key: of the job.
        time: when it ended, epoch seconds.
        said: forecast run time, seconds.
        ran: actual run time, seconds.
        since: when it was handed over, epoch seconds; None = it was not.
        said_start: forecast start, epoch seconds.
        data: JSON of the job log on the choice of its nodes; None = not recorded.
        isolated: forecast run time without other jobs, seconds; None = not recorded.
        external: JSON of the job log on what other processes took; None = they took little, or it is not known.
    """
    checked((key, time, said, ran, since, said_start, data, isolated, external), _KINDS)
    choice = json.loads(data or "{}")
    if not isinstance(choice, dict) or not isinstance(choice.get("nodes", []), list):
        raise ValueError(f"the forecast of {key} is not a record")
    node, speed = ",".join(map(str, choice.get("nodes", ()))), choice.get("node_speed", 1.0)
    named = [choice.get(name) for name in ("profile", "model", "policy", "source", "class")]
    within = choice.get("run_within") or (None, None)
    numbers = isinstance(within, list) and len(within) == 2 and all(isinstance(bound, int | float) for bound in within)
    kinds = [isinstance(name, str | None) for name in named] + [isinstance(choice.get("user"), int | None)]
    if not (all(kinds) and (numbers or within == (None, None)) and isinstance(speed, float) and speed > 0.0):
        raise ValueError(f"the forecast of {key} cannot be read")
    others = json.loads(external or "{}")
    others_share = others.get("taken") if isinstance(others, dict) else others
    if not isinstance(others_share, float | None):
        raise ValueError(f"what others took from {key} cannot be read")
    times = [None if since is None else time - since, None]
    details: list[Any] = [*named, *within, *times, choice.get("user"), node, speed, said_start, isolated, others_share]
    return ForecastOutcome(key, time, said, ran, *details)


def error_ratio(forecast: float, actual: float) -> float:
    """Return actual / forecast of two spans in seconds; spans under 1 ms count as 1 ms."""
    return max(actual, 1e-3) / max(forecast, 1e-3)


@dataclass(frozen=True, slots=True)
class ForecastOutcome:
    """A completed job's forecast and actual run time, seconds; None = not recorded.

    Args:
        time: when it ended, epoch seconds.
        source: of its profile, one of `report.accuracy.SOURCES`.
        job_class: see `profiles.classes`.
        shortest_s: lower end of the prediction interval of probability LEVEL; longest_s: its upper end.
        turnaround_s: of a job that was handed over, from its submission to its end; plain_turnaround_s: in the resource
            manager's own order, as simulated after its end.
        user: uid of its owner.
        node: on which it ran, or several, by commas; node_speed: see `NodeSpeeds.of`, when it was forecast.
        forecast_start_time: when it was to start, epoch seconds.
        isolated_s: forecast run time without other jobs.
        others_share: share of its run time that other processes took, if that was so much that its error is not judged.
    """

    key: str
    time: float
    forecast_s: float
    actual_s: float
    profile: str | None = None
    model: str | None = None
    policy: str | None = None
    source: str | None = None
    job_class: str | None = None
    shortest_s: float | None = None
    longest_s: float | None = None
    turnaround_s: float | None = None
    plain_turnaround_s: float | None = None
    user: int | None = None
    node: str = ""
    node_speed: float = 1.0
    forecast_start_time: float | None = None
    isolated_s: float | None = None
    others_share: float | None = None

    @property
    def command(self) -> str | None:
        """The program of its profile, `cmd: align.sh`; None if the profile was named."""
        return self.profile and program(self.profile)

    @property
    def within(self) -> tuple[float, float] | None:
        """The prediction interval of the run time, seconds."""
        return None if self.shortest_s is None or self.longest_s is None else (self.shortest_s, self.longest_s)

    @property
    def inside(self) -> bool | None:
        """True if the run time was inside its prediction interval; None without one."""
        return inside(self.actual_s, self.within) if self.within is not None else None

    @property
    def error(self) -> float:
        """Error of the run time, a ratio."""
        return error_ratio(self.forecast_s, self.actual_s)


def inside(actual_s: float, within: tuple[float, float]) -> bool:
    """Return whether a run time is inside an interval, seconds, to 1 ms: starts and ends are not known more exactly."""
    return within[0] - 1e-3 <= actual_s <= within[1] + 1e-3


@dataclass(slots=True)
class QueueRecord:
    """A job of the resource manager's queue; times are epoch seconds, None: not known, or not yet.

    Args:
        key: under which snapshots show it.
        name: as its user named it.
        owner: uid of its user.
        account: that it is charged to.
        queue: of the resource manager.
        size: number of its cores.
        walltime: seconds.
        submit_time: when it was submitted.
        said_time: when its start was first forecast; said_start: the start; said_early, said_late: its interval.
        compared_time: when the resource manager first expected a start, too; compared_start: our forecast then;
            manager_start: that of the resource manager.
        start_time: when it began; finish_time: when it ended.
        learned: its run time says something of other jobs: it was not cancelled.
        said_guessed: the first forecast rested on guesses of run times.
    """

    key: str
    name: str = ""
    owner: int | None = None
    account: str = ""
    queue: str = ""
    size: int = 1
    walltime: float | None = None
    submit_time: float | None = None
    said_time: float | None = None
    said_start: float | None = None
    said_early: float | None = None
    said_late: float | None = None
    compared_time: float | None = None
    compared_start: float | None = None
    manager_start: float | None = None
    start_time: float | None = None
    finish_time: float | None = None
    learned: bool = False
    said_guessed: bool = False
