"""Powering down: nodes that have nothing to do, for which nothing waits, and that are not kept as spares.

Rule: only idle nodes, only after a while, and never while a job that may start now waits; nothing depends on us to
wake one, because the resource manager does that for any job. A refusal is said once and not asked again for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from ..adapters.base import AdapterError
from ..simulate.plan import PowerOff
from ..simulate.snapshot import JobState, NodeState, Snapshot
from .apply import Applier

log = logging.getLogger("pilotfish.power")
#: Seconds until a refused request is tried again.
REFUSED_S = 600.0


class PowerSaver:
    """Watches how long nodes have been idle.

    Args:
        idle_s: seconds after which an idle node may be powered down.
        spare: idle nodes that stay awake, for jobs to come.
    """

    def __init__(self, idle_s: float, spare: int) -> None:
        self.idle_s, self.spare = idle_s, spare
        self._since: dict[str, float] = {}
        self._not_before = float("-inf")

    def choose(self, snapshot: Snapshot, wanted: Collection[str] = ()) -> PowerOff | None:
        """The nodes that may go now, if any. O(nodes + jobs).

        Args:
            wanted: nodes that are about to get a job.
        """
        busy = {name for view in snapshot.jobs if not view.state.ended for name in view.nodes} | set(wanted)
        states = zip(snapshot.cluster.nodes, snapshot.node_states, strict=True)
        idle = [node.name for node, state in states if state is NodeState.UP and node.name not in busy]
        self._since = {name: self._since.get(name, snapshot.time) for name in idle}
        waits = any(view.state is JobState.PENDING and not view.waits for view in snapshot.jobs)
        if waits or snapshot.time < self._not_before:
            return None
        long = [name for name in idle if snapshot.time - self._since[name] >= self.idle_s]
        surplus = long[: max(0, len(idle) - self.spare)]
        return PowerOff(tuple(surplus)) if surplus else None

    def save(self, snapshot: Snapshot, wanted: Collection[str], applier: Applier) -> None:
        """Choose, and carry it out."""
        action = self.choose(snapshot, wanted)
        if action is None:
            return
        try:
            applier.apply(action)
        except AdapterError as error:
            self._not_before = snapshot.time + REFUSED_S
            log.warning("idle nodes stay on: %s", error)
            return
        if not applier.dry:
            log.info("powered off: %s", ", ".join(action.nodes))
            self._since = {}
