"""The objectives of a queue that goes on: how long users wait for what they submitted.

Rule: `turnaround` is the mean over submissions of the time from the submission to the end of its last job; `slowdown`
is the mean of that time over the run time of the submission alone (at least TAU_S; the bounded slowdown of Feitelson
and Rudolph 1998). Each submission counts by its weight. No submission is planned to end later than LONGER times its
turnaround in the resource manager's own order, plus SPARE_S, as forecast when it was first planned; if that cannot be
kept any more, it is planned as in that order. That order is EASY backfilling with first come, first served; where a job
takes more cores than its node has, it is: each job in the order of the queue, as soon as it fits, on the node with the
least load.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..kernels.mapping import layout
from ..model.objective import TAU_S, Objective, Submitted
from ..model.plan import RunningJob
from ..queue_policies.order import Order
from .bounds import bottom_levels
from .compiled_queue import expected_run_times, run_backfilling, time_limits
from .simulation import Simulation

#: The mapping policy that stands for the resource manager's own order where backfilling cannot.
PLAIN = "slf"
#: The orders under which backfilling gives whole plans to start a search from.
STARTS = ("fcfs", "sjf")
LONGER, SPARE_S = 1.5, 60.0
#: How much a second beyond the bound weighs, in seconds of turnaround.
EXCESS = 1000.0


class OpenQueue:
    """Judges runs of a simulation by the submissions in it. Each value costs O(jobs).

    Args:
        simulation: of all jobs; in its first state, to which it returns.
        submitted: the submissions; a job that is in none counts as one by itself.
        objective: one of QUEUE_KINDS.
        underway: the running jobs.
    """

    def __init__(
        self, simulation: Simulation, submitted: Sequence[Submitted], objective: Objective,
        underway: Sequence[RunningJob] = (),
    ) -> None:  # fmt: skip
        self._submitted, self._underway = submitted, underway
        index, world = simulation.workflow.index, simulation.world
        ended = world.jobs["state"] == layout.DONE
        groups = [(submission, [index[name] for name in submission.jobs if name in index]) for submission in submitted]
        groups = [(submission, [job for job in jobs if not ended[job]]) for submission, jobs in groups]
        grouped = {job for _, jobs in groups for job in jobs}
        alone = [(Submitted((name,)), [job]) for name, job in index.items() if job not in grouped and not ended[job]]
        groups = [group for group in (*groups, *alone) if group[1]]
        self._jobs = np.array([job for _, jobs in groups for job in jobs], np.int64)
        sizes = np.array([len(jobs) for _, jobs in groups], np.int64)
        self._first = np.cumsum(sizes) - sizes
        self._waited = np.array([submission.waited for submission, _ in groups])
        promised = [(submission.waited, submission.plain_end) for submission, _ in groups]
        self._promised = np.array([math.nan if end is None else _bound(waited, end) for waited, end in promised])
        scale = np.ones(len(groups))
        if objective.kind == "slowdown" and len(groups):
            scale /= np.maximum(np.maximum.reduceat(bottom_levels(simulation)[self._jobs], self._first), TAU_S)
        scale *= [submission.weight for submission, _ in groups]
        self._scale = scale / max(len(groups), 1)
        simulation.reset()
        limits = time_limits(simulation)
        if run_backfilling(simulation, Order("fcfs"), limits, underway, submitted) is None:
            simulation.run(PLAIN)
        self.plain: Array = world.jobs["finish"].copy()  #: end of each job in the plain order, seconds
        simulation.reset()
        ends = self._ends(self.plain)
        first = np.array([_bound(waited, end) for waited, end in zip(self._waited, ends, strict=True)])
        self._latest = np.where(np.isnan(self._promised), first, np.maximum(self._promised, ends))

    def value(self, finish: Array) -> float:
        """Return the number to minimise for a run, from the end of each job, seconds."""
        ends = self._ends(finish)
        late = np.maximum(0.0, ends - self._latest * (1.0 + 1e-9))
        return float(self._scale @ (self._waited + ends + EXCESS * late))

    def backfill(self, simulation: Simulation, order: str) -> bool:
        """Run EASY backfilling by expected run times; the tables then hold that run.

        Args:
            simulation: of the same jobs; its state is lost.
            order: of the queue.

        Returns:
            Whether it could be run: no job takes more cores than its nodes have.
        """
        simulation.reset()
        limits = expected_run_times(simulation)
        return run_backfilling(simulation, Order(order), limits, self._underway, self._submitted) is not None

    def _ends(self, finish: Array) -> Array:
        return np.maximum.reduceat(finish[self._jobs], self._first) if len(self._first) else np.zeros(0)


def _bound(waited: float, end: float) -> float:
    """Return the latest end, seconds from now, of what would end at `end` in the plain order."""
    return LONGER * (waited + end) - waited + SPARE_S
