"""Power saving: idle nodes that no job needs and that are not kept as spares are powered down.

Rule: only idle nodes, only after a while, and never while a job that may start now waits. The resource manager wakes a
node for any job, so no job depends on us. A refused request is logged and not repeated for REFUSED_S seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from ...adapters.base import AdapterError
from ...simulate.model.plan import PowerOff
from ...simulate.model.snapshot import JobState, NodeState, Snapshot
from ..apply import Applier
from ..report.cycle_report import CycleReport, Observer

log = logging.getLogger("pilotfish.power")
#: Seconds until a refused request is tried again.
REFUSED_S = 600.0


class PowerSaver(Observer):
    """Powers nodes down after cycles.

    Args:
        applier: carries the action out.
        idle_s: seconds after which an idle node may be powered down.
        spare: number of idle nodes that stay awake, for jobs to come.
    """

    def __init__(self, applier: Applier, idle_s: float, spare: int) -> None:
        self._applier, self.idle_s, self.spare = applier, idle_s, spare
        self._since: dict[str, float] = {}
        self._not_before = float("-inf")

    def choose(self, snapshot: Snapshot, planned: Collection[str] = ()) -> PowerOff | None:
        """Return the action that powers nodes down now, if any may be. O(nodes + jobs).

        Args:
            snapshot: the nodes and their jobs at this moment.
            planned: names of nodes that are about to get a job.
        """
        busy = {name for view in snapshot.jobs.holding.values() for name in view.nodes} | set(planned)
        states = zip(snapshot.cluster.nodes, snapshot.node_states, strict=True)
        idle = [node.name for node, state in states if state is NodeState.UP and node.name not in busy]
        self._since = {name: self._since.get(name, snapshot.time) for name in idle}
        waits = any(view.state is JobState.PENDING and not view.waits for view in snapshot.jobs)
        if waits or snapshot.time < self._not_before:
            return None
        long = [name for name in idle if snapshot.time - self._since[name] >= self.idle_s]
        surplus = long[: max(0, len(idle) - self.spare)]
        return PowerOff(tuple(surplus)) if surplus else None

    def on_cycle(self, report: CycleReport, snapshot: Snapshot) -> None:
        """Power nodes down, except those that the cycle's plan uses."""
        planned = {name for job in report.plan.jobs for name in job.nodes} if report.plan else set()
        action = self.choose(snapshot, planned)
        if action is None:
            return
        try:
            self._applier.apply(action)
        except AdapterError as error:
            self._not_before = snapshot.time + REFUSED_S
            log.warning("idle nodes stay on: %s", error)
            return
        if not self._applier.dry:
            log.info("powered off: %s", ", ".join(action.nodes))
            self._since = {}
