"""Speeds of nodes relative to the others of their type, learned from the run times of jobs that were forecast.

Nodes of one type differ by a few per cent, and some by more (Sinha et al., "Not All GPUs Are Created Equal", SC22).
Rule: only jobs that ran on one node with a known profile count, and none that other programs slowed down. A speed is
the median of a node's latest jobs over the median of the nodes of its type, in steps of 1 %. It counts once the node
has run LEAST_JOBS of them, and only if it differs by more than twice its standard error; else the node is as given.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median_high, median_low

from ...formats.text import percent
from ...profiles.measurement import median_spread
from ...simulate.model.cluster import Cluster, NodeType

log = logging.getLogger("pilotfish.profiles")
#: Jobs of a node that count, and the least for a speed of its own.
LATEST, LEAST_JOBS = 50, 10
#: The slowest and the fastest that a node may turn out; a larger difference is no matter of speed.
SLOWEST, FASTEST = 0.5, 2.0
#: Standard error of the median of normal values over that of their mean.
_OF_MEDIAN = math.sqrt(math.pi / 2.0)
_REPORTED = 0.05


@dataclass(slots=True)
class _Samples:
    """Logarithms of the speeds that a node's jobs showed, the newest last, with their median and twice its error."""

    values: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST))
    middle: float = 0.0
    doubt: float = math.inf

    def add(self, value: float) -> None:
        self.values.append(value)
        self.middle, spread = median_spread(self.values)
        self.doubt = 2.0 * _OF_MEDIAN * spread / math.sqrt(len(self.values))


class NodeSpeeds:
    """The learned speeds of nodes.

    Args:
        past: what `learn` takes of each job that ended before, the oldest first.
    """

    def __init__(self, past: Iterable[tuple[str, float, float, float]] = ()) -> None:
        self._samples: dict[str, _Samples] = {}
        self._speeds: Mapping[str, float] = {}
        self._reported: dict[str, float] = {}
        self._changed = True
        self._memo: tuple[Cluster, Cluster] | None = None
        for job in past:
            self.learn(*job)

    def learn(self, node: str, forecast_s: float, actual_s: float, speed: float) -> None:
        """Note a job that has ended. O(LATEST).

        Args:
            node: on which it ran; it has no comma, as several have.
            forecast_s: forecast run time, seconds.
            actual_s: actual run time, seconds.
            speed: of its node in the forecast, see `of`.
        """
        if node and "," not in node:
            shown = speed * max(forecast_s, 1e-3) / max(actual_s, 1e-3)
            self._samples.setdefault(node, _Samples()).add(math.log(shown))
            self._changed = True

    def of(self, nodes: Sequence[str]) -> float:
        """Return the learned speed that forecasts count with, of the slowest of some nodes; 1: as the others."""
        return min((self._speeds.get(name, 1.0) for name in nodes), default=1.0)

    def on(self, cluster: Cluster) -> Cluster:
        """Return the cluster at the learned speeds; the same object while nothing changes. O(nodes) after a change."""
        if self._changed or self._memo is None or self._memo[0] is not cluster:
            speeds = self._of_types(cluster)
            if self._memo is None or self._memo[0] is not cluster or speeds != self._speeds:
                self._speeds = speeds
                self._memo = cluster, at_speeds(cluster, [speeds.get(node.name, 1.0) for node in cluster.nodes])
                self._tell()
            self._changed = False
        return self._memo[1]

    def _of_types(self, cluster: Cluster) -> dict[str, float]:
        """Return the speeds of the nodes that differ from the others of their type, by name."""
        types: dict[str, dict[str, _Samples]] = {}
        for node in cluster.nodes if self._samples else ():
            if (node_speeds := self._samples.get(node.name)) and len(node_speeds.values) >= LEAST_JOBS:
                types.setdefault(node.type.variant_of or node.type.name, {})[node.name] = node_speeds
        speeds = {}
        for alike in types.values():
            middles = [node_speeds.middle for node_speeds in alike.values()]
            usual = min(max(0.0, median_low(middles)), median_high(middles))  # of two in the middle, the one as given
            for name, node_speeds in alike.items():
                away = node_speeds.middle - usual
                speed = round(min(FASTEST, max(SLOWEST, math.exp(away))), 2)
                if abs(away) > node_speeds.doubt and speed != 1.0:
                    speeds[name] = speed
        return speeds

    def _tell(self) -> None:
        """Log which nodes turned out faster or slower than was logged before."""
        for name in sorted(self._speeds.keys() | self._reported.keys()):
            speed = self._speeds.get(name, 1.0)
            if abs(speed - self._reported.get(name, 1.0)) >= _REPORTED:
                self._reported[name] = speed
                how = "slower" if speed < 1.0 else "faster"
                text = f"{percent(abs(speed - 1.0))} {how} than the" if speed != 1.0 else "as fast as the"
                log.info("node %s runs jobs %s other nodes of its type; plans use that speed", name, text)


def at_speeds(cluster: Cluster, speeds: Sequence[float]) -> Cluster:
    """Return the cluster with nodes that are faster or slower by a factor; the very same if all are as they were.

    Args:
        cluster: the nodes.
        speeds: factor of each node on its speed, > 0.
    """
    if all(speed == 1.0 for speed in speeds):
        return cluster
    paces: dict[tuple[int, float], NodeType] = {}  # nodes of one type and speed stay of one type
    for node, speed in zip(cluster.nodes, speeds, strict=True):
        key = id(node.type), speed
        paces[key] = paces.get(key) or node.type.nominal.at_pace(round(node.type.pace * speed, 4))
    pairs = zip(cluster.nodes, speeds, strict=True)
    return replace(cluster, nodes=tuple(replace(node, type=paces[id(node.type), speed]) for node, speed in pairs))
