"""What changes rarely in Slurm, read in turns.

Rule: one request at most each time, so that a cycle makes three in all: jobs, nodes, and one of these. Each has its
own longest age; what has grown oldest by that measure is read. Only the first time all are read at once, so that jobs
need not wait for them. What Slurm does not let us read is said once, and done without.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from ..base import AdapterError
from .limits import Limits
from .partitions import Partition
from .records import SlurmJob
from .reservations import Reservation
from .settings import Settings
from .transport import Transport

log = logging.getLogger("pilotfish.slurm")

#: Longest ages, seconds.
AGES = {"partitions": 30.0, "reservations": 15.0, "limits": 20.0, "settings": 600.0, "excluded": 10.0}
#: Nothing is read more often than that, seconds.
LEAST_S = 0.4
#: After a refusal it is tried again when it is so many times as old.
PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Site:
    """What is known of it. `covered`: ids of the jobs that waited when `excluded` was read; `missing`: what was never
    read."""

    partitions: Mapping[str, Partition] = field(default_factory=dict)
    reservations: Collection[Reservation] = ()
    limits: Limits = field(default_factory=Limits)
    settings: Settings = field(default_factory=Settings)
    excluded: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    covered: frozenset[int] = frozenset()
    missing: frozenset[str] = frozenset()


class Rarely:
    """Keeps `site`.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._read = dict.fromkeys(AGES, -math.inf)
        self._refused: set[str] = set()
        self.site = Site(missing=frozenset(AGES))

    def refresh(self, transport: Transport, ours: Collection[SlurmJob], pending: Collection[int]) -> None:
        """Read one thing, if one is due; all of them the first time.

        Args:
            ours: waiting jobs that were handed over.
            pending: ids of all that wait.

        Raises:
            AdapterError: it cannot be read now; it is due again.
        """
        if not ours:
            return  # there is nothing to place
        oldest = max(AGES, key=lambda kind: self._age(kind, ours))
        for due in sorted(self.site.missing) or [oldest] * (self._age(oldest, ours) >= 1.0):
            self._refresh(due, transport, pending)

    def _refresh(self, due: str, transport: Transport, pending: Collection[int]) -> None:
        try:
            value = getattr(transport, due)()
        except AdapterError as error:
            if error.transient or error.kind == "parse":
                raise
            value = None
            if due not in self._refused:
                self._refused.add(due)
                log.warning("Slurm does not tell its %s (%s); jobs are placed without them", due, error)
        else:
            self._refused.discard(due)
        self._read[due] = self._clock()
        changed = {} if value is None else {due: value}
        covered = frozenset(pending) if due == "excluded" else self.site.covered
        kept = {name: getattr(self.site, name) for name in AGES} | changed
        self.site = Site(**kept, covered=covered, missing=self.site.missing - {due})

    def _age(self, kind: str, ours: Collection[SlurmJob]) -> float:
        """How old it is in units of its longest age; it is due from 1 on."""
        age = (self._clock() - self._read[kind]) / AGES[kind]
        if kind in self._refused:
            return age / PATIENCE
        if self._clock() - self._read[kind] < LEAST_S:
            return age
        new = (kind == "excluded" and any(job.id not in self.site.covered for job in ours)) or (
            kind == "limits" and self.site.settings.limits and not all(map(self.site.limits.knows, ours))
        )
        return max(age, 1.0 + age) if new else age
