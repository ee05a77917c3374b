"""The progress of trainings, on stderr: a bar on a terminal, else a line at each tenth, with the score so far."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from ...formats.text import count, duration
from ..output.text import progress_bar
from ..streams import note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.progress import Progress


class TrainingProgress:
    """The progress.

    Args:
        objective: name of what is to be small.
        epochs: of each training.
        trainings: how many there are.
        unit: word for an epoch, singular.
    """

    def __init__(self, objective: str, epochs: int, trainings: int, unit: str = "epoch") -> None:
        self._objective, self._epochs, self._trainings = objective, epochs, trainings
        self._unit, self._began, self._tenths = unit, time.monotonic(), 0
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        self._bar = progress_bar(self._epochs, "{task.fields[score]}", score="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def reached(self, epoch: int, values: Sequence[float]) -> None:
        """Report that all trainings have reached an epoch, with the mean objective of each."""
        low, high = min(values), max(values)
        score = f"{self._objective} {low:,.4g}" + ("" if low == high else f" to {high:,.4g}")
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=epoch, score=score)
        elif self._tenths < (tenths := 10 * epoch // self._epochs):
            self._tenths = tenths
            spent = duration(time.monotonic() - self._began)
            note(f"{self._unit} {epoch} of {self._epochs}, {count(self._trainings, 'seed')}: {score}, in {spent}")
