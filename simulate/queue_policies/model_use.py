"""The decisions of a learned policy in a replay: those of its model, and those of its baseline with their reasons."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Doubt:
    """The reason for which a learned policy leaves a decision to its baseline; false if it does not.

    Args:
        reason: one of `model_calls.REASONS`; "": it does not.
        text: a sentence for people.
    """

    reason: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.reason)


@dataclass(slots=True)
class ModelUse:
    """The decisions of a learned policy; a model that is rarely trusted says little about itself.

    Args:
        baseline: SPEC of the policy that decides in place of the model.
        by_model: decisions of the model.
        by_baseline: decisions of the baseline by the reason, one of `model_calls`; the first reason counts.
        jobs: jobs that are unlike those of the training, by the reason.
        examples: the first doubt of each reason, in words.
        since: what comes before is not counted, seconds of the replay.
        run_times: see `LearnedOrder`.
    """

    baseline: str
    by_model: int = 0
    by_baseline: Counter[str] = field(default_factory=Counter)
    jobs: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    since: float = -math.inf
    run_times: str | None = None

    def note_job(self, doubt: Doubt, now: float) -> None:
        """Count a job that is submitted now, seconds, and is unlike those of the training."""
        if now >= self.since:
            self.jobs[doubt.reason] += 1

    def note(self, doubt: Doubt, now: float) -> None:
        """Count a decision of now, seconds: of the model, or of the baseline because of a doubt."""
        if now < self.since:
            return
        if not doubt:
            self.by_model += 1
            return
        self.by_baseline[doubt.reason] += 1
        self.examples.setdefault(doubt.reason, doubt.text)

    @property
    def decisions(self) -> int:
        """Number of decisions, of both."""
        return self.by_model + self.by_baseline.total()

    @property
    def share(self) -> float | None:
        """The share of the decisions that the model took, [0, 1]; None: there were none."""
        return self.by_model / self.decisions if self.decisions else None


@runtime_checkable
class Guarded(Protocol):
    """A policy whose model has a baseline."""

    model_use: ModelUse
