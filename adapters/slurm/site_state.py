"""State of Slurm that changes slowly, read in turns.

Rule: at most one request each time, so that a cycle makes three in all: jobs, nodes, and one of these. Each kind has a
longest age, and the one that is oldest relative to it is read. Only the first time all are read at once, so that jobs
need not wait. If Slurm refuses a request, that is reported once, and the kind is left out.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from ..base import AdapterError
from .placement.limits import Limits
from .placement.partitions import Partition, SlurmReservation
from .records import SlurmJob
from .transport.command_transport import Transport
from .transport.scontrol import ControllerSettings

log = logging.getLogger("pilotfish.slurm")

#: Longest ages, seconds.
AGES = {"partitions": 30.0, "reservations": 15.0, "limits": 20.0, "settings": 600.0, "excluded": 10.0}
#: No kind is read more often than this, seconds.
LEAST_S = 0.4
#: What forecasts of other users' jobs need, and how often it is read for them alone, seconds; and at most for new jobs.
_FOR_FORECASTS, ALONE_S, NEW_S = ("partitions", "reservations", "excluded", "settings"), 300.0, 30.0
#: A refused kind is read again when it is this many times older than its longest age.
PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class SiteState:
    """The known state of the site."""

    partitions: Mapping[str, Partition] = field(default_factory=dict)
    reservations: Collection[SlurmReservation] = ()
    limits: Limits = field(default_factory=Limits)
    settings: ControllerSettings = field(default_factory=ControllerSettings)
    excluded: Mapping[int, tuple[str, ...] | None] = field(default_factory=dict)
    covered: frozenset[int] = frozenset()  #: ids of the jobs that waited when `excluded` was read
    missing: frozenset[str] = frozenset()  #: kinds that were never read


class SiteReader:
    """Keeps `site` up to date; `clock` is monotonic, seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._read = dict.fromkeys(AGES, -math.inf)
        self._refused: set[str] = set()
        self.site = SiteState(missing=frozenset(AGES))

    def refresh(self, transport: Transport, ours: Collection[SlurmJob], pending: Collection[int]) -> None:
        """Read one kind if one is due; all of them the first time. Raises AdapterError if it cannot be read now.

        Args:
            transport: Transport to Slurm.
            ours: Waiting jobs that are handed over.
            pending: Ids of all waiting jobs.
        """
        if not ours:  # no job could be placed; starts of other jobs are forecast
            ages = dict.fromkeys(_FOR_FORECASTS, ALONE_S)
            if any(job not in self.site.covered for job in pending):
                ages["excluded"] = NEW_S
            stale = [kind for kind in ages if pending and self._clock() - self._read[kind] >= ages[kind]]
            for kind in stale if self.site.missing.issuperset(ages) else stale[:1]:
                self._refresh(kind, transport, pending)
            return
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
                log.warning("Slurm does not show its %s (%s); jobs are placed without them", due, error)
        else:
            self._refused.discard(due)
        self._read[due] = self._clock()
        changed = {} if value is None else {due: value}
        covered = frozenset(pending) if due == "excluded" else self.site.covered
        self.site = replace(self.site, **changed, covered=covered, missing=self.site.missing - {due})

    def _age(self, kind: str, waiting: Collection[SlurmJob]) -> float:
        """Return the age of a kind in units of its longest age; it is due from 1 on."""
        age = (self._clock() - self._read[kind]) / AGES[kind]
        if kind in self._refused:
            return age / PATIENCE
        if self._clock() - self._read[kind] < LEAST_S:
            return age
        new = (kind == "excluded" and any(job.id not in self.site.covered for job in waiting)) or (
            kind == "limits" and self.site.settings.limits and not all(map(self.site.limits.knows, waiting))
        )
        return max(age, 1.0 + age) if new else age
