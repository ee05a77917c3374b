"""How long jobs that sleep wait for a core when they wake: the constant `queueing`, fitted to jobs that share one core.

Rule: the model is the engine's own run of the same jobs; there is no second formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...simulate.engine import Simulation
from ...simulate.job import Job, Profile, ThreadGroup, Workflow
from ...simulate.platform import Cluster, CpuSharing, Node, NodeType
from .figures import Array, Constant, Quality, half_width, intervals, quality
from .least_squares import jacobian, least_squares

#: Wider than this on either side, or a fit worse than this, and the constant is not handed to a simulation.
_SURE, _LEAST_R2 = 0.25, 0.5
_LOW, _HIGH = np.array([0.0]), np.array([10.0])
_STARTS = (0.1, 0.58, 2.0)
_LONG_S = 1e6


@dataclass(frozen=True, slots=True)
class Wait:
    """A job beside others on one core, all of one thread.

    Args:
        utilisation: of the job alone, (0, 1); beside: of each of the others.
        slowdown: its time in company / alone.
    """

    utilisation: float
    beside: tuple[float, ...]
    slowdown: float


@dataclass(frozen=True, slots=True)
class WaitFit:
    """`queueing`, and how well it describes the slowdowns."""

    strength: Constant
    quality: Quality
    waits: tuple[Wait, ...]
    fitted: tuple[float, ...]

    @property
    def trusted(self) -> bool:
        """The constant is determined, and the model describes the slowdowns."""
        margin, r2 = half_width(self.strength), self.quality.r2
        return margin is not None and margin <= _SURE and r2 is not None and r2 >= _LEAST_R2


def slowdown(strength: float, utilisation: float, beside: Sequence[float]) -> float:
    """Return what the engine says of a job beside others on a core that jobs share."""
    kind = NodeType("core", 1, 1.0, 1.0, cpu_sharing=CpuSharing.PER_JOB, queueing=strength)
    jobs = tuple(
        Job(f"j{i}", Profile((ThreadGroup(1, u if i == 0 else u * _LONG_S, u),)))
        for i, u in enumerate((utilisation, *beside))
    )
    cluster = Cluster("one", (Node("n", kind),), float("inf"))
    return float(Simulation(Workflow("w", jobs), cluster).run("loadavg").finish[0])


def fit_waiting(waits: Sequence[Wait]) -> WaitFit | None:
    """Return the strength that is nearest to the logarithms of the slowdowns; None of fewer than two."""
    if len(waits) < 2:
        return None

    mixes = dict.fromkeys((wait.utilisation, wait.beside) for wait in waits)

    def model(at: Array) -> Array:
        said = {mix: slowdown(max(0.0, float(at[0])), *mix) for mix in mixes}
        return np.log([said[wait.utilisation, wait.beside] for wait in waits])

    times = np.array([wait.slowdown for wait in waits])
    seen = np.log(times)
    best = min(
        (least_squares(model, seen, np.array([start]), _LOW, _HIGH) for start in _STARTS), key=lambda end: end[1]
    )[0]
    fitted = model(best)
    (strength,) = intervals(best, jacobian(model, best, _LOW, _HIGH), seen - fitted)
    return WaitFit(strength, quality(times, np.exp(fitted)), tuple(waits), tuple(np.exp(fitted).tolist()))
