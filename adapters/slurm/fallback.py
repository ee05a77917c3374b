"""Two ways to Slurm, one of them preferred: reads go over REST, and by commands while REST is away.

Rule: who asks gets an answer if either way has one. A write goes the second way only when it is certain that the first
has not done it; any other error is raised, and the next look at the queue tells what happened. Losing REST is said
once, and so is its return.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from ..base import AdapterError
from .books import Entry
from .limits import Limits
from .partitions import Partition
from .records import SlurmJob, SlurmNode
from .reservations import Reservation
from .rest.errors import NotDone
from .settings import Settings
from .squeue import Unshown
from .transport import Transport

log = logging.getLogger("pilotfish.slurm")
Answer = TypeVar("Answer")
#: Seconds until REST is tried again: the first time, and at most.
FIRST_GAP_S, LONGEST_GAP_S = 1.0, 60.0


class Either(Protocol):
    """What both ways can do: the part of a `Transport` that REST serves."""

    @property
    def notes(self) -> Sequence[str]:
        """See Transport."""
        ...

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        """See Transport."""
        ...

    def excluded(self) -> dict[int, tuple[str, ...]]:
        """See Transport."""
        ...

    def nodes(self) -> list[SlurmNode]:
        """See Transport."""
        ...

    def time(self) -> float:
        """See Transport."""
        ...

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """See Transport; `NotDone` where it was surely not done."""
        ...

    def close(self) -> None:
        """See Transport."""
        ...


class Commands(Transport, Protocol):
    """Slurm by its commands."""

    def unshown(self) -> dict[int, Unshown]:
        """See ByCommands."""
        ...


class Rest(Either, Protocol):
    """Slurm by REST; `shows_all`: the queue was told whole."""

    @property
    def shows_all(self) -> bool:
        """Of the queue that was read last."""
        ...


class Preferred:
    """REST where it can, commands where it cannot; what REST does not serve is a line that asks the commands."""

    def __init__(self, rest: Rest, commands: Commands, clock: Callable[[], float] = time.monotonic) -> None:
        self._rest, self._commands, self._clock = rest, commands, clock
        self._away = False
        self._gap, self._try_at = FIRST_GAP_S, clock()
        self._queue_from: Either = commands
        self._read_last: list[SlurmJob] = []
        self._whole: list[SlurmJob] = []
        self._unshown: dict[int, Unshown] = {}
        self.notes: Sequence[str] = (*rest.notes, *commands.notes)

    def jobs(self, ids: Iterable[int] = ()) -> list[SlurmJob]:
        """Over REST; what an old one does not show of waiting jobs is asked for when the queue has changed."""
        some = tuple(ids)
        came_from: Either = self._commands

        def ask(way: Either) -> list[SlurmJob]:
            nonlocal came_from
            found, came_from = way.jobs(some), way
            return found

        found = self._read(ask)
        self._queue_from = self._queue_from if some else came_from
        if came_from is not self._rest or self._rest.shows_all:
            return found
        if not some and found is self._read_last:
            return self._whole
        if not some:
            self._unshown = self._commands.unshown()
        whole = [self._completed(job) for job in found]
        if not some:
            self._read_last, self._whole = found, whole
        return whole

    def _completed(self, job: SlurmJob) -> SlurmJob:
        more = self._unshown.get(job.id)
        return job if more is None else replace(job, planned=more.planned, special=job.special or more.special)

    def excluded(self) -> dict[int, tuple[str, ...]]:
        """From where the queue was read last, so that both are of one moment."""
        return self._queue_from.excluded()

    def nodes(self) -> list[SlurmNode]:
        """Over REST."""
        return self._read(lambda way: way.nodes())

    def time(self) -> float:
        """Over REST."""
        return self._read(lambda way: way.time())

    def partitions(self) -> dict[str, Partition]:
        """By a command."""
        return self._commands.partitions()

    def reservations(self) -> list[Reservation]:
        """By a command."""
        return self._commands.reservations()

    def limits(self) -> Limits:
        """By a command; slurmrestd shows them as accounting has them, not as the controller applies them."""
        return self._commands.limits()

    def settings(self) -> Settings:
        """By a command."""
        return self._commands.settings()

    def update(self, job: int, fields: Mapping[str, str]) -> None:
        """Over REST, or by a command if REST has surely not done it."""
        if self._is_due():
            try:
                self._rest.update(job, fields)
            except NotDone as error:
                self._note(error)
            except AdapterError as error:
                if error.transient:
                    self._note(error)
                raise
            else:
                self._is_back()
                return
        self._commands.update(job, fields)

    def ended(self, ids: Iterable[int]) -> list[SlurmJob]:
        """By a command."""
        return self._commands.ended(ids)

    def ended_as(self, names: Iterable[str], uid: int, since: float) -> list[SlurmJob]:
        """By a command."""
        return self._commands.ended_as(names, uid, since)

    def books(self, which: Sequence[str]) -> list[Entry]:
        """By a command."""
        return self._commands.books(which)

    def submit(self, argv: Sequence[str]) -> int:
        """By a command, as the user that runs us."""
        return self._commands.submit(argv)

    def cancel(self, job: int) -> None:
        """By a command."""
        self._commands.cancel(job)

    def power_off(self, nodes: Sequence[str]) -> None:
        """By a command."""
        self._commands.power_off(nodes)

    def close(self) -> None:
        """Let go of connections."""
        self._rest.close()
        self._commands.close()

    def _read(self, ask: Callable[[Either], Answer]) -> Answer:
        if self._is_due():
            try:
                answer = ask(self._rest)
            except AdapterError as error:
                self._note(error)
            else:
                self._is_back()
                return answer
        return ask(self._commands)

    def _is_due(self) -> bool:
        return not self._away or self._clock() >= self._try_at

    def _note(self, error: AdapterError) -> None:
        """REST did not serve; unless that is its nature, leave it alone for a while."""
        if error.kind == "unsupported":
            return
        if not self._away:
            log.warning("slurmrestd does not serve, Slurm is asked by its commands: %s", error)
        self._gap = min(2 * self._gap, LONGEST_GAP_S) if self._away else FIRST_GAP_S
        self._away, self._try_at = True, self._clock() + self._gap

    def _is_back(self) -> None:
        if self._away:
            log.warning("slurmrestd serves again")
        self._away = False
