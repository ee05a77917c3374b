"""A calibration as a value, and its node type.

Rule: values that were not measured are left to the node type's default, and a note says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...simulate.model.cluster import Cluster, Contention, CpuSharing, Node, NodeType
from .bandwidth import CurveFit, RemoteFit
from .cpu_sharing import WaitFit
from .fits import NAMES, Choice, PiecewiseFit
from .power_line import PowerFit
from .statistics import MeasuredNumber, half_width

#: Begins the note on a node that was not idle.
NOT_IDLE = "the node was not idle"
#: A penalty under contention with a wider margin is replaced by that of one thread.
_SURE = 0.25


@dataclass(frozen=True, slots=True)
class Point:
    """The figure for a number of threads or busy cores: bytes/s of the curve, watts of the power."""

    count: int
    figure: MeasuredNumber


@dataclass(frozen=True, slots=True)
class Calibration:
    """The results for a node.

    Args:
        date: ISO 8601, when it began; model: of the processor; host: name of the node.
        cpus: ids of the measured CPUs; sockets: their number; memory: bytes; frequency: Hz from the kernel; None =
            unknown.
        curve: the bandwidth curve, bytes/s; bandwidth: its fit.
        speed: steps/s of the reference loop on one core, one core after another; its spread includes that over the
            cores.
        share: of a core that a job of one process got next to one of three; sharing: its interpretation.
        remote: time to stream remote memory / that of local memory; None = one memory node.
        unbound: the same under contention; None = one memory node, or no contention.
        power: its fit; watts: its data.
        piecewise: constants of the piecewise-linear model; choice: the best contention model; waiting: how long
            sleeping jobs wait for a core. None = not measured.
        notes: what could not be measured, and why; limits of the numbers.
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
    speed: MeasuredNumber
    share: MeasuredNumber | None = None
    sharing: CpuSharing | None = None
    remote: MeasuredNumber | None = None
    unbound: RemoteFit | None = None
    watts: tuple[Point, ...] = ()
    power: PowerFit | None = None
    piecewise: PiecewiseFit | None = None
    choice: Choice | None = None
    waiting: WaitFit | None = None
    notes: tuple[str, ...] = ()

    @property
    def idle(self) -> bool:
        """True if the node was idle, so that the results are its own."""
        return not any(note.startswith(NOT_IDLE) for note in self.notes)


def node_type(found: Calibration, name: str) -> NodeType:
    """Return the node type of a calibration."""
    fitted: dict[str, Any] = {
        "frequency": found.frequency,
        "cpu_sharing": found.sharing,
        "remote_access_penalty": found.remote and rounded(max(1.0, penalty(found.remote, found.unbound)[0])),
        "power": found.power and found.power.power(found.sockets),
    }
    if found.waiting is not None and found.waiting.trusted:
        fitted["queueing"] = rounded(max(0.0, found.waiting.strength.value))
    if found.choice is not None and not found.choice.default:
        fitted |= {"contention": found.choice.contention, "contending_threads": found.choice.contending_threads}
        if found.choice.contention is Contention.PIECEWISE_LINEAR and found.piecewise is not None:
            constants = found.piecewise.constants
            shortened: dict[str, Any] = {name: float(f"{getattr(constants, name):.4g}") for name in NAMES}
            fitted["piecewise"] = replace(constants, **shortened)
    return NodeType(
        name,
        cores=len(found.cpus),
        memory=float(found.memory // 2**20 * 2**20),
        memory_bandwidth=rounded(found.bandwidth.most.value),
        sockets=found.sockets,
        loop_speed=rounded(found.speed.value),
        **{key: value for key, value in fitted.items() if value is not None},
    )


def penalty(remote: MeasuredNumber, unbound: RemoteFit | None) -> tuple[float, float | None]:
    """Return the cost of remote memory and half of its 95 % interval.

    Args:
        remote: by one thread.
        unbound: under contention; used if it is accurate enough.
    """
    if unbound is not None and (margin := half_width(unbound.penalty)) is not None and margin <= _SURE:
        return unbound.penalty.value, margin
    return remote.value, half_width(remote)


def cluster(found: Calibration, name: str) -> Cluster:
    """Return the calibrated node as a cluster; its type has the same name."""
    return Cluster(name, (Node(name, node_type(found, name), cpus=found.cpus),))


def rounded(value: float) -> float:
    """Return the value with three digits: few measurements are more accurate."""
    return float(f"{value:.3g}")
