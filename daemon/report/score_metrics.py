"""The numbers of the newest card as metrics; a card that is old shows it by its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SIDES, _BOUNDS = ("recorded", "twin", "pilotfish"), ("low", "high")
#: Measures of the card, with the names of their metrics.
_MEASURES = {"waiting": "waiting_seconds", "turnaround": "turnaround_seconds", "slowdown": "bounded_slowdown_ratio"}


class ScoreMetrics:
    """Metrics of a card, absent before the first. `make` makes a metric, see `Metrics`."""

    def __init__(self, make: Any) -> None:
        from prometheus_client import Gauge

        self._time = make(
            Gauge, "score_timestamp_seconds", "When the newest card was made, in seconds since 1970.", ("policy",)
        )
        self._period = make(Gauge, "score_period_seconds", "Length of the time that the card is about.", ("policy",))
        self._verdict = make(
            Gauge, "score_verdict", "1 for the verdict of the card on the mean wait.", ("policy", "verdict")
        )
        self._jobs = make(
            Gauge, "score_jobs",
            "Jobs of the card: seen; compared, because they started on all sides; of these, placed and released would "
            "have been handed over.", ("policy", "state"),
        )  # fmt: skip
        self._sides, self._differences = dict[str, Any](), dict[str, Any]()
        for name, metric in _MEASURES.items():
            self._sides[name] = make(
                Gauge, f"score_{metric}",
                f"Mean {name} of the card's jobs: recorded, in the twin of Slurm, and with the policy in it.",
                ("policy", "side"),
            )  # fmt: skip
            stem, _, unit = metric.rpartition("_")
            self._differences[name] = make(
                Gauge, f"score_{stem}_difference_{unit}",
                f"Mean {name} with the policy minus that of the twin, in the 95 % interval from low to high; below 0: "
                "better.", ("policy", "bound"),
            )  # fmt: skip

    def show(self, card: Mapping[str, Any], time: float) -> None:
        """Show a card in the place of the one before.

        Args:
            card: the document of `pilotfish score --json`.
            time: when it was made, epoch seconds.

        Raises:
            KeyError, TypeError: it is no card.
        """
        policy, handed = card["judged"], card["handed"]
        for metric in (self._time, self._period, self._verdict, self._jobs):
            metric.clear()
        self._period.labels(policy).set(card["days"] * 86_400.0)
        self._verdict.labels(policy, card["verdict"]).set(1)
        for state in ("seen", "compared", "placed", "released"):
            self._jobs.labels(policy, state).set(handed[state])
        for name in _MEASURES:
            mean = card["measures"][name]["mean"]
            _show(self._sides[name], policy, {side: mean[side] for side in _SIDES})
            difference = {"mean": mean["pilotfish"] - mean["twin"]}
            _show(self._differences[name], policy, difference | {bound: mean[bound] for bound in _BOUNDS})
        self._time.labels(policy).set(time)


def _show(metric: Any, policy: str, values: Mapping[str, float | None]) -> None:
    """Show the values that are known, and no others."""
    metric.clear()
    for label, value in values.items():
        if value is not None:
            metric.labels(policy, label).set(value)
