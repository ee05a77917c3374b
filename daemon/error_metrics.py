"""Metrics of forecast errors by contention model and by profile.

Rule: the first MOST profiles have a label each, all others share one; words of a command, names of jobs and users are
in no label, because they say who runs what: a program's name and a checksum stand for them.
"""

from __future__ import annotations

import zlib
from typing import Any

from ..profiles.signature import COMMAND, KIND
from ..simulate.plan import LEVEL
from .accuracy import NOT_TOLD, SOURCES
from .guard import Judged

MOST = 50
OTHERS = "others"


class ErrorMetrics:
    """Errors as they come in.

    Args:
        make: makes a metric of a kind with name, text and labels, see `exporter.Metrics`.
        buckets: of the histogram by model, ratios.
    """

    def __init__(self, make: Any, buckets: tuple[float, ...]) -> None:
        from prometheus_client import Counter, Histogram, Summary

        text = "|forecast - actual| / actual of run times, by {}."
        self._by_model = make(
            Histogram,
            "model_forecast_error_ratio",
            text.format("contention model and source of the profile"),
            ("model", "source"),
            buckets=buckets,
        )
        self._ended = make(
            Counter,
            "forecast_intervals_total",
            f"Completed jobs whose run time was inside of what was foretold with {LEVEL:.0%}, by source of profile.",
            ("source", "result"),
        )
        for source in SOURCES:
            for result in ("inside", "outside"):
                self._ended.labels(source, result)
        self._by_profile = make(Summary, "profile_forecast_error_ratio", text.format("profile"), ("profile",))
        self.relearned = make(Counter, "profiles_relearned_total", "Profiles that were learned anew.")
        self._labels: dict[str, str] = {}

    def observe(self, whose: Judged, profile: str, error: float) -> None:
        """Count one error."""
        self._by_model.labels(*(label or NOT_TOLD for label in whose)).observe(error)
        self._by_profile.labels(self._label(profile)).observe(error)

    def ended(self, source: str, *, inside: bool) -> None:
        """Count a job of which an interval was foretold, by the source of its profile."""
        self._ended.labels(source, "inside" if inside else "outside").inc()

    def _label(self, profile: str) -> str:
        if profile not in self._labels and len(self._labels) < MOST:
            self._labels[profile] = _unspoken(profile)
        return self._labels.get(profile, OTHERS)


def _unspoken(profile: str) -> str:
    if not profile.startswith((COMMAND, KIND)):
        return profile
    told = profile.split(" ", 2)[:2] if profile.startswith(COMMAND) else [KIND.strip()]
    return f"{' '.join(told)} #{zlib.crc32(profile.encode(errors='surrogateescape')):08x}"
