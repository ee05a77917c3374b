"""The state of the service's policy that is kept from one plan to the next, and over restarts.

Rule: there is one such object, for the configured policy. Its state is written whenever the journal is, in the cycle
after it has decided something that it keeps, and at least each SAVE_S seconds; after a restart the policy finds out by
itself how much time it has missed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...simulate.model.snapshot import Snapshot
from ...simulate.queue_policies.kept import Kept, LimitNow
from ...simulate.queue_policies.model_use import Doubt
from ..report.cycle_report import Observer
from ..report.metrics import Metrics
from ..state.journal import Journal
from ..state.queue import JobEvent, Queue
from ..state.unsaved import Unsaved

SAVE_S = 60.0


class KeptPolicy(Observer):
    """Keeps it.

    Args:
        journal: has the state from before a restart.
        unsaved: receives the state.
        queue: whose changes are written to the journal, too.
        metrics: show the policy's limit, if it has one.
    """

    def __init__(self, journal: Journal, unsaved: Unsaved, queue: Queue, metrics: Metrics) -> None:
        self._journal, self._unsaved, self._queue, self._metrics = journal, unsaved, queue, metrics
        self._kind, self._saved_at = ("", ""), float("-inf")  # SPEC and digest of the configured policy
        self._decided: object = None  # as it is written
        self.kept: Kept | None = None  #: of the configured policy; None: it keeps nothing

    def use(self, policy: str) -> None:
        """Keep the state of this policy, which the planner knows, from now on; the same policy continues unchanged."""
        from ...simulate.planning.mapping_policies import POLICIES

        mapping = POLICIES.get(policy)
        kind = policy, getattr(mapping, "digest", "")
        if kind == self._kind:
            return
        before = self.kept.state() if self.kept is not None else self._journal.kept()
        keep = getattr(mapping, "keep", None)
        self.kept, self._kind = keep() if keep is not None else None, kind
        if self.kept is not None:
            self.kept.restore(before)

    @property
    def overruled(self) -> tuple[str, str] | None:
        """The policy that decides in place of the configured one, and why; None: none does."""
        return None if self.kept is None else self.kept.overruled()

    def doubt(self) -> Doubt:
        """Return why a learned policy left the last plan to its baseline."""
        return Doubt() if self.kept is None else self.kept.doubt()

    @property
    def limit(self) -> LimitNow | None:
        """The limit of power or energy at the last snapshot."""
        return None if self.kept is None else self.kept.limit()

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """Let the policy see what happens between plans."""
        if self.kept is not None:
            self.kept.observe(snapshot)
        self._metrics.show_limit(self.limit)

    def on_events(self, events: Sequence[JobEvent], snapshot: Snapshot) -> None:
        """Write its state if anything is written, or it is time."""
        if self.kept is None:
            return
        decided, due = self.kept.decided(), snapshot.time >= self._saved_at + SAVE_S
        if self._unsaved or self._queue.dirty or decided != self._decided or due:
            self._unsaved.kept["policy"] = self.kept.state()
            self._saved_at, self._decided = snapshot.time, decided
