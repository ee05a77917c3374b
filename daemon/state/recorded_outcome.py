"""The forecast and the outcome of a job, as the journal has them."""

from __future__ import annotations

import json
from typing import Any

from ..report.accuracy import ForecastOutcome
from .damage import REAL, TEXT, checked, optional

#: Types of the arguments.
_KINDS = (TEXT, REAL, REAL, REAL, optional(REAL), REAL, optional(TEXT))


def recorded_outcome(
    key: str, time: float, said: float, ran: float, since: float | None, said_start: float, data: str | None
) -> ForecastOutcome:
    """Return a job's forecast and run time as the journal has them. Raises ValueError if a record cannot be read.

    Args:
        key: of the job.
        time: when it ended, epoch seconds.
        said: forecast run time, seconds.
        ran: actual run time, seconds.
        since: when it was handed over, epoch seconds; None = it was not.
        said_start: forecast start, epoch seconds.
        data: JSON of the job log on the choice of its nodes; None = not recorded.
    """
    checked((key, time, said, ran, since, said_start, data), _KINDS)
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
    times = [None if since is None else time - since, None]
    rest: list[Any] = [*named, *within, *times, choice.get("user"), node, speed, said_start]
    return ForecastOutcome(key, time, said, ran, *rest)
