"""The online protocol: each job is predicted at its submission, from the jobs that have ended before that moment.

Rule: no peeking. What is not known at a job's submission changes nothing about its prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .jobs import Asked, Prediction, Predictor

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Observations:
    """Jobs in the order of submission, and what they turned out to need.

    Args:
        jobs: as they were submitted.
        asked_at: when each was submitted, ascending (s).
        known_at: when each had ended (s).
        values: what each needed; nan = not recorded.
    """

    jobs: Sequence[Asked]
    asked_at: Array
    known_at: Array
    values: Array


def predict_all(observed: Observations, predictor: Predictor) -> list[Prediction | None]:
    """Predict each job at its submission, learning from each that ended before; O(n log n)."""
    jobs, values, known_at = observed.jobs, observed.values.tolist(), observed.known_at.tolist()
    ended = np.argsort(observed.known_at, kind="stable")
    ended = iter(ended[np.isfinite(observed.values[ended])].tolist())
    last = next(ended, None)
    found = []
    for job, now in zip(jobs, observed.asked_at.tolist(), strict=True):
        while last is not None and known_at[last] < now:
            predictor.learn(jobs[last], values[last])
            last = next(ended, None)
        found.append(predictor.predict(job))
    return found
