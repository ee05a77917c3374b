"""The power states of simulated nodes: which are on or off, and which are being switched.

Rule: a node that is being powered down is DOWN, then ASLEEP, as Slurm shows it; a node that boots is UP, and jobs that
were started there wait. Times are seconds of the adapter's virtual clock.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ...simulate.model.cluster import Cluster
from ...simulate.model.plan import PowerOff, PowerSwitch
from ...simulate.model.snapshot import NodeState
from ..base import AdapterError


class NodeSwitch(NamedTuple):
    """The position of a node that was powered down or up, and when that began and ended."""

    node: int
    on: bool
    begin: float
    end: float


class PowerStates:
    """The states of the nodes of a cluster; at first all are on.

    Attributes:
        can_switch: whether the nodes can be switched: power off, power and times of switching are known of all types.
        states: one for each node.
        switched: all that was switched, in the order of its begin.
    """

    def __init__(self, cluster: Cluster) -> None:
        powers = [kind.power for kind in cluster.types]
        self.can_switch = all(
            power and power.switch_on and power.switch_off and power.off is not None for power in powers
        )
        self.states = [NodeState.UP] * len(cluster.nodes)
        self.switched: list[NodeSwitch] = []
        self._cluster = cluster
        self._switching: dict[int, NodeSwitch] = {}  # those that have not ended, by node

    def switch(self, action: PowerSwitch, busy: Collection[str], now: float) -> None:
        """Switch nodes. Raises AdapterError if one cannot be switched now; then none is.

        Args:
            action: which nodes, and whether on or off.
            busy: names of nodes with jobs.
            now: the time.
        """
        off, places = isinstance(action, PowerOff), [self._cluster.index.get(name, -1) for name in action.nodes]
        for name, node in zip(action.nodes, places, strict=True):
            state = self.states[node] if node >= 0 and self.can_switch else None
            boots = node in self._switching
            if not (state is NodeState.UP and not boots if off else state in (NodeState.UP, NodeState.ASLEEP)):
                why = "booting" if boots and state is NodeState.UP else state or "no node that can be switched"
                raise AdapterError(f"{action.key}: {name} is {why}", kind="refused")
            if off and name in busy:
                raise AdapterError(f"{action.key}: {name} has jobs", kind="refused")
        for node in places:
            if off or self.states[node] is NodeState.ASLEEP:
                self._begin(node, now, on=not off)

    def wake(self, names: Sequence[str], now: float) -> float:
        """Boot those of these nodes that are off; return when all of these are ready; inf: one is powered down now."""
        places = [self._cluster.index[name] for name in names]
        if not all(self._switching[node].on for node in places if node in self._switching):
            return math.inf
        for node in places:
            if self.states[node] is NodeState.ASLEEP:
                self._begin(node, now, on=True)
        return max([now, *(self._switching[node].end for node in places if node in self._switching)])

    def _begin(self, node: int, now: float, *, on: bool) -> None:
        power = self._cluster.nodes[node].type.power
        takes = power and (power.switch_on if on else power.switch_off)
        switch = NodeSwitch(node, on, now, now + (takes.seconds if takes else 0.0))
        self.states[node] = NodeState.UP if on else NodeState.DOWN
        self.switched.append(switch)
        self._switching[node] = switch
        self.end_until(now)

    def next_end(self) -> float:
        """Return when the next switch ends; inf: none goes on."""
        return min((switch.end for switch in self._switching.values()), default=math.inf)

    def end_until(self, now: float) -> bool:
        """End the switches that are due; return whether there were any."""
        due = [node for node, switch in self._switching.items() if switch.end <= now]
        for node in due:
            if not self._switching.pop(node).on:
                self.states[node] = NodeState.ASLEEP
        return bool(due)
