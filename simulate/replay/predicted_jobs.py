"""Jobs whose run times are predicted, under a queue policy in Python; see `python_loop`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..arrays import Array
from ..kernels.queue.tables import INCREMENTS_S
from ..model.machine import Machine
from ..model.workload import Workload
from ..queue_policies.interface import NodeJob, QueuePolicy, Running
from .known_run_times import Predictions
from .rigid_jobs import RigidJobs


class PredictedJobs(RigidJobs):
    """The replay of jobs whose run times are predicted: the policy sees the predictions as walltimes."""

    make_job = partial(NodeJob, predicted=True)

    def __init__(self, workload: Workload, machine: Machine, policy: QueuePolicy, predictions: Predictions) -> None:
        super().__init__(workload, machine, policy)
        self.predictions, self.walltimes = predictions, workload.walltime.copy()
        self.outlasted: dict[int, tuple[int, Running]] = {}  # corrections of a running job, and what is shown of it
        self.unlearned: list[int] = []

    def _columns(self) -> dict[str, Array]:
        found = super()._columns()
        return found | {"walltime": self.walltimes[found["number"]]}

    def next_time(self, before: float) -> float:
        """Return the time of the next event, or of the next expected end that a job outlasts."""
        time = super().next_time(before)
        return min(time, self.untils[0]) if self.untils else time

    def advance_to(self, now: float) -> None:
        """Predict the jobs of this instant, process its ends and submissions, and move the ends that have passed."""
        if self.submit_times[self.next] == now:
            self.predictions.learn(self.unlearned, self.finish)
            self.unlearned.clear()
            for number, expected in self.predictions.submitted_with(self.next).items():
                self.walltimes[number] = self.columns[2][number] = expected
        super().advance_to(now)
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
