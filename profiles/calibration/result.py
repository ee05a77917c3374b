"""A calibration as a value, and the node type that it makes.

Rule: what was not measured is left to the node type's own default, and a note says why it was not.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from ...simulate.platform import Cluster, Contention, CpuSharing, Node, NodeType, PiecewiseLinear
from .choice import Choice
from .curve import CurveFit
from .figures import Figure, half_width
from .line import PowerFit
from .piecewise import NAMES, PiecewiseFit
from .unbound import RemoteFit
from .waiting import WaitFit

#: A penalty that is known worse than this on either side is measured by one thread.
_SURE = 0.25


@dataclass(frozen=True, slots=True)
class Point:
    """What so many threads, or busy cores, showed together: bytes/s of the curve, watts of the power."""

    count: int
    figure: Figure


@dataclass(frozen=True, slots=True)
class Calibration:
    """All that was found out about a node.

    Args:
        date: ISO 8601, when it began; model: of the processor; host: which node it was.
        cpus: ids of those that were measured; memory: bytes; frequency: Hz, as the kernel says; None = unknown.
        curve: the bandwidth curve, bytes/s; bandwidth: its fit.
        speed: steps/s of the reference loop on one core, one core after the other; its spread is over the cores too.
        share: of a core that a job of one process got beside one of three; sharing: what that says.
        remote: time to stream remote memory by that of local memory; None = one memory node only.
        unbound: the same as contention shows it; None = one memory node, or no contention.
        power: its fit; watts: its data.
        piecewise: constants of the piecewise-linear model; choice: the contention model that describes tasks in
            company best; waiting: how long jobs that sleep wait for a core. None = not measured.
        notes: what could not be measured, and why; what limits the numbers.
    """

    date: str
    model: str
    host: str
    cpus: tuple[int, ...]
    sockets: int
    memory: int
    frequency: float | None
    curve: tuple[Point, ...]
    bandwidth: CurveFit
    speed: Figure
    share: Figure | None = None
    sharing: CpuSharing | None = None
    remote: Figure | None = None
    unbound: RemoteFit | None = None
    watts: tuple[Point, ...] = ()
    power: PowerFit | None = None
    piecewise: PiecewiseFit | None = None
    choice: Choice | None = None
    waiting: WaitFit | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        return asdict(self)


def node_type(found: Calibration, name: str) -> NodeType:
    """Return the node type that a calibration makes."""
    fitted: dict[str, Any] = {}
    if found.frequency is not None:
        fitted["frequency"] = found.frequency
    if found.sharing is not None:
        fitted["cpu_sharing"] = found.sharing
    if found.remote is not None:
        fitted["remote_access_penalty"] = rounded(max(1.0, penalty(found.remote, found.unbound)[0]))
    if found.power is not None:
        fitted["power"] = found.power.power(found.sockets)
    if found.waiting is not None and found.waiting.trusted:
        fitted["queueing"] = rounded(max(0.0, found.waiting.strength.value))
    if found.choice is not None and not found.choice.default:
        fitted |= {"contention": found.choice.contention, "contending_threads": found.choice.contending_threads}
        if found.choice.contention is Contention.PIECEWISE_LINEAR and found.piecewise is not None:
            fitted["piecewise"] = _shortened(found.piecewise.constants)
    return NodeType(
        name,
        cores=len(found.cpus),
        memory=float(found.memory // 2**20 * 2**20),
        memory_bandwidth=rounded(found.bandwidth.most.value),
        sockets=found.sockets,
        speed=rounded(found.speed.value),
        **fitted,
    )


def penalty(remote: Figure, unbound: RemoteFit | None) -> tuple[float, float | None]:
    """Return what remote memory costs and half of its 95 % interval: as contention shows it, where that is known."""
    if unbound is not None and (margin := half_width(unbound.penalty)) is not None and margin <= _SURE:
        return unbound.penalty.value, margin
    return remote.value, half_width(remote)


def cluster(found: Calibration, name: str) -> Cluster:
    """Return the node that was calibrated as a cluster; its type has the same name."""
    return Cluster(name, (Node(name, node_type(found, name), cpus=found.cpus),))


def _shortened(constants: PiecewiseLinear) -> PiecewiseLinear:
    shortened: dict[str, Any] = {name: float(f"{getattr(constants, name):.4g}") for name in NAMES}
    return replace(constants, **shortened)


def rounded(value: float) -> float:
    """Three digits: hardly any measurement here is better than that."""
    return float(f"{value:.3g}")
