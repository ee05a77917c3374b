"""The numbers of the newest card as metrics; a card that is old shows it by its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SIDES, _BOUNDS = ("recorded", "twin", "pilotfish"), ("low", "high")
#: Measures of the card, with the names of their metrics.
_MEASURES = {"waiting": "waiting_seconds", "turnaround": "turnaround_seconds", "slowdown": "bounded_slowdown_ratio"}
#: Keys of the card with a number of the machine, which may be null: the name of the metric and what it is.
_OF_MACHINE = {
    "makespan": ("busy_makespan_seconds", "Mean makespan of the busy periods of the card"),
    "utilisation": ("utilisation_ratio", "Utilisation of the CPUs over the card's period"),
    "energy_j": ("energy_joules", "Energy of the card's period"),
}
_ALL = {name: (metric, f"Mean {name} of the card's jobs") for name, metric in _MEASURES.items()} | _OF_MACHINE


class ScoreMetrics:
    """Metrics of a card, absent before the first. `make` makes a metric, see `Metrics`."""

    def __init__(self, make: Any) -> None:
        from prometheus_client import Gauge

        self._time = make(
            Gauge, "score_timestamp_seconds", "When the newest card was made, in seconds since 1970.", ("policy",)
        )
        self._period = make(Gauge, "score_period_seconds", "Length of the time that the card is about.", ("policy",))
        self._requests = make(
            Gauge, "score_requests", "Requests to the resource manager that the newest card took.", ("policy",)
        )
        self._verdict = make(
            Gauge, "score_verdict", "1 for the verdict of the card on the mean wait.", ("policy", "verdict")
        )
        self._jobs = make(
            Gauge, "score_jobs",
            "Jobs of the card: seen; compared, because they started on all sides; of these, placed and released would "
            "have been handed over.", ("policy", "state"),
        )  # fmt: skip
        self._contention = make(
            Gauge, "score_contention_slowdown_ratio",
            "Run time / run time alone of jobs whose needs are known, in the mean: forecast, and actual.",
            ("policy", "side"),
        )  # fmt: skip
        self._sides, self._differences = dict[str, Any](), dict[str, Any]()
        for name, (metric, meaning) in _ALL.items():
            self._sides[name] = make(
                Gauge, f"score_{metric}",
                f"{meaning}: recorded, in the twin of Slurm, and with the policy in it.", ("policy", "side"),
            )  # fmt: skip
            stem, _, unit = metric.rpartition("_")
            better = "" if name == "utilisation" else "; below 0: better"
            self._differences[name] = make(
                Gauge, f"score_{stem}_difference_{unit}",
                f"{meaning} with the policy minus that of the twin, in the 95 % interval from low to high{better}.",
                ("policy", "bound"),
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
        for metric in (self._time, self._period, self._requests, self._verdict, self._jobs):
            metric.clear()
        self._period.labels(policy).set(card["days"] * 86_400.0)
        self._requests.labels(policy).set(card["own_requests"] or 0)
        self._verdict.labels(policy, card["verdict"]).set(1)
        for state in ("seen", "compared", "placed", "released"):
            self._jobs.labels(policy, state).set(handed[state])
        contention = card["contention"] or {}
        _show(self._contention, policy, {side: contention.get(side) for side in ("forecast", "actual")})
        for name in _ALL:
            mean = card["measures"][name]["mean"] if name in _MEASURES else card[name]
            sides = {side: mean and mean[side] for side in _SIDES}
            _show(self._sides[name], policy, sides)
            difference = {"mean": mean and mean["pilotfish"] - mean["twin"]}
            _show(self._differences[name], policy, difference | {bound: mean and mean[bound] for bound in _BOUNDS})
        self._time.labels(policy).set(time)


def _show(metric: Any, policy: str, values: Mapping[str, float | None]) -> None:
    """Show the values that are known, and no others."""
    metric.clear()
    for label, value in values.items():
        if value is not None:
            metric.labels(policy, label).set(value)
