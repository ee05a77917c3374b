"""The time from the end of a job to the start of the next one on its node, by phase.

Phases: `seen`, from an end to the snapshot that shows it; `decided`, from there to the command; `sent`, until the
resource manager has answered; `started`, from there to the start of the job. Times of the resource manager are as exact
as it states them; Slurm states whole seconds.
"""

from __future__ import annotations

import logging
import math
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from ...simulate.model.plan import Place, Submit
from ...simulate.model.snapshot import JobState, JobViews, Snapshot
from ..state.queue import JobEvent, Queue
from .cycle_report import CycleReport, Observer
from .delays import Delays
from .metrics import Metrics

log = logging.getLogger("pilotfish.cycle")
#: The delays are written at most so often, seconds.
WRITE_EVERY_S = 30.0
#: The cost of the next placement is the median of the NEWEST; before FEWEST have been measured it is assumed, seconds.
NEWEST, FEWEST, ASSUMED_S = 50, 3, 1.0
#: A placement follows an end on one of its nodes if that was at most so many seconds before it was seen.
FOLLOWS_S = 60.0


class PlacementLatency(Observer):
    """Measures each placement, and says what the next is expected to cost.

    Args:
        metrics: receives the phases.
        queue: has the jobs that were placed.
        clock: seconds, monotonic; that of the cycle's durations.
        launch_s: says how long the resource manager usually takes to start what was placed, seconds.
        delays: the distributions, continued; None: none were measured before.
        file: where they are kept; None: nowhere.
    """

    def __init__(
        self,
        metrics: Metrics,
        queue: Queue,
        clock: Callable[[], float],
        launch_s: Callable[[], float] = lambda: 0.0,
        delays: Delays | None = None,
        file: Path | None = None,
    ) -> None:
        self._metrics, self._queue, self._clock, self._launch_s = metrics, queue, clock, launch_s
        self._costs = deque[float](maxlen=NEWEST)
        self._starts = deque[float](maxlen=NEWEST)  # what the resource manager needed to start what was placed
        self.delays, self._file = delays or Delays(), file
        self._written_at, self._unwritten = -math.inf, False
        self._shown: JobViews | None = None  # the jobs of the last snapshot
        self._ended: dict[str, float] = {}  # node -> when its last job ended, epoch seconds
        self._just_ended = 0.0  # the last end that this snapshot is the first to show, epoch seconds
        self._sent: dict[str, float] = {}  # placed job -> when it was, by the resource manager's clock
        self._read_at = 0.0

    @property
    def cost_s(self) -> float:
        """Seconds that a placement costs beyond what the resource manager itself needs to start a job."""
        return statistics.median(self._costs) if len(self._costs) >= FEWEST else ASSUMED_S

    @property
    def gap_s(self) -> float:
        """Seconds from an end to the start of the job that is placed after it.

        Where times are stated in whole seconds, an end is seen too late by as much as a start is stated too early.
        """
        launch_s = statistics.median(self._starts) if len(self._starts) >= FEWEST else self._launch_s()
        return max(0.0, self.cost_s + launch_s)

    @property
    def of_all(self) -> bool:
        """True if jobs of ours take time to start, too: each of them passes through a queue."""
        return self._launch_s() > 0.0

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Note when it was read, and how long the jobs took to be shown that are new in it."""
        self._read_at, self._just_ended = self._clock(), 0.0
        before, self._shown = self._shown, snapshot.jobs
        if before is None or before is snapshot.jobs:
            return
        for view in snapshot.jobs.offered:
            since = snapshot.time - (view.submit_time or 0.0)
            if view.key not in before.by_key and since < FOLLOWS_S:
                self._keep("submitted", since)

    def on_events(self, events: Sequence[JobEvent], snapshot: Snapshot) -> None:
        """Note the ends, and measure the starts of the jobs that were placed."""
        for event in events:
            entry = event.entry
            if entry.state.ended and entry.finish_time is not None:
                self._ended |= dict.fromkeys(entry.nodes, entry.finish_time)
                self._just_ended = max(self._just_ended, entry.finish_time)
                if 0.0 <= (late := snapshot.time - entry.finish_time) < FOLLOWS_S:
                    self._keep("seen", late)
            began = event.kind == "started" or (event.kind == "ended" and entry.state is not JobState.CANCELLED)
            if not began or entry.start_time is None:
                continue  # until it is seen running, its start is assumed to be when it was placed
            if (sent := self._sent.pop(entry.key, None)) is not None:
                self._starts.append(entry.start_time - sent)
                self._observe("started", entry.start_time - sent)
        if len(self._sent) > NEWEST:
            self._sent = {key: sent for key, sent in self._sent.items() if snapshot.time - sent < FOLLOWS_S}

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Measure the placements of the cycle."""
        for applied in report.applied:
            action = applied.action
            if not isinstance(action, Place | Submit) or applied.error or report.dry:
                continue
            if (is_ours := isinstance(action, Submit)) and not self.of_all:
                continue
            decided, sent = applied.began - self._read_at, applied.ended - applied.began
            self._observe("decided", decided)
            self._observe("sent", sent)
            self._sent[action.key] = snapshot.time + applied.ended - self._read_at
            freed = max((self._ended[name] for name in action.nodes if name in self._ended), default=0.0)
            ended = self._just_ended if is_ours else freed  # one of ours may have waited for a job on other nodes
            seen_s = max(0.0, snapshot.time - ended)
            if seen_s < FOLLOWS_S:
                self._observe("seen", seen_s)
                self._costs.append(seen_s + decided + sent)
            for name in action.nodes:
                self._ended.pop(name, None)
        self._write()

    def _write(self) -> None:
        """Write the delays if there are new ones, and it is time to."""
        if self._file is None or not self._unwritten or self._clock() - self._written_at < WRITE_EVERY_S:
            return
        self._written_at, self._unwritten = self._clock(), False
        try:
            self.delays.write(self._file)
        except OSError as error:
            log.debug("%s: cannot be written: %s", self._file, error)

    def _keep(self, phase: str, seconds: float) -> None:
        self.delays.add(phase, seconds)
        self._unwritten = True

    def _observe(self, phase: str, seconds: float) -> None:
        if phase != "seen":  # an end may have been seen long before a job was placed after it
            self._keep(phase, seconds)
        self._metrics.placement_latency.labels(phase).observe(max(0.0, seconds))
