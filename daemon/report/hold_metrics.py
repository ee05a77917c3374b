"""The metrics of holds and of waiting; `hold_watch` counts them."""

from __future__ import annotations

from typing import Any

#: Ends of a hold: we placed or released the job; the deadline passed; the job was cancelled, or is not held any more.
ENDS = ("placed", "released", "expired", "gone")
_LENGTHS = (1.0, 10.0, 60.0, 300.0, 1800.0, 7200.0, 28_800.0, 86_400.0, 604_800.0)


class HoldMetrics:
    """The metrics; `make` makes one, see `Metrics`."""

    def __init__(self, make: Any) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        self.held = make(Gauge, "held_jobs", "Jobs that the resource manager holds for pilotfish now.")
        self.holds = make(
            Histogram, "hold_seconds",
            "From the submission of a held job to the end of its hold: placed or released by pilotfish, expired at its "
            "deadline, or gone with the job.", ("end",), buckets=_LENGTHS,
        )  # fmt: skip
        self.waits = make(
            Histogram, "job_waiting_seconds",
            "From submission to start, of jobs that pilotfish placed, and of those that the resource manager started "
            "alone.", ("decided_by",), buckets=_LENGTHS,
        )  # fmt: skip
        self.ended = make(Counter, "jobs_ended_total", "Jobs of pilotfish that ended, by state.", ("state",))
        for end in ENDS:
            self.holds.labels(end)
        for decider in ("pilotfish", "manager"):
            self.waits.labels(decider)
        for state in ("completed", "failed", "timeout", "cancelled"):
            self.ended.labels(state)
