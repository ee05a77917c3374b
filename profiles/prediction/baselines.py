"""The predictors that others are judged by: the user's own estimate, and the average of the user's last two jobs.

Rule: as published, so that a comparison with them means something.
"""

from __future__ import annotations

from collections.abc import Hashable

from .jobs import TRAITS, Asked, Prediction, at_most, of_limit

_USER = TRAITS.index("user")


class Estimate:
    """What the user says: the limit."""

    def predict(self, job: Asked) -> Prediction | None:
        """The job's limit."""
        return of_limit(job)

    def learn(self, job: Asked, value: float) -> None:
        """An estimate does not learn."""


class LastTwo:
    """The average of the user's last two jobs that have ended, at most the limit; the limit where there are not two.

    Source: Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions rather than user runtime
    estimates" (IEEE TPDS 18(6), 2007).
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[float, ...]] = {}

    def predict(self, job: Asked) -> Prediction | None:
        """The average, or the limit."""
        user = job.traits[_USER]
        last = () if user is None else self._last.get(user, ())
        if len(last) < 2:
            return of_limit(job)
        return Prediction(at_most(sum(last) / 2, job.limit), "user", 2)

    def learn(self, job: Asked, value: float) -> None:
        """Remember the user's last two."""
        user = job.traits[_USER]
        if user is not None:
            self._last[user] = (*self._last.get(user, ())[-1:], value)
