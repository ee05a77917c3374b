"""Predicted run times as TimeMin, for Slurm's backfill pass.

Rule: a job with TimeMin is planned as if it ran only so long. Only where Slurm takes it for a soft limit
(`time_min_as_soft_limit`, from 23.11) does the job keep its own limit; elsewhere backfill cuts that for good.
Source: slurm.conf(5) and sbatch(1) of Slurm 23.11.
"""

from __future__ import annotations

import math

#: Factor on a predicted run time: a job that is planned too short delays those behind it.
MARGIN = 1.5


def minutes_of_prediction(predicted_s: float | None, limit_min: float | None, margin: float = MARGIN) -> int | None:
    """Return the TimeMin of a job, whole minutes; None: none, because it would not be below the limit.

    Args:
        predicted_s: the predicted run time, seconds, 0 or more; None: nothing is known.
        limit_min: the time limit, minutes; None: not known.
        margin: factor on the prediction, 1 or more.
    """
    if predicted_s is None or limit_min is None:
        return None
    minutes = max(1, math.ceil(predicted_s * margin / 60.0))
    return minutes if minutes < limit_min else None
