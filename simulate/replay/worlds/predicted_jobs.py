"""Jobs whose run times are predicted, under a queue policy in Python; see `python_loop`."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any

from ...arrays import Array
from ...kernels.queue.tables import INCREMENTS_S
from ...model.machine import Machine
from ...model.workload import Workload
from ...queue_policies.interface import QueuePolicy
from ...queue_policies.policy_calls import PolicyCalls
from ...queue_policies.queued_job import NodeJob, Running
from ..known_run_times import Predictions
from .networked_jobs import NetworkedJobs
from .rigid_jobs import RigidJobs


class Predicted(PolicyCalls):
    """A mixin that adds predicted run times to a world: the policy sees predictions as walltimes.

    It comes before the other world among the bases.
    """

    #: Set by `predict_with`.
    predictions: Predictions
    outlasted: dict[int, tuple[int, Running]]  # corrections of a running job, and what is shown of it
    unlearned: list[int]

    def predict_with(self, predictions: Predictions) -> None:
        """Begin to predict."""
        self.predictions, self.outlasted, self.unlearned = predictions, {}, []

    # --- what the other world does in its own way ---
    @abstractmethod
    def next_row(self) -> int:
        """Return the next job that is submitted; the number of jobs if all were."""

    @abstractmethod
    def finish_times(self) -> Any:
        """Return when each job ended, seconds."""

    @abstractmethod
    def show_prediction(self, number: int, expected: float) -> None:
        """Show a job with this run time."""

    @abstractmethod
    def start_times(self) -> Any:
        """Return when each job began, seconds."""

    # --- what is added ---
    def next_time(self, before: float) -> float:
        """Return the time of the next event, or of the next expected end that a job outlasts."""
        first = self.untils[0] if self.untils else math.inf
        time: float = super().next_time(min(before, first))  # type: ignore[misc]
        return min(time, first)

    def advance_to(self, now: float) -> None:
        """Predict the jobs of this instant, process its ends and submissions, and move the ends that have passed."""
        times = self.finish_times(), self.start_times()
        known = self.predictions.expected_at(now, self.next_row(), self.unlearned, *times)
        for number, expected in known.items():
            self.show_prediction(number, expected)
        super().advance_to(now)  # type: ignore[misc]
        while self.untils and self.untils[0] <= now:
            self._move_first_end(now)

    def _move_first_end(self, now: float) -> None:
        shown = self.running.pop(0)
        del self.untils[0]
        number, began = shown.job.number, shown.start_time
        times = self.outlasted[number][0] if number in self.outlasted else 0
        until = began + min(now - began + INCREMENTS_S[times], self.predictions.limits[number])
        self.outlasted[number] = times + 1, replace(shown, until=until)
        self.add_running(self.outlasted[number][1])
        self.woken = True

    def end(self, ended: Running) -> None:
        """Take a running job away, and note it for the predictor."""
        self.unlearned.append(ended.job.number)
        super().end(self.outlasted.pop(ended.job.number, (0, ended))[1])


class PredictedJobs(Predicted, RigidJobs):
    """Jobs with predicted run times on numbered resources."""

    make_job = partial(NodeJob, predicted=True)
    kill, add_job = PolicyCalls.kill, PolicyCalls.add_job

    def __init__(
        self, workload: Workload, machine: Machine, policy: QueuePolicy, predictions: Predictions, **more: Any
    ) -> None:  # fmt: skip
        super().__init__(workload, machine, policy, **more)
        self.predict_with(predictions)
        self.walltimes = workload.walltime.copy()

    def next_row(self) -> int:
        """Return the next job that is submitted."""
        return self.next

    def finish_times(self) -> Any:
        """Return when each job ended, seconds."""
        return self.finish

    def start_times(self) -> Any:
        """Return when each job began, seconds."""
        return self.start

    def show_prediction(self, number: int, expected: float) -> None:
        """Show a job with this run time."""
        self.walltimes[number] = self.told[number] = expected

    def _columns(self) -> dict[str, Array]:
        found = super()._columns()
        return found | {"walltime": self.walltimes[found["number"]]}


class PredictedNetworkedJobs(PredictedJobs, NetworkedJobs):
    """Jobs with predicted run times that depend on a network."""
