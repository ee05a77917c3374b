"""Predicted run times: the policy sees predictions as walltimes, and learns when a job outlasts its prediction."""

from __future__ import annotations

import math

from ..kernels.queue.tables import INCREMENTS_S
from ..queue_policies.queued_job import Running
from .known_run_times import Predictions
from .simulated_world import SimulatedWorld
from .world_parts import Part


class PredictedRunTimes(Part):
    """The part of a world that predicts run times; see `known_run_times`.

    Args:
        predictions: the predictor and the walltimes.
    """

    def __init__(self, predictions: Predictions) -> None:
        self._predictions = predictions
        self._corrections: dict[int, int] = {}  # of the expected ends of running jobs
        self._unlearned: list[int] = []  # jobs that have ended since the predictor learned

    def join(self, world: SimulatedWorld) -> None:
        """Become a part of a world."""
        self._world = world
        world.show_predictions(self._predictions.limits)

    def next_time(self, before: float) -> float:
        """Return the next expected end, which a job may outlast."""
        return self._world.untils[0] if self._world.untils else math.inf

    def advance(self, now: float) -> None:
        """Predict the jobs that are submitted at this instant."""
        world = self._world
        predicted = self._predictions.expected_at(now, world.next, self._unlearned, world.finish, world.start)
        for number, expected in predicted.items():
            world.show_walltime(number, expected)
            world.rates.believe(number, expected)

    def settle(self, now: float) -> None:
        """Move the expected ends that have passed."""
        while self._world.untils and self._world.untils[0] <= now:
            shown = self._world.running[0]
            number, began = shown.job.number, shown.start_time
            corrections = self._corrections.get(number, 0)
            until = began + min(now - began + INCREMENTS_S[corrections], self._predictions.limits[number])
            self._corrections[number] = corrections + 1
            self._world.show_later_end(shown, until)

    def end(self, ended: Running) -> None:
        """Note a job for the predictor."""
        self._unlearned.append(ended.job.number)
        self._corrections.pop(ended.job.number, None)
