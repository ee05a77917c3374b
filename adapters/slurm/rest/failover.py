"""Failover between two transports: REST is preferred, commands serve while it is away.

Rule: a read is answered if either transport has an answer. A write is repeated by a command only if REST surely did not
do it; any other error is raised, and the next read of the queue shows what happened. The loss of REST and its return
are logged once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ....simulate.model.snapshot import JobState
from ...base import AdapterError
from ..records import SlurmJob, SlurmNode
from ..transport.command_transport import CommandTransport
from .errors import NotDone
from .transport import RestTransport

log = logging.getLogger("pilotfish.slurm")
Answer = TypeVar("Answer")
#: Seconds until REST is tried again: the first time, and the longest pause.
FIRST_GAP_S, LONGEST_GAP_S = 1.0, 60.0


class FailoverTransport:
    """REST where it can serve, commands where it cannot."""

    def __init__(
        self, rest: RestTransport, commands: CommandTransport, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rest, self._commands, self._clock = rest, commands, clock
        self._away = False
        self._gap, self._try_at = FIRST_GAP_S, clock()
        self._queue_from: RestTransport | CommandTransport = commands
        self._read_last: list[SlurmJob] = []
        self._all_jobs: list[SlurmJob] = []
        self._hidden: dict[int, SlurmJob] = {}
        self.notes: Sequence[str] = (*rest.notes, *commands.notes)
        # Only commands: slurmrestd shows limits as accounting has them, not as the controller applies them, and not in
        # every version counts of requests; jobs of our own are submitted and cancelled as the user that runs us.
        self.partitions, self.reservations = commands.partitions, commands.reservations
        self.limits, self.settings, self.resized = commands.limits, commands.settings, commands.resized
        self.activity = commands.activity
        self.ended, self.usage = commands.ended, commands.usage
        self.submit, self.cancel, self.switch = commands.submit, commands.cancel, commands.switch

    def jobs(self, ids: Collection[int] = ()) -> list[SlurmJob]:
        """Return jobs over REST; fields that an old REST does not show are read when the queue has changed."""
        jobs, came_from = self._ask(lambda way: (way.jobs(ids), way))
        self._queue_from = self._queue_from if ids else came_from
        if came_from is not self._rest or self._rest.shows_all:
            return jobs
        if ids:
            return [self._completed(job) for job in jobs]
        if jobs is not self._read_last:
            self._hidden = self._commands.hidden_fields()
            self._read_last, self._all_jobs = jobs, [self._completed(job) for job in jobs]
        return self._all_jobs

    def _completed(self, job: SlurmJob) -> SlurmJob:
        hidden = self._hidden.get(job.id)
        if hidden is not None and hidden.state is JobState.UNKNOWN:
            return hidden if job.state is JobState.PENDING else job
        return job if hidden is None else replace(job, planned=hidden.planned, special=job.special or hidden.special)

    def excluded(self) -> dict[int, tuple[str, ...] | None]:
        """Return excluded nodes from the transport that read the queue last, so that both are of one moment."""
        return self._queue_from.excluded()

    def nodes(self) -> list[SlurmNode]:
        """Return all nodes over REST."""
        return self._ask(lambda way: way.nodes())

    def time(self) -> float:
        """Return the controller's clock over REST, epoch seconds."""
        return self._ask(lambda way: way.time())

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """Change a job over REST, or by a command if REST surely did not do it."""
        self._ask(lambda way: way.update(job, fields), NotDone)

    def close(self) -> None:
        """Close connections."""
        self._rest.close()
        self._commands.close()

    def _ask(
        self, ask: Callable[[RestTransport | CommandTransport], Answer], harmless: type[AdapterError] = AdapterError
    ) -> Answer:
        """Ask REST, and commands if it is away or fails with a `harmless` error, after which asking again is safe."""
        if not self._away or self._clock() >= self._try_at:
            try:
                answer = ask(self._rest)
            except AdapterError as error:
                if error.transient or isinstance(error, harmless):
                    self._pause_rest(error)
                if not isinstance(error, harmless):
                    raise
            else:
                if self._away:
                    log.warning("slurmrestd is usable again")
                self._away = False
                return answer
        return ask(self._commands)

    def _pause_rest(self, error: AdapterError) -> None:
        """Leave REST alone for a while, unless it can never serve this request."""
        if error.kind == "unsupported":
            return
        if not self._away:
            log.warning("slurmrestd is not usable; using Slurm's commands: %s", error)
        self._gap = min(2 * self._gap, LONGEST_GAP_S) if self._away else FIRST_GAP_S
        self._away, self._try_at = True, self._clock() + self._gap
