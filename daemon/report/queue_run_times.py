"""Run times of the resource manager's jobs, predicted from its jobs that have ended.

Rule: a prediction rests on jobs that are alike in user, name, size or walltime (`profiles.prediction.predictors`); if
no job has ended, nothing is expected. Until ENOUGH jobs of the user have ended it is a guess, because those that end
first are the shortest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from ...profiles.prediction.evaluate import BATCH_GAP_S, LONGEST_BATCH_S
from ...profiles.prediction.predictors import LIMIT, History, SubmittedJob
from ...simulate.replay.queue_forecast import ExpectedRun
from ..state.recorded_outcome import QueueRecord

#: Ended jobs of a user that say what the others take: as many as both bounds of an interval of probability LEVEL need.
ENOUGH = 10


class QueueRunTimes:
    """Predicts run times, and learns them."""

    def __init__(self) -> None:
        self._history = History(quantile=0.5)
        self._batches = dict[Hashable, tuple[float, float, int]]()
        self._number = 0
        self._ended = Counter[int | None]()
        self._expected = dict[Hashable, ExpectedRun | None]()

    def expected(self, record: QueueRecord) -> ExpectedRun | None:
        """Return the expected run time of a job; None if nothing is known. O(1)."""
        job = _submitted(record)
        key = job.traits
        if key not in self._expected:
            prediction = self._history.predict(job)
            if prediction is None or prediction.kind == LIMIT or prediction.low is None or prediction.high is None:
                self._expected[key] = None
            else:
                self._expected[key] = ExpectedRun(prediction.value, prediction.low, prediction.high, key)
        return self._expected[key]

    def known(self, record: QueueRecord) -> bool:
        """Return whether enough jobs of the user have ended to say what the job takes."""
        return self._ended[record.owner] >= ENOUGH

    def learn(self, record: QueueRecord) -> None:
        """Learn from a job that has ended."""
        if record.learned and record.start_time is not None and record.finish_time is not None:
            run_time = max(0.0, record.finish_time - record.start_time)
            self._history.learn(_submitted(record, self._batch(record)), run_time)
            self._ended[record.owner] += 1
            self._expected.clear()

    def _batch(self, record: QueueRecord) -> int:
        """Return the batch of a job; see `profiles.prediction.evaluate`."""
        now = record.submit_time or 0.0
        self._number += 1
        began, before, batch = self._batches.get(record.owner, (now, now, self._number))
        if abs(now - before) > BATCH_GAP_S or now - began > LONGEST_BATCH_S:
            began, batch = now, self._number
        self._batches[record.owner] = began, now, batch
        return batch


def _submitted(record: QueueRecord, batch: int = 0) -> SubmittedJob:
    traits = (
        record.owner,
        record.account or None,
        record.name or None,
        record.queue or None,
        record.size,
        record.walltime,
        None,  # scripts of jobs that are not handed over are not known
    )
    return SubmittedJob(traits, record.walltime, batch)
